"""A segment as an acknowledgment: SND.UNA, SACK, the advertised window, and kinds of ACK (rules 2, 4, 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from twin.directions import Direction
from twin.intervals import Intervals
from twin.recovery import Advance
from twin.segments import Segment
from twin.sequence import FURTHEST
from twin.timing import Covered
from twin.windows import Advertisement

DUPLICATE_THRESHOLD = 3
"""RFC 5681 §3.2."""
DELAYED_MIN_NS, DELAYED_MAX_NS = 38_000_000, 520_000_000
"""Linux delays ACKs by at least 40 ms (TCP_DELACK_MIN), others up to half a second (RFC 9293 §3.8.6.3)."""
SILENT_MIN_NS = 35_000_000
"""A receiver that delays an ACK sends none in this time, minus the path's jitter."""


@dataclass(slots=True)
class Answer:
    """The effect of an acknowledgment."""

    events: set[str] = field(default_factory=set)
    rtt_ns: int | None = None
    is_new: bool = False
    is_old: bool = False


def take_ack(sent: Direction, acked: Direction, segment: Segment) -> Answer:
    """Process ACK and window of a segment without SYN and RST; `sent` is its sender's direction."""
    was_started, was_una = acked.flight.is_started, acked.flight.una
    had_window, was_raw = acked.window.is_known, acked.window.last_raw
    had_doubts = acked.has_doubts
    ack = acked.flight.place(segment.ack)
    answer = acknowledge(sent, acked, ack, segment)
    fresh = take_sack(acked, segment, ack, answer)
    answer.events |= take_window(sent, acked, segment, ack, answer)

    is_plain = not segment.is_fin and segment.length == 0
    is_closed_again = segment.window == 0 and was_raw == 0 and had_window
    # Rule 4.6: the answer to a probe repeats the acknowledgment, or acknowledges the probe's byte.
    if is_plain and is_closed_again and ack in (was_una, was_una + 1) and acked.zero.is_probe_unanswered:
        answer.events.add("zero_window_probe_ack")
    elif is_plain and was_started and ack == was_una and had_window and is_next(sent, segment):
        answer.events |= judge_repeated(acked, segment, segment.window == was_raw, fresh)
    acked.is_keep_alive_unanswered = False
    if acked.zero.is_answer(segment.time_ns, acked.ledger.least_ns):
        acked.zero.is_probe_unanswered = False
    if had_doubts or acked.has_doubts or "duplicate_ack" in answer.events:
        acked.answered_ns = segment.time_ns
    acked.send_feedback(segment.time_ns)
    return answer


def is_next(sent: Direction, segment: Segment) -> bool:
    """Return true if the segment is at its sender's SND.MAX."""
    return sent.flight.is_seen and sent.flight.place(segment.seq) == sent.flight.nxt


def acknowledge(sent: Direction, acked: Direction, ack: int, segment: Segment) -> Answer:
    """Advance SND.UNA; `sent` is the direction of the ACK's sender."""
    flight = acked.flight
    if not flight.is_acked:
        flight.begin_acks(ack)
        acked.window.anchor(ack)
    beyond = ack - flight.nxt
    if ack <= flight.una or beyond > FURTHEST:
        return Answer(is_old=ack != flight.una)
    answer = Answer(is_new=True)
    silence_ns, acked.acked_ns = segment.time_ns - acked.acked_ns, segment.time_ns
    if beyond > 0:
        answer.events |= acknowledge_unseen(acked, ack)
    una = flight.una
    covered, is_sent_once = cover(sent, acked, ack, segment, answer)
    # An ACK with data waited for the data.
    is_of_one = is_sent_once and ack - una <= acked.segment_size and not segment.length
    if covered and is_of_one and is_held_back(acked, segment.time_ns - covered.oldest_ns, silence_ns):
        answer.events.add("delayed_ack")
    if flight.advance(ack):
        answer.events.add("acked_unseen")
    acked.duplicate_acks = 0
    if covered:
        answer.rtt_ns = acked.ledger.sample(covered, ack, flight.nxt, segment.time_ns)
    acked.congestion.note_acked(ack - una)
    if acked.congestion.is_round_over(acked.sender_una(sent, segment.time_ns)):
        acked.end_round(sent, segment.time_ns)
    return answer


def is_held_back(acked: Direction, rtt_ns: int, silence_ns: int) -> bool:
    """Return whether a segment's ACK is so late that its sender delayed it (rule 5.4).

    An ACK that waited in a queue follows others closely.
    """
    least_ns = acked.ledger.least_ns
    is_late = least_ns is not None and DELAYED_MIN_NS <= rtt_ns - least_ns <= DELAYED_MAX_NS
    return is_late and silence_ns >= SILENT_MIN_NS


