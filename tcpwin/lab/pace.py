"""The pace of a capture's own applications, as traces that the workload `transfer` replays.

In: a connection whose packets can be read again. Out: from when on how many bytes the writer had written, or the reader
could have read. Only the times in which that side was waited for bind: between them it is as fast as the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import BudgetSeries, Direction, DirectionName
from tcpwin.limits import Connection

BUCKETS = 4096
"""Of the series that are read: a pace of a millisecond for four seconds."""
MOST_STEPS = 400
"""Of a trace: more make no other run, only a longer file."""
_WRITER = ("application",)
_READER = ("zero_window", "small_window", "window_full", "reader")
CLOCKED_NS = 1_000_000
"""After an ACK: what is sent sooner waited for it, at most an eighth of a round trip."""
LONG_US = 50_000
"""A step before a longer wait is one of its own, however small."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A pace: `until_bytes` of the data are there from `after_us` on, counted from when the connection stands."""

    after_us: tuple[int, ...]
    until_bytes: tuple[int, ...]


def writer_trace(connection: Connection, direction: DirectionName, round_trip_ns: float) -> Trace | None:
    """When the writer had how much written; None where it never was waited for: then what was sent was written."""
    data = _data(connection, direction)
    view = connection.view(buckets=BUCKETS)
    sent = view.series("sequence", direction=direction)
    # Away from the sender its data come half a round trip late, and its connection stands half a one earlier.
    zero_ns = connection.start_ns + round_trip_ns * (2 if data.view == "receiver" else 1)
    written = np.maximum.accumulate(sent.max) - 1
    time_ns = sent.time_ns
    acked = view.series("acknowledged", direction=direction)
    if data.view != "receiver" and len(acked) and len(time_ns):
        rising = np.diff(acked.max, prepend=acked.max[0]) > 0
        time_ns = _when_written(time_ns, acked.time_ns[rising], round_trip_ns)
    return _trace(_intervals(view.budget(direction=direction), _WRITER), time_ns, written, zero_ns, data)


def _when_written(sent_ns: NDArray[np.int64], acked_ns: NDArray[np.int64], round_trip_ns: float) -> NDArray[np.int64]:
    """What an ACK let go had been written before: with the last that left by itself, at most two round trips sooner."""
    if not len(acked_ns):
        return sent_ns
    last = np.maximum(np.searchsorted(acked_ns, sent_ns, side="right") - 1, 0)
    since_ns = sent_ns - acked_ns[last]
    is_clocked = (since_ns >= 0) & (since_ns <= min(round_trip_ns / 8, CLOCKED_NS))
    written_ns = np.maximum.accumulate(np.where(is_clocked, sent_ns[0], sent_ns))
    return np.asarray(np.maximum(written_ns, sent_ns - round(2 * round_trip_ns)), dtype=np.int64)


def reader_trace(
    connection: Connection, direction: DirectionName, round_trip_ns: float, *, held_share: float
) -> Trace | None:
    """When the reader could have read how much; None where it never was waited for.

    A window that is as large as ever is of an empty buffer. What it is less has arrived and waits unread, more of it
    where packets take less memory than the window reckons with.

    Args:
        held_share: bytes that wait unread for each byte that the window is less, in the kernel that replays the trace:
            then it offers what was offered, whatever packets cost where they were captured.
    """
    view = connection.view(buckets=BUCKETS)
    edge, window = (view.series(name, direction=direction) for name in ("right_edge", "receive_window"))
    if not len(edge) or not len(window):
        return None
    largest = _at(window.time_ns, np.maximum.accumulate(window.max), edge.time_ns)
    offered = np.minimum(_at(window.time_ns, window.last, edge.time_ns), largest)
    unread = (held_share * (largest - offered)).astype(np.int64)
    read = np.maximum.accumulate(edge.last - 1 - offered - unread)
    zero_ns = connection.start_ns + round_trip_ns
    waits = _intervals(view.budget(direction=direction), _READER)
    if len(waits):
        read = np.maximum(read - _unseen_bytes(connection, direction, edge.time_ns, read, int(waits[-1, 1])), 0)
    return _trace(waits, edge.time_ns, read, zero_ns, _data(connection, direction))


