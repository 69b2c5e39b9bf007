"""One connection: its ends, handshake, close, and two directions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tcpwin.analysis.caching import cached
from tcpwin.analysis.direction import Direction, Percentiles, RoundTrips
from tcpwin.analysis.endpoint import Endpoint
from tcpwin.analysis.rooms import later, room
from tcpwin.analysis.series import Series, Stall
from tcpwin.model.connection import ConnectionFields
from tcpwin.model.event import Event

if TYPE_CHECKING:
    from tcpwin import _engine
    from tcpwin.analysis.analysis import Analysis
    from tcpwin.analysis.names import DirectionName, FigureName, PercentilesName, SeriesName
    from tcpwin.analysis.table import Table
    from tcpwin.analysis.view import View
    from tcpwin.hosts import Host, JoinedSample, ScaleClaim, SocketSample
    from tcpwin.limits import Budget, Finding, Verdict


class _Fields(dict[str, Any]):
    """The connection's own fields by name, each taken from the engine when it is first asked for."""

    def __init__(self, engine: _engine.Result, id: int) -> None:
        self._engine = engine
        self._id = id

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._engine.connection_value(self._id, name)
        return value


class Connection(ConnectionFields):
    """A four-tuple and epoch. ``a`` is the initiator (known by a SYN, or guessed), ``b`` the responder.

    Numbers are at hand; series, percentiles, events and segments are read from the source when they are asked for, what
    limited it is judged then.
    """

    budget: dict[str, Budget] = room("tcpwin.limits", "budgets_of", "Where the sender's time went, by direction.")
    verdict: Verdict = room(
        "tcpwin.limits",
        "verdict_of",
        "What limited the direction that lost most, or has more data, and who can change it; asks the rules.",
    )
    verdicts: dict[DirectionName, Verdict] = room(
        "tcpwin.limits", "verdicts_of", "What limited each direction; asks the rules."
    )

    def __init__(self, analysis: Analysis, id: int) -> None:
        self._analysis = analysis
        self._fields = _Fields(analysis._engine, id)
        self.id = id

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
        """All fields of the connection itself by name, as in the columns and in JSON."""
        return self._analysis._engine.connection(self.id)

    def to_dict(self) -> dict[str, Any]:
        """What was measured of the connection and of both its directions, as in the JSON document."""
        found: dict[str, Any] = json.loads(self._analysis._engine.json(self.id, self.id + 1))
        return found

    @property
    def _life(self) -> View:
        return self._analysis._life(self)

    def series(self, name: SeriesName, *, direction: DirectionName = "a_to_b") -> Series:
        """A quantity over time, by a name that `Series` lists.

        Raises:
            KeyError: there is no such series.
            SourceError: the source changed, or could be read only once.
        """
        return self._life.series(name, direction=direction)

    def percentiles(self, name: PercentilesName, *, direction: DirectionName = "a_to_b") -> Percentiles:
        """How ``receive_window``, ``flight`` or ``pipe`` was distributed over time."""
        return self._life.percentiles(name, direction=direction)

    def round_trips(self, *, direction: DirectionName = "a_to_b") -> RoundTrips:
        """How the round trips of this direction's ACKs, as in the column ``rtt_ns``, were distributed."""
        return self._life.round_trips(direction=direction)

    @property
    def events(self) -> list[Event]:
        """Every segment at which something happened, in order."""
        return self._analysis._happened(self).events

    @property
    def stalls(self) -> list[Stall]:
        """Long silences and what each waited for, in order; pauses in which nobody had anything to send among them."""
        return self._analysis._happened(self).stalls

    def view(
        self, start_ns: int | None = None, end_ns: int | None = None, *, buckets: int | None = None, rows: int = 0
    ) -> View:
        """Series, events, stalls and rows of a span of the connection's life, or of all of it.

        Reads the source again, but for a view of the whole life that was read before. `Analysis.views` reads those of
        several connections at once.

        Args:
            start_ns: where the span begins, in nanoseconds since the epoch.
            end_ns: the last nanosecond of the span.
            buckets: most buckets a series has; by default what `tcpwin.analyze` was told, 1024.
            rows: `View.rows` has the segments, if there are no more than these.

        Raises:
            ArgumentError: the span ends before it begins.
            SourceError: the source changed, or could be read only once.
        """
        [view] = self._analysis._views([self], start_ns, end_ns, buckets, rows)
        return view

    @property
    def analysis(self) -> Analysis:
        """The analysis that it is part of."""
        return self._analysis

    @property
    def hosts(self) -> dict[str, Host]:
        """The host at each side, ``a`` or ``b``, of whose socket there are samples."""
        return {side: host for host, side, _ in self._analysis.sockets_of(self.id)}

    @property
    def socket_samples(self) -> dict[str, tuple[SocketSample, ...]]:
        """The samples of this connection's sockets as they were taken, by side; free, unlike `snapshots`."""
        found: dict[str, tuple[SocketSample, ...]] = {}
        for _, side, samples in self._analysis.sockets_of(self.id):
            found[side] = (*found.get(side, ()), *samples)
        return found

    @cached
    def snapshots(self) -> tuple[JoinedSample, ...]:
        """The samples of this connection's sockets at both ends beside the packets, in order of time."""
        return self._analysis.joined(self.id)

    @property
    def scale_claims(self) -> tuple[ScaleClaim, ...]:
        """What the samples say of the window scales."""
        return self._analysis.scale_claims(self.id)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules found of this connection, the costliest first."""
        return self._analysis.findings.of(self.id)

    def figure(
        self,
        name: FigureName = "window",
        *,
        direction: DirectionName | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        points: int = 1000,
        theme: str = "light",
    ) -> Any:
        """A figure as a ``plotly.graph_objects.Figure``, which notebooks show; `figures.draw` says what is raised.

        Args:
            name: one of ``tcpwin.figures.names("connection")``; ``timeline`` is several on one time axis.
        """
        options: dict[str, Any] = {"direction": direction, "start_ns": start_ns, "end_ns": end_ns}
        options |= {"points": points, "theme": theme}
        if name == "timeline":
            return later("tcpwin.figures", "timeline")(self, **options)
        return later("tcpwin.figures", "draw")(name, self, **options)

    def segments(self) -> Table:
        """The per-segment table of this connection."""
        return self._analysis.segments(connection=self.id)

    def __copy__(self) -> Connection:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        """Itself, as of its analysis."""
        return self

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        return Connection, (self._analysis, self.id)

    def __repr__(self) -> str:
        seconds = self.duration_ns / 1e9
        sent = f"{self.a_to_b.payload_bytes} B out, {self.b_to_a.payload_bytes} B back"
        return f"<Connection {self.id}: {self.a} → {self.b}, {seconds:.3f} s, {sent}, {self.close}>"

    def _repr_html_(self) -> str:
        from html import escape

        rows = []
        for name in ("payload_bytes", "goodput_bps", "receive_window_max_bytes", "flight_max_bytes", "zero_window_ns"):
            cells = "".join(f"<td>{escape(str(getattr(d, name)))}</td>" for d in (self.a_to_b, self.b_to_a))
            rows.append(f"<tr><th>{name}</th>{cells}</tr>")
        roles = [later("tcpwin.limits", "role_of")(self, side) for side in ("a", "b")]
        heads = "".join(f"<th>{sender} → {receiver}</th>" for sender, receiver in (roles, reversed(roles)))
        title = f"Connection {self.id}: {self.a} → {self.b}"
        return f"<table><caption>{escape(title)}</caption><tr><th></th>{heads}</tr>{''.join(rows)}</table>"
