"""The exchanges of a conversation: each request with its answer, and whose time passed between them.

In: one connection's segments as columns. Out: Exchanges, one entry per request that was answered. A request is data of
a until b sends data that acknowledges all of it; its answer is the data of b until a's next.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis.connection import MeasuredConnection

COLUMNS = ("frame", "time_ns", "direction", "seq", "ack", "length")
"""Columns of the segments that this reads."""


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Exchanges in order, as arrays of one length. Times are in nanoseconds.

    Attributes:
        request_frame, request_end_frame: first and last segment of the request.
        answer_frame, answer_end_frame: first and last segment of the answer.
        start_ns: time of the request's first segment at the capture point.
        think_ns: from when a had the last answer to when it asked; 0 for the first request.
        request_ns: from the first to the last segment of the request.
        path_ns: part of the wait for the answer that is the round trip between the capture point and b, and of the wait
            for the request that is the one between the capture point and a.
        work_ns: from when b had the request to when it sent the first byte of the answer.
        transfer_ns: from the first to the last segment of the answer.
        request_bytes, answer_bytes: payload of each.
    """

    request_frame: NDArray[np.int64]
    request_end_frame: NDArray[np.int64]
    answer_frame: NDArray[np.int64]
    answer_end_frame: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    think_ns: NDArray[np.int64]
    request_ns: NDArray[np.int64]
    path_ns: NDArray[np.int64]
    work_ns: NDArray[np.int64]
    transfer_ns: NDArray[np.int64]
    request_bytes: NDArray[np.int64]
    answer_bytes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)

    def rows(self) -> list[dict[str, int]]:
        """Return the exchanges as dictionaries."""
        columns = {each.name: getattr(self, each.name).tolist() for each in fields(self)}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def exchanges_of(connection: MeasuredConnection, table: Any) -> Exchanges:
    """Find the exchanges of a connection.

    Args:
        table: the connection's segments, with at least `COLUMNS`.
    """
    import numpy as np

    lengths = np.asarray(table["length"], dtype=np.int64)
    rows = np.flatnonzero(lengths > 0)
    is_asking = np.asarray(table["direction"])[rows] == "a"
    times_ns, frames = (np.asarray(table[name])[rows].astype(np.int64) for name in ("time_ns", "frame"))
    ends = np.asarray(table["seq"])[rows].astype(np.int64) + lengths[rows]
    acks = np.asarray(table["ack"])[rows].astype(np.int64)
    # Runs of data of one side.
    begins = np.flatnonzero(np.diff(is_asking, prepend=~is_asking[:1]) != 0) if len(rows) else rows
    lasts = np.append(begins[1:], len(rows)) - 1 if len(rows) else rows
    requests = np.flatnonzero(is_asking[begins][:-1])
    first, last = begins[requests], lasts[requests]
    answer, answer_end = begins[requests + 1], lasts[requests + 1]
    # The answer acknowledges the whole request, else the two crossed. Numbers are taken modulo 2³².
    ahead = (acks[answer] - ends[last] + (1 << 31)) % (1 << 32) - (1 << 31)
    kept = ahead >= 0
    first, last, answer, answer_end = first[kept], last[kept], answer[kept], answer_end[kept]
    legs_ns = [_leg_ns(connection, side) for side in ("a", "b")]
    before = np.maximum(first - 1, 0)
    gaps_ns = np.where(first > 0, times_ns[first] - times_ns[before], 0) if len(first) else times_ns[first]
    waits_ns = times_ns[answer] - times_ns[last]
    there_ns, back_ns = np.minimum(waits_ns, legs_ns[1]), np.minimum(gaps_ns, legs_ns[0])
    sums = np.concatenate(([0], np.cumsum(lengths[rows])))
    return Exchanges(
        request_frame=frames[first],
        request_end_frame=frames[last],
        answer_frame=frames[answer],
        answer_end_frame=frames[answer_end],
        start_ns=times_ns[first],
        think_ns=gaps_ns - back_ns,
        request_ns=times_ns[last] - times_ns[first],
        path_ns=there_ns + back_ns,
        work_ns=waits_ns - there_ns,
        transfer_ns=times_ns[answer_end] - times_ns[answer],
        request_bytes=sums[last + 1] - sums[first],
        answer_bytes=sums[answer_end + 1] - sums[answer],
    )


def _leg_ns(connection: MeasuredConnection, side: str) -> int:
    """Return the round trip between the capture point and a side; 0 if unknown."""
    direction = connection.a_to_b if side == "a" else connection.b_to_a
    return direction.sender_shift_ns or 0
