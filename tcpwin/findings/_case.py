"""What a rule may look at: a direction, a connection or the capture, with what the hosts said and the thresholds.

Direction and connection are as measured; nothing here measures anew. Reading events or series reads the source again:
a rule does so only once it is nearly sure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tcpwin.analysis import Direction, Event
from tcpwin.findings._analysis import Analysis, Connection
from tcpwin.findings._finding import Evidence, Finding, Remedy, Severity
from tcpwin.findings._rule import Rule
from tcpwin.snapshots import Host, SocketSample


@dataclass(frozen=True)
class Case:
    """What is judged.

    Attributes:
        analysis: the whole capture.
        rule: that judges.
        settings: its thresholds in force, by name.
        connection: None for a rule of the capture.
        direction: ``a_to_b`` or ``b_to_a`` for a rule of directions, else None.
    """

    analysis: Analysis
    rule: Rule
    settings: Mapping[str, float]
    subject: Connection | None = None
    direction: str | None = None

    @property
    def connection(self) -> Connection:
        """The connection that is judged."""
        if self.subject is None:
            raise TypeError(f"{self.rule.code} is a rule of the capture")
        return self.subject

    @property
    def sender(self) -> str:
        """The side, ``a`` or ``b``, that sends the direction's data."""
        return "a" if self.direction == "a_to_b" else "b"

    @property
    def receiver(self) -> str:
        """The side that receives it."""
        return "b" if self.direction == "a_to_b" else "a"

    @property
    def data(self) -> Direction:
        """The direction that is judged."""
        return self.connection.a_to_b if self.direction == "a_to_b" else self.connection.b_to_a

    @property
    def back(self) -> Direction:
        """The other direction."""
        return self.connection.b_to_a if self.direction == "a_to_b" else self.connection.a_to_b

    def events(self, *names: str) -> list[Event]:
        """The connection's events that have any of the names (all without); of both directions. Reads the source."""
        wanted = set(names)
        return [event for event in self._events if not wanted or wanted & set(event.names)]

    @cached_property
    def _events(self) -> list[Event]:
        return self.connection.events

    def host(self, side: str) -> Host | None:
        """The host at a side, where its snapshots came along."""
        return self.connection.hosts.get(side)

    def sockets(self, side: str) -> Sequence[SocketSample]:
        """The samples of a side's socket, in order; empty without snapshots."""
        return self.connection.socket_samples.get(side, ())

    def finding(
        self,
        text: str,
        *,
        blame: str,
        confidence: str,
        side: str | None = None,
        cost_ns: int = 0,
        lost_bps: float | None = None,
        evidence: Evidence | None = None,
        remedy: Remedy | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this case's rule."""
        return Finding(
            code=self.rule.code,
            name=self.rule.name,
            severity=severity or self.rule.severity,
            text=text,
            connection=None if self.subject is None else self.subject.id,
            direction=self.direction,
            blame=blame,
            side=side,
            cost_ns=cost_ns,
            lost_bps=lost_bps,
            confidence=confidence,
            evidence=evidence or Evidence(),
            remedy=remedy,
        )
