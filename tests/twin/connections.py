"""Segments → connections: sides, handshake, abort, and duplicates made by the capture (rules 1, 6.1, 12)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from itertools import islice

from twin.acks import acknowledge, take_ack
from twin.data import take_data
from twin.directions import Direction
from twin.ecn import marks
from twin.scale import Offer, confirmed_shift, negotiate, read_syn, segment_size
from twin.segments import Segment
from twin.sequence import MODULO
from twin.windows import Advertisement

Endpoint = tuple[str, int]

DUPLICATE_WITHIN_NS = 1_000_000
ROUTED_WITHIN_NS = 50_000_000
DUPLICATE_WITHIN_SEGMENTS = 64
WELL_KNOWN_BELOW, EPHEMERAL_FROM = 1024, 32_768
"""System ports (RFC 6335 §6); Linux's ip_local_port_range."""


@dataclass(slots=True)
class Taken:
    """The outcome of a segment: its connection, the direction of its data, its events and its round trip."""

    connection: Connection
    side: int
    events: set[str] = field(default_factory=set)
    rtt_ns: int | None = None


@dataclass(slots=True)
class Connection:
    """A connection whose side 0 sent the first captured segment; `directions[side]` is that side's data."""

    number: int
    endpoints: tuple[Endpoint, Endpoint]
    ip_version: int
    initiator: int
    is_initiator_known: bool = False
    directions: tuple[Direction, Direction] = field(default_factory=lambda: (Direction(), Direction()))
    syn_ns: int | None = None
    syn_ack_ns: int | None = None
    established_ns: int | None = None
    is_handshake_ambiguous: bool = False
    end_ns: int | None = None

    @property
    def handshake_rtt_ns(self) -> int | None:
        """Return the time from the SYN to the ACK of its answer; None if either was retransmitted (Karn, RFC 6298
        §3).
        """
        if self.syn_ns is None or self.established_ns is None or self.is_handshake_ambiguous:
            return None
        return self.established_ns - self.syn_ns if self.established_ns >= self.syn_ns else None

    def side_of(self, segment: Segment) -> int:
        return 0 if self.endpoints[0] == (segment.src, segment.sport) else 1

    def take(self, side: int, segment: Segment) -> Taken:
        """Update the state by one segment; if the clock ran backwards, at the time of the previous one."""
        self.end_ns = segment.time_ns if self.end_ns is None else max(self.end_ns, segment.time_ns)
        segment = replace(segment, time_ns=self.end_ns)
        self.directions[side].segments += 1
        if segment.is_rst:
            return self.take_reset(side, segment)
        if segment.is_syn:
            return self.take_syn(side, segment)
        return self.take_plain(side, segment)

    def take_plain(self, side: int, segment: Segment) -> Taken:
        sent, acked = self.directions[side], self.directions[1 - side]
        path_ns = self.handshake_rtt_ns
        is_first_after_syn = sent.segments == 2 and segment.seq == (sent.isn + 1) % MODULO
        if sent.has_syn and acked.syn.offer is Offer.UNSEEN and sent.shift is None and is_first_after_syn:
            sent.shift = confirmed_shift(sent.syn, segment.window)
        taken = Taken(self, side)
        if segment.window == 0 and not segment.is_fin:
            # Rule 4.1.
            taken.events.add("zero_window")
        if segment.is_ack:
            answer = take_ack(sent, acked, segment)
            taken.events |= answer.events
            taken.rtt_ns = answer.rtt_ns
        taken.events |= take_data(sent, acked, segment, path_ns) | marks(sent.syn, acked.syn, segment)
        sent.flight.is_seen = True
        sent.note_timestamps(segment)
        if segment.tsecr is not None:
            acked.echo.echoed(segment.tsecr, segment.time_ns)
        is_open = self.syn_ack_ns is not None and sent.has_syn and acked.has_syn
        if is_open and self.established_ns is None and acked.flight.place(segment.ack) > acked.isn:
            self.established_ns = segment.time_ns
        return taken

    def take_reset(self, side: int, segment: Segment) -> Taken:
        """RFC 5961 §3.2: a reset at RCV.NXT, between SND.UNA and SND.MAX, ends the connection; others have no effect.

        Its ACK acknowledges nothing (RFC 9293 §3.10.7.4: the reset is the second check, the ACK the fifth).
        """
        flight = self.directions[side].flight
        if not flight.is_known or flight.una <= flight.place(segment.seq) <= flight.nxt:
            for direction in self.directions:
                direction.zero.end()
        return Taken(self, side)

    def take_syn(self, side: int, segment: Segment) -> Taken:
        """Process SYN and SYN/ACK: sequence numbers, options, the first windows, which are unscaled (RFC 7323 §2.2)."""
        sent, acked = self.directions[side], self.directions[1 - side]
        taken = Taken(self, side)
        if not self.is_initiator_known:
            self.initiator, self.is_initiator_known = (1 - side if segment.is_ack else side), True
        is_again = sent.has_syn and segment.seq == sent.isn % MODULO
        # An answer to another attempt may also be repeated.
        is_return = sent.has_syn and segment.seq == sent.earlier_isn
        if sent.has_syn and not is_again:
            sent.earlier_isn = sent.isn % MODULO
        if is_again or is_return or self.established_ns is not None:
            taken.events |= {"syn_retransmission", "retransmission"}
        if self.established_ns is not None:
            # The negotiated options remain, whatever a late copy contains (RFC 9293 §3.10.7.4).
            return taken
        self.is_handshake_ambiguous |= is_again
        seq = sent.flight.place(segment.seq)
        sent.syn, had_syn = read_syn(segment, sent.syn if is_again else None, acked.syn), sent.has_syn
        if is_again:
            sent.ledger.forget()
        else:
            begin(sent, segment, seq, had_syn=had_syn)
        sent.flight.is_seen = True
        if segment.length:
            sent.data_segments += 1
            sent.last_data_ns = segment.time_ns
            sent.congestion.note_flight(sent.flight.outstanding)
        sent.note_timestamps(segment)
        if segment.is_ack and segment.tsecr is not None:
            acked.echo.echoed(segment.tsecr, segment.time_ns)
        ack = acked.flight.una
        if segment.is_ack:
            ack = acked.flight.place(segment.ack)
            answer = acknowledge(sent, acked, ack, segment)
            taken.events |= answer.events
            taken.rtt_ns = answer.rtt_ns
        acked.window.last_raw = segment.window
        new = Advertisement(seq, ack, segment.window, 1, is_new_ack=True)
        if not (is_again and acked.window.is_known):
            acked.window.accept(new)
        if segment.is_ack:
            self.syn_ack_ns = segment.time_ns
            if segment.window == 0:
                acked.zero.begin(segment.time_ns)
        else:
            self.syn_ns = segment.time_ns
        self.settle()
        return taken

    def settle(self) -> None:
        """Derive scaling and segment size from the SYNs seen so far."""
        for own, peer in (self.directions, self.directions[::-1]):
            own.shift = negotiate(own.syn, peer.syn)
            size = segment_size(own.syn, peer.syn, self.ip_version)
            own.mss = own.mss if size is None else size


