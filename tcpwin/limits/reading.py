"""What of a capture rules may read again: nothing of a large one, and of a small one a bounded number of packets.

In: an analysis. Out: events and rows of a connection, or the first events that were kept in the first reading. Reading
again walks the whole capture, whatever is asked for: so events of many connections are read together, and what was read
is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, overload
from weakref import WeakKeyDictionary

from tcpwin.analysis import Event
from tcpwin.errors import TcpwinError

if TYPE_CHECKING:
    from tcpwin import _engine
    from tcpwin.analysis import Table
    from tcpwin.limits.analysis import Analysis

SMALL_PACKETS = 1_000_000
"""A larger capture is not read again: its walk would cost more than all judging."""
MOST_READ_PACKETS = 4_000_000
"""Packets that all rules together may walk again."""
MOST_FOLLOWED_SEGMENTS = 500_000
"""Following a segment costs some eight times what it cost in the first reading. Where the rules may look at more
segments than these, what the first reading kept serves for all of them alike."""
BATCH = 256
"""Connections whose events are read together."""
MOST_ROWS = 200_000
"""Segments whose rows are held at once."""


class Reading:
    """What was read of one analysis for its rules, and what may still be read."""

    def __init__(self, analysis: Analysis) -> None:
        # The analysis keeps this, not the other way round.
        self.may_read = analysis.capture.packets <= SMALL_PACKETS
        self._left = MOST_READ_PACKETS if self.may_read else 0
        self._followed: dict[int, list[int]] = {}
        self._tables: dict[int, Table | None] = {}
        self._rows = 0
        self._expected: Callable[[], Iterable[int]] = tuple
        self._wanted: list[int] | None = None
        self._are_few = True

    def forbid(self) -> None:
        """Let nothing more be read."""
        self.may_read = False
        self._left = 0

    def expect(self, candidates: Callable[[], Iterable[int]]) -> None:
        """Say which connections the rules to be asked may look at: what one of them needs is read for all of them."""
        self._expected = candidates
        self._wanted = None

    def are_few(self, analysis: Analysis) -> bool:
        """Whether what the rules may look at is little enough that it is read again for them."""
        if not self.may_read:
            return False
        if self._wanted is None:
            self._wanted = sorted(set(self._expected()))
            self._are_few = _are_few(analysis, self._wanted)
        return self._are_few

    def may_follow(self, analysis: Analysis, id: int) -> bool:
        """Whether events of a connection are at hand, or could be read, with those of others that were expected."""
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
        """Whether series of a connection are at hand, or could be read, with those of the others of its events."""
        if not self.may_follow(analysis, id):
            return False
        try:
            analysis.follow(self._followed[id])
        except TcpwinError:
            return False
        return True

    def table(self, analysis: Analysis, id: int, others: Iterable[int] = ()) -> Table | None:
        """The segments of a connection; None where they may not be read.

        Those of `others`, which will be asked for next, are read together with it, so far as they fit.
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

    def _spend(self, analysis: Analysis) -> bool:
        cost = analysis.capture.packets + 1000
        if cost > self._left:
            return False
        self._left -= cost
        return True


def _segments(analysis: Analysis, id: int) -> int:
    connection = analysis.connections[id]
    return connection.a_to_b.segments + connection.b_to_a.segments


def _are_few(analysis: Analysis, ids: Sequence[int]) -> bool:
    if analysis.capture.packets <= MOST_FOLLOWED_SEGMENTS:
        return True
    return len(ids) <= BATCH and sum(_segments(analysis, id) for id in ids) <= MOST_FOLLOWED_SEGMENTS


_READINGS: WeakKeyDictionary[Analysis, Reading] = WeakKeyDictionary()


def reading_of(analysis: Analysis) -> Reading:
    """The reading of an analysis."""
    reading = _READINGS.get(analysis)
    if reading is None:
        reading = _READINGS[analysis] = Reading(analysis)
    return reading


class FirstEvents(Sequence[Event]):
    """Events of a connection that the first reading kept, each made when it is first looked at."""

    def __init__(self, kept: _engine.FirstEvents) -> None:
        self.kept = kept
        self._made: dict[int, Event] = {}

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
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = Event(*self.kept.values(place))
        return made


def count_originals(events: Sequence[Event]) -> int:
    """How many events name the frame of an original."""
    if isinstance(events, FirstEvents):
        return events.kept.originals()
    return sum(1 for event in events if event.original_frame)


def pairs_of(events: Sequence[Event], count: int) -> tuple[int, ...]:
    """Frames of the first `count` events, each after that of its original, none twice."""
    if isinstance(events, FirstEvents):
        return tuple(dict.fromkeys(events.kept.pairs(count)))
    found: list[int] = []
    for event in events[:count]:
        found += [frame for frame in (event.original_frame, event.frame) if frame]
    return tuple(dict.fromkeys(found))


def span_of(events: Sequence[Event]) -> tuple[int, int] | tuple[None, None]:
    """Times of the first and the last event; None without any."""
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
    """The events of a connection that the first reading kept: the first 64 telling ones, and six of each other kind.

    Args:
        names: only those with any of these names.
        side: only segments that this side, ``a`` or ``b``, sent.
        causes: only those with one of these causes.
    """
    from_initiator = None if side is None else side == "a"
    return FirstEvents(analysis._engine.first_events(id, from_initiator, tuple(names), tuple(causes)))


def count_first_events(analysis: Analysis, id: int, name: str, *, side: str) -> int:
    """How many of the events that the first reading kept have a name, and were sent by a side."""
    return analysis._engine.count_first_events(id, side == "a", name)


def first_pauses(analysis: Analysis, id: int, side: str) -> list[tuple[int, int, int]]:
    """The longest pauses in which a side had nothing to send, that the first reading kept: three at most.

    Of each its begin and end, nanoseconds since the epoch, and the frame of the segment that ended it.
    """
    return analysis._engine.pauses(id, side == "a")


def idle_frames(analysis: Analysis, id: int, side: str) -> tuple[int, ...]:
    """Frames of the data that ended a sender's longest idle gaps, as the first reading kept them: three at most."""
    return tuple(analysis._engine.idle_frames(id, side == "a"))


def reset_frame(analysis: Analysis, id: int) -> int | None:
    """The frame of the first RST of a connection that had data, as the first reading kept it."""
    return analysis._engine.reset_frame(id)
