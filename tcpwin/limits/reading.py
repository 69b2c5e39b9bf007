"""Limit how much of a capture rules may read again: a bounded number of packets of a small one, else nothing.

In: an analysis. Out: events and rows of a connection, or the first events kept by the first reading. Each further
reading walks the whole capture, so the events of many connections are read together and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar, cast, overload
from weakref import WeakKeyDictionary

from tcpwin.analysis import Event
from tcpwin.errors import TcpwinError

if TYPE_CHECKING:
    from tcpwin import _engine
    from tcpwin.analysis import Table
    from tcpwin.limits.analysis import Analysis
    from tcpwin.limits.evidence.packets import Packets

T = TypeVar("T")
SMALL_PACKETS = 1_000_000
"""A larger capture is not read again: one walk would cost more than all judging."""
MOST_READ_PACKETS = 4_000_000
"""Packets that all rules together may walk again."""
MOST_FOLLOWED_SEGMENTS = 500_000
"""Following a segment costs about eight times as much as the first reading. If rules may need more segments, all of
them use only what the first reading kept."""
BATCH = 256
"""Connections whose events are read together."""
MOST_ROWS = 200_000
"""Maximum number of segment rows in memory."""


class Reading:
    """The data read again for the rules of one analysis, and the remaining allowance."""

    def __init__(self, analysis: Analysis) -> None:
        # Holds no reference to the analysis, which is the weak key of this object.
        self.may_read = analysis.capture.packets <= SMALL_PACKETS
        self._left = MOST_READ_PACKETS if self.may_read else 0
        self._followed: dict[int, list[int]] = {}
        self._tables: dict[int, Table | None] = {}
        self._rows = 0
        self._expected: Callable[[], Iterable[int]] = tuple
        self._wanted: list[int] | None = None
        self._are_few = True
        self._headers: dict[int, Packets] = {}
        self._derived: dict[tuple[str, int, str], object] = {}

    def derive(self, what: str, id: int, side: str, find: Callable[[], T]) -> T:
        """Return a value that several rules need about one side of a connection, computed once."""
        key = (what, id, side)
        if key not in self._derived:
            self._derived[key] = find()
        return cast("T", self._derived[key])

    def forbid(self) -> None:
        """Forbid further reading."""
        self.may_read = False
        self._left = 0

    def expect(self, candidates: Callable[[], Iterable[int]]) -> None:
        """Announce the connections that rules may need, so that they are read together."""
        self._expected = candidates
        self._wanted = None

    def are_few(self, analysis: Analysis) -> bool:
        """Return whether the segments that rules may need are few enough to read again."""
        if not self.may_read:
            return False
        if self._wanted is None:
            self._wanted = sorted(set(self._expected()))
            self._are_few = _are_few(analysis, self._wanted)
        return self._are_few

    def may_follow(self, analysis: Analysis, id: int) -> bool:
        """Read the events of a connection and of further expected ones, and return whether they are available."""
        if id in self._followed:
            return True
        if not self.are_few(analysis) or not self._spend(analysis):
            return False
        following = (other for other in self._wanted or () if other > id and other not in self._followed)
        wanted = [id, *islice(following, BATCH - 1)]
        try:
            analysis.follow_events(wanted)
        except TcpwinError:
            self._left = 0
            return False
        self._followed.update(dict.fromkeys(wanted, wanted))
        return True

    def may_follow_series(self, analysis: Analysis, id: int) -> bool:
        """Read the series of a connection and of those read with its events, and return whether they are available."""
        if not self.may_follow(analysis, id):
            return False
        try:
            analysis.follow(self._followed[id])
        except TcpwinError:
            return False
        return True

    def table(self, analysis: Analysis, id: int, others: Iterable[int] = ()) -> Table | None:
        """Return the segments of a connection; None if they may not be read.

        Those of `others`, which will be needed next, are read in the same pass as far as they fit.
        """
        if id in self._tables:
            return self._tables[id]
        batch: dict[int, int] = {}
        for each in chain((id,), others):
            segments = _segments(analysis, each)
            if sum(batch.values()) + segments > MOST_ROWS or len(batch) == BATCH:
                break
            batch[each] = segments
        if not batch or not self._spend(analysis):
            return None
        try:
            if len(batch) == 1:
                read: dict[int, Table | None] = {id: analysis.connections[id].segments()}
            else:
                views = analysis.views(batch, buckets=1, rows=MOST_ROWS)
                read = {view.connection.id: view.rows for view in views}
        except TcpwinError:
            self._left = 0
            return None
        if self._rows + sum(batch.values()) > MOST_ROWS:
            self._tables.clear()
            self._rows = 0
        self._tables |= read
        self._rows += sum(batch.values())
        return read[id]

    def headers(self, analysis: Analysis, id: int) -> Packets | None:
        """Return the headers of a connection's packets, reading those of further expected ones; None if not allowed."""
        if id not in self._headers and self.are_few(analysis) and self._spend(analysis):
            following = (other for other in self._wanted or () if other > id and other not in self._headers)
            wanted, left = {id}, MOST_ROWS - _segments(analysis, id)
            for other in islice(following, BATCH - 1):
                left -= _segments(analysis, other)
                if left < 0:
                    break
                wanted.add(other)
            self._headers = _read_headers(analysis, wanted)
        return self._headers.get(id)

    def exchanges(self, analysis: Analysis, id: int) -> Table | None:
        """Return the exchanges of a connection; None if they may not be read."""
        if not self.are_few(analysis) or not self._spend(analysis):
            return None
        try:
            return analysis.connections[id].exchange_table()
        except TcpwinError:
            self._left = 0
            return None

    def _spend(self, analysis: Analysis) -> bool:
        cost = analysis.capture.packets + 1000
        if cost > self._left:
            return False
        self._left -= cost
        return True


