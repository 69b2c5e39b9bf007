"""What a rule may look at: a direction, a connection or the capture, with what the hosts said and the thresholds.

Direction and connection are as measured; nothing here measures anew. Reading events or series reads the source again:
a rule does so only once it is nearly sure.
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
"""Connections' numbers, and the directions' names."""
ROLES = ("the client", "the server", "the sender", "the receiver")


class Subject:
    """A connection, or a direction of it, as rules look at it: their cases have these `attributes`."""

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
    """What is judged.

    Attributes:
        analysis: the whole capture.
        rule: that judges.
        settings: its thresholds in force, by name.
        connection: None for a rule of the capture.
        direction: ``a_to_b`` or ``b_to_a`` for a rule of directions, else None.
        asked: what each question of a rule of the capture picks, `Rule.asks`.
    """

    analysis: Analysis
    rule: Rule
    settings: Mapping[str, float]
    subject: Connection | None = None
    direction: DirectionName | None = None
    asked: Sequence[Picks] = ()

    @cached
    def connection(self) -> Connection:
        """The connection that is judged."""
        if self.subject is None:
            raise TypeError(f"{self.rule.code} is a rule of the capture")
        return self.subject

    @cached
    def sender(self) -> str:
        """The side, ``a`` or ``b``, that sends the direction's data."""
        return "a" if self.direction == "a_to_b" else "b"

    @cached
    def receiver(self) -> str:
        """The side that receives it."""
        return "b" if self.direction == "a_to_b" else "a"

    @cached
    def the_sender(self) -> str:
        """The sender in words: ``the client``."""
        return self.the(self.sender)

    @cached
    def the_receiver(self) -> str:
        """The receiver in words."""
        return self.the(self.receiver)

    def the(self, side: str) -> str:
        """An end of the connection in words: ``the client``."""
        return the_end(self.connection, side)

    @cached
    def data(self) -> Direction:
        """The direction that is judged."""
        connection = self.subject or self.connection
        return connection.a_to_b if self.direction == "a_to_b" else connection.b_to_a

    @cached
    def back(self) -> Direction:
        """The other direction."""
        connection = self.subject or self.connection
        return connection.b_to_a if self.direction == "a_to_b" else connection.a_to_b

    def events(self, *names: str, side: str | None = None, causes: Collection[str] = ()) -> Sequence[Event]:
        """The connection's events, in order; those with any of the names, sent by the side, for one of the causes.

        All without these. Of a capture that may not be read again, those that the first reading kept: the first of
        each kind.
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
        """How many events `events` gives of a name and a side."""
        if self.may_follow:
            return len(self.events(name, side=side))
        return count_first_events(self.analysis, self.connection.id, name, side=side)

    @cached
    def _events(self) -> list[Event]:
        return self.connection.events

    @property
    def stalls(self) -> list[Stall]:
        """The connection's long silences; none where the capture may not be read again."""
        return self.connection.stalls if self.may_follow else []

    @cached
    def reading(self) -> Reading:
        """What was read of the capture for its rules, and what may still be read."""
        return reading_of(self.analysis)

    @cached
    def may_follow(self) -> bool:
        """Whether events and stalls of the connection are at hand, or may be read."""
        return self.reading.may_follow(self.analysis, self.connection.id)

    @cached
    def may_follow_series(self) -> bool:
        """Whether its series are, too."""
        return self.reading.may_follow_series(self.analysis, self.connection.id)

    @property
    def may_read(self) -> bool:
        """Whether the capture is small enough that anything of it may be read again."""
        return self.reading.may_read

    @property
    def are_few(self) -> bool:
        """Whether the segments that rules may look at are few enough to look at each connection's for its own sake."""
        return self.reading.are_few(self.analysis)

    def table(self, id: int | None = None, others: Iterable[int] = ()) -> Table | None:
        """The segments of a connection, by default the case's; None where they may not be read.

        `others` are connections whose segments will be asked for next: they are read together.
        """
        number = self.connection.id if id is None else id
        return self.reading.table(self.analysis, number, others)

    def host(self, side: str) -> Host | None:
        """The host at a side, where its snapshots came along."""
        return self.connection.hosts.get(side) if self.analysis.hosts else None

    def sockets(self, side: str) -> Sequence[SocketSample]:
        """The samples of a side's socket, in order; empty without snapshots."""
        return self.connection.socket_samples.get(side, ()) if self.analysis.hosts else ()

    @classmethod
    def each(
        cls, analysis: Analysis, rule: Rule, settings: Mapping[str, float], found: Iterable[Subject]
    ) -> Iterator[Case]:
        """The rule's case of each subject; what several rules look at is found once for all of them."""
        common = {"analysis": analysis, "rule": rule, "settings": settings, "reading": reading_of(analysis)}
        for subject in found:
            case = object.__new__(cls)
            case.__dict__.update(common)
            case.__dict__.update(subject.attributes)
            yield case

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
    ) -> Finding:
        """A finding of this case's rule.

        Args:
            text: what happened, the answer first; it may begin with `the_sender` or `the_receiver`.
            owner: who can change it: ``application``, ``host`` (those of `side`), ``network`` or ``nobody``.
            side: ``a`` or ``b``, at which to change something.
            cost_ns: the time that the rule saw; what other findings or no budget claims of it is taken off later.
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
            remedy=remedy,
            limits=self.rule.limits,
        )
