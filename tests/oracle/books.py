"""A sender's knowledge of its flight from the packets alone, as RFC 9293 §3.3.1 and RFC 6675 §4 require.

Takes the segments of a capture in order and returns SND.UNA, SND.MAX and the sender's scoreboard after each segment
with data. There are no heuristics: facts that packets do not show are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.compare import ACK, FIN, RST, SYN, Segment
from oracle.sequence import FURTHEST, MODULO, Ranges, step


@dataclass(frozen=True, slots=True)
class Flight:
    """One sender's state just after one of its segments."""

    una: int | None
    max: int
    # SYN and FIN in between, which take a sequence number but carry no data.
    control: int
    sacked: int
    # Whether an acknowledgment gave SND.UNA; before one, only the SYN's own data is known to be in flight.
    was_acked: bool
    # Blocks of the peer's last segment.
    last_blocks: tuple[tuple[int, int], ...]
    # An ACK covered what was never captured, and nothing captured since shows SND.MAX.
    is_lost: bool

    @property
    def outstanding(self) -> int | None:
        if self.una is None or not self.was_acked or self.is_lost:
            return None
        return step(self.una, self.max) - self.control

    @property
    def pipe(self) -> int | None:
        return None if self.outstanding is None else self.outstanding - self.sacked


@dataclass
class Sender:
    una: int | None = None
    max: int | None = None
    isn: int | None = None
    control: set[int] = field(default_factory=set)
    sacked: Ranges = field(default_factory=Ranges)
    last_blocks: tuple[tuple[int, int], ...] = ()
    was_acked: bool = False
    is_lost: bool = False

    def send(self, segment: Segment) -> None:
        takes = segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)
        end = (segment.seq + takes) % MODULO
        if segment.flags & SYN:
            if self.isn is not None and self.una != self.isn:
                return  # a stray SYN of another attempt: this one's was acknowledged
            if segment.seq != self.isn:
                self.isn = self.una = segment.seq
                self.max, self.control, self.sacked = end, {segment.seq}, Ranges()
                self.was_acked = True
        elif self.una == self.isn:
            self.was_acked = False  # the handshake had ended when it was sent, and its ACK was not captured
        if self.max is None:
            self.max = segment.seq
        if abs(step(self.max, segment.seq)) > FURTHEST:
            return
        if segment.flags & FIN:
            self.control.add((end - 1) % MODULO)
        if step(self.max, end) > 0:
            self.max, self.is_lost = end, False

    def hear(self, segment: Segment) -> None:
        """Process a segment of the peer."""
        self.last_blocks = segment.sack
        if not segment.flags & ACK:
            return
        if self.max is None:
            self.una = self.max = segment.ack
        beyond = step(self.max, segment.ack)
        if beyond > FURTHEST or (segment.flags & RST and beyond > 0):
            return
        if beyond > 0:
            self.max, self.is_lost = segment.ack, True
        if self.una is None or step(self.una, segment.ack) > 0:
            self.una = segment.ack
        self.was_acked = True
        self.sacked.forget_below(self.una)
        for left, right in segment.sack:
            if step(self.una, left) >= 0 and step(right, self.max) >= 0 and step(left, right) > 0:
                self.sacked.add(left, right)

    def snapshot(self) -> Flight:
        una, top = self.una, self.max or 0
        control = 0 if una is None else sum(step(una, at) >= 0 and step(at, top) > 0 for at in self.control)
        return Flight(una, top, control, self.sacked.total(), self.was_acked, self.last_blocks, self.is_lost)


def keep_books(segments: Iterable[Segment]) -> dict[int, Flight]:
    """Return the flight after each segment with data, by frame."""
    senders: dict[tuple[object, ...], Sender] = {}
    flights = {}
    for segment in segments:
        here = (segment.stream, segment.source, segment.destination)
        there = (segment.stream, segment.destination, segment.source)
        senders.setdefault(there, Sender()).hear(segment)
        sender = senders.setdefault(here, Sender())
        sender.send(segment)
        if segment.length:
            flights[segment.frame] = sender.snapshot()
    return flights
