"""What of a capture rules may read again: nothing of a large one, and of a small one a bounded number of packets.

In: an analysis. Out: events and rows of a connection, or the first events that were kept in the first reading. Reading
again costs as much as the first reading, whatever is asked for: so events of many connections are read together, and
what was read is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tcpwin.analysis import Event
from tcpwin.errors import TcpwinError
from tcpwin.snapshots import Analysis

if TYPE_CHECKING:
    from tcpwin.analysis import Table

SMALL_PACKETS = 1_000_000
"""A larger capture is not read again: it would cost more than all judging."""
MOST_READ_PACKETS = 4_000_000
"""Packets that all rules together may read again: about a second."""
BATCH = 256
"""Connections whose events are read together."""
KEPT_TABLES = 8
KEPT_EVENTS = 5000
"""Connections whose first events are at hand for all rules."""
MOST_ROWS = 200_000


class Reading:
    """What was read of one analysis for its rules, and what may still be read."""

    def __init__(self, analysis: Analysis) -> None:
        # The analysis keeps this, not the other way round.
        self._left = 0 if analysis.capture.packets > SMALL_PACKETS else MOST_READ_PACKETS
        self._followed: set[int] = set()
        self._tables: dict[int, Table] = {}
        self._first: dict[int, list[Event]] = {}

    def may_follow(self, analysis: Analysis, id: int, candidates: Callable[[], list[int]]) -> bool:
        """Whether the details of a connection are at hand, or could be read, with those of the candidates after it."""
        if id in self._followed:
            return True
        if not self._spend(analysis):
            return False
        following = (other for other in dict.fromkeys(candidates()) if other > id and other not in self._followed)
        wanted = [id, *islice(following, BATCH - 1)]
        try:
            analysis.follow(wanted)
        except TcpwinError:
            self._left = 0
            return False
        self._followed.update(wanted)
        return True

    def first_events(self, analysis: Analysis, id: int) -> list[Event]:
        """The events of a connection that the first reading kept."""
        if id not in self._first:
            if len(self._first) >= KEPT_EVENTS:
                self._first.clear()
            records, _ = analysis._engine.first_events(id)
            self._first[id] = [
                Event(**{**record, "names": tuple(str(record["names"]).split("|"))}) for record in records
            ]
        return self._first[id]

    def table(self, analysis: Analysis, id: int) -> Table | None:
        """The segments of a connection; None where they may not be read."""
        if id in self._tables:
            return self._tables[id]
        connection = analysis.connections[id]
        if connection.a_to_b.segments + connection.b_to_a.segments > MOST_ROWS or not self._spend(analysis):
            return None
        try:
            table = connection.segments()
        except TcpwinError:
            self._left = 0
            return None
        if len(self._tables) >= KEPT_TABLES:
            del self._tables[next(iter(self._tables))]
        self._tables[id] = table
        return table

    def _spend(self, analysis: Analysis) -> bool:
        cost = analysis.capture.packets + 1000
        if cost > self._left:
            return False
        self._left -= cost
        return True


_READINGS: WeakKeyDictionary[Analysis, Reading] = WeakKeyDictionary()


def reading_of(analysis: Analysis) -> Reading:
    """The reading of an analysis."""
    if analysis not in _READINGS:
        _READINGS[analysis] = Reading(analysis)
    return _READINGS[analysis]


def first_events(analysis: Analysis, id: int) -> list[Event]:
    """The events of a connection that the first reading kept: the first 64 telling ones, and six of each other kind."""
    return reading_of(analysis).first_events(analysis, id)
