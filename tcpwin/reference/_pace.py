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


@dataclass(frozen=True, slots=True)
class Pace:
    """A transfer by its seconds.

    Attributes:
        rates_bps: payload acknowledged in each whole second from the first, bits per second.
    """

    rates_bps: tuple[float, ...]

    @property
    def best_bps(self) -> float | None:
        """The best second's."""
        return max(self.rates_bps, default=0.0) or None

    @property
    def oscillates(self) -> bool:
        """Whether fast seconds alternate with slow ones, as under the published reader."""
        best = self.best_bps
        if best is None or len(self.rates_bps) < LEAST_SECONDS:
            return False
        fast = [rate >= FAST_SHARE * best for rate in self.rates_bps]
        slow = [rate <= SLOW_SHARE * best for rate in self.rates_bps]
        count = len(self.rates_bps)
        return sum(fast) >= LEAST_FAST_SECONDS and sum(slow) >= LEAST_SLOW * count and _longest(slow) >= LEAST_SLOW_RUN


def pace_of(progress: Iterable[tuple[int, int]]) -> Pace:
    """Rates from times in nanoseconds, in order, and the bytes that each brought."""
    seconds: dict[int, int] = {}
    first = None
    for time_ns, count in progress:
        first = time_ns if first is None else first
        place = (time_ns - first) // SECOND_NS
        seconds[place] = seconds.get(place, 0) + count
    # The last second is not whole, and would look slow.
    return Pace(tuple(seconds.get(place, 0) * 8.0 for place in range(max(seconds, default=0))))


def _longest(flags: Sequence[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest
