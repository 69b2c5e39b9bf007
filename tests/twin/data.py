"""A segment as data: SND.MAX, gaps, retransmissions, probes and keep-alives, the right edge (rules 3, 4, 6)."""

from __future__ import annotations

from twin.causes import explain
from twin.congestion import Ramp
from twin.directions import Direction
from twin.recovery import Cause, Hole
from twin.segments import Segment
from twin.sequence import FURTHEST

PAUSE_MIN_NS = 5_000_000
"""A shorter silence is the sender's own, not a pause between messages."""


def take_data(sent: Direction, peer: Direction, segment: Segment, path_ns: int | None) -> set[str]:
    """Process the sequence space of a segment without SYN and RST; `path_ns` is the handshake's round trip."""
    flight = sent.flight
    seq = flight.place(segment.seq)
    if not flight.is_started:
        flight.start(seq)
    if not sent.has_syn and sent.segments == 1:
        sent.isn = seq - 1
    events = set()
    if flight.is_lost and seq >= flight.nxt:
        # Data acknowledged unseen is missing before this segment, which shows SND.MAX again.
        flight.is_lost = False
        events.add("previous_segment_missing")
    if abs(seq - flight.nxt) > FURTHEST or (seq == flight.nxt and segment.space == 0):
        return events
    end = seq + segment.space
    if segment.is_fin and flight.fin is None:
        flight.fin = end - 1
    if not sent.syn.early_bytes:
        flight.has_only_syn = False
    if sent.has_syn and end <= sent.isn:
        # Data below the first sequence number belongs to another connection.
        return events
    if special := take_probe(sent, segment, seq, path_ns):
        return events | special
    if segment.space == 0 and seq < flight.nxt:
        return events
    if seq >= flight.nxt:
        events |= resume(sent, peer, segment) | take_gap(sent, segment, seq)
    elif is_probe_continued(sent, seq, end):
        sent.probe_end = None
    else:
        events |= take_below(sent, peer, segment, seq, end, path_ns)
    if end > flight.nxt:
        if segment.space:
            sent.ledger.sent(max(seq, flight.nxt), end, segment)
        flight.nxt = end
    sent.congestion.note_flight(sent.sender_flight(peer, segment.time_ns))
    if segment.length:
        sent.note_payload(segment)
        if peer.shift is not None and sent.window.is_known and end == sent.window.edge and not segment.is_fin:
            # Rule 4.7.
            events.add("window_full")
    return events


def take_probe(sent: Direction, segment: Segment, seq: int, path_ns: int | None) -> set[str]:
    """Process zero-window probes and keep-alives, distinguished by the window's state (rules 4.4, 4.5, 4.8)."""
    flight, now_ns = sent.flight, segment.time_ns
    if segment.is_fin or segment.length > 1:
        return set()
    is_closed = sent.window.is_closed
    has_byte = segment.length == 1
    # One byte of new data into a closed window (RFC 9293 §3.8.6.1), or the same byte again.
    is_again = seq == flight.una and sent.probe_end == seq + 1
    if has_byte and is_closed and (seq == flight.nxt or is_again):
        flight.nxt = max(flight.nxt, seq + 1)
        sent.note_payload(segment)
        sent.probe_end = seq + 1
        sent.zero.probe(now_ns)
        return {"zero_window_probe"}
    # Linux's form of both, without payload at SND.UNA − 1 (tcp_xmit_probe_skb, net/ipv4/tcp_output.c).
    if not has_byte and is_closed and seq == flight.una - 1 and not sent.zero.is_too_late_to_probe(now_ns):
        sent.zero.probe(now_ns)
        return {"zero_window_probe"}
    is_idle = seq == flight.nxt - 1 and not flight.is_outstanding and flight.is_acked
    if not is_idle or (has_byte and is_closed):
        return set()
    if not has_byte and sent.zero.is_crossing(now_ns, segment.tsecr, path_ns):
        return {"zero_window_probe"}
    sent.is_keep_alive_unanswered = True
    return {"keep_alive"}


def is_probe_continued(sent: Direction, seq: int, end: int) -> bool:
    """Return whether it resends the byte of the last probe with more data."""
    return sent.probe_end == sent.flight.nxt == seq + 1 and end > sent.flight.nxt


def take_gap(sent: Direction, segment: Segment, seq: int) -> set[str]:
    """Process skipped sequence numbers: lost before or by the capture, or still to come."""
    flight = sent.flight
    if seq == flight.nxt or not flight.is_seen:
        return set()
    flight.unseen.add(flight.nxt, seq)
    sent.recovery.holes.append(Hole(flight.nxt, seq, segment))
    return {"previous_segment_missing"}


def take_below(sent: Direction, peer: Direction, segment: Segment, seq: int, end: int, path_ns: int | None) -> set[str]:
    """Process data from `seq` to `end` that begins below SND.MAX: late or retransmitted."""
    flight = sent.flight
    cause = explain(sent, peer, segment, seq, end, path_ns)
    events = set(cause.value)
    end = min(end, flight.nxt)
    flight.unseen.remove(seq, end)
    if cause.is_late:
        sent.recovery.note_late(seq, end)
        return events
    timeout_ns = sent.ledger.estimator.timeout_ns(peer.far_ns or 0)
    sent.recovery.note_resent(cause, (seq, end), flight.nxt, segment, timeout_ns)
    # If the window closed on outstanding data, Linux resends it instead of probing (tcp_retransmit_timer).
    if sent.window.is_closed and seq == flight.una and flight.is_outstanding:
        sent.zero.probe(segment.time_ns)
        events.add("zero_window_probe")
    if cause in (Cause.FAST, Cause.RTO):
        sent.congestion.note_loss(max(sent.sender_flight(peer, segment.time_ns), sent.segment_size))
    return events


def resume(sent: Direction, peer: Direction, segment: Segment) -> set[str]:
    """Process new data; after a pause with nothing in flight, the sender may continue with a reduced window (rule
    7.3).
    """
    now_ns, flight, congestion = segment.time_ns, sent.flight, sent.congestion
    if not segment.length or not sent.data_segments:
        return set()
    silence_ns = now_ns - sent.last_data_ns
    near_ns = peer.far_ns or 0
    path_ns = near_ns + (sent.far_ns or 0)
    is_answer = peer.data_segments > 0 and peer.last_data_ns > sent.last_data_ns
    end = flight.place(segment.seq) + segment.length
    has_room = sent.has_room_behind(peer, now_ns, end)
    if not flight.is_outstanding and (is_answer or silence_ns > max(2 * path_ns, PAUSE_MIN_NS)):
        congestion.ramp = None
        rto_ns = sent.ledger.estimator.timeout_ns(near_ns)
        if silence_ns > rto_ns:
            sent.end_round(peer, now_ns)
            ramp = Ramp(now_ns, path_ns, sent.segment_size, segment.length, has_room)
            congestion.resume(silence_ns, rto_ns, ramp)
        return set()
    flight_before = flight.outstanding
    has_waited = congestion.follow(now_ns, silence_ns, segment.length, flight=flight_before, has_room=has_room)
    return {"idle_restart"} if has_waited else set()