def begin(sent: Direction, segment: Segment, seq: int, *, had_syn: bool) -> None:
    """Take the direction's sequence numbers from the first SYN of an attempt."""
    flight = sent.flight
    is_acked_before = flight.is_started and not flight.is_seen and flight.una == seq + 1
    if not is_acked_before and (had_syn or not flight.is_seen):
        flight.start(seq)
    flight.nxt = max(flight.nxt, seq + segment.space)
    flight.syn, flight.has_only_syn = seq, True
    if segment.is_fin:
        flight.fin = flight.nxt - 1
    sent.isn = seq
    sent.window.anchor(seq + 1)
    sent.ledger.sent(seq, flight.nxt, segment)


class Tracker:
    """All connections of a capture."""

    def __init__(self) -> None:
        self._newest: dict[frozenset[Endpoint], Connection] = {}
        self._count = 0
        self._recent: deque[Segment] = deque()

    def track(self, segment: Segment) -> Taken:
        """Process the next segment."""
        connection = self._locate(segment)
        side = connection.side_of(segment)
        if brings_nothing(connection, side, segment) and self._holds(segment):
            sent = connection.directions[side]
            kind = sent.recovery.kind_of_copy(segment, sent.flight.place(segment.seq), DUPLICATE_WITHIN_NS)
            taken = Taken(connection, side, {"capture_duplicate"} | kind)
        else:
            taken = connection.take(side, segment)
        self._recent.append(segment)
        while self._recent[0].time_ns < segment.time_ns - ROUTED_WITHIN_NS:
            self._recent.popleft()
        return taken

    def _locate(self, segment: Segment) -> Connection:
        endpoints = ((segment.src, segment.sport), (segment.dst, segment.dport))
        found = self._newest.get(frozenset(endpoints))
        if found and not (segment.is_syn and is_new_connection(found, segment)):
            return found
        connection = Connection(self._count, endpoints, segment.ip_version, guess_initiator(segment))
        self._count += 1
        self._newest[frozenset(endpoints)] = connection
        return connection

    def _holds(self, segment: Segment) -> bool:
        """Return whether the capture already contains the packet: the same IP identification and header within 1 ms, or
        with another TTL within 50 ms, from the other side of a router (rule 6.1).

        Without an identification (IPv6, zero, or one shared with others) two duplicate ACKs may look alike: with the
        same TTL only segments that take sequence space are then judged.
        """
        newest = list(islice(reversed(self._recent), DUPLICATE_WITHIN_SEGMENTS))
        others = (one for one in newest if way(one) == way(segment) and one.ip_id == segment.ip_id)
        has_id = segment.ip_id and all(place(one) == place(segment) for one in others)
        for earlier in reversed(self._recent):
            elapsed_ns = segment.time_ns - earlier.time_ns
            # Few agree in these, and comparing all fields takes longer than all else here.
            if (earlier.seq, earlier.ack, earlier.ip_id) != (segment.seq, segment.ack, segment.ip_id):
                continue
            if elapsed_ns < 0 or identity(earlier) != identity(segment):
                continue
            if earlier.ttl != segment.ttl:
                return True
            if elapsed_ns <= DUPLICATE_WITHIN_NS and earlier in newest:
                return bool(has_id or segment.space)
        return False