def cover(sent: Direction, acked: Direction, ack: int, segment: Segment, answer: Answer) -> tuple[Covered | None, bool]:
    """Return the send time of the acknowledged data, and whether it was sent once (Karn, RFC 6298 §3) or has
    timestamps.
    """
    flight, recovery = acked.flight, acked.recovery
    una = flight.una
    is_doubtful = any(ranges.overlap(una, ack) for ranges in (flight.unseen, recovery.ambiguous))
    original = acked.ledger.find(una)
    resent_bytes = recovery.ambiguous.overlap(una, ack)
    known = Intervals.union(flight.sacked, flight.unseen, recovery.ambiguous)
    advance = Advance(
        una=una,
        ack=ack,
        tsecr=segment.tsecr,
        plain_bytes=ack - una - known.overlap(una, ack),
        resent_bytes=resent_bytes,
        had_duplicates=acked.duplicate_acks > 0,
        has_sack=acked.syn.sack_permitted and sent.syn.sack_permitted,
        now_ns=segment.time_ns,
        least_ns=acked.ledger.least_ns,
    )
    spare = max(acked.max_payload - acked.segment_size, 0)
    covered = acked.ledger.cover(una, ack, flight.sacked, spare)
    shown = recovery.acknowledged(advance, original)
    if shown.is_partial:
        answer.events.add("partial_ack")
    if covered and not is_doubtful:
        return covered, True
    return shown.arrived, False


def acknowledge_unseen(acked: Direction, ack: int) -> set[str]:
    """Process an ACK of bytes that the capture lacks (rule 5.3), other than a probe's byte."""
    is_probe_byte = acked.zero.is_probe_unanswered and ack == acked.flight.nxt + 1
    acked.flight.nxt = ack
    if is_probe_byte or not acked.flight.is_seen:
        return set()
    acked.flight.is_lost = True
    acked.ledger.forget()
    return {"acked_unseen"}


def take_window(sent: Direction, acked: Direction, segment: Segment, ack: int, answer: Answer) -> set[str]:
    """Process the advertised window (rules 2.1, 2.3, 4.2, 4.3)."""
    shift = sent.shift or 0
    seq = sent.flight.place(segment.seq)
    new = Advertisement(seq, ack, segment.window << shift, 1 << shift, answer.is_new)
    window = acked.window
    is_stale = answer.is_old or sent.is_overtaken(segment)
    if is_stale and window.is_known:
        return set()
    events = set()
    if not is_stale:
        window.last_raw = segment.window
    is_certain = sent.shift is not None
    if is_certain and window.accepts(new) and window.shrinks(new):
        events.add("window_shrink")
    if not window.accepts(new):
        return events
    window.accept(new)
    if new.size == 0:
        if not segment.is_fin:
            acked.zero.begin(segment.time_ns)
    elif acked.zero.is_open:
        acked.zero.note_opening(segment.time_ns, segment.tsval)
    if is_certain and not segment.is_fin and 0 < new.size < acked.segment_size:
        events.add("sub_mss_window")
    return events


def take_sack(acked: Direction, segment: Segment, ack: int, answer: Answer) -> int:
    """Process the SACK blocks and return the newly reported bytes (RFC 2018 §4, RFC 2883 §4, RFC 6675 §4)."""
    flight = acked.flight
    blocks = [(flight.place(left), flight.place(right)) for left, right in segment.options.sack]
    if blocks and is_dsack(blocks, ack):
        answer.events.add("dsack")
        acked.recovery.note_dsack(*blocks[0], is_new_ack=answer.is_new)
    times, fresh = [], 0
    for left, right in blocks:
        if not (flight.una <= left and flight.una < right <= flight.nxt):
            continue
        if added := flight.sacked.add(left, right):
            fresh += added
            # A block grows at its end.
            fresh_from = right - added
            known = (flight.unseen, acked.recovery.ambiguous)
            is_plain = not any(spans.overlap(fresh_from, fresh_from + 1) for spans in known)
            if not is_plain:
                continue
            acked.recovery.note_reported(right)
            if sent := acked.ledger.find(fresh_from):
                times.append(sent.time_ns)
    if times and ack <= flight.una and segment.time_ns >= min(times):
        # The sender also times newly reported data (tcp_ack_update_rtt, net/ipv4/tcp_input.c: sack_rtt_us).
        acked.ledger.estimator.sample(segment.time_ns - min(times), flight.una, flight.nxt)
    if flight.sacked.total() > 2 * acked.segment_size and acked.recovery.reported_ns is None:
        acked.recovery.reported_ns = segment.time_ns
    return fresh


def is_dsack(blocks: list[tuple[int, int]], ack: int) -> bool:
    """Return whether the first block is below the acknowledgment or inside the second (RFC 2883 §4)."""
    (left, right), *others = blocks
    is_inside = bool(others) and others[0][0] <= left and right <= others[0][1]
    return left < right and (right <= ack < right + FURTHEST or is_inside)


def judge_repeated(acked: Direction, segment: Segment, is_same_window: bool, fresh: int) -> set[str]:
    """Classify a segment without payload that repeats the last acknowledgment and SACKs `fresh` bytes.

    Duplicate ACKs follow RFC 5681 §2 (data outstanding, the same window) or RFC 6675 §2 (new SACK information). If the
    other side was not captured, its outstanding data is unknown, and the repetition suffices.
    """
    if acked.is_keep_alive_unanswered and is_same_window and segment.window:
        return {"keep_alive_ack"}
    if segment.window == 0 and is_same_window and not fresh:
        return set()
    has_outstanding = acked.flight.is_outstanding or not acked.flight.is_seen
    if has_outstanding and (is_same_window or fresh):
        # A block without new information, such as a D-SACK, is no evidence of loss.
        acked.duplicate_acks += bool(fresh) or not segment.options.sack
        if acked.duplicate_acks == DUPLICATE_THRESHOLD and acked.recovery.reported_ns is None:
            acked.recovery.reported_ns = segment.time_ns
        return {"duplicate_ack"}
    if not is_same_window and segment.window and not fresh:
        return {"window_update"}
    return set()