def _unseen_bytes(
    connection: Connection, direction: DirectionName, time_ns: NDArray[np.int64], read: NDArray[np.int64], last_ns: int
) -> int:
    """How much more waited unread than windows show, by a reader that closed: until then it read what was left.

    A buffer that grew while it never was empty holds more than twice the largest window that was offered.
    """
    data = _data(connection, direction)
    back = connection.b_to_a if direction == "a_to_b" else connection.a_to_b
    final = int(np.searchsorted(read, read[-1]))
    end_ns = int(time_ns[final])
    before = int(np.searchsorted(time_ns, end_ns - max((end_ns - connection.start_ns) // 10, 1)))
    tail_ns = connection.end_ns - end_ns
    if not (back.fin or back.rst) or last_ns < end_ns or end_ns <= time_ns[before] or tail_ns <= 0:
        return 0
    pace = (read[final] - read[before]) / (end_ns - time_ns[before])
    waited = pace * tail_ns
    return max(int(read[final] - (data.unique_bytes - waited)), 0) if waited < data.unique_bytes / 2 else 0


def _data(connection: Connection, direction: DirectionName) -> Direction:
    return connection.a_to_b if direction == "a_to_b" else connection.b_to_a


def _intervals(budget: BudgetSeries, items: tuple[str, ...]) -> NDArray[np.int64]:
    """Start and end of each interval that is mostly of these items. Shape (n, 2)."""
    if not len(budget):
        return np.zeros((0, 2), dtype=np.int64)
    mine = sum(budget.spent_ns[item] for item in items)
    found = np.stack([budget.start_ns, budget.end_ns], axis=1)
    return np.asarray(found[2 * mine > budget.end_ns - budget.start_ns], dtype=np.int64)


def _at(time_ns: NDArray[np.int64], values: NDArray[np.int64], when_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last value at or before each moment; the first where there is none."""
    places = np.searchsorted(time_ns, when_ns, side="right") - 1
    return np.asarray(values[np.maximum(places, 0)], dtype=np.int64)


def _trace(
    waits: NDArray[np.int64], time_ns: NDArray[np.int64], done: NDArray[np.int64], zero_ns: float, data: Direction
) -> Trace | None:
    """What was done at the times in which it was waited for; between them, up to where it is waited for again."""
    if not len(waits) or not len(time_ns):
        return None
    before = _at(time_ns, done, waits[:, 0])
    moments, reached = [zero_ns], [int(before[0])]
    for place, (start_ns, end_ns) in enumerate(waits.tolist()):
        inside = (time_ns >= start_ns) & (time_ns < end_ns)
        moments += time_ns[inside].tolist()
        reached += done[inside].tolist()
        moments.append(end_ns)
        reached.append(data.unique_bytes if place + 1 == len(waits) else int(before[place + 1]))
    after = np.maximum.accumulate(np.maximum(np.array(moments) - zero_ns, 0)).astype(np.int64) // 1000
    until = np.maximum.accumulate(np.clip(reached, 0, data.unique_bytes))
    steps: dict[int, int] = {}
    quantum, taken = data.unique_bytes / MOST_STEPS, 0
    for place, (when_us, value) in enumerate(zip(after.tolist(), until.tolist(), strict=True)):
        is_last = place + 1 == len(after) or value == data.unique_bytes
        if value > taken and (is_last or value - taken >= quantum or after[place + 1] - when_us > LONG_US):
            steps[when_us] = taken = value
    if taken < data.unique_bytes:
        steps[int(after[-1])] = data.unique_bytes
    return Trace(tuple(steps), tuple(steps.values()))
