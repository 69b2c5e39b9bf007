"""What of a capture rules may read again: nothing of a large one, and of a small one a bounded number of packets.

In: an analysis. Out: events and rows of a connection, or the first events that were kept in the first reading. Reading
again walks the whole capture, but tracks the wanted connections only: a fifth of the first reading, and their segments.
So events of many connections are read together, and what was read is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, overload
from weakref import WeakKeyDictionary

from tcpwin.analysis import Event
from tcpwin.errors import TcpwinError

if TYPE_CHECKING:
    from tcpwin.analysis import Table
    from tcpwin.snapshots import Analysis

SMALL_PACKETS = 4_000_000
"""A larger capture is not read again: its walk alone would cost more than all judging."""
MOST_READ_PACKETS = 2_000_000
"""What all rules together may read again, in packets of a first reading: about half a second."""
WALK_SHARE = 0.2
"""What a packet of other connections costs, of one that is tracked (measured: 0.20 to 0.23)."""
READING_PACKETS = 1000
"""What opening the capture costs."""
BATCH = 256
"""Connections whose events are read together."""
KEPT_TABLES = 8
MOST_ROWS = 200_000


class Reading:
    """What was read of one analysis for its rules, and what may still be read."""

    def __init__(self, analysis: Analysis) -> None:
        # The analysis keeps this, not the other way round.
        self.may_read = analysis.capture.packets <= SMALL_PACKETS
        self._left: float = MOST_READ_PACKETS if self.may_read else 0
        self._followed: set[int] = set()
        self._tables: dict[int, Table] = {}

    def may_follow(self, analysis: Analysis, id: int, candidates: Callable[[], list[int]]) -> bool:
        """Whether the details of a connection are at hand, or could be read, with those of the candidates after it."""
        if id in self._followed:
            return True
        cost = _walk_cost(analysis) + _cost(analysis, id)
        if cost > self._left:
            return False
        wanted = [id]
        following = (other for other in dict.fromkeys(candidates()) if other > id and other not in self._followed)
        for other in islice(following, BATCH - 1):
            more = _cost(analysis, other)
            if cost + more <= self._left:
                wanted.append(other)
                cost += more
        self._left -= cost
        try:
            analysis.follow(wanted)
        except TcpwinError:
            self._left = 0
            return False
        self._followed.update(wanted)
        return True

    def table(self, analysis: Analysis, id: int) -> Table | None:
        """The segments of a connection; None where they may not be read."""
        if id in self._tables:
            return self._tables[id]
        cost = _walk_cost(analysis) + _cost(analysis, id)
        if _segments(analysis, id) > MOST_ROWS or cost > self._left:
            return None
        self._left -= cost
        try:
            table = analysis.connections[id].segments()
        except TcpwinError:
            self._left = 0
            return None
        if len(self._tables) >= KEPT_TABLES:
            del self._tables[next(iter(self._tables))]
        self._tables[id] = table
        return table


def _walk_cost(analysis: Analysis) -> float:
    return analysis.capture.packets * WALK_SHARE + READING_PACKETS


def _cost(analysis: Analysis, id: int) -> float:
    """What following a connection costs beside the walk."""
    return (1 - WALK_SHARE) * _segments(analysis, id)


def _segments(analysis: Analysis, id: int) -> int:
    connection = analysis.connections[id]
    return connection.a_to_b.segments + connection.b_to_a.segments


_READINGS: WeakKeyDictionary[Analysis, Reading] = WeakKeyDictionary()


def reading_of(analysis: Analysis) -> Reading:
    """The reading of an analysis."""
    reading = _READINGS.get(analysis)
    if reading is None:
        reading = _READINGS[analysis] = Reading(analysis)
    return reading


class FirstEvents(Sequence[Event]):
    """Events of a connection that the first reading kept, each made when it is looked at."""

    def __init__(self, analysis: Analysis, id: int, places: Sequence[int]) -> None:
        self._engine = analysis._engine
        self._id = id
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return [self._event(place) for place in self._places[index]]
        return self._event(self._places[index])

    def __iter__(self) -> Iterator[Event]:
        return map(self._event, self._places)

    @property
    def originals(self) -> int:
        """How many of them name the frame of an original."""
        return self._engine.count_originals(self._id, self._places)

    def _event(self, place: int) -> Event:
        return Event(*self._engine.first_event(self._id, place))


def count_originals(events: Sequence[Event]) -> int:
    """How many events name the frame of an original."""
    if isinstance(events, FirstEvents):
        return events.originals
    return sum(1 for event in events if event.original_frame)


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
    return FirstEvents(analysis, id, analysis._engine.first_events(id, from_initiator, list(names), list(causes)))
