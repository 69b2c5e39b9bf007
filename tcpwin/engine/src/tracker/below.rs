//! A segment below SND.MAX: late, sent again and why, a keep-alive or a probe.
//!
//! Data that goes on at SND.MAX is [`crate::tracker::send`]'s.

use crate::connection::direction::Direction;
use crate::connection::syn::syn_kind;
use crate::event::{self, Events};
use crate::recovery::cause::{Cause, Verdict};
use crate::recovery::episode::{holds, Again, Phase};
use crate::recovery::evidence::Evidence;
use crate::recovery::holes::{lateness, Hole, Lateness};
use crate::recovery::resent::{judge, shows_probing, Case};
use crate::sequence::Seq;
use crate::timing::estimator::RTO_MAX_NS;
use crate::timing::sent::Sent;
use crate::tracker::probe::{is_too_late, take_keep_alive, take_probe};
use crate::wire::{Segment, FIN};

/// Where a segment lies that begins below SND.MAX.
pub(super) struct Below {
    pub seq: Seq,
    pub end: Seq,
    pub handshake_rtt_ns: Option<i64>,
}

/// A segment that begins below SND.MAX. Returns its events and whether it carries data to be counted.
#[cold]
pub(super) fn take_below(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    below: &Below,
    evidence: &mut Option<Evidence>,
) -> (Events, bool) {
    let Below {
        seq,
        end,
        handshake_rtt_ns,
    } = *below;
    let now_ns = segment.time_ns;
    let (una, nxt) = (sent.flight.una, sent.flight.nxt);
    let is_outstanding = sent.flight.is_outstanding();
    let is_closed = sent.window.is_known && sent.window.bytes == 0;
    let is_plain = segment.flags & FIN == 0;
    if sent.has_syn && !end.is_after(sent.isn) {
        // Below the first sequence number there is no data of this connection.
        return (0, false);
    }
    if segment.payload_len == 0 && is_plain {
        if seq + 1 == una && is_closed && !is_too_late(sent, now_ns) {
            sent.cold().zero().probe(now_ns);
            return (event::ZERO_WINDOW_PROBE, false);
        }
        if seq + 1 == nxt && !is_outstanding && sent.flight.is_acked {
            return (take_keep_alive(sent, segment, handshake_rtt_ns), false);
        }
        return (0, false);
    }
    let probe_end = sent.cold.as_ref().and_then(|cold| cold.probe_end);
    if segment.payload_len == 1 && is_plain && is_closed && seq == una && probe_end == Some(end) {
        return (take_probe(sent, segment, end), false);
    }
    if segment.payload_len == 1
        && is_plain
        && seq + 1 == nxt
        && !is_outstanding
        && sent.flight.is_acked
        && !is_closed
    {
        sent.cold().is_keep_alive_unanswered = true;
        return (event::KEEP_ALIVE, false);
    }
    let is_known = sent.is_flight_known();
    sent.flight.integrate(now_ns, is_known);
    if probe_end == Some(nxt) && seq + 1 == nxt && nxt.is_before(end) {
        // The probe's byte, now with what follows it.
        let cold = sent.cold();
        cold.probe_end = None;
        cold.resent_bytes += 1;
        sent.flight.nxt = end;
        sent.note_sent(segment, nxt);
        return (0, true);
    }
    let old_end = if end.is_before(nxt) { end } else { nxt };
    let acked_bytes = sent.acked_bytes;
    if let Some(episode) = sent.cold.as_mut().and_then(|cold| cold.episode.as_mut()) {
        episode.forget_old(acked_bytes);
    }
    let found = judge_below(sent, peer, segment, below, old_end);
    let mut events = found.verdict.cause.events();
    let mss = sent.segment_size();
    let flight_bytes = sent.flight_as_sent();
    let base_rto_ns = sent.ledger.rto_ns(peer.far_ns().unwrap_or(0));
    let tsval = segment.options.timestamps.map(|(value, _)| value);
    let is_newer = tsval.is_some_and(|value| sent.has_ticked(value, seq, old_end));
    let cold = sent.cold();
    // Seen for the first time: in flight, or acknowledged before.
    let filled = cold.unseen.remove(seq, old_end);
    let late = cold.missed.take_back(seq, old_end, acked_bytes);
    let again = (seq.to(old_end).max(0) as u32).saturating_sub(filled.saturating_add(late));
    if events & event::RESENT != 0 {
        cold.resent_segments = cold.resent_segments.saturating_add(1);
        cold.resent_bytes += u64::from(again.min(segment.payload_len));
        let cause = found.verdict.cause;
        let again = Again {
            seq,
            end: old_end,
            nxt,
            time_ns: now_ns,
            frame: segment.frame,
            rto_ns: base_rto_ns,
            tsval,
            is_distinct: is_newer,
            events: events & event::MAIN_KINDS,
            acked_bytes,
        };
        cold.episode().resent(cause, &again);
        cold.note_episode();
        // Linux resends what is outstanding instead of probing when the window closed upon it (`tcp_retransmit_timer`).
        if is_closed && seq == una && is_outstanding {
            cold.zero().probe(now_ns);
            events |= event::ZERO_WINDOW_PROBE;
        }
        if matches!(cause, Cause::Fast | Cause::Rto) {
            if let Some(pace) = sent.ledger.pace_mut() {
                pace.note_loss(flight_bytes.max(mss));
            }
        }
    } else {
        let hole_ns = cold.holes.at(seq, old_end).map(|hole| hole.time_ns);
        let episode = cold.episode();
        episode.note_late(seq, old_end, segment.frame);
        if events & event::OUT_OF_ORDER != 0 {
            let late_ns = now_ns.saturating_sub(hole_ns.unwrap_or(now_ns)).max(0);
            episode.note_reordering(end.to(nxt).max(0) as u32, late_ns);
        }
        cold.note_episode();
    }
    *evidence = Some(found);
    if nxt.is_before(end) {
        sent.flight.nxt = end;
        sent.note_sent(segment, nxt);
    }
    (events, true)
}

