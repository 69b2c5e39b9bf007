"""Causes of retransmissions: the sender's mechanism, derived from the sender's knowledge (rules 6.3 to 6.7).

Captured packets reach the sender `near_ns` later, the round trip between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from twin.directions import Direction
from twin.recovery import REORDER_DEFAULT_NS, Cause, Phase, Recovery
from twin.segments import Segment
from twin.timing import RTO_MAX_NS

DUPLICATE_THRESHOLD = 3
"""RFC 5681 §3.2."""
PROMPT_NS = 3_000_000
"""A sender answers an ACK within this time; otherwise its timer expired."""
LONE_PROBE_EXTRA_NS = 200_000_000
"""Allowance for a delayed ACK with one segment in flight (tcp_schedule_loss_probe, net/ipv4/tcp_output.c)."""
MAX_BACKOFF = 10


def reaches(elapsed_ns: int, timer_ns: int) -> bool:
    """Return whether a sender's timer can have expired, given its coarser clock and unknown samples."""
    return elapsed_ns >= timer_ns // 100 * 85


@dataclass(frozen=True, slots=True)
class Case:
    """The sender's knowledge at a retransmission."""

    is_head: bool
    is_tail: bool
    is_repeated: bool
    """Already retransmitted since the phase began."""
    was_recovered: bool
    """Last retransmitted in this or an earlier fast recovery."""
    is_lone: bool
    """Nothing else is in flight."""
    is_probe_out: bool
    has_sack: bool
    duplicate_acks: int
    sacked_above: int
    sacked_ranges: int
    is_sacked_again: bool
    """SACK reports data above it that this phase retransmitted."""
    is_overtaken: bool
    """A later retransmission has arrived."""
    is_going_on: bool
    """Something was retransmitted within the last one and a half round trips."""
    sends_probes: bool | None
    """Whether the sender sends tail loss probes, if known."""
    is_near: bool
    """The capture point is the sender."""
    mss: int
    timeouts: int
    age_ns: int
    """Time since the data was last sent."""
    oldest_ns: int
    """Time since the oldest segment in flight was sent."""
    advance_ns: int
    """Time since SND.UNA moved."""
    quiet_ns: int
    """Time since the sender last sent or received anything."""
    has_answered: bool
    """The sender sent something since the last ACK reached it."""
    smoothed_ns: int | None
    rto_ns: int
    """With back-off."""
    base_rto_ns: int

    @property
    def is_timed_out(self) -> bool:
        return reaches(self.age_ns, self.rto_ns)

    @property
    def is_certain_probe(self) -> bool:
        """Return true for a probe that cannot be a timeout, which resends the head, and not earlier."""
        return not self.is_head or (self.smoothed_ns is not None and not self.is_timed_out)

    @property
    def is_prompt(self) -> bool:
        """Return whether an ACK triggered it, or the reordering timer that one started (RFC 8985 §6.2)."""
        return self.quiet_ns <= PROMPT_NS or (not self.has_answered and self.quiet_ns <= (self.smoothed_ns or 0) // 4)

    @property
    def has_evidence(self) -> bool:
        """Return whether later data arrived."""
        return self.duplicate_acks > 0 or self.sacked_above > 0

    @property
    def is_lost_by_sack(self) -> bool:
        """RFC 6675 §4 IsLost."""
        by_bytes = self.mss > 0 and self.sacked_above > (DUPLICATE_THRESHOLD - 1) * self.mss
        return by_bytes or self.sacked_ranges >= DUPLICATE_THRESHOLD

    @property
    def probe_ns(self) -> int:
        """The probe timeout (RFC 8985 §7.2), never later than the retransmission timeout."""
        if self.smoothed_ns is None:
            return self.rto_ns
        return min(2 * self.smoothed_ns + self.is_lone * LONE_PROBE_EXTRA_NS, self.rto_ns)


def explain(sent: Direction, peer: Direction, segment: Segment, seq: int, end: int, path_ns: int | None) -> Cause:
    """Classify a segment from `seq` to `end` below SND.MAX."""
    flight = sent.flight
    is_below = end <= flight.una
    end = min(end, flight.nxt)
    hole = sent.recovery.hole_at(seq, end)
    is_unseen = seq < end and flight.unseen.overlap(seq, end) == end - seq
    if path_ns is not None and peer.far_ns is not None and sent.far_ns is not None:
        # The handshake may have waited for more than the path.
        path_ns = min(path_ns, max(peer.far_ns + sent.far_ns, REORDER_DEFAULT_NS))
    if is_unseen and hole and not is_below and (late := hole.fill(segment, sent.tsval, path_ns)):
        return late
    if is_below:
        return Cause.SPURIOUS
    if sent.window.is_closed and seq == flight.una and flight.is_outstanding:
        return Cause.ZERO_WINDOW
    if not segment.length or is_left_out(sent, seq):
        return Cause.OTHER
    case = reckon(sent, peer, segment.time_ns, seq, end)
    cause = judge(sent.recovery.phase, case)
    note_probing(sent.recovery, case, cause)
    return cause


def is_left_out(sent: Direction, seq: int) -> bool:
    """Return whether it is the SYN's data, not acknowledged by the SYN/ACK, sent again for the first time (RFC 7413
    §4.2).
    """
    first = sent.isn + 1
    is_outstanding = sent.has_syn and sent.flight.is_acked and sent.flight.una == first
    is_early = first <= seq < first + sent.syn.early_bytes
    return is_outstanding and is_early and not any(one.left <= seq < one.right for one in sent.recovery.resends)


def note_probing(recovery: Recovery, case: Case, cause: Cause) -> None:
    """Record whether the sender sends tail loss probes: a probe restarts the timer, a timeout doubles it."""
    if cause is Cause.TAIL_LOSS_PROBE and case.is_certain_probe:
        recovery.sends_probes = True
    if cause is not Cause.RTO or case.timeouts:
        return
    if case.is_probe_out and case.is_lone:
        if not recovery.sends_probes:
            recovery.sends_probes = not reaches(case.age_ns, 2 * case.base_rto_ns)
            recovery.timeouts = int(not recovery.sends_probes)
        return
    is_silent = case.has_sack and recovery.phase is Phase.OPEN and not case.has_evidence
    is_unprobed = not (case.is_probe_out or case.is_lone) and case.is_near
    # A probe may be new data, in which case the newest segment was sent that much later than the oldest.
    is_one_flight = case.smoothed_ns is not None and not reaches(case.oldest_ns - case.quiet_ns, 2 * case.smoothed_ns)
    if is_silent and is_unprobed and is_one_flight and reaches(case.quiet_ns, case.rto_ns):
        recovery.sends_probes = False


def reckon(sent: Direction, peer: Direction, now_ns: int, seq: int, end: int) -> Case:
    """Return the sender's knowledge when it resent these bytes."""
    flight, recovery, estimator = sent.flight, sent.recovery, sent.ledger.estimator
    near_ns = peer.far_ns or 0
    resend = recovery.last_resend(seq, end)
    times = [copy.time_ns for copy in (resend, sent.ledger.find(seq)) if copy]
    if hole := recovery.hole_at(seq, end):
        times.append(hole.by.time_ns)
    last_ns = times[0] if times else None
    above = [(left, right) for left, right in flight.sacked if left > seq]
    sacked_above, sacked_ranges = sum(right - left for left, right in above), len(above)
    duplicate_acks, mss = sent.duplicate_acks, sent.segment_size
    reach_ns = now_ns - near_ns // 5 * 4
    if recovery.reported_ns is None or recovery.reported_ns > reach_ns:
        duplicate_acks = min(duplicate_acks, DUPLICATE_THRESHOLD - 1)
        sacked_above, sacked_ranges = min(sacked_above, mss), min(sacked_ranges, 1)
    heard_ns = max(sent.acked_ns, sent.answered_ns) + near_ns
    # The timer started by a retransmission used the estimate of that time.
    base_rto_ns = min([estimator.timeout_ns(near_ns), *([resend.timeout_ns] if resend else [])])
    smoothed_ns = 0 if estimator.smoothed_ns is None else estimator.smoothed_ns + near_ns
    return Case(
        is_head=seq <= flight.una,
        is_tail=end == flight.nxt,
        is_repeated=recovery.repeated.overlap(seq, end) > 0,
        was_recovered=recovery.was_recovered(seq, end),
        is_lone=flight.nxt - flight.una <= end - seq,
        is_probe_out=recovery.probe_end is not None,
        has_sack=(sent.syn.sack_permitted and peer.syn.sack_permitted) or bool(flight.sacked),
        duplicate_acks=duplicate_acks,
        sacked_above=sacked_above,
        sacked_ranges=sacked_ranges,
        is_sacked_again=0 < sent.answered_ns <= reach_ns and any(recovery.repeated.overlap(*span) for span in above),
        is_overtaken=last_ns is not None and last_ns < (recovery.arrived_ns or 0),
        is_going_on=bool(recovery.resends) and now_ns - recovery.resends[-1].time_ns < smoothed_ns * 3 // 2,
        sends_probes=recovery.sends_probes,
        is_near=near_ns < smoothed_ns // 4,
        mss=mss,
        timeouts=recovery.timeouts,
        age_ns=max(now_ns - (sent.last_data_ns if last_ns is None else last_ns), 0),
        oldest_ns=0 if sent.ledger.oldest_ns is None else max(now_ns - sent.ledger.oldest_ns, 0),
        advance_ns=max(now_ns - (sent.acked_ns + near_ns), 0),
        quiet_ns=max(now_ns - max(sent.last_data_ns, heard_ns), 0),
        has_answered=sent.last_data_ns >= heard_ns,
        smoothed_ns=smoothed_ns or None,
        rto_ns=min(base_rto_ns << min(recovery.timeouts, MAX_BACKOFF), RTO_MAX_NS),
        base_rto_ns=base_rto_ns,
    )


def judge(phase: Phase, case: Case) -> Cause:
    """Name the mechanism."""
    if phase is Phase.LOSS:
        return judge_after_timeout(case)
    if phase is Phase.FAST:
        return judge_in_recovery(case)
    return judge_open(case)


def judge_after_timeout(case: Case) -> Cause:
    # From there on ACKs clock the retransmissions; one without an ACK comes from the timer.
    if case.is_head and reaches(case.age_ns, case.base_rto_ns) and not case.is_prompt:
        return Cause.RTO
    if case.is_repeated and (case.is_sacked_again or case.is_lost_by_sack):
        return Cause.LOST_RETRANSMISSION
    return Cause.GO_BACK_N


def judge_in_recovery(case: Case) -> Cause:
    # Without SACK, only the timer detects a lost retransmission (RFC 6582 §3.2).
    is_timer = not case.is_prompt or (case.is_repeated and not case.has_sack)
    if case.is_head and case.is_timed_out and is_timer:
        return Cause.RTO
    return Cause.LOST_RETRANSMISSION if case.is_repeated or case.was_recovered else Cause.RECOVERY


def judge_open(case: Case) -> Cause:
    # An ACK that moves SND.UNA restarts the timer (RFC 6298 §5.3).
    has_run_out = not case.has_evidence or reaches(case.advance_ns, case.rto_ns)
    is_timer = case.is_head and case.is_timed_out and not case.is_prompt and has_run_out
    by_duplicates = case.is_head and case.duplicate_acks >= DUPLICATE_THRESHOLD
    if (by_duplicates or case.is_lost_by_sack) and not is_timer:
        return Cause.FAST
    if is_probe(case):
        return Cause.TAIL_LOSS_PROBE
    if is_timer or (case.is_head and case.is_timed_out and not case.has_evidence):
        return Cause.RTO
    # RACK or early retransmit: later data arrived (RFC 8985 §6.2).
    is_passed = case.has_sack and case.is_overtaken and case.is_prompt
    if is_passed or case.sacked_above > 0 or (case.is_head and case.has_evidence):
        return Cause.FAST
    if case.is_head and case.is_prompt:
        # An ACK alone shows no loss, except in NewReno for the next hole (RFC 6582 §3.2).
        return Cause.RECOVERY if case.is_going_on and not case.has_sack else Cause.OTHER
    if case.is_head and case.quiet_ns > (case.smoothed_ns or 0):
        return Cause.RTO
    return Cause.OTHER


def is_probe(case: Case) -> bool:
    """Return whether it is a tail loss probe: the last segment, on the probe timer, without a timeout or SACK against
    it.

    It comes no later than the timeout of the oldest segment (tcp_schedule_loss_probe, net/ipv4/tcp_output.c).
    """
    is_last = case.is_tail and (case.is_lone or not case.is_head)
    is_barred = case.is_probe_out or case.has_evidence or case.timeouts
    is_barred = is_barred or (case.is_head and case.sends_probes is False)
    may_probe = case.has_sack and is_last and not is_barred
    is_time = reaches(case.quiet_ns, case.probe_ns) or (reaches(case.oldest_ns, case.rto_ns) and not case.is_prompt)
    return may_probe and is_time
