"""What had been captured when a segment came, from the packets alone: bytes, holes, copies, recovery.

In: the segments of a capture in order. Out: for each segment its past. No heuristics: it holds what the
packets show, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.books import Sender
from oracle.compare import FIN, RST, SYN, Segment
from oracle.sequence import FURTHEST, MODULO, Ranges, step

# One packet seen at two places of a path, or written down twice; not many others come between.
COPY_WITHIN_NS = 1_000_000
COPY_WITHIN_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class Past:
    """A segment's past: SND.UNA and SND.MAX of its sender, and what of its bytes and its ACK was known."""

    una: int | None
    max: int | None
    isn: int | None
    end: int
    copy_of: Segment | None
    # Of its own bytes, those that no segment before it had; the first segment that skipped them.
    never_captured: int
    skipped_by: Segment | None
    # The last segment before it with any of its bytes.
    sent_before: Segment | None
    sacked_above: int
    # ACKs without data that repeated SND.UNA since it stands where it stands.
    repeated_acks: int
    # SND.MAX when data was first sent again, until that is acknowledged.
    recovery_point: int | None
    last_own: Segment | None
    last_heard: Segment | None
    # How far its ACK lies beyond all that its peer is known to have sent; bytes that it is the first to cover
    # and that no segment before it had.
    acked_beyond: int
    acked_unseen: int
    # What the peer has outstanding, its ACK taken into account.
    outstanding: int


@dataclass
class Track:
    sender: Sender = field(default_factory=Sender)
    first: int | None = None
    captured: Ranges = field(default_factory=Ranges)
    holes: list[tuple[int, int, Segment]] = field(default_factory=list)
    sent: list[Segment] = field(default_factory=list)
    recovery_point: int | None = None
    repeated_acks: int = 0

    def hear(self, segment: Segment) -> int:
        """Take in a segment of the peer; return how many bytes it acknowledges that were never captured."""
        was = self.first if self.sender.una is None else self.sender.una
        self.sender.hear(segment)
        una = self.sender.una
        if self.first is None or was is None or una is None or not 0 < step(was, una) <= FURTHEST:
            repeats = una == segment.ack and not segment.length and not segment.flags & (SYN | FIN | RST)
            self.repeated_acks += repeats
            return 0
        self.repeated_acks = 0
        if self.recovery_point is not None and step(self.recovery_point, una) >= 0:
            self.recovery_point = None
        return step(was, una) - self.captured.overlap(was, una)

    def send(self, segment: Segment, past: Past) -> None:
        self.sender.send(segment)
        self.sent.append(segment)
        if self.first is None:
            self.first = segment.seq
        if not segment.flags & SYN and past.max is not None and abs(step(past.max, segment.seq)) > FURTHEST:
            return
        is_again = segment.length and past.never_captured < step(segment.seq, past.end)
        if is_again and self.recovery_point is None and past.una is not None and step(past.una, past.end) > 0:
            self.recovery_point = self.sender.max
        if past.max is not None and step(past.max, segment.seq) > 0:
            self.holes.append((past.max, segment.seq, segment))
        if past.end != segment.seq:
            self.captured.add(segment.seq, past.end)

    def last_with(self, left: int, right: int) -> Segment | None:
        return next((one for one in reversed(self.sent) if touches(one.seq, end_of(one), left, right)), None)

    def skipped(self, left: int, right: int) -> Segment | None:
        return next((by for low, high, by in self.holes if touches(low, high, left, right)), None)

    def copied(self, segment: Segment) -> Segment | None:
        near = [
            one for one in self.sent[-COPY_WITHIN_SEGMENTS:] if abs(segment.time_ns - one.time_ns) <= COPY_WITHIN_NS
        ]
        return next((one for one in near if header(one) == header(segment)), None)


def touches(low: int, high: int, left: int, right: int) -> bool:
    return step(low, right) > 0 and step(left, high) > 0


def end_of(segment: Segment) -> int:
    return (segment.seq + segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)) % MODULO


def header(segment: Segment) -> tuple[object, ...]:
    """What two sightings of one packet share; its time to live may differ."""
    numbers = (segment.seq, segment.ack, segment.length, segment.flags, segment.window_raw)
    return (*numbers, segment.ip_id, segment.checksum, segment.timestamps, segment.sack)


def recall(segments: Iterable[Segment]) -> dict[int, Past]:
    """Return the past of each segment, by frame."""
    tracks: dict[tuple[object, ...], Track] = {}
    pasts = {}
    for segment in segments:
        own = tracks.setdefault((segment.stream, segment.source, segment.destination), Track())
        peer = tracks.setdefault((segment.stream, segment.destination, segment.source), Track())
        beyond = 0 if peer.sender.max is None else step(peer.sender.max, segment.ack)
        past = look_back(segment, own, peer, (beyond, peer.hear(segment)))
        pasts[segment.frame] = past
        own.send(segment, past)
    return pasts


def look_back(segment: Segment, own: Track, peer: Track, acked: tuple[int, int]) -> Past:
    end = end_of(segment)
    sender, heard = own.sender, peer.sender
    sacked = sender.sacked.total() - sender.sacked.overlap(sender.una or 0, end) if sender.una is not None else 0
    never_captured = step(segment.seq, end) - own.captured.overlap(segment.seq, end)
    is_known = never_captured < step(segment.seq, end)
    is_open = heard.una is not None and heard.max is not None
    return Past(
        una=sender.una,
        max=sender.max,
        isn=sender.isn,
        end=end,
        copy_of=own.copied(segment),
        never_captured=never_captured,
        skipped_by=own.skipped(segment.seq, end),
        sent_before=own.last_with(segment.seq, end) if is_known else None,
        sacked_above=sacked,
        repeated_acks=own.repeated_acks,
        recovery_point=own.recovery_point,
        last_own=own.sent[-1] if own.sent else None,
        last_heard=peer.sent[-1] if peer.sent else None,
        acked_beyond=acked[0],
        acked_unseen=acked[1],
        outstanding=step(heard.una or 0, heard.max or 0) if is_open else 0,
    )
