"""A connection over its whole life or a span of it: series, events, stalls, and rows if there are few."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tcpwin import _engine
from tcpwin.analysis.direction import Percentiles, RoundTrips
from tcpwin.analysis.series import BudgetSeries, Series, Stall
from tcpwin.errors import ArgumentError
from tcpwin.model import Event

if TYPE_CHECKING:
    from tcpwin.analysis.connection import MeasuredConnection
    from tcpwin.analysis.event_columns import EventColumns, StallColumns, ZeroWindowColumns
    from tcpwin.analysis.table import Table
    from tcpwin.names import DirectionName, PercentilesName, SeriesName

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class View:
    """A connection between two times, both inclusive; its memory is bounded by the numbers of buckets and rows.

    Attributes:
        connection: the connection.
        start_ns, end_ns: the span, nanoseconds since the epoch; by default the connection's life.
    """

    def __init__(
        self,
        connection: MeasuredConnection,
        details: _engine.Details,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        rows: int = 0,
    ) -> None:
        self.connection = connection
        self.start_ns = connection.start_ns if start_ns is None else start_ns
        self.end_ns = connection.end_ns if end_ns is None else end_ns
        self._details = details
        self._most_rows = rows

    def series(self, name: SeriesName, *, direction: DirectionName = "a_to_b") -> Series:
        """Return a quantity over the span; `Series` lists the names.

        If a value holds until the next one, the first bucket contains the value in force when the span began. A series
        is empty if its values are unknown: ``flight`` and ``pipe`` without ACKs of the data, ``acknowledged`` without a
        segment of the other side.

        Raises:
            KeyError: unknown series.
        """
        columns, width_ns = self._details.series(self.connection.id, is_a(direction), name)
        if not self._is_known(name, direction):
            # A lone SYN's value would appear to last.
            columns = [column[:0] for column in columns]
        time_ns, least, most, last, total = columns
        return Series(name, time_ns, least, most, last, total, width_ns)

    def _is_known(self, name: str, direction: DirectionName) -> bool:
        """Whether the captured sides are enough for this series."""
        there, back = (self.connection.a_to_b, self.connection.b_to_a)[:: 1 if is_a(direction) else -1]
        if name in ("flight", "pipe"):
            return there.flight_max_bytes is not None
        return name != "acknowledged" or back.segments > 0

    def place(self, seq: int, *, direction: DirectionName = "a_to_b") -> int | None:
        """Locate a sequence number from the wire on the axis of the series ``sequence``; None if there are no segments.

        The result is exact modulo 2³²; if a direction has more data, it is the candidate nearest to the end of the
        span.
        """
        return self._details.place(self.connection.id, is_a(direction), seq)

    def percentiles(self, name: PercentilesName, *, direction: DirectionName = "a_to_b") -> Percentiles:
        """Return the distribution of ``receive_window``, ``flight`` or ``pipe`` over the time of the span.

        Raises:
            KeyError: unknown name.
        """
        if name not in ("receive_window", "flight", "pipe"):
            raise KeyError(f"no percentiles of {name}; there are receive_window, flight, pipe")
        values, step_bytes = self._details.percentiles(self.connection.id, is_a(direction), name, SHARES)
        p5, p25, p50, p75, p95, p99 = values
        return Percentiles(p5, p25, p50, p75, p95, p99, step_bytes)

    def round_trips(self, *, direction: DirectionName = "a_to_b") -> RoundTrips:
        """Return the distribution of the round trips of this direction's ACKs, as in the column ``rtt_ns``."""
        return RoundTrips(*self._details.round_trips(self.connection.id, is_a(direction), SHARES))

    def budget(self, *, direction: DirectionName = "a_to_b") -> BudgetSeries:
        """Return the sender's time budget over the span."""
        start_ns, end_ns, spent_ns = self._details.budget(self.connection.id, is_a(direction))
        return BudgetSeries(start_ns, end_ns, dict(zip(_engine.BUDGET_ITEMS, spent_ns, strict=True)))

    @cached_property
    def events(self) -> list[Event]:
        """Return every segment of the span with an event, in order; at most the first million."""
        records, _ = self._details.events(self.connection.id)
        return [Event(*values) for values in records]

    @cached_property
    def event_columns(self) -> EventColumns:
        """Return the events as columns, for questions about all of them."""
        from tcpwin.analysis.event_columns import EventColumns

        return EventColumns(self._details, self.connection.id)

    @cached_property
    def stalls(self) -> list[Stall]:
        """Return long silences that touch the span, with their causes, in order; see `Stall`."""
        return [Stall(**record) for record in self._details.stalls(self.connection.id)]

    @cached_property
    def stall_columns(self) -> StallColumns:
        """Return the stalls as columns, for questions about all of them."""
        from tcpwin.analysis.event_columns import StallColumns

        return StallColumns(self._details, self.connection.id)

    def zero_window_columns(self, *, direction: DirectionName = "a_to_b") -> ZeroWindowColumns:
        """Return all closed windows that touch the span, as columns; the list in `Direction` may omit some."""
        from tcpwin.analysis.event_columns import ZeroWindowColumns

        return ZeroWindowColumns(self._details, self.connection.id, is_a(direction))

    @cached_property
    def rows(self) -> Table | None:
        """Return the segments of the span, or None if there are more than requested.

        The columns of `MeasuredConnection.segments`, and positions on the axis of the series ``sequence``: bytes from
        the connection's start, with the SYN as one; masked if unknown. ``sequence`` is the segment's first byte. The
        others are on the axis of the opposite direction, which the segment acknowledges: ``acknowledged``,
        ``right_edge`` (that plus the window, if its scale is certain), and the ends of up to four SACK blocks including
        a DSACK, ``sack_left_1`` and ``sack_right_1`` to ``sack_left_4`` and ``sack_right_4``.
        """
        columns = self._details.rows(self.connection.id)
        if columns is None or len(columns["frame"][0]) > self._most_rows:
            return None
        from tcpwin.analysis.segments import as_table

        return as_table(columns, (*_engine.ROW_COLUMNS, *_engine.VIEW_COLUMNS))

    def __repr__(self) -> str:
        seconds = (self.end_ns - self.start_ns) / 1e9
        return f"<View of connection {self.connection.id}: {seconds:.6f} s from {self.start_ns} ns>"


def is_a(direction: DirectionName) -> bool:
    """Whether the initiator is the sender in this direction."""
    if direction not in ("a_to_b", "b_to_a"):
        raise ArgumentError(f"direction is a_to_b or b_to_a, not {direction}")
    return direction == "a_to_b"
