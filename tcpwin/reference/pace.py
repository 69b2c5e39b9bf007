"""How a transfer's rate went, second by second, and the names of the references' workloads.

In: bytes that were acknowledged, with their times. Out: rates of whole seconds, and whether they oscillate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SECOND_NS = 1_000_000_000
OSCILLATING = "oscillating-reader"
BULK = "iperf3"
MESSAGES = "messages"
FAST_SHARE = 0.5
SLOW_SHARE = 0.25
"""Of the best second: the published reader takes 5 % of it in slow seconds, and a start or a stall may cost half."""
LEAST_FAST_SECONDS = 2
"""15 of 60 by design; a queue that dropped may cost those of all loops but the first, and slow start some of these."""
LEAST_SLOW = 0.3
"""Of all seconds; 45 of 60 by design."""
LEAST_SLOW_RUN = 5
"""Seconds that are slow one after the other; 15 by design."""
LEAST_SECONDS = 20
"""One loop of the published reader."""
MOST_STEPS = 100_000
"""Seconds of more than a day; a clock that jumps would make any number of them."""
LONGEST_STEP_NS = LEAST_SLOW_RUN * SECOND_NS
"""Longer ones hold fast and slow seconds of a loop together."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A transfer by its seconds, or by longer steps where no more is known of it.

    Attributes:
        rates_bps: payload acknowledged in each whole step from the first, bits per second.
        step_ns: how long a step is.
    """

    rates_bps: tuple[float, ...]
    step_ns: int = SECOND_NS

    @property
    def best_bps(self) -> float | None:
        """The best step's."""
        return max(self.rates_bps, default=0.0) or None

    @property
    def oscillates(self) -> bool:
        """Whether fast seconds alternate with slow ones, as under the published reader."""
        best = self.best_bps
        if best is None or len(self.rates_bps) < LEAST_SECONDS or self.step_ns > LONGEST_STEP_NS:
            return False
        fast = [rate >= FAST_SHARE * best for rate in self.rates_bps]
        slow = [rate <= SLOW_SHARE * best for rate in self.rates_bps]
        count, step = len(self.rates_bps), self.step_ns / SECOND_NS
        if sum(fast) * step < LEAST_FAST_SECONDS or sum(slow) < LEAST_SLOW * count:
            return False
        return _longest(slow) * step >= LEAST_SLOW_RUN


def pace_of(progress: Iterable[tuple[int, int]], *, width_ns: int = 1) -> Pace:
    """Rates from times in nanoseconds, in order, and the bytes that each brought.

    Args:
        width_ns: for how long the bytes of a time came in: where it is more than a second, it is the step.
    """
    amounts = list(progress)
    if not amounts:
        return Pace(())
    first_ns = amounts[0][0]
    step_ns = max(SECOND_NS, width_ns, (amounts[-1][0] - first_ns) // MOST_STEPS)
    steps: dict[int, int] = {}
    for time_ns, count in amounts:
        place = (time_ns - first_ns) // step_ns
        steps[place] = steps.get(place, 0) + count
    # The last step is not whole, and would look slow.
    rates = (steps.get(place, 0) * 8e9 / step_ns for place in range(max(steps)))
    return Pace(tuple(rates), step_ns)


def _longest(flags: Sequence[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest
