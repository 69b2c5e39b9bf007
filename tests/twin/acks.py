"""A segment as an acknowledgment: SND.UNA, SACK, the advertised window, and what kind of ACK it is (rules 2, 4, 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from twin.directions import Direction
from twin.segments import Segment
from twin.sequence import FURTHEST
from twin.windows import Advertisement


@dataclass(slots=True)
class Answer:
    """What an acknowledgment did."""

    events: set[str] = field(default_factory=set)
    rtt_ns: int | None = None
    is_new: bool = False
    is_old: bool = False


def take_ack(sent: Direction, acked: Direction, segment: Segment) -> Answer:
    """Take in ACK and window of a segment without SYN and RST; `sent` is its sender's direction."""
    was_started, was_una = acked.flight.is_started, acked.flight.una
    had_window, was_raw = acked.window.is_known, acked.window.last_raw
    ack = acked.flight.place(segment.ack)
    answer = acknowledge(acked, ack, segment)
    fresh = acked.flight.report(segment.options.sack)
    answer.events |= take_window(sent, acked, segment, ack, answer)

    is_plain = not segment.is_fin and segment.length == 0
    is_closed_again = segment.window == 0 and was_raw == 0 and had_window
    # Rule 4.6: the answer to a probe repeats the acknowledgment, or takes the probe's byte.
    if is_plain and is_closed_again and ack in (was_una, was_una + 1) and acked.zero.is_probe_unanswered:
        answer.events.add("zero_window_probe_ack")
    elif is_plain and was_started and ack == was_una and had_window and is_next(sent, segment):
        answer.events |= judge_repeated(acked, segment, segment.window == was_raw, fresh)
    acked.is_keep_alive_unanswered = False
    if acked.zero.is_answer(segment.time_ns, acked.ledger.least_ns):
        acked.zero.is_probe_unanswered = False
    return answer


def is_next(sent: Direction, segment: Segment) -> bool:
    """It stands at its sender's SND.MAX."""
    return sent.flight.is_seen and sent.flight.place(segment.seq) == sent.flight.nxt


def acknowledge(acked: Direction, ack: int, segment: Segment) -> Answer:
    """Move SND.UNA."""
    flight = acked.flight
    if not flight.is_acked:
        flight.begin_acks(ack)
        acked.window.anchor(ack)
    beyond = ack - flight.nxt
    if ack <= flight.una or beyond > FURTHEST:
        return Answer(is_old=ack != flight.una)
    answer = Answer(is_new=True)
    if beyond > 0:
        answer.events |= acknowledge_unseen(acked, ack)
    answer.rtt_ns = acked.ledger.acknowledged(acked, ack, segment)
    flight.advance(ack)
    acked.duplicate_acks = 0
    return answer


def acknowledge_unseen(acked: Direction, ack: int) -> set[str]:
    """An ACK of bytes that the capture does not hold (rule 5.3), unless of a probe's byte."""
    is_probe_byte = acked.zero.is_probe_unanswered and ack == acked.flight.nxt + 1
    acked.flight.nxt = ack
    if is_probe_byte or not acked.flight.is_seen:
        return set()
    acked.flight.is_lost = True
    acked.ledger.forget()
    return {"acked_unseen"}


def take_reset(acked: Direction, segment: Segment) -> int | None:
    """Take in the acknowledgment of a RST, which can be trusted only where it fits; return its round trip."""
    ack = acked.flight.place(segment.ack)
    if acked.flight.is_seen and acked.flight.una < ack <= acked.flight.nxt:
        return acknowledge(acked, ack, segment).rtt_ns
    return None


def take_window(sent: Direction, acked: Direction, segment: Segment, ack: int, answer: Answer) -> set[str]:
    """Take in the advertised window (rules 2.1, 2.3, 4.2, 4.3)."""
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
    if is_certain and window.shrinks(new):
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


def judge_repeated(acked: Direction, segment: Segment, is_same_window: bool, fresh: int) -> set[str]:
    """Name a segment without payload that repeats the last acknowledgment; `fresh` bytes were SACKed by it.

    Duplicate ACKs by RFC 5681 §2 (data outstanding, the same window) or RFC 6675 §2 (new SACK information). Where the
    other side was not captured, what it has outstanding is unknown, and the repetition speaks for itself.
    """
    if acked.is_keep_alive_unanswered and is_same_window and segment.window:
        return {"keep_alive_ack"}
    if segment.window == 0 and is_same_window and not fresh:
        return set()
    has_outstanding = acked.flight.is_outstanding or not acked.flight.is_seen
    if has_outstanding and (is_same_window or fresh):
        # A block that tells nothing new, a D-SACK for instance, is no evidence of loss.
        acked.duplicate_acks += bool(fresh) or not segment.options.sack
        return {"duplicate_ack"}
    if not is_same_window and segment.window and not fresh:
        return {"window_update"}
    return set()
