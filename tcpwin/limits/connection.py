"""A connection with its hosts' records, findings and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tcpwin.analysis import MeasuredConnection, cached
from tcpwin.lazy import provided
from tcpwin.limits.display import answer_html, answered

if TYPE_CHECKING:
    from tcpwin.analysis import DirectionName, FigureName
    from tcpwin.hosts import Host, JoinedSample, ScaleClaim, SocketSample
    from tcpwin.limits.analysis import Analysis
    from tcpwin.limits.budget import Budget
    from tcpwin.limits.finding import Finding
    from tcpwin.limits.verdict import Verdict


class Connection(MeasuredConnection):
    """A four-tuple and epoch. ``a`` is the initiator (known by a SYN, or guessed), ``b`` the responder.

    Fields come from the first reading. Series, percentiles, events and segments are read from the source on demand;
    budget, findings and verdicts are computed on demand.
    """

    @property
    def analysis(self) -> Analysis:
        """The analysis that the connection belongs to."""
        return cast("Analysis", self._analysis)

    @property
    def hosts(self) -> dict[str, Host]:
        """The hosts with samples of this connection's sockets, by side: ``a`` or ``b``."""
        return {side: host for host, side, _ in self.analysis.sockets_of(self.id)}

    @property
    def socket_samples(self) -> dict[str, tuple[SocketSample, ...]]:
        """The raw samples of this connection's sockets, by side; cheap, unlike `snapshots`."""
        found: dict[str, tuple[SocketSample, ...]] = {}
        for _, side, samples in self.analysis.sockets_of(self.id):
            found[side] = (*found.get(side, ()), *samples)
        return found

    @cached
    def snapshots(self) -> tuple[JoinedSample, ...]:
        """The samples of both ends' sockets joined with the packets, in time order."""
        return self.analysis.joined(self.id)

    @property
    def scale_claims(self) -> tuple[ScaleClaim, ...]:
        """The window scales reported by the samples."""
        return self.analysis.scale_claims(self.id)

    @cached
    def budget(self) -> dict[str, Budget]:
        """The sender's time by limit, for ``a_to_b`` and ``b_to_a``."""
        from tcpwin.limits.budget import draw_up

        sockets = self.socket_samples if self.analysis.hosts else {}
        there_ns, back_ns = self._analysis._engine.budget(self.id)
        return {
            "a_to_b": draw_up(self.a_to_b, sockets.get("a", ()), spent_ns=there_ns),
            "b_to_a": draw_up(self.b_to_a, sockets.get("b", ()), spent_ns=back_ns),
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings on this connection, costliest first."""
        return self.analysis.findings.of(self.id)

    @cached
    def verdicts(self) -> dict[DirectionName, Verdict]:
        """The verdict on each direction, from its budget and findings."""
        from tcpwin.limits.verdict import judge_directions

        return judge_directions(self, self.findings)

    @cached
    def verdict(self) -> Verdict:
        """The verdict on the direction that lost more time, else on the one with more data."""
        from tcpwin.limits.verdict import choose_direction

        return choose_direction(self, self.verdicts)

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
        """Draw a figure as a ``plotly.graph_objects.Figure``, which notebooks display; `figures.draw` lists the errors.

        Args:
            name: one of ``tcpwin.figures.names("connection")``; ``timeline`` combines several on one time axis.
        """
        options: dict[str, Any] = {"direction": direction, "start_ns": start_ns, "end_ns": end_ns}
        options |= {"points": points, "theme": theme}
        if name == "timeline":
            return provided("draw_timeline")(self, **options)
        return provided("draw")(name, self, **options)

    def __repr__(self) -> str:
        """Describe the connection, with its answer."""
        return answered(super().__repr__(), self)

    def _repr_html_(self) -> str:
        from html import escape

        from tcpwin.limits.roles import role_of

        rows = []
        for name in ("payload_bytes", "goodput_bps", "receive_window_max_bytes", "flight_max_bytes", "zero_window_ns"):
            cells = "".join(f"<td>{escape(str(getattr(d, name)))}</td>" for d in (self.a_to_b, self.b_to_a))
            rows.append(f"<tr><th>{name}</th>{cells}</tr>")
        roles = [role_of(self, side) for side in ("a", "b")]
        heads = "".join(f"<th>{sender} → {receiver}</th>" for sender, receiver in (roles, reversed(roles)))
        title = f"<caption>{escape(f'Connection {self.id}: {self.a} → {self.b}')}</caption>"
        return f"{answer_html(self)}<table>{title}<tr><th></th>{heads}</tr>{''.join(rows)}</table>"
