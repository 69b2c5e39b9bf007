"""Find a bottleneck before the capture point, from segments that were sent together and arrived evenly spaced.

In: a case. Out: Shaping, or None. Near the sender, segments that leave together are captured together; if they are
spaced evenly, something between the sender and the capture point spaced them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import SYN, Packets, packets_of, unwrapped

if TYPE_CHECKING:
    from tcpwin.limits.evidence.packets import Numbers

FEWEST = 50
"""Even gaps between segments."""
EVEN = 0.15
"""Relative difference from the median time per byte that counts as even."""
EVEN_SHARE = 0.5
TOGETHER_SHARE = 0.4
"""Share of the even gaps whose two segments were sent within a quarter of the gap, by their timestamps."""
TOGETHER = 0.25
QUEUED_GAPS = 3.0
"""Spread of the delay since the timestamps, in gaps, that shows a queue before the capture point."""
LEAST_GAP_NS = 2_000_000
"""Shorter gaps are within the ticks of most timestamp clocks (RFC 7323 section 5.4: 1 ms to 1 s)."""


class Shaping(NamedTuple):
    """An even rate before the capture point.

    Attributes:
        rate_bps: payload per second between the evenly spaced segments.
        gaps, even, together: gaps between data segments; those of the usual time per byte; those of them whose segments
            were sent together.
        even_ns: time in even gaps.
        lag_ns: spread of the delay since the segments' timestamps, without drift (5th to 95th percentile).
        frames: frames of the first evenly spaced segments.
    """

    rate_bps: float
    gaps: int
    even: int
    together: int
    even_ns: int
    lag_ns: int
    frames: tuple[int, ...]


def find_shaping(case: Case) -> Shaping | None:
    """Return the shaping before the capture point, or None if the packets show none."""
    return case.reading.derive("shaping", case.connection.id, case.sender, lambda: _find(case, packets_of(case)))


def _find(case: Case, packets: Packets | None) -> Shaping | None:
    if packets is None:
        return None
    import numpy as np

    own = packets.sent_by(case.sender)
    own = own.of((own["length"] > 0) & ~own.has(SYN) & (own["tsval"] >= 0))
    if len(own) <= FEWEST:
        return None
    start = unwrapped(own["seq"], int(own["seq"][0]))
    own = own.of(start >= np.maximum.accumulate(start))
    times, lengths = own["time_ns"], own["length"]
    gaps, per_byte = np.diff(times), np.diff(times) / lengths[1:]
    sent_ns = _sent_ns(own)
    if sent_ns is None or not len(gaps):
        return None
    usual = float(np.median(per_byte))
    even = (np.abs(per_byte - usual) <= EVEN * usual) & (gaps >= LEAST_GAP_NS)
    together = even & (np.diff(sent_ns) <= TOGETHER * gaps)
    if even.sum() < FEWEST or even.sum() < EVEN_SHARE * len(gaps):
        return None
    # Two clocks drift apart evenly; a queue grows and shrinks.
    lags = times - sent_ns
    drift = np.polyfit(times - times[0], lags, 1)
    low, high = np.percentile(lags - np.polyval(drift, times - times[0]), [5, 95])
    if together.sum() < TOGETHER_SHARE * even.sum() and high - low < QUEUED_GAPS * float(np.median(gaps)):
        return None
    places = np.flatnonzero(even)[:6]
    return Shaping(
        8e9 * float(lengths[1:][even].sum()) / float(gaps[even].sum()),
        len(gaps),
        int(even.sum()),
        int(together.sum()),
        int(gaps[even].sum()),
        int(high - low),
        tuple(int(frame) for frame in own["frame"][places + 1]),
    )


def _sent_ns(own: Packets) -> Numbers | None:
    """Return when segments were sent by their timestamps, relative to the first; None if the clock is unknown."""
    import numpy as np

    ticks = unwrapped(own["tsval"], int(own["tsval"][0]))
    passed = int(ticks[-1] - ticks[0])
    lasted_ns = int(own["time_ns"][-1] - own["time_ns"][0])
    if passed < FEWEST or lasted_ns <= 0:
        return None
    # Clocks tick at round frequencies; the nearest is the sender's.
    tick_ns = min(
        (1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000), key=lambda ns: abs(np.log(passed * ns / lasted_ns))
    )
    if abs(passed * tick_ns / lasted_ns - 1) > 0.1:
        return None
    sent: Numbers = ticks * tick_ns
    return sent
