"""Helpers for rules on receive windows: how long an open window held the sender back, and frames that show it.

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
"""Connections with more segments are not searched row by row for frames to show."""

HELD_BACK = {
    "limited_ns": Threshold(200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."),
    "share": Threshold(
        0.2,
        "share",
        "While autotuning opens the window, it limits the sender for a few round trips: 6 % in the lab.",
    ),
    "fill": Threshold(
        0.85,
        "share",
        "Below this, round trips are a sixth longer than the path's base: a queue has built up, so the path is full.",
    ),
}


class HeldBack(NamedTuple):
    """Time and rate lost to an open receive window.

    Attributes:
        held_ns: time in which the next segment did not fit the window known to the sender, without closed windows.
        share: share of the time from the first to the last data.
        window_bytes: time average of the window.
        rtt_ns: the path's minimum round trip.
        ceiling_bps: one mean window per round trip.
        fill: goodput ÷ (ceiling × `share`). Below 1 if round trips exceeded the path's minimum because data queued.
    """

    held_ns: int
    share: float
    window_bytes: int
    rtt_ns: int
    ceiling_bps: int
    fill: float


def held_back_ns(data: Direction) -> int:
    """Return the time in which the open window held the sender back, in the sender's view."""
    if data.sender_window_limited_ns is None:
        return data.window_limited_ns
    # The sender's view derived from another capture point includes the closed time.
    return max(data.sender_window_limited_ns - data.zero_window_ns, 0)


def held_back(case: Case) -> HeldBack | None:
    """Return how the window held the sender back, or None if for less than `limited_ns` or `share`."""
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
    """Return the rate of the largest window per round trip; it exceeds the mean of a growing window."""
    from tcpwin.kernel import window_rate_bps

    return round(window_rate_bps(data.receive_window_max_bytes or 0, rtt_ns))


def is_at_field_limit(data: Direction) -> bool:
    """Whether the window reached 90 % of the most that its field and shift can express, and stayed there."""
    shift, most, mean = data.window_scale.shift, data.receive_window_max_bytes, data.receive_window_mean_bytes
    if shift is None or most is None or mean is None:
        return False
    # Many stacks advertise whole segments: 64,240 are 44 × 1,460.
    return most >= 0.9 * (MAX_FIELD << shift) and mean >= 0.8 * most


def stood_still(data: Direction) -> bool:
    """Whether the window stayed near its maximum: unread data would have made it fall."""
    return (data.receive_window_mean_bytes or 0) >= 0.7 * (data.receive_window_max_bytes or 0)


def drained_share(case: Case) -> float:
    """Return the share of time in which unread data had pushed the window below half of its previous size.

    Reads the source if allowed. A window that autotuning opens never falls so far.
    """
    if not case.may_follow_series:
        data = case.data
        # From the fields alone: if the mean is below half of the maximum, and data arrived after the window had fallen,
        # the window was mostly there.
        is_below = 2 * (data.receive_window_mean_bytes or 0) < (data.receive_window_max_bytes or 0)
        return float(is_below and data.window_low_acked_bytes > 0)
    import numpy as np

    series = case.connection.series("receive_window", direction=case.direction or "a_to_b")
    if len(series) == 0:
        return 0.0
    widths = np.diff(series.time_ns, append=case.connection.end_ns)
    total = int(widths.sum())
    low = series.last * 2 < np.maximum.accumulate(series.max)
    return float(widths[low].sum() / total) if total > 0 else 0.0


FULL_FRAMES_OF = "segments that filled the window"
"""Description of the frames that `full_frames` returns."""
AFTER_SYN = f"the first packet, then {FULL_FRAMES_OF}"
"""The same description, preceded by the connection's first packet."""


def full_frames(case: Case, limit: int = FRAMES) -> tuple[int, ...]:
    """Return frames, from the whole connection, whose data left less than a segment of the sender's known window.

    Reads the source. Near the sender they end at or just below the right edge. Elsewhere the sender learned of an edge
    later than it was captured, so the frames end at the edge captured that much earlier.
    """
    data = case.data
    if data.sender_window_limited_ns is None:
        found = [event.frame for event in case.events("window_full", side=case.sender)]
        if found:
            return spread(found, limit)
    return spread(_near_the_edge(case), limit)


def _near_the_edge(case: Case) -> list[int]:
    mss_bytes, later_ns = case.data.mss_bytes, case.data.sender_shift_ns or 0
    table = case.table()
    if table is None:
        return []
    import numpy as np

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
    """Whether packets show that the window was reached, or there are too many to read."""
    return bool(frames) or case.table() is None


def spread(frames: list[int], limit: int = FRAMES) -> tuple[int, ...]:
    """Return at most `limit` frames, including the first and last."""
    if len(frames) <= limit:
        return tuple(frames)
    return tuple(frames[index * (len(frames) - 1) // (limit - 1)] for index in range(limit))


def confidence_of(case: Case) -> str:
    """Return `certain` if the capture shows the sender's flight or its kernel agrees, else `likely`."""
    return "certain" if case.data.view == "sender" or kernel_held_back_ns(case) else "likely"


def kernel_held_back_ns(case: Case) -> int | None:
    """Return the time that the sender's kernel counted as `rwnd_limited`, or None without samples."""
    for sample in reversed(case.sockets(case.sender)):
        if sample.busy_ns:
            return sample.count("rwnd_limited_ns")
    return None


def kernel_denies(case: Case, held_ns: int) -> bool:
    """Whether the sender's kernel, sampled late enough, counts less than a quarter of that time."""
    counted = kernel_held_back_ns(case)
    busy_ns = max((sample.busy_ns or 0 for sample in case.sockets(case.sender)), default=0)
    return counted is not None and busy_ns >= held_ns and counted * 4 < held_ns