impl Direction {
    /// The segment that first held the byte at `seq`, if it was captured in order and the byte is in flight.
    pub fn first_copy(&self, seq: Seq) -> Option<Sent> {
        let is_outstanding = !seq.is_before(self.flight.una) && seq.is_before(self.flight.nxt);
        // Without the SYN the capture may have begun above SND.UNA.
        let is_in_capture = self.has_syn || seq.is_after(self.isn);
        let is_missing = self.cold.as_ref().is_some_and(|cold| {
            let episode = cold.episode.as_ref();
            cold.unseen.overlap(seq, seq + 1) > 0
                || cold.probe_end == Some(seq + 1)
                || episode.is_some_and(|episode| episode.is_late(seq))
        });
        let is_known = is_outstanding && is_in_capture && !is_missing;
        self.ledger.find(seq).filter(|_| is_known)
    }

    /// Whether the byte at `seq` is data of the SYN, of which the SYN/ACK acknowledged the SYN alone, and was not sent
    /// again yet.
    fn is_left_out(&self, seq: Seq) -> bool {
        let first = self.isn + 1;
        let episode = self.cold.as_ref().and_then(|cold| cold.episode.as_ref());
        self.syn.has_early_data()
            && self.has_syn
            && self.flight.is_acked
            && self.flight.una == first
            && holds(seq, first, first + u32::from(self.syn.early_bytes))
            && episode.is_none_or(|episode| episode.newest_copy(seq).is_none())
    }

    /// The newest frame that holds the byte at `seq`, `newest` being a later one; none where it is not known.
    pub fn newest_copy(&self, seq: Seq, newest: u64) -> Option<u64> {
        let episode = self.cold.as_ref().and_then(|cold| cold.episode.as_ref());
        if let Some(frame) = episode.and_then(|episode| episode.newest_copy(seq)) {
            return Some(frame);
        }
        if self.has_syn
            && holds(
                seq,
                self.isn + 1,
                self.isn + 1 + u32::from(self.syn.early_bytes),
            )
        {
            return self.cold.as_ref()?.odd.as_ref()?.early_frame;
        }
        let is_ambiguous =
            episode.is_some_and(|episode| episode.ambiguous.overlap(seq, seq + 1) > 0);
        let first = self.first_copy(seq).filter(|_| !is_ambiguous);
        first.and_then(|sent| sent.frame(newest))
    }

    /// Whether the timestamp clock certainly ticked since the byte at `seq` was first sent: a smaller value was sent no
    /// sooner than that, or this one was first sent later.
    fn has_ticked(&self, tsval: u32, seq: Seq, end: Seq) -> bool {
        let is_smaller = |known: u32| tsval.wrapping_sub(known) as i32 > 0;
        let hole = self.cold.as_ref().and_then(|cold| cold.holes.at(seq, end));
        if is_smaller(self.tsval) || hole.and_then(|hole| hole.tsval).is_some_and(is_smaller) {
            return true;
        }
        let Some(original_ns) = self.first_copy(seq).map(|sent| sent.time_ns) else {
            return false;
        };
        let was_timed =
            |(known, known_ns): (u32, i64)| known_ns >= original_ns && is_smaller(known);
        let tick_ns = self.pace().map_or(i64::MIN, |pace| pace.tick_ns);
        self.echo.pending().is_some_and(was_timed) || (tsval == self.tsval && tick_ns > original_ns)
    }
}

