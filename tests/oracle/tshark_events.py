"""tshark 4.0's derivation of loss and order events, reimplemented so that it reproduces each of them.

Per direction tshark remembers the highest byte captured, the last segment's ACK and window, how often that ACK was
repeated, and how far the capture is contiguous. Sequence numbers wrap like C's signed differences: at exactly half the
ring each is beyond the other. (User's Guide §7.5; the rest was found by experiment.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oracle.compare import ACK, FIN, RST, SYN, Segment
from oracle.sequence import MODULO

# After an ACK, for a fast retransmission; without a measured handshake, for out-of-order segments.
PROMPT_NS = 20_000_000
NEAR_NS = 3_000_000
FEWEST_DUPLICATES = 2


@dataclass(frozen=True, slots=True)
class Opinion:
    """tshark's labels of a segment, and the state from which they are derived."""

    events: frozenset[str]
    # The acknowledgment in the peer's last segment, its repetitions, and its age.
    last_ack: int
    duplicates: int
    since_ack_ns: int | None
    # How far the peer's data was captured without a hole.
    unbroken_to: int


@dataclass
class Side:
    next: int = 0
    next_time_ns: int = 0
    unbroken_to: int = 0
    last_ack: int = 0
    last_time_ns: int | None = None
    window: int | None = None
    duplicates: int = 0
    # An ACK of something unseen was captured, and this side has sent no other acknowledgment since.
    is_reported: bool = False
    last_events: frozenset[str] = frozenset()

    def take(self, segment: Segment, end: int, events: frozenset[str]) -> None:
        is_probe = "zero_window_probe" in events
        if (beyond(end, self.next) or not self.next) and not is_probe:
            self.next, self.next_time_ns = end, segment.time_ns
        if (segment.seq == self.unbroken_to or not self.unbroken_to) and not is_probe:
            self.unbroken_to = self.next
        self.window, self.last_ack, self.last_time_ns = segment.window_raw, segment.ack, segment.time_ns
        self.last_events = events


def beyond(one: int, other: int) -> bool:
    return (other - one) % MODULO >= MODULO >> 1


def flag_all(segments: Iterable[Segment]) -> dict[int, Opinion]:
    """Return tshark's labels of each segment, by frame."""
    sides: dict[tuple[object, ...], Side] = {}
    initial_rtt_ns: dict[int, int | None] = {}
    opinions = {}
    for segment in segments:
        own = sides.setdefault((segment.stream, segment.source, segment.destination), Side())
        peer = sides.setdefault((segment.stream, segment.destination, segment.source), Side())
        opinions[segment.frame] = flag(segment, own, peer, initial_rtt_ns.get(segment.stream) or NEAR_NS)
        # tshark knows the initial round trip only after the segment that measured it.
        initial_rtt_ns[segment.stream] = segment.initial_rtt_ns or initial_rtt_ns.get(segment.stream)
    return opinions


def flag(segment: Segment, own: Side, peer: Side, near_ns: int) -> Opinion:
    unbroken_to = peer.unbroken_to
    events = flag_numbers(segment, own, peer)
    if segment.ack != own.last_ack:
        own.duplicates, own.is_reported = 0, False
    if segment.flags & ACK and peer.unbroken_to and beyond(segment.ack, peer.unbroken_to):
        if beyond(peer.next, peer.unbroken_to):
            peer.unbroken_to = peer.next
            events.add("acked_unseen")
        else:
            if not peer.is_reported and not peer.duplicates:
                events.add("acked_unseen")
            peer.is_reported, peer.duplicates = True, 0
    since_ack_ns = None if peer.last_time_ns is None else segment.time_ns - peer.last_time_ns
    takes = segment.length + bool(segment.flags & (SYN | FIN))
    end = (segment.seq + takes) % MODULO
    if takes and "keep_alive" not in events:
        events |= flag_repeated(segment, own, peer, (end, near_ns, since_ack_ns or 0))
    own.take(segment, end, frozenset(events))
    return Opinion(frozenset(events), peer.last_ack, peer.duplicates, since_ack_ns, unbroken_to)


def flag_numbers(segment: Segment, own: Side, peer: Side) -> set[str]:
    """Derive labels from sequence number, acknowledgment and window, compared with the previous segment."""
    is_plain = not segment.flags & (SYN | FIN | RST)
    if segment.length == 1 and segment.seq == own.next and peer.window == 0:
        return {"zero_window_probe"}
    events = set()
    if own.next and beyond(segment.seq, own.next) and not segment.flags & RST:
        events.add("previous_segment_missing")
    if segment.length <= 1 and segment.seq == (own.next - 1) % MODULO and is_plain:
        events.add("keep_alive")
    repeats = segment.length == 0 and segment.seq == own.next and segment.ack == own.last_ack and is_plain
    if repeats and segment.window_raw:
        if segment.window_raw != own.window:
            events.add("window_update")
        elif "keep_alive" not in peer.last_events:
            events.add("duplicate_ack")
            own.duplicates, own.is_reported = own.duplicates + 1, False
    return events


def flag_repeated(segment: Segment, own: Side, peer: Side, more: tuple[int, int, int]) -> set[str]:
    end, near_ns, since_ack_ns = more
    is_behind = bool(own.next) and beyond(own.next, segment.seq)
    if segment.length > 1 and segment.seq == (own.next - 1) % MODULO:
        is_behind = False
    not_acked = (segment.seq + segment.length - peer.last_ack) % MODULO
    if segment.length and peer.last_ack and not 0 < not_acked < MODULO >> 1:
        return {"resent", "spurious_retransmission"}
    if not is_behind:
        return set()
    is_head = peer.duplicates >= FEWEST_DUPLICATES and peer.last_ack == segment.seq
    if is_head and 0 <= since_ack_ns < PROMPT_NS:
        return {"resent", "fast_retransmission"}
    is_near = 0 <= segment.time_ns - own.next_time_ns < near_ns
    return {"out_of_order"} if is_near and own.next != end else {"resent"}