def _read_headers(analysis: Analysis, ids: set[int]) -> dict[int, Packets]:
    from tcpwin.limits.evidence.packets import Packets

    try:
        every = Packets(analysis.header_columns(ids, MOST_ROWS))
    except TcpwinError:
        return {}
    return {id: every.of(every["connection"] == id) for id in ids}


def _segments(analysis: Analysis, id: int) -> int:
    connection = analysis.connections[id]
    return connection.a_to_b.segments + connection.b_to_a.segments


def _are_few(analysis: Analysis, ids: Sequence[int]) -> bool:
    if analysis.capture.packets <= MOST_FOLLOWED_SEGMENTS:
        return True
    return len(ids) <= BATCH and sum(_segments(analysis, id) for id in ids) <= MOST_FOLLOWED_SEGMENTS


_READINGS: WeakKeyDictionary[Analysis, Reading] = WeakKeyDictionary()


def reading_of(analysis: Analysis) -> Reading:
    """Return the reading of an analysis."""
    reading = _READINGS.get(analysis)
    if reading is None:
        reading = _READINGS[analysis] = Reading(analysis)
    return reading


class FirstEvents(Sequence[Event]):
    """Events of a connection that the first reading kept, each created on first access."""

    def __init__(self, kept: _engine.FirstEvents) -> None:
        self.kept = kept
        self._created: dict[int, Event] = {}

    def __len__(self) -> int:
        return len(self.kept)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return [self._at(place) for place in range(*index.indices(len(self.kept)))]
        return self._at(index if index >= 0 else len(self.kept) + index)

    def __iter__(self) -> Iterator[Event]:
        return map(self._at, range(len(self.kept)))

    def _at(self, place: int) -> Event:
        event = self._created.get(place)
        if event is None:
            event = self._created[place] = Event(*self.kept.values(place))
        return event


def count_originals(events: Sequence[Event]) -> int:
    """Count the events that name the frame of an original."""
    if isinstance(events, FirstEvents):
        return events.kept.originals()
    return sum(1 for event in events if event.original_frame)


def pairs_of(events: Sequence[Event], count: int) -> tuple[int, ...]:
    """Return the frames of the first `count` events, each after that of its original, without duplicates."""
    if isinstance(events, FirstEvents):
        return tuple(dict.fromkeys(events.kept.pairs(count)))
    found: list[int] = []
    for event in events[:count]:
        found += [frame for frame in (event.original_frame, event.frame) if frame]
    return tuple(dict.fromkeys(found))


def span_of(events: Sequence[Event]) -> tuple[int, int] | tuple[None, None]:
    """Return the times of the first and the last event; None without events."""
    if isinstance(events, FirstEvents):
        return events.kept.span_ns() or (None, None)
    return (events[0].time_ns, events[-1].time_ns) if events else (None, None)


def first_events(
    analysis: Analysis,
    id: int,
    names: Collection[str] = (),
    *,
    side: str | None = None,
    causes: Collection[str] = (),
) -> FirstEvents:
    """Return the events that the first reading kept: the first 64 of the important kinds and 6 of each other kind.

    Args:
        names: keep only events with any of these names.
        side: keep only segments sent by this side, ``a`` or ``b``.
        causes: keep only events with one of these causes.
    """
    from_initiator = None if side is None else side == "a"
    return FirstEvents(analysis._engine.first_events(id, from_initiator, tuple(names), tuple(causes)))


def count_first_events(analysis: Analysis, id: int, name: str, *, side: str) -> int:
    """Count the events that the first reading kept with a name and from a side."""
    return analysis._engine.count_first_events(id, side == "a", name)


def first_pauses(analysis: Analysis, id: int, side: str) -> list[tuple[int, int, int]]:
    """Return the longest pauses in which a side had nothing to send, at most three, from the first reading.

    Returns: Start and end of each, in nanoseconds since the epoch, and the frame of the segment that ended it.
    """
    return analysis._engine.pauses(id, side == "a")


def idle_frames(analysis: Analysis, id: int, side: str) -> tuple[int, ...]:
    """Return the frames of the data that ended a sender's longest idle gaps, at most three, from the first reading."""
    return tuple(analysis._engine.idle_frames(id, side == "a"))


def reset_frame(analysis: Analysis, id: int) -> int | None:
    """Return the frame of the first RST of a connection that had data, from the first reading."""
    return analysis._engine.reset_frame(id)
