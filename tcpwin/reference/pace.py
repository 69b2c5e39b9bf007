"""A transfer's rate second by second, and the names of the references' workloads.

In: acknowledged bytes with their times. Out: rates of whole seconds, and whether they oscillate.
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
"""Share of the best second: the published reader takes 5 % of it in slow seconds; a start or a stall may cost half."""
LEAST_FAST_SECONDS = 2
"""15 of 60 by design; a queue that dropped may cost those of all loops but the first, and slow start some of these."""
LEAST_SLOW = 0.3
"""Share of slow seconds; 45 of 60 by design."""
LEAST_SLOW_RUN = 5
"""Consecutive slow seconds; 15 by design."""
LEAST_SECONDS = 20
"""One loop of the published reader."""
MOST_STEPS = 100_000
"""More seconds than a day has, because a jumping clock could create any number."""
LONGEST_STEP_NS = LEAST_SLOW_RUN * SECOND_NS
"""Longer steps would mix fast and slow seconds of a loop."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A transfer's rates by second, or by longer steps if no more is known.

    Attributes:
        rates_bps: payload acknowledged in each whole step from the first, bits per second.
        step_ns: length of a step.
    """

    rates_bps: tuple[float, ...]
    step_ns: int = SECOND_NS

    @property
    def best_bps(self) -> float | None:
        """Return the best step's rate."""
        return max(self.rates_bps, default=0.0) or None

    @property
    def oscillates(self) -> bool:
        """Whether fast and slow seconds alternate, as with the published reader."""
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
    """Compute rates from ordered times in nanoseconds and the bytes of each.

    Args:
        width_ns: time over which the bytes of one entry arrived; if above a second, it is the step.
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
    # The last step is incomplete and would look slow.
    rates = (steps.get(place, 0) * 8e9 / step_ns for place in range(max(steps)))
    return Pace(tuple(rates), step_ns)


def _longest(flags: Sequence[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest
