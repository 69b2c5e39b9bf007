"""Everything captured before a segment, from the packets alone: bytes, holes, copies, recovery.

Takes the segments of a capture in order and returns each one's past, without heuristics or judgement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.books import Sender
from oracle.compare import FIN, SYN, Segment
from oracle.sequence import FURTHEST, MODULO, Ranges, step

# One packet seen at two points of a path, or recorded twice, with few packets in between.
COPY_WITHIN_NS = 50_000_000
COPY_WITHIN_SEGMENTS = 64
# IP identifications of one counter are at most this far apart.
NEAR_IDS = 1024


@dataclass(frozen=True, slots=True)
class Past:
    """A segment's past: SND.UNA and SND.MAX of its sender, and what was known of its data and its ACK."""

    una: int | None
    max: int | None
    isn: int | None
    end: int
    copy_of: Segment | None
    # Its bytes that no earlier segment had; the first segment that skipped them.
    never_captured: int
    skipped_by: Segment | None
    # The last earlier segment with any of its bytes.
    sent_before: Segment | None
    # Not late: its bytes appeared before, or it was sent after the segment that skipped them. A copy is like its
    # original.
    is_again: bool
    sacked_above: int
    # SND.MAX at the first retransmission, until that is acknowledged.
    recovery_point: int | None
    last_own: Segment | None
    last_heard: Segment | None
    # How far its ACK exceeds everything its peer is known to have sent; bytes that it is the first to cover and that no
    # earlier segment had.
    acked_beyond: int
    acked_unseen: int
    # Data that the peer has outstanding after its ACK; None if none of the peer's packets was captured.
    outstanding: int | None


@dataclass
class Track:
    sender: Sender = field(default_factory=Sender)
    first: int | None = None
    captured: Ranges = field(default_factory=Ranges)
    holes: list[tuple[int, int, Segment]] = field(default_factory=list)
    sent: list[Segment] = field(default_factory=list)
    sent_again: set[int] = field(default_factory=set)
    recovery_point: int | None = None

    def hear(self, segment: Segment) -> int:
        """Process a segment of the peer; return how many acknowledged bytes were never captured."""
        was = self.first if self.sender.una is None else self.sender.una
        self.sender.hear(segment)
        una = self.sender.una
        if self.first is None or was is None or una is None or not 0 < step(was, una) <= FURTHEST:
            return 0
        if self.recovery_point is not None and step(self.recovery_point, una) >= 0:
            self.recovery_point = None
        return step(was, una) - self.captured.overlap(was, una)

    def send(self, segment: Segment, past: Past) -> None:
        self.sender.send(segment)
        self.sent.append(segment)
        self.sent_again |= {segment.frame} if past.is_again else set()
        if self.first is None:
            self.first = segment.seq
        if not segment.flags & SYN and past.max is not None and abs(step(past.max, segment.seq)) > FURTHEST:
            return
        is_open = past.una is not None and step(past.una, past.end) > 0
        if segment.length and past.is_again and is_open and self.recovery_point is None:
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
        recent = self.sent[-COPY_WITHIN_SEGMENTS:]
        near = (one for one in recent if abs(segment.time_ns - one.time_ns) <= COPY_WITHIN_NS)
        return next((one for one in near if header(one) == header(segment)), None)


def touches(low: int, high: int, left: int, right: int) -> bool:
    return step(low, right) > 0 and step(left, high) > 0


def end_of(segment: Segment) -> int:
    return (segment.seq + segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)) % MODULO


def header(segment: Segment) -> tuple[object, ...]:
    """Return the fields that two sightings of one packet share; its TTL may differ."""
    numbers = (segment.seq, segment.ack, segment.length, segment.flags, segment.window_raw)
    return (*numbers, segment.ip_id, segment.checksum, segment.timestamps, segment.sack)


def was_sent_after(segment: Segment, other: Segment) -> bool:
    """Compare by the sender's clock (RFC 7323 §4), or by its packet counter."""
    if segment.timestamps and other.timestamps and segment.timestamps[0] != other.timestamps[0]:
        return step(other.timestamps[0], segment.timestamps[0]) > 0
    ids = int(other.ip_id or "0", 0), int(segment.ip_id or "0", 0)
    return all(ids) and 0 < (ids[1] - ids[0]) % (1 << 16) < NEAR_IDS


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
    copy_of, skipped_by = own.copied(segment), own.skipped(segment.seq, end)
    is_younger = skipped_by is not None and was_sent_after(segment, skipped_by)
    return Past(
        una=sender.una,
        max=sender.max,
        isn=sender.isn,
        end=end,
        copy_of=copy_of,
        never_captured=never_captured,
        skipped_by=skipped_by,
        sent_before=own.last_with(segment.seq, end) if is_known else None,
        is_again=copy_of.frame in own.sent_again if copy_of else is_known or is_younger,
        sacked_above=sacked,
        recovery_point=own.recovery_point,
        last_own=own.sent[-1] if own.sent else None,
        last_heard=peer.sent[-1] if peer.sent else None,
        acked_beyond=acked[0],
        acked_unseen=acked[1],
        outstanding=None if peer.first is None else step(heard.una or 0, heard.max or 0),
    )