/// Name what a segment below SND.MAX is: late, or sent again, and why.
fn judge_below(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    below: &Below,
    old_end: Seq,
) -> Evidence {
    let Below {
        seq,
        end,
        handshake_rtt_ns,
    } = *below;
    let now_ns = segment.time_ns;
    let (una, nxt) = (sent.flight.una, sent.flight.nxt);
    let length = seq.to(old_end).max(0) as u32;
    let near_ns = peer.far_ns().unwrap_or(0);
    let (last_data_ns, last_ack_ns) = (sent.last_data_ns, sent.last_ack_ns);
    let hole = sent
        .cold
        .as_ref()
        .and_then(|cold| cold.holes.at(seq, old_end));
    let never_seen = sent
        .cold
        .as_ref()
        .map_or(0, |cold| cold.unseen.overlap(seq, old_end));
    let is_below = !end.is_after(una);
    if never_seen == length && length > 0 && !is_below {
        let newest_tsval = sent.has_tsval.then_some(sent.tsval);
        if let Some(evidence) = judge_late(hole.as_ref(), segment, newest_tsval, handshake_rtt_ns) {
            return evidence;
        }
    }
    let resend = sent
        .cold
        .as_ref()
        .and_then(|cold| cold.episode.as_ref()?.last_resend(seq, old_end));
    let original = sent.first_copy(seq);
    let last_sent_ns = resend
        .map(|resend| resend.time_ns)
        .or(original.map(|sent| sent.time_ns))
        .or(hole.map(|hole| hole.time_ns));
    let age_ns = last_sent_ns.map(|ns| now_ns.saturating_sub(ns).max(0));
    let backoff = sent
        .cold
        .as_ref()
        .and_then(|cold| cold.episode.as_ref())
        .map_or(0, |episode| episode.backoff);
    // The timer that began with a retransmission had the estimate of that time.
    let base_rto_ns = sent
        .ledger
        .rto_ns(near_ns)
        .min(resend.map_or(i64::MAX, |resend| resend.rto_ns));
    let rto_ns = base_rto_ns
        .saturating_mul(1 << backoff.min(10))
        .min(RTO_MAX_NS);
    let is_closed = sent.window.is_known && sent.window.bytes == 0;
    let mss = sent.segment_size();
    let has_sack = sent.syn.has(syn_kind::SACK_PERMITTED) && peer.syn.has(syn_kind::SACK_PERMITTED)
        || sent
            .cold
            .as_ref()
            .is_some_and(|cold| !cold.sacked.is_empty());
    let estimator = sent.ledger.estimator();
    let cold = sent.cold.as_deref();
    let last_answer = cold.and_then(|cold| cold.last_answer);
    let report = cold.and_then(|cold| cold.loss_report);
    let episode = cold.and_then(|cold| cold.episode.as_deref());
    // An ACK seen here reaches the sender, and shows in what it does, one round trip to the sender later.
    let reached = |time_ns: i64| time_ns.saturating_add(near_ns / 5 * 4) <= now_ns;
    let has_reached = report.is_some_and(|(time_ns, _)| reached(time_ns));
    let (mut sacked_above, mut sacked_ranges) = (0u32, 0u32);
    if let Some(cold) = cold {
        for (left, right) in cold.sacked.iter().filter(|range| range.0.is_after(seq)) {
            sacked_above = sacked_above.saturating_add(left.to(right).max(0) as u32);
            sacked_ranges += 1;
        }
    }
    if !has_reached {
        (sacked_above, sacked_ranges) = (sacked_above.min(mss), sacked_ranges.min(1));
    }
    let duplicate_acks = u32::from(sent.duplicate_acks);
    let heard_ns = last_ack_ns
        .max(last_answer.map_or(i64::MIN, |(time_ns, _)| time_ns))
        .saturating_add(near_ns);
    let smoothed_ns = estimator
        .has_samples()
        .then(|| estimator.smoothed_ns().saturating_add(near_ns));
    let round_ns = smoothed_ns.unwrap_or(0).saturating_mul(3) / 2;
    let case = Case {
        phase: episode.map_or(Phase::Open, |episode| episode.phase),
        is_head: !una.is_before(seq),
        is_tail: old_end == nxt,
        is_repeated: episode.is_some_and(|episode| episode.is_repeated(seq, old_end)),
        is_probe_out: episode.is_some_and(|episode| episode.is_probe_out()),
        is_lone: una.to(nxt) <= length as i32,
        sends_probes: episode.and_then(|episode| episode.sends_probes),
        is_near: smoothed_ns.is_some_and(|smoothed_ns| near_ns < smoothed_ns / 4),
        has_sack,
        duplicate_acks: if has_reached {
            duplicate_acks
        } else {
            duplicate_acks.min(2)
        },
        sacked_above,
        sacked_ranges,
        mss,
        was_recovered: episode.is_some_and(|episode| episode.was_recovered(seq, old_end)),
        is_sacked_again: last_answer.is_some_and(|(time_ns, _)| reached(time_ns))
            && episode
                .zip(cold)
                .is_some_and(|(episode, cold)| episode.is_any_repeated(seq, cold.sacked.iter())),
        is_going_on: episode
            .and_then(|episode| episode.newest_resend_ns())
            .is_some_and(|ns| now_ns.saturating_sub(ns) < round_ns),
        is_overtaken: episode
            .zip(last_sent_ns)
            .is_some_and(|(episode, sent_ns)| episode.is_overtaken(sent_ns)),
        backoff,
        oldest_ns: sent
            .ledger
            .oldest_ns()
            .map_or(0, |ns| now_ns.saturating_sub(ns).max(0)),
        age_ns: age_ns.unwrap_or(now_ns.saturating_sub(last_data_ns).max(0)),
        is_answered: last_data_ns >= heard_ns.saturating_sub(near_ns / 5),
        advance_ns: now_ns
            .saturating_sub(last_ack_ns.saturating_add(near_ns))
            .max(0),
        quiet_ns: now_ns.saturating_sub(last_data_ns.max(heard_ns)).max(0),
        smoothed_ns,
        rto_ns,
        base_rto_ns,
    };
    let verdict = if is_below {
        Verdict::high(Cause::Spurious, "acknowledged before it was captured")
    } else if is_closed && seq == una && sent.flight.is_outstanding() {
        Verdict::high(Cause::ZeroWindow, "the receive window is closed")
    } else if segment.payload_len == 0 {
        Verdict::high(Cause::Fin, "the FIN was not acknowledged in time")
    } else if sent.is_left_out(seq) {
        Verdict::high(
            Cause::FastOpen,
            "the SYN/ACK left out the data of the SYN: the server did not take it (RFC 7413 §4.2)",
        )
    } else {
        judge(&case)
    };
    let shown = shows_probing(&case, &verdict);
    let mut rto_ns = rto_ns;
    if let Some(sends_probes) = shown {
        let episode = sent.cold().episode();
        episode.sends_probes = Some(sends_probes);
        if case.is_probe_out && !sends_probes {
            // What looked like a probe was a timeout.
            episode.backoff = 1;
            rto_ns = rto_ns.saturating_mul(2).min(RTO_MAX_NS);
        }
    }
    let trigger_frame = match verdict.cause {
        Cause::Fast => report.or(last_answer).map(|(_, frame)| frame),
        Cause::Recovery | Cause::LostRetransmission | Cause::GoBackN => {
            last_answer.map(|(_, frame)| frame)
        }
        _ => None,
    };
    Evidence {
        original_frame: sent.newest_copy(seq, segment.frame),
        trigger_frame,
        age_ns,
        rto_ns: Some(rto_ns),
        ..Evidence::of(verdict)
    }
}

/// Bytes never captured before that come late, by reordering on the way or in the capture.
fn judge_late(
    hole: Option<&Hole>,
    segment: &Segment,
    newest_tsval: Option<u32>,
    round_trip_ns: Option<i64>,
) -> Option<Evidence> {
    let hole = hole?;
    let verdict = match lateness(hole, segment, newest_tsval, round_trip_ns)? {
        Lateness::CaptureOrder => Verdict::high(
            Cause::CaptureReordered,
            "the capture's clock says that it came first",
        ),
        Lateness::Timestamp => Verdict::high(Cause::OutOfOrder, "its timestamp is the older one"),
        Lateness::Identification => Verdict::high(
            Cause::OutOfOrder,
            "its IP identification is the earlier one",
        ),
        Lateness::Time => Verdict::medium(
            Cause::OutOfOrder,
            "it fills a hole sooner than a retransmission could",
        ),
    };
    Some(Evidence {
        original_frame: Some(hole.frame),
        age_ns: Some(segment.time_ns.saturating_sub(hole.time_ns)),
        ..Evidence::of(verdict)
    })
}