def way(segment: Segment) -> tuple[Endpoint, Endpoint]:
    return (segment.src, segment.sport), (segment.dst, segment.dport)


def place(segment: Segment) -> tuple[int, int, int]:
    return segment.seq, segment.ack, segment.length


def identity(segment: Segment) -> Segment:
    """Return all fields that copies share; the checksum includes the SACK blocks."""
    options = replace(segment.options, sack=())
    return replace(segment, frame=0, time_ns=0, ttl=0, options=options)


def brings_nothing(connection: Connection, side: int, segment: Segment) -> bool:
    """Return whether it has no new sequence space and no new acknowledgment."""
    sent, acked = connection.directions[side].flight, connection.directions[1 - side].flight
    is_old = sent.is_started and sent.place(segment.seq) + segment.space <= sent.nxt
    return is_old and (not segment.is_ack or acked.place(segment.ack) <= acked.una)


def is_new_connection(connection: Connection, segment: Segment) -> bool:
    """Return whether a SYN on a known four-tuple starts another connection, with a new initial sequence number."""
    side = connection.side_of(segment)
    own, peer = connection.directions[side], connection.directions[1 - side]
    if own.has_syn or own.flight.is_seen:
        is_same_start = own.isn % MODULO == segment.seq
    else:
        # No packet of this side was captured; the peer's acknowledgments give its sequence number.
        is_unknown = not own.flight.is_started or not peer.flight.is_seen
        is_same_start = is_unknown or own.flight.una % MODULO == (segment.seq + 1) % MODULO
    # Another answer to the same SYN belongs to the same attempt.
    is_answer = segment.is_ack and peer.has_syn and segment.ack == (peer.isn + 1) % MODULO
    return not is_same_start and not is_answer


def guess_initiator(segment: Segment) -> int:
    """Without a SYN, guess: a service answers; otherwise the lower of two different kinds of port; otherwise the
    first one seen.
    """
    from_service, to_service = (port < WELL_KNOWN_BELOW for port in (segment.sport, segment.dport))
    from_ephemeral, to_ephemeral = (port >= EPHEMERAL_FROM for port in (segment.sport, segment.dport))
    if to_service:
        return 0
    return int(from_service or (to_ephemeral and not from_ephemeral))
