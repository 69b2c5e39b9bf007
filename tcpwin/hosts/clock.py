"""The offset between a host's clock and the capture's, from the bytes that both count.

In: for samples of a host's sockets, the times before and after which each must have been taken, by the capture's clock.
Out: ClockOffset. Data that had reached the host was captured no later than the sample (`bytes_acked`,
`bytes_received`); data that it had not sent yet was captured no earlier (`bytes_sent`, its ACKs). So each sample bounds
the offset from both sides, wherever the capture was made, to within the round trip between host and capture point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpwin.errors import ArgumentError

READ_NS = 1_000_000
"""Usual delay between a sample's stamp and the reading of its socket: smaller offsets count as zero."""
READ_WITHIN_NS = (200_000, 1_000_000, 5_000_000, 20_000_000, 100_000_000)
"""Delays between a sample's time and the reading of its sockets, tried in order."""
WHOLE_STAMP_NS = 1_000_000_000
"""Stamps in whole seconds, such as those of `date`, precede their samples by up to this."""
AGREEING_SHARE = 0.9
"""Share of the bounds that must hold; the others may be wrong (a segment that the capture lost, a counter read
late).
"""
DRIFT_SHARE = 0.02
"""Share of additional samples that a drift must explain before it is assumed."""
DRIFTS_PPM = range(-200, 201, 5)
"""Drifts between two hosts' clocks: a crystal is off by up to 100 ppm, a clock being adjusted by up to 500."""
MAX_OFFSET_NS = 100 * 366 * 86_400 * 1_000_000_000
_UNBOUNDED_NS = 1 << 62
_FURTHEST_NS = 1 << 61


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of offsets that one sample allows, at its time by the host's clock; None means unbounded."""

    least_ns: int | None
    most_ns: int | None
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The capture's clock minus the host's, in nanoseconds.

    Attributes:
        offset_ns: added to a sample's time, gives the capture's time.
        least_ns, most_ns: its bounds from the first sample to the last, including a drift of up to 200 ppm and stamps
            in whole seconds; None if the samples set no bound.
        method: ``given``; ``estimated``; ``same_clock``, if the bounds allow zero, as for a capture made on the host
            itself; or ``assumed`` zero, if the samples say nothing, bound only one side, or contradict each other.
        samples: number of samples that set bounds.
        agreeing: number of them that allow the offset.
    """

    offset_ns: int
    least_ns: int | None
    most_ns: int | None
    method: str
    samples: int
    agreeing: int

    @property
    def uncertainty_ns(self) -> int | None:
        """Return the maximum error of the offset, or None if unbounded."""
        if self.method == "given":
            return 0
        if self.least_ns is None or self.most_ns is None:
            return None
        return max(self.most_ns - self.offset_ns, self.offset_ns - self.least_ns)


CONTRADICTION = Bounds(_FURTHEST_NS, -_FURTHEST_NS)
"""Bounds of a sample that no offset can reconcile with the capture."""


def given(offset_ns: int) -> ClockOffset:
    """Return a known offset.

    Raises:
        ArgumentError: the offset exceeds a century.
    """
    if abs(offset_ns) > MAX_OFFSET_NS:
        raise ArgumentError("a clock offset cannot exceed a century")
    return ClockOffset(offset_ns, offset_ns, offset_ns, "given", 0, 0)


def estimate(bounds: Iterable[Bounds]) -> ClockOffset:
    """Return the offset that most samples allow."""
    known = [each for each in bounds if each.least_ns is not None or each.most_ns is not None]
    if not known:
        return ClockOffset(0, None, None, "assumed", 0, 0)
    least = np.array([_whole(each.least_ns, -_UNBOUNDED_NS) for each in known], dtype=np.int64)
    most = np.array([_whole(each.most_ns, _UNBOUNDED_NS) for each in known], dtype=np.int64)
    middle_ns = (min(each.time_ns for each in known) + max(each.time_ns for each in known)) // 2
    times = np.array([_whole(each.time_ns - middle_ns, 0) for each in known], dtype=np.int64)
    enough = AGREEING_SHARE * len(known)
    coarse_ns = 0 if any(each.time_ns % WHOLE_STAMP_NS for each in known) else WHOLE_STAMP_NS
    found: dict[int, _Stretch] = {}
    late_ns = 0
    for late_ns in READ_WITHIN_NS:
        early = least - (late_ns + coarse_ns)
        found = {ppm: _overlap(*_turned(early, most, times, ppm)).later(coarse_ns) for ppm in DRIFTS_PPM}
        if max(each.agreeing for each in found.values()) >= enough:
            break
    agreeing = max(each.agreeing for each in found.values())
    if agreeing < enough:
        return ClockOffset(0, None, None, "assumed", len(known), agreeing)
    steady = found[0]
    is_steady = steady.agreeing >= max(enough, agreeing - DRIFT_SHARE * len(known))
    if steady.allows_zero and is_steady:
        method = "assumed" if steady.is_open else "same_clock"
        return ClockOffset(0, steady.least_ns, steady.most_ns, method, len(known), steady.agreeing)
    half_ns = int(np.abs(times).max())
    # A drift represents its neighbours; bounds that need late reads are only as precise as those delays.
    doubt_ns = DRIFTS_PPM.step * half_ns // 1_000_000 + (late_ns if late_ns > READ_WITHIN_NS[0] else 0)
    whole = _hull(
        each.widened(abs(ppm) * half_ns // 1_000_000 + doubt_ns)
        for ppm, each in found.items()
        if each.agreeing == agreeing or (ppm == 0 and each.agreeing >= enough)
    )
    if whole.least_ns is None or whole.most_ns is None:
        return ClockOffset(0, whole.least_ns, whole.most_ns, "assumed", len(known), agreeing)
    middle = (whole.least_ns + whole.most_ns) // 2
    return ClockOffset(middle, whole.least_ns, whole.most_ns, "estimated", len(known), agreeing)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A range of offsets that an equal number of samples allow."""

    agreeing: int
    least_ns: int | None
    most_ns: int | None

    @property
    def is_open(self) -> bool:
        """Whether it is unbounded on one side."""
        return self.least_ns is None or self.most_ns is None

    @property
    def allows_zero(self) -> bool:
        return (self.least_ns is None or self.least_ns <= READ_NS) and (self.most_ns is None or self.most_ns >= 0)

    def later(self, by_ns: int) -> _Stretch:
        """Return the range with its end moved later."""
        return _Stretch(self.agreeing, self.least_ns, None if self.most_ns is None else self.most_ns + by_ns)

    def widened(self, by_ns: int) -> _Stretch:
        return _Stretch(
            self.agreeing,
            None if self.least_ns is None else self.least_ns - by_ns,
            None if self.most_ns is None else self.most_ns + by_ns,
        )


