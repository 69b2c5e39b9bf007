"""What rules on receive windows share: how long an open window held the sender back, and frames that show it.

In: a case. Out: HeldBack, the window's history, frame numbers. It judges no cause.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tcpwin.analysis import Direction
from tcpwin.limits.case import Case
from tcpwin.limits.rule import Threshold

MAX_FIELD = 65_535
"""The window field has 16 bits (RFC 9293 §3.1)."""
FRAMES = 6
_ROW = ("time_ns", "frame", "seq", "length", "ack", "window")
MOST_ROWS = 200_000
"""Connections with more segments are not read row by row for a frame to show."""

HELD_BACK = {
    "limited_ns": Threshold(200_000_000, "ns", "Linux's shortest retransmission timeout; less is hardly noticed."),
    "share": Threshold(
        0.2,
        "share",
        "While autotuning opens the window, it limits the sender for a few round trips: 6 % in our lab.",
    ),
    "fill": Threshold(
        0.85,
        "share",
        "Below it, round trips are a sixth longer than the path's base: a queue fills, so the path is full.",
    ),
}


class HeldBack(NamedTuple):
    """How the open receive window held a sender back.

    Attributes:
        held_ns: time in which the next segment did not fit the window that the sender knew; closed windows left out.
        share: of the time from the first to the last data.
        window_bytes: the window, mean over time.
        rtt_ns: the path's least round trip.
        ceiling_bps: one mean window a round trip.
        fill: goodput ÷ what the ceiling gives in `share` of the time. Below 1 where round trips were longer than the
            path's least: data waited in a queue.
    """

    held_ns: int
    share: float
    window_bytes: int
    rtt_ns: int
    ceiling_bps: int
    fill: float


def held_back_ns(data: Direction) -> int:
    """Time in which the open window held the sender back, as the sender saw it."""
    if data.sender_window_limited_ns is None:
        return data.window_limited_ns
    # What the sender saw of a window seen elsewhere has the closed time in it.
    return max(data.sender_window_limited_ns - data.zero_window_ns, 0)


def held_back(case: Case) -> HeldBack | None:
    """How the window held the sender back; None where it did so for less than `limited_ns` or `share`."""
    data, rtt_ns = case.data, case.connection.path_rtt_ns
    held_ns, window = held_back_ns(data), data.receive_window_mean_bytes
    if data.first_data_ns is None or data.last_data_ns is None or not window or not data.goodput_bps:
        return None
    if rtt_ns is None or rtt_ns <= 0:
        return None
    data_ns = data.last_data_ns - data.first_data_ns
    if data_ns <= 0 or held_ns < case.settings["limited_ns"] or held_ns < case.settings["share"] * data_ns:
        return None
    from tcpwin.kernel import window_rate_bps

    share = min(held_ns / data_ns, 1.0)
    ceiling_bps = round(window_rate_bps(window, rtt_ns))
    return HeldBack(
        held_ns=held_ns,
        share=share,
        window_bytes=round(window),
        rtt_ns=rtt_ns,
        ceiling_bps=ceiling_bps,
        fill=data.goodput_bps / (ceiling_bps * share) if ceiling_bps else 0.0,
    )


def largest_rate_bps(data: Direction, rtt_ns: int) -> int:
    """What the largest window that was seen carries, once a round trip: more than the mean of a window that grew."""
    from tcpwin.kernel import window_rate_bps

    return round(window_rate_bps(data.receive_window_max_bytes or 0, rtt_ns))


def is_at_field_limit(data: Direction) -> bool:
    """Whether the window came within a tenth of the most that its field and shift can say, and stayed there."""
    shift, most, mean = data.window_scale.shift, data.receive_window_max_bytes, data.receive_window_mean_bytes
    if shift is None or most is None or mean is None:
        return False
    # Many stacks advertise whole segments: 64,240 are 44 × 1,460.
    return most >= 0.9 * (MAX_FIELD << shift) and mean >= 0.8 * most


def stood_still(data: Direction) -> bool:
    """Whether the window stayed near its largest: what is not read would have made it fall."""
    return (data.receive_window_mean_bytes or 0) >= 0.7 * (data.receive_window_max_bytes or 0)


def drained_share(case: Case) -> float:
    """Share of the time in which the window was below half of what it had been: unread data filled the buffer.

    Reads the source, where that may be. A window that autotuning opens never falls so far.
    """
    import numpy as np

    if not case.may_follow_series:
        data = case.data
        # By the fields alone: a window whose mean is below half of its largest was there for most of the time.
        return float(2 * (data.receive_window_mean_bytes or 0) < (data.receive_window_max_bytes or 0))
    series = case.connection.series("receive_window", direction=case.direction or "a_to_b")
    if len(series) == 0:
        return 0.0
    widths = np.diff(series.time_ns, append=case.connection.end_ns)
    total = int(widths.sum())
    low = series.last * 2 < np.maximum.accumulate(series.max)
    return float(widths[low].sum() / total) if total > 0 else 0.0


FULL_FRAMES_OF = "data that left no room for more in the window"
"""What `full_frames` gives, in words."""
AFTER_SYN = f"the first packet, then {FULL_FRAMES_OF}"
"""The same after the packet that a connection began with."""


def full_frames(case: Case, limit: int = FRAMES) -> tuple[int, ...]:
    """Frames whose data left less than a segment's room in the window that the sender knew; from all the time.

    Reads the source. Near the sender these end at the right edge, or just below it. Elsewhere the sender knew an edge
    only later than it was captured, and the frames end at the edge of that much earlier.
    """
    data = case.data
    if data.sender_window_limited_ns is None:
        found = [event.frame for event in case.events("window_full", side=case.sender)]
        if found:
            return spread(found, limit)
    return spread(_near_the_edge(case), limit)


def _near_the_edge(case: Case) -> list[int]:
    import numpy as np

    mss_bytes, later_ns = case.data.mss_bytes, case.data.sender_shift_ns or 0
    table = case.table()
    if table is None:
        return []
    columns = [np.ma.filled(table[name].astype(np.int64), -1).tolist() for name in _ROW]
    edges: deque[tuple[int, int]] = deque()
    known: int | None = None
    found = []
    for from_sender, time_ns, frame, seq, length, ack, window in zip(
        (table["direction"] == case.sender).tolist(), *columns, strict=True
    ):
        if not from_sender:
            if ack >= 0 and window >= 0:
                edges.append((time_ns + later_ns, ack + window))
            continue
        while edges and edges[0][0] <= time_ns:
            known = edges.popleft()[1]
        # Sequence numbers wrap around: RFC 9293 §3.4.
        if length > 0 and known is not None and (known - seq - length) % (1 << 32) < mss_bytes:
            found.append(frame)
    return found


def is_shown(case: Case, frames: tuple[int, ...]) -> bool:
    """Whether packets show that the window was reached: without them nothing is claimed. Not all can be looked at."""
    return bool(frames) or case.table() is None


def spread(frames: list[int], limit: int = FRAMES) -> tuple[int, ...]:
    """At most so many of them, the first and the last with them."""
    if len(frames) <= limit:
        return tuple(frames)
    return tuple(frames[index * (len(frames) - 1) // (limit - 1)] for index in range(limit))


def confidence_of(case: Case) -> str:
    """`certain` where the capture shows the sender's flight, or its kernel agrees; else `likely`."""
    return "certain" if case.data.view == "sender" or kernel_held_back_ns(case) else "likely"


def kernel_held_back_ns(case: Case) -> int | None:
    """Time that the sender's kernel counts for the receive window (`rwnd_limited`); None without its samples."""
    for sample in reversed(case.sockets(case.sender)):
        if sample.busy_ns:
            return sample.count("rwnd_limited_ns")
    return None


def kernel_denies(case: Case, held_ns: int) -> bool:
    """Whether the sender's kernel, asked late enough, counts less than a quarter of that time."""
    counted = kernel_held_back_ns(case)
    busy_ns = max((sample.busy_ns or 0 for sample in case.sockets(case.sender)), default=0)
    return counted is not None and busy_ns >= held_ns and counted * 4 < held_ns
