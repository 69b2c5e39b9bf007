"""The pace of a capture's own applications, as traces that the workload `transfer` replays.

In: a connection whose packets can be read again. Out: the bytes that the writer had written, or the reader could have
read, over time. Only times in which the other side waited constrain the trace; in between it is as fast as the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import BudgetSeries, Direction, DirectionName
from tcpwin.limits import Connection

BUCKETS = 4096
"""Buckets of the series: millisecond resolution for four seconds."""
MOST_STEPS = 400
"""Maximum steps of a trace: more lengthen the file without changing the run."""
_WRITER = ("application", "responder", "requester", "round_trip", "idle")
_READER = ("zero_window", "small_window", "window_full", "reader")
CLOCKED_NS = 1_000_000
"""Data sent sooner after an ACK waited for that ACK; at most an eighth of a round trip."""
LONG_US = 50_000
"""A step before a longer wait is kept separate, however small."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A pace: `until_bytes` are available from `after_us` on, counted from the established connection."""

    after_us: tuple[int, ...]
    until_bytes: tuple[int, ...]


def writer_trace(connection: Connection, direction: DirectionName, round_trip_ns: float) -> Trace | None:
    """Return the bytes written over time, or None if nobody ever waited for the writer."""
    data = _data(connection, direction)
    view = connection.view(buckets=BUCKETS)
    sent = view.series("sequence", direction=direction)
    # Away from the sender its data appears half a round trip late, and its connection is established half a one
    # earlier.
    zero_ns = connection.start_ns + round_trip_ns * (2 if data.view == "receiver" else 1)
    written = np.maximum.accumulate(sent.max) - 1
    time_ns = sent.time_ns
    acked = view.series("acknowledged", direction=direction)
    if data.view != "receiver" and len(acked) and len(time_ns):
        rising = np.diff(acked.max, prepend=acked.max[0]) > 0
        time_ns = _when_written(time_ns, acked.time_ns[rising], round_trip_ns)
    return _trace(_intervals(view.budget(direction=direction), _WRITER), time_ns, written, zero_ns, data)


def _when_written(sent_ns: NDArray[np.int64], acked_ns: NDArray[np.int64], round_trip_ns: float) -> NDArray[np.int64]:
    """Date data released by an ACK to its writing: with the last spontaneous segment, at most two round trips
    earlier.
    """
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
    """Return the bytes readable over time, or None if nobody ever waited for the reader.

    A window at its maximum means an empty buffer. The difference has arrived and is unread, more of it if packets take
    less memory than the window assumes.

    Args:
        held_share: unread bytes per byte by which the window is smaller, in the kernel that replays the trace; it then
            offers the captured windows, whatever memory packets took originally.
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
    """Return the unread data beyond what windows show, for a reader that closed after reading the rest.

    A buffer that grew without ever being empty holds more than twice the largest offered window.
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
    """Return start and end of each interval that consists mostly of these items. Shape (n, 2)."""
    if not len(budget):
        return np.zeros((0, 2), dtype=np.int64)
    mine = sum(budget.spent_ns[item] for item in items)
    found = np.stack([budget.start_ns, budget.end_ns], axis=1)
    return np.asarray(found[2 * mine > budget.end_ns - budget.start_ns], dtype=np.int64)


def _at(time_ns: NDArray[np.int64], values: NDArray[np.int64], when_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the last value at or before each time, or the first value."""
    places = np.searchsorted(time_ns, when_ns, side="right") - 1
    return np.asarray(values[np.maximum(places, 0)], dtype=np.int64)


def _trace(
    waits: NDArray[np.int64], time_ns: NDArray[np.int64], done: NDArray[np.int64], zero_ns: float, data: Direction
) -> Trace | None:
    """Return the progress at times with waiting, and in between the progress at the next wait."""
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
