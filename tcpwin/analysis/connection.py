"""One connection: its ends, handshake, close, and two directions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self, cast

from tcpwin.analysis.caching import cached
from tcpwin.analysis.direction import Direction, Percentiles, RoundTrips
from tcpwin.analysis.endpoint import Endpoint
from tcpwin.analysis.series import Series, Stall
from tcpwin.model import ConnectionFields, Event

if TYPE_CHECKING:
    from tcpwin import _engine
    from tcpwin.analysis.measurement import Measurement
    from tcpwin.analysis.table import Table
    from tcpwin.analysis.view import View
    from tcpwin.names import DirectionName, PercentilesName, SeriesName


class _Fields(dict[str, Any]):
    """The connection's own fields by name, each read from the engine on first use."""

    def __init__(self, engine: _engine.Result, id: int) -> None:
        self._engine = engine
        self._id = id

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._engine.connection_value(self._id, name)
        return value


class _EngineOnly:
    """The part of an analysis that provides a connection's fields."""

    def __init__(self, engine: _engine.Result) -> None:
        self._engine = engine


class MeasuredConnection(ConnectionFields):
    """A four-tuple and epoch. ``a`` is the initiator (known by a SYN, or guessed), ``b`` the responder.

    Its fields come from the first reading; series, percentiles, events and segments are read from the source on demand.
    `tcpwin.limits.Connection` adds what the hosts recorded and what limited it.
    """

    def __init__(self, analysis: Measurement, id: int) -> None:
        self._analysis = analysis
        self._fields = _Fields(analysis._engine, id)
        self.id = id

    def detached(self) -> MeasuredConnection:
        """Return a connection with its fields only, safe for the analysis to cache: it holds no reference back."""
        return MeasuredConnection(cast("Measurement", _EngineOnly(self._analysis._engine)), self.id)

    @property
    def a(self) -> Endpoint:
        """The initiator."""
        return Endpoint(self._fields["a_address"], self._fields["a_port"])

    @property
    def b(self) -> Endpoint:
        """The responder."""
        return Endpoint(self._fields["b_address"], self._fields["b_port"])

    @cached
    def a_to_b(self) -> Direction:
        """Data from the initiator, limited by the responder's window."""
        return self._direction(True)

    @cached
    def b_to_a(self) -> Direction:
        """Data from the responder, limited by the initiator's window."""
        return self._direction(False)

    def _direction(self, from_initiator: bool) -> Direction:
        return Direction.from_engine(self._analysis._engine, self.id, from_initiator=from_initiator)

    @property
    def fields(self) -> dict[str, Any]:
        """Return the connection's own fields by name, as in the columns and in JSON."""
        return self._analysis._engine.connection(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the connection and of both its directions, as in the JSON document."""
        found: dict[str, Any] = json.loads(self._analysis._engine.json(self.id))
        return found

    @property
    def _life(self) -> View:
        return self._analysis._life(self)

    def series(self, name: SeriesName, *, direction: DirectionName = "a_to_b") -> Series:
        """Return a quantity over time; `Series` lists the names.

        Raises:
            KeyError: unknown series.
            SourceError: the source changed, or could be read only once.
        """
        return self._life.series(name, direction=direction)

    def percentiles(self, name: PercentilesName, *, direction: DirectionName = "a_to_b") -> Percentiles:
        """Return the distribution over time of ``receive_window``, ``flight`` or ``pipe``."""
        return self._life.percentiles(name, direction=direction)

    def round_trips(self, *, direction: DirectionName = "a_to_b") -> RoundTrips:
        """Return the distribution of the round trips of this direction's ACKs, as in the column ``rtt_ns``."""
        return self._life.round_trips(direction=direction)

    @property
    def events(self) -> list[Event]:
        """Return every segment with an event, in order."""
        return self._analysis._happened(self).events

    @property
    def stalls(self) -> list[Stall]:
        """Return long silences and their causes, in order, including pauses in which neither side had data to send."""
        return self._analysis._happened(self).stalls

    def view(
        self, start_ns: int | None = None, end_ns: int | None = None, *, buckets: int | None = None, rows: int = 0
    ) -> View:
        """Return series, events, stalls and rows of a span of the connection's life, or of all of it.

        Reads the source again, except for a view of the whole life that was already read. `Measurement.views` reads
        several connections at once.

        Args:
            start_ns: start of the span, in nanoseconds since the epoch.
            end_ns: last nanosecond of the span.
            buckets: maximum number of buckets in a series; by default that of `tcpwin.analyze`, 1024.
            rows: maximum number of segments for which `View.rows` is filled.

        Raises:
            ArgumentError: the span ends before it begins.
            SourceError: the source changed, or could be read only once.
        """
        [view] = self._analysis._views([self], start_ns, end_ns, buckets, rows)
        return view

    def segments(self) -> Table:
        """Return the connection's per-segment table."""
        return self._analysis.segments(connection=self.id)

    def exchange_table(self) -> Table:
        """Return the connection's exchanges: one row for each request and its answer, with `EXCHANGE_COLUMNS`.

        The table is empty unless `turns_state` is ``known``. Reads the source again.

        Raises:
            SourceError: the source changed, or could be read only once.
        """
        return self._analysis.exchange_table([self.id])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return this connection itself, so that the capture is not read again."""
        return self

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        return type(self), (self._analysis, self.id)

    def __repr__(self) -> str:
        seconds = self.duration_ns / 1e9
        sent = f"{self.a_to_b.payload_bytes} B out, {self.b_to_a.payload_bytes} B back"
        return f"<{type(self).__name__} {self.id}: {self.a} → {self.b}, {seconds:.3f} s, {sent}, {self.close}>"
