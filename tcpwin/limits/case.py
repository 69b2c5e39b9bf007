"""Cases: a direction, connection or capture for a rule to judge, with host samples and thresholds.

Nothing is measured here. Events and series are read from the source again, so a rule requests them only when it is
nearly sure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpwin.analysis import Direction, DirectionName, Event, Stall, cached
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.connection import Connection
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.reading import Reading, count_first_events, first_events, reading_of
from tcpwin.limits.roles import ENDS, the_end
from tcpwin.limits.rule import Rule

if TYPE_CHECKING:
    from tcpwin.analysis import Table
    from tcpwin.hosts import Host, SocketSample


Picks = Sequence[tuple[int, DirectionName | None]]
"""Connection numbers, with direction names for rules of directions."""
ROLES = ("the client", "the server", "the sender", "the receiver")


class Subject:
    """A connection or direction to judge; `attributes` are copied to the cases of all rules."""

    __slots__ = ("attributes",)

    def __init__(self, connection: Connection, direction: DirectionName | None) -> None:
        is_from_a = direction == "a_to_b"
        data, back = (connection.a_to_b, connection.b_to_a)[:: 1 if is_from_a else -1]
        self.attributes = {
            "subject": connection,
            "connection": connection,
            "direction": direction,
            "sender": "a" if is_from_a else "b",
            "receiver": "b" if is_from_a else "a",
            "data": data,
            "back": back,
        }


@dataclass(frozen=True)
class Case:
    """The subject of a rule's judgement.

    Attributes:
        analysis: the whole capture.
        rule: the judging rule.
        settings: the thresholds in effect, by name.
        connection: None for a rule of the capture.
        direction: ``a_to_b`` or ``b_to_a`` for a rule of directions, else None.
        asked: the selections for each of `Rule.asks`, for a rule of the capture.
    """

    analysis: Analysis
    rule: Rule
    settings: Mapping[str, float]
    subject: Connection | None = None
    direction: DirectionName | None = None
    asked: Sequence[Picks] = ()

    @cached
    def connection(self) -> Connection:
        """The connection to judge."""
        if self.subject is None:
            raise TypeError(f"{self.rule.code} is a rule of the capture")
        return self.subject

    @cached
    def sender(self) -> str:
        """The side, ``a`` or ``b``, that sends the direction's data."""
        return "a" if self.direction == "a_to_b" else "b"

    @cached
    def receiver(self) -> str:
        """The side that receives the direction's data."""
        return "b" if self.direction == "a_to_b" else "a"

    @cached
    def the_sender(self) -> str:
        """The sender as a phrase: ``the client``."""
        return self.the(self.sender)

    @cached
    def the_receiver(self) -> str:
        """The receiver as a phrase."""
        return self.the(self.receiver)

    def the(self, side: str) -> str:
        """Return an end of the connection as a phrase: ``the client``."""
        return the_end(self.connection, side)

    @cached
    def data(self) -> Direction:
        """The direction to judge."""
        connection = self.subject or self.connection
        return connection.a_to_b if self.direction == "a_to_b" else connection.b_to_a

    @cached
    def back(self) -> Direction:
        """The opposite direction."""
        connection = self.subject or self.connection
        return connection.b_to_a if self.direction == "a_to_b" else connection.a_to_b

    def events(self, *names: str, side: str | None = None, causes: Collection[str] = ()) -> Sequence[Event]:
        """Return the connection's events in order, filtered by name, sending side and cause.

        If the capture may not be read again, returns those that the first reading kept: the first of each kind.
        """
        if not self.may_follow:
            return first_events(self.analysis, self.connection.id, names, side=side, causes=causes)
        wanted = set(names)
        return [
            event
            for event in self._events
            if (not wanted or not wanted.isdisjoint(event.names))
            and (side is None or event.direction == side)
            and (not causes or event.cause in causes)
        ]

    def count_events(self, name: str, *, side: str) -> int:
        """Count the events that `events` returns for a name and a side."""
        if self.may_follow:
            return len(self.events(name, side=side))
        return count_first_events(self.analysis, self.connection.id, name, side=side)

    @cached
    def _events(self) -> list[Event]:
        return self.connection.events

    @property
    def stalls(self) -> list[Stall]:
        """The connection's stalls; empty if the capture may not be read again."""
        return self.connection.stalls if self.may_follow else []

    @cached
    def reading(self) -> Reading:
        """The reading shared by all rules of the capture."""
        return reading_of(self.analysis)

    @cached
    def may_follow(self) -> bool:
        """Whether events and stalls of the connection are available or may be read."""
        return self.reading.may_follow(self.analysis, self.connection.id)

    @cached
    def may_follow_series(self) -> bool:
        """Whether series of the connection are available or may be read."""
        return self.reading.may_follow_series(self.analysis, self.connection.id)

    @property
    def may_read(self) -> bool:
        """Whether the capture is small enough to be read again."""
        return self.reading.may_read

    @property
    def are_few(self) -> bool:
        """Whether the segments that rules may need are few enough to read for each connection."""
        return self.reading.are_few(self.analysis)

    def table(self, id: int | None = None, others: Iterable[int] = ()) -> Table | None:
        """Return the segments of a connection, by default the case's; None if they may not be read.

        `others` are connections whose segments will be needed next; they are read in the same pass.
        """
        number = self.connection.id if id is None else id
        return self.reading.table(self.analysis, number, others)

    def host(self, side: str) -> Host | None:
        """Return the host at a side, if there are snapshots of it."""
        return self.connection.hosts.get(side) if self.analysis.hosts else None

    def sockets(self, side: str) -> Sequence[SocketSample]:
        """Return the samples of a side's socket, in order; empty without snapshots."""
        return self.connection.socket_samples.get(side, ()) if self.analysis.hosts else ()

    @classmethod
    def each(
        cls, analysis: Analysis, rule: Rule, settings: Mapping[str, float], found: Iterable[Subject]
    ) -> Iterator[Case]:
        """Yield a case for each subject, sharing values between rules."""
        common = {"analysis": analysis, "rule": rule, "settings": settings, "reading": reading_of(analysis)}
        for subject in found:
            case = object.__new__(cls)
            case.__dict__.update(common)
            case.__dict__.update(subject.attributes)
            yield case

    def _fitted(self, remedy: Remedy | None, side: str | None) -> Remedy | None:
        if remedy is None or side is None or self.subject is None or not self.analysis.hosts:
            return remedy
        from tcpwin.limits.systems import fitted

        return fitted(remedy, self.analysis.hosts, self.host(side))

    def finding(
        self,
        text: str,
        *,
        owner: str,
        confidence: str,
        side: str | None = None,
        cost_ns: int = 0,
        lost_bps: float | None = None,
        evidence: Evidence | None = None,
        remedy: Remedy | None = None,
        severity: Severity | None = None,
        limits: tuple[str, ...] = (),
    ) -> Finding:
        """Make a finding of this case's rule.

        Args:
            text: what happened, the answer first; it may begin with `the_sender` or `the_receiver`.
            owner: who can change it: ``application`` or ``host`` (of `side`), ``network`` or ``nobody``.
            side: where to change something: ``a`` or ``b``.
            cost_ns: the time observed by the rule; time claimed by other findings or absent from the budget is
                deducted later.
            limits: the limits that the finding is about; by default the rule's.
        """
        end = None if side is None else ENDS[side]
        return Finding(
            code=self.rule.code,
            name=self.rule.name,
            severity=severity or self.rule.severity,
            text=text[:1].upper() + text[1:] if text.startswith(ROLES) else text,
            connection=None if self.subject is None else self.subject.id,
            direction=self.direction,
            owner=f"{end}_{owner}" if end is not None and owner in ("application", "host") else owner,
            side=end,
            cost_ns=cost_ns,
            lost_bps=lost_bps,
            confidence=confidence,
            evidence=evidence or Evidence(),
            remedy=self._fitted(remedy, side),
            limits=limits or self.rule.limits,
        )
