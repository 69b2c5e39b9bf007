"""tshark 4.0's derivation of bytes in flight, reimplemented so that it reproduces each number.

Per direction tshark keeps a list of captured, unacknowledged segments; in flight is the span of the list minus the SACK
blocks of the peer's last segment, except a fourth block. SYN and FIN count as bytes until they are acknowledged. After
a hole in the sequence numbers there is no value until the next ACK. (User's Guide §7.5; the rest was found by
experiment.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.compare import ACK, FIN, RST, SYN, Segment
from oracle.sequence import FURTHEST, MODULO, step

BLOCKS_TAKEN = 3
HIGHEST = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Count:
    """tshark's state just after a segment with data."""

    # Edges of the list.
    low: int
    high: int
    delivered: int
    own_control: int
    is_silent: bool
    # An ACK further ahead than any window reaches removed segments from the list.
    is_cleared: bool

    @property
    def bytes_in_flight(self) -> int | None:
        count = ((self.high - self.low) % MODULO - self.delivered) % MODULO
        return count - self.own_control if 0 < count < HIGHEST and not self.is_silent else None


@dataclass
class List:
    segments: list[tuple[int, int]] = field(default_factory=list)
    base: int | None = None
    next: int | None = None
    window: int | None = None
    blocks: tuple[tuple[int, int], ...] = ()
    is_silent: bool = False
    is_cleared: bool = False

    def send(self, segment: Segment, peer: List) -> None:
        control = bool(segment.flags & (SYN | FIN))
        end = (segment.seq + segment.length + control) % MODULO
        if self.base is None:
            self.base = segment.seq if segment.flags & SYN else (segment.seq - 1) % MODULO
        is_probe = segment.length == 1 and segment.seq == self.next and peer.window == 0
        is_ahead = self.next is not None and step(self.next, segment.seq) > 0
        if is_ahead and not is_probe and not segment.flags & RST:
            self.is_silent = True
        if segment.length or control:
            self.segments.append((segment.seq, end))
        if not is_probe and (self.next is None or step(self.next, end) > 0):
            self.next = end
        self.window, self.blocks = segment.window_raw, segment.sack

    def hear(self, segment: Segment) -> None:
        if segment.flags & ACK:
            self.is_silent = False
            if self.base is None:
                self.base = (segment.ack - 1) % MODULO
        remaining = []
        for low, high in self.segments:
            if step(low, segment.ack) > 0 and step(segment.ack, high) > 0:
                remaining.append((segment.ack, high))
            elif step(segment.ack, high) > 0:
                remaining.append((low, high))
            elif step(high, segment.ack) > FURTHEST:
                self.is_cleared = True
        self.segments = remaining

    def count(self, segment: Segment, peer: List) -> Count | None:
        if not self.segments:
            return None
        base = self.base or 0
        low = min((low - base) % MODULO for low, _ in self.segments)
        high = max((high - base) % MODULO for _, high in self.segments)
        return Count(
            low=(base + low) % MODULO,
            high=(base + high) % MODULO,
            delivered=sum((right - left) % MODULO for left, right in peer.blocks[:BLOCKS_TAKEN]),
            own_control=int(bool(segment.flags & (SYN | FIN))),
            is_silent=self.is_silent,
            is_cleared=self.is_cleared,
        )


def count_all(segments: Iterable[Segment]) -> dict[int, Count]:
    """Return tshark's state after each segment with data, by frame."""
    lists: dict[tuple[object, ...], List] = {}
    counts = {}
    for segment in segments:
        own = lists.setdefault((segment.stream, segment.source, segment.destination), List())
        peer = lists.setdefault((segment.stream, segment.destination, segment.source), List())
        peer.hear(segment)
        own.send(segment, peer)
        if segment.length and (count := own.count(segment, peer)):
            counts[segment.frame] = count
    return counts
