"""A segment as data: SND.MAX, gaps, what lies below it, probes and keep-alives, the right edge (rules 3, 4, 6)."""

from __future__ import annotations

from twin.directions import Direction
from twin.segments import Segment
from twin.sequence import FURTHEST


def take_data(sent: Direction, segment: Segment, path_ns: int | None, *, is_limit_certain: bool) -> set[str]:
    """Take in the sequence space of a segment without SYN and RST.

    `path_ns` is the handshake's round trip; `is_limit_certain` says that the window that limits is known in bytes.
    """
    flight = sent.flight
    seq = flight.place(segment.seq)
    if not flight.is_started:
        flight.start(seq)
    if not sent.has_syn and sent.segments == 1:
        sent.isn = seq - 1
    events = set()
    if flight.is_lost and seq >= flight.nxt:
        # What was acknowledged unseen is missing before this segment, which shows SND.MAX again.
        flight.is_lost = False
        events.add("previous_segment_missing")
    if abs(seq - flight.nxt) > FURTHEST or (seq == flight.nxt and segment.space == 0):
        return events
    end = seq + segment.space
    if segment.is_fin and flight.fin is None:
        flight.fin = end - 1
    if not sent.syn.has_early_data:
        flight.has_only_syn = False
    if special := take_probe(sent, segment, seq, path_ns):
        return events | special
    if segment.space == 0 and seq < flight.nxt:
        return events
    if seq > flight.nxt:
        events |= take_gap(sent, segment, seq)
    elif is_probe_continued(sent, seq, end):
        sent.probe_end = None
        sent.ledger.sent(end, segment)
    elif seq < flight.nxt:
        events |= take_below(sent, segment, seq, min(end, flight.nxt), path_ns)
    else:
        sent.ledger.sent(end, segment)
    flight.nxt = max(flight.nxt, end)
    if segment.length:
        sent.note_payload(segment)
        if is_limit_certain and sent.window.is_known and end == sent.window.edge and not segment.is_fin:
            # Rule 4.7.
            events.add("window_full")
    return events


def take_probe(sent: Direction, segment: Segment, seq: int, path_ns: int | None) -> set[str]:
    """Zero-window probes and keep-alives, told apart by the window's state (rules 4.4, 4.5, 4.8)."""
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
    """It carries the byte of the last probe again, and more."""
    return sent.probe_end == sent.flight.nxt == seq + 1 and end > sent.flight.nxt


def take_gap(sent: Direction, segment: Segment, seq: int) -> set[str]:
    """Sequence numbers were skipped: lost before the capture or by it, or still to come."""
    sent.ledger.forget()
    if not sent.flight.is_seen:
        return set()
    sent.flight.unseen.add(sent.flight.nxt, seq)
    sent.recovery.note_hole(segment)
    return {"previous_segment_missing"}


def take_below(sent: Direction, segment: Segment, seq: int, end: int, path_ns: int | None) -> set[str]:
    """Data below SND.MAX: late, or sent again."""
    flight = sent.flight
    was_unseen = flight.unseen.overlap(seq, end) == end - seq
    events = sent.recovery.judge(sent, segment, seq, end, is_never_seen=was_unseen, path_ns=path_ns)
    sent.ledger.forget()
    flight.unseen.remove(seq, end)
    is_resent = "out_of_order" not in events
    # Linux resends what is outstanding instead of probing when the window closed upon it (tcp_retransmit_timer).
    if is_resent and sent.window.is_closed and seq == flight.una and flight.is_outstanding:
        sent.zero.probe(segment.time_ns)
        events.add("zero_window_probe")
    return events
