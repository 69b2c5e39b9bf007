"""Kinds of differences in loss, order and repeated ACKs, derived from the packets by a program.

Takes a comparison and returns the names of the kinds of each difference; none if unexplained. A kind requires that the
segment's past (history.py) supports tcpwin, and that tshark's calculation (tshark_events.py) gives tshark's result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from oracle.compare import SYN, Comparison, Difference, Segment, events_of
from oracle.history import Past, recall
from oracle.sequence import FURTHEST, step
from oracle.tshark_events import FEWEST_DUPLICATES, PROMPT_NS, Opinion, flag_all

# resent, out_of_order, duplicate_ack
CAPTURED_TWICE = "a packet that the capture holds twice counts twice for tshark"
# resent, out_of_order
SENT_LATER = "what is sent again soon after the highest byte is out of order for tshark"
# resent, out_of_order, spurious_retransmission
BELOW_ISN = "what lies below the initial sequence number is data for tshark"
# resent, spurious_retransmission, previous_segment_missing, acked_unseen
OUTSIDE = "numbers that no window allows count for tshark"
# fast_retransmission: only in tshark.
IN_RECOVERY = "tshark has a new fast retransmission wherever a recovery's ACKs repeat"
BY_TIMER = "a timeout within 20 ms of a duplicate ACK is fast for tshark"
# fast_retransmission: only in tcpwin.
FEW_DUPLICATES = "nothing is fast for tshark without two equal ACKs, whatever SACK reports"
LATE_ANSWER = "nothing is fast for tshark 20 ms after the last ACK"
# spurious_retransmission
LAST_ACK_IS_OLD = "tshark takes the last ACK for the highest"
# duplicate_ack
NOTHING_OUTSTANDING = "a repeated ACK is a duplicate ACK for tshark with nothing outstanding"
# duplicate_ack, window_update
CARRIES_SACK = "a duplicate ACK with SACK is a window update for tshark"
# previous_segment_missing
OTHER_ISN = "a SYN with another initial sequence number leaves a hole for tshark"
# acked_unseen
REPORTED_AGAIN = "tshark reports a hole again when the data behind it is acknowledged"
NOT_REPORTED = "tshark reports no second hole before the other side acknowledges new data"

ALL = (
    *(CAPTURED_TWICE, SENT_LATER, BELOW_ISN, OUTSIDE),
    *(IN_RECOVERY, BY_TIMER, FEW_DUPLICATES, LATE_ANSWER),
    *(LAST_ACK_IS_OLD, NOTHING_OUTSTANDING, CARRIES_SACK),
    *(OTHER_ISN, REPORTED_AGAIN, NOT_REPORTED),
)
# Linux never times out sooner.
MIN_RTO_NS = 200_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """A segment, its past, tshark's result, and tcpwin's events."""

    segment: Segment
    past: Past
    opinion: Opinion
    ours: set[str]


class LossExplainer:
    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.segments = {segment.frame: segment for segment in comparison.segments}
        self.pasts = recall(comparison.segments)
        self.opinions = flag_all(comparison.segments)

    def kinds(self, difference: Difference) -> frozenset[str]:
        ours = events_of(self.comparison.rows[difference.frame])
        is_understood = (difference.field in self.opinions[difference.frame].events) == difference.theirs
        return self.explain(difference.field, difference.frame, ours) if is_understood else frozenset()

    def explain(self, name: str, frame: int, ours: set[str]) -> frozenset[str]:
        """Return the kinds of the difference caused by tcpwin's events OURS in a field."""
        case = Case(self.segments[frame], self.pasts[frame], self.opinions[frame], ours)
        return frozenset(EXPLAIN[name](case)) if name in EXPLAIN else frozenset()


def resent(case: Case) -> Iterator[str]:
    if "resent" in case.ours:
        if "out_of_order" in case.opinion.events and case.past.is_again:
            yield SENT_LATER
    elif "capture_duplicate" in case.ours and case.past.copy_of:
        if not case.past.is_again:
            yield CAPTURED_TWICE
    else:
        yield from astray(case)