def _hull(stretches: Iterable[_Stretch]) -> _Stretch:
    """Return the range that covers all of them."""
    every = list(stretches)
    least = [each.least_ns for each in every if each.least_ns is not None]
    most = [each.most_ns for each in every if each.most_ns is not None]
    return _Stretch(
        0,
        min(least) if len(least) == len(every) else None,
        max(most) if len(most) == len(every) else None,
    )


def _whole(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else max(min(value, _FURTHEST_NS), -_FURTHEST_NS)


def _turned(
    least: NDArray[np.int64], most: NDArray[np.int64], times: NDArray[np.int64], ppm: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds projected to the middle of the samples' time, for clocks that drift."""
    moved = times // 1_000_000 * ppm
    return (
        np.where(least < -_FURTHEST_NS, -_UNBOUNDED_NS, least - moved),
        np.where(most > _FURTHEST_NS, _UNBOUNDED_NS, most - moved),
    )


def _overlap(least: NDArray[np.int64], most: NDArray[np.int64]) -> _Stretch:
    """Return the range that most bounds allow; a tie goes to the one around zero."""
    possible = least <= most
    count = int(possible.sum())
    if not count:
        return _Stretch(0, None, None)
    edges = np.concatenate([least[possible], most[possible]])
    steps = np.concatenate([np.ones(count, dtype=np.int64), -np.ones(count, dtype=np.int64)])
    # At equal times starts sort before ends, because bounds are inclusive.
    order = np.lexsort((-steps, edges))
    edges = edges[order]
    depths = np.cumsum(steps[order])
    [deepest] = np.nonzero(depths == depths.max())
    begins, ends = edges[deepest], edges[deepest + 1]
    # Of several equally good ranges return their hull, unless one of them allows zero.
    around_zero = np.nonzero((begins <= 0) & (ends >= 0))[0]
    first, last = (int(around_zero[0]), int(around_zero[0])) if len(around_zero) else (0, -1)
    begin_ns, end_ns = int(begins[first]), int(ends[last])
    return _Stretch(
        int(depths.max()),
        None if begin_ns < -_FURTHEST_NS else begin_ns,
        None if end_ns > _FURTHEST_NS else end_ns,
    )