def out_of_order(case: Case) -> Iterator[str]:
    if "out_of_order" in case.ours:
        return
    if "capture_duplicate" in case.ours and case.past.copy_of:
        yield CAPTURED_TWICE
    elif "resent" in case.ours and case.past.is_again:
        yield SENT_LATER
    elif "resent" not in case.ours:
        yield from astray(case)


def fast(case: Case) -> Iterator[str]:
    past, opinion = case.past, case.opinion
    if "fast_retransmission" not in case.ours:
        if "rto_retransmission" in case.ours and is_timeout(case):
            yield BY_TIMER
        if "recovery_retransmission" in case.ours and past.recovery_point is not None and not is_timeout(case):
            yield IN_RECOVERY
    elif past.recovery_point is None and past.sacked_above and past.is_again:
        if opinion.duplicates < FEWEST_DUPLICATES:
            yield FEW_DUPLICATES
        elif opinion.since_ack_ns is not None and opinion.since_ack_ns >= PROMPT_NS:
            yield LATE_ANSWER


def spurious(case: Case) -> Iterator[str]:
    past = case.past
    if "spurious_retransmission" not in case.ours:
        yield from astray(case)
        return
    is_acked = past.una is not None and step(past.end, past.una) >= 0
    is_behind = case.segment.length and step(case.opinion.last_ack, past.end) > 0
    if is_acked and is_behind and not any(astray(case)):
        yield LAST_ACK_IS_OLD


def duplicate_ack(case: Case) -> Iterator[str]:
    segment, past = case.segment, case.past
    if "duplicate_ack" in case.ours:
        reports = any(step(segment.ack, right) > 0 for _, right in segment.sack)
        if "window_update" in case.opinion.events and reports and past.outstanding:
            yield CARRIES_SACK
    elif "capture_duplicate" in case.ours and past.copy_of:
        yield CAPTURED_TWICE
    elif past.outstanding == 0:
        yield NOTHING_OUTSTANDING


def previous_segment_missing(case: Case) -> Iterator[str]:
    if "previous_segment_missing" in case.ours:
        return
    if case.segment.flags & SYN and case.past.isn not in (None, case.segment.seq):
        yield OTHER_ISN
    yield from astray(case)


def acked_unseen(case: Case) -> Iterator[str]:
    if "acked_unseen" in case.ours:
        if case.past.acked_unseen:
            yield NOT_REPORTED
    elif case.past.acked_beyond > FURTHEST:
        yield OUTSIDE
    elif not case.past.acked_unseen:
        yield REPORTED_AGAIN


def astray(case: Case) -> Iterator[str]:
    """RFC 7323 §2.3: no window reaches 2^30 from anything sent; nor is anything below a SYN, which may have any
    number.
    """
    segment, past = case.segment, case.past
    if segment.flags & SYN:
        return
    if past.max is not None and abs(step(past.max, segment.seq)) > FURTHEST:
        yield OUTSIDE
    elif past.isn is not None and step(past.end, past.isn) >= 0:
        yield BELOW_ISN


def is_timeout(case: Case) -> bool:
    """Return whether no ACK triggered it after the last triggered segment, and its data had been out for a timeout."""
    past = case.past
    if past.sent_before is None or past.last_own is None or past.last_heard is None:
        return False
    is_answered = past.last_own.frame > past.last_heard.frame
    return is_answered and case.segment.time_ns - past.sent_before.time_ns >= MIN_RTO_NS


EXPLAIN: dict[str, Callable[[Case], Iterator[str]]] = {
    "resent": resent,
    "out_of_order": out_of_order,
    "fast_retransmission": fast,
    "spurious_retransmission": spurious,
    "duplicate_ack": duplicate_ack,
    "previous_segment_missing": previous_segment_missing,
    "acked_unseen": acked_unseen,
}
