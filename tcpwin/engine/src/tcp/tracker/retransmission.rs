//! Segments below SND.MAX: late data, retransmissions and their causes, keep-alives and probes.
//!
//! [`crate::tcp::tracker::send`] takes data that continues at SND.MAX.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::syn::syn_kind;
use crate::tcp::recovery::cause::{Diagnosis, RetransmissionCause};
use crate::tcp::recovery::episode::{holds, Phase, Resent};
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::recovery::holes::{lateness, Hole, Lateness, REORDER_DEFAULT_NS};
use crate::tcp::recovery::resent::{judge, shows_probing, ResendContext};
use crate::tcp::timing::estimator::RTO_MAX_NS;
use crate::tcp::timing::sent::Sent;
use crate::tcp::tracker::loss_reports::{has_reached, loss_reports_at_sender, LossReports};
use crate::tcp::tracker::probe::{is_too_late, take_keep_alive, take_probe};
use crate::wire::{Segment, FIN};

/// A segment that begins below SND.MAX.
pub(super) struct SegmentBelowNxt {
    pub seq: Seq,
    pub end: Seq,
    pub handshake_rtt_ns: Option<i64>,
}

/// Process a segment that begins below SND.MAX. Return its events and whether it carries data.
#[cold]
pub(super) fn on_segment_below_nxt(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    below: &SegmentBelowNxt,
    evidence: &mut Option<Evidence>,
) -> (Events, bool) {
    if sent.has_syn && !below.end.is_after(sent.isn) {
        // This connection has no data below its first sequence number.
        return (0, false);
    }
    if let Some(events) = take_asking(sent, segment, below) {
        return (events, false);
    }
    let is_known = sent.is_flight_known();
    sent.flight.integrate(segment.time_ns, is_known);
    let events = if follows_probe(sent, below) {
        let cold_state = sent.cold_state();
        cold_state.probe_end = None;
        cold_state.resent_bytes += 1;
        0
    } else {
        take_old(sent, peer, segment, below, evidence)
    };
    sent.send_rest(segment, below.end);
    (events, true)
}

/// Process a window probe, a keep-alive or an empty segment; return None for data and FINs.
fn take_asking(sent: &mut Direction, segment: &Segment, below: &SegmentBelowNxt) -> Option<Events> {
    let (seq, end) = (below.seq, below.end);
    let is_next_missing =
        seq + 1 == sent.flight.nxt && !sent.flight.is_outstanding() && sent.flight.is_acked;
    let is_closed = is_window_closed(sent);
    if segment.flags & FIN != 0 || segment.payload_len > 1 {
        return None;
    }
    if segment.payload_len == 0 {
        if seq + 1 == sent.flight.una && is_closed && !is_too_late(sent, segment.time_ns) {
            sent.cold_state().zero().probe(segment.time_ns);
            return Some(event::ZERO_WINDOW_PROBE);
        }
        return Some(if is_next_missing {
            take_keep_alive(sent, segment, below.handshake_rtt_ns)
        } else {
            0
        });
    }
    if is_closed && seq == sent.flight.una && probe_end(sent) == Some(end) {
        return Some(take_probe(sent, segment, end));
    }
    if is_next_missing && !is_closed {
        sent.cold_state().is_keep_alive_unanswered = true;
        return Some(event::KEEP_ALIVE);
    }
    None
}

fn is_window_closed(sent: &Direction) -> bool {
    sent.window.is_known && sent.window.bytes == 0
}

fn probe_end(sent: &Direction) -> Option<Seq> {
    sent.cold_state
        .as_ref()
        .and_then(|cold_state| cold_state.probe_end)
}

/// Return true if the segment repeats a probe's byte, followed by more data.
fn follows_probe(sent: &Direction, below: &SegmentBelowNxt) -> bool {
    let nxt = sent.flight.nxt;
    probe_end(sent) == Some(nxt) && below.seq + 1 == nxt && nxt.is_before(below.end)
}

/// Process data or a FIN that was sent before or arrives late.
fn take_old(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    below: &SegmentBelowNxt,
    evidence: &mut Option<Evidence>,
) -> Events {
    let (seq, nxt, acked_bytes) = (below.seq, sent.flight.nxt, sent.acked_bytes);
    let old_end = if below.end.is_before(nxt) {
        below.end
    } else {
        nxt
    };
    if let Some(cold_state) = &mut sent.cold_state {
        cold_state.change_known_episode(|episode| episode.forget_old(acked_bytes));
    }
    let found = judge_below(sent, peer, segment, below, old_end);
    let cause = found.diagnosis.cause;
    let events = cause.events();
    *evidence = Some(found);
    let tsval = segment.options.timestamps.map(|(value, _)| value);
    let resent = Resent {
        seq,
        end: old_end,
        nxt,
        time_ns: segment.time_ns,
        frame: segment.frame,
        rto_ns: sent.ledger.rto_ns(peer.rtt_to_receiver_ns().unwrap_or(0)),
        tsval,
        is_distinct: tsval.is_some_and(|value| sent.has_ticked(value, seq, old_end)),
        events: events & event::MAIN_KINDS,
        acked_bytes,
        is_refused: sent.has_refused(seq),
    };
    let cold_state = sent.cold_state();
    // Captured for the first time: in flight, or already acknowledged.
    let filled = cold_state.unseen.remove(seq, old_end);
    let late = cold_state.missed.take_back(seq, old_end, acked_bytes);
    if filled > 0 {
        sent.note_filled(segment.time_ns);
    }
    let cold_state = sent.cold_state();
    if events & event::RESENT == 0 {
        take_late(cold_state, segment, below, &resent, events);
        return events;
    }
    let old_bytes = (seq.to(old_end).max(0) as u32).saturating_sub(filled.saturating_add(late));
    cold_state.resent_segments = cold_state.resent_segments.saturating_add(1);
    cold_state.resent_bytes += u64::from(old_bytes.min(segment.payload_len));
    if cause != RetransmissionCause::GoBackN && peer.own_scale.is_certain() {
        sent.note_first_loss(segment.time_ns, seq);
    }
    events | take_resent(sent, cause, &resent)
}

/// Apply a retransmission to the sender's recovery and its model. Return the accompanying events.
fn take_resent(sent: &mut Direction, cause: RetransmissionCause, resent: &Resent) -> Events {
    let (mss, flight_bytes) = (sent.segment_size(), sent.flight_as_sent());
    let is_head = resent.seq == sent.flight.una && sent.flight.is_outstanding();
    let asks_window = is_window_closed(sent) && is_head;
    let pipe_bytes = flight_bytes.saturating_sub(sent.sacked_bytes());
    if let Some(pace) = sent.ledger.pace_mut() {
        if matches!(cause, RetransmissionCause::Fast | RetransmissionCause::Rto) {
            pace.note_loss(flight_bytes.max(mss));
        }
        if let Some(path) = &mut pace.path {
            path.note_filled(resent.seq, resent.end);
            path.note_resent(cause, pipe_bytes, mss);
        }
    }
    let cold_state = sent.cold_state();
    cold_state.change_episode(|episode| episode.resent(cause, resent));
    if !asks_window {
        return 0;
    }
    // If the window closed on outstanding data, Linux retransmits it instead of probing (`tcp_retransmit_timer`).
    cold_state.zero().probe(resent.time_ns);
    event::ZERO_WINDOW_PROBE
}

/// Note late data and the extent of its reordering.
fn take_late(
    cold_state: &mut ColdState,
    segment: &Segment,
    below: &SegmentBelowNxt,
    late: &Resent,
    events: Events,
) {
    let now_ns = segment.time_ns;
    let hole_ns = cold_state
        .holes
        .at(late.seq, late.end)
        .map(|hole| hole.time_ns);
    cold_state.change_episode(|episode| {
        episode.note_late(late.seq, late.end, segment.frame);
        if events & event::OUT_OF_ORDER != 0 {
            let late_ns = now_ns.saturating_sub(hole_ns.unwrap_or(now_ns)).max(0);
            episode.note_reordering(below.end.to(late.nxt).max(0) as u32, late_ns);
        }
    });
}

impl Direction {
    /// Return the segment that first held the byte at `seq`, if it was captured in order and the byte is in flight.
    pub fn first_copy(&self, seq: Seq) -> Option<Sent> {
        let is_outstanding = !seq.is_before(self.flight.una) && seq.is_before(self.flight.nxt);
        // Without the SYN the capture may have begun above SND.UNA.
        let is_in_capture = self.has_syn || seq.is_after(self.isn);
        let is_missing = self.cold_state.as_ref().is_some_and(|cold_state| {
            let episode = cold_state.episode();
            cold_state.unseen.overlap(seq, seq + 1) > 0
                || cold_state.probe_end == Some(seq + 1)
                || episode.is_some_and(|episode| episode.is_late(seq))
        });
        let is_known = is_outstanding && is_in_capture && !is_missing;
        self.ledger.find(seq).filter(|_| is_known)
    }

    /// Return whether the byte at `seq` is data of the SYN that the SYN/ACK did not acknowledge and that was not
    /// retransmitted yet.
    fn is_left_out(&self, seq: Seq) -> bool {
        let first = self.isn + 1;
        let episode = self
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.episode());
        self.syn.has_early_data()
            && self.has_syn
            && self.flight.is_acked
            && self.flight.una == first
            && holds(seq, first, first + u32::from(self.syn.early_bytes))
            && episode.is_none_or(|episode| episode.newest_copy(seq).is_none())
    }

    /// Return whether the receiver withdrew the window for the byte at `seq` and dropped it.
    fn has_refused(&self, seq: Seq) -> bool {
        let taken = self
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.taken_back.as_ref());
        taken.is_some_and(|taken| taken.has_refused(seq, self.acked_bytes))
    }

    /// Return the newest frame before `newest` that holds the byte at `seq`, if known.
    pub fn newest_copy(&self, seq: Seq, newest: u64) -> Option<u64> {
        let episode = self
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.episode());
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
            return self.cold_state.as_ref()?.syn_frames.as_ref()?.early_data;
        }
        let is_ambiguous =
            episode.is_some_and(|episode| episode.ambiguous.overlap(seq, seq + 1) > 0);
        let first = self.first_copy(seq).filter(|_| !is_ambiguous);
        first.and_then(|sent| sent.frame(newest))
    }

    /// Return whether the timestamp clock certainly ticked since the byte at `seq` was first sent: a smaller value was sent
    /// no earlier, or this value was first sent later.
    fn has_ticked(&self, tsval: u32, seq: Seq, end: Seq) -> bool {
        let is_smaller = |known: u32| tsval.wrapping_sub(known) as i32 > 0;
        let hole = self
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.holes.at(seq, end));
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

/// Diagnose a segment below SND.MAX: late, or retransmitted and why.
fn judge_below(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    below: &SegmentBelowNxt,
    old_end: Seq,
) -> Evidence {
    let seq = below.seq;
    if let Some(evidence) = judge_never_captured(sent, peer, segment, below, old_end) {
        return evidence;
    }
    let last_sent_ns = last_sent_ns(sent, seq, old_end);
    let context = resend_context(sent, peer, segment.time_ns, (seq, old_end), last_sent_ns);
    let diagnosis = judge_resent(sent, segment, below, &context);
    let rto_ns = learn_probing(sent, &context, &diagnosis);
    Evidence {
        original_frame: sent.newest_copy(seq, segment.frame),
        trigger_frame: trigger_frame(sent, peer, segment.time_ns, diagnosis.cause),
        age_ns: last_sent_ns.map(|ns| sent.clock_ns(segment.time_ns).saturating_sub(ns).max(0)),
        rto_ns: Some(rto_ns),
        ..Evidence::of(diagnosis)
    }
}

/// Judge whether data that was entirely missing so far is the original, arriving late.
fn judge_never_captured(
    sent: &Direction,
    peer: &Direction,
    segment: &Segment,
    below: &SegmentBelowNxt,
    old_end: Seq,
) -> Option<Evidence> {
    let cold_state = sent.cold_state.as_ref()?;
    let length = below.seq.to(old_end).max(0) as u32;
    let is_missing = length > 0 && cold_state.unseen.overlap(below.seq, old_end) == length;
    if !is_missing || !below.end.is_after(sent.flight.una) {
        return None;
    }
    let hole = cold_state.holes.at(below.seq, old_end);
    let newest_tsval = sent.has_tsval.then_some(sent.tsval);
    let clock_ns = sent.clock_ns(segment.time_ns);
    // The handshake may include waits off the path: for address resolution, or in an accept queue.
    let leg_rtts = peer.rtt_to_receiver_ns().zip(sent.rtt_to_receiver_ns());
    let least_ns = leg_rtts.map_or(i64::MAX, |(rtt_to_sender_ns, rtt_to_receiver_ns)| {
        rtt_to_sender_ns.saturating_add(rtt_to_receiver_ns)
    });
    let round_trip_ns = below
        .handshake_rtt_ns
        .map(|ns| ns.min(least_ns.max(REORDER_DEFAULT_NS)));
    judge_late(
        hole.as_ref(),
        segment,
        newest_tsval,
        round_trip_ns,
        clock_ns,
    )
}

/// Return when the bytes were last sent or, if never captured, when they were missed.
fn last_sent_ns(sent: &Direction, seq: Seq, old_end: Seq) -> Option<i64> {
    let cold_state = sent.cold_state.as_ref();
    let resend = cold_state.and_then(|cold_state| cold_state.episode()?.last_resend(seq, old_end));
    resend
        .map(|resend| resend.time_ns)
        .or_else(|| sent.first_copy(seq).map(|sent| sent.time_ns))
        .or_else(|| Some(cold_state?.holes.at(seq, old_end)?.time_ns))
}

/// Gather the facts about bytes from `seq` to `old_end` that are captured a second time.
fn resend_context(
    sent: &Direction,
    peer: &Direction,
    now_ns: i64,
    (seq, old_end): (Seq, Seq),
    last_sent_ns: Option<i64>,
) -> ResendContext {
    let (una, nxt) = (sent.flight.una, sent.flight.nxt);
    let since_ns = |time_ns: i64| now_ns.saturating_sub(time_ns).max(0);
    let rtt_to_sender_ns = peer.rtt_to_receiver_ns().unwrap_or(0);
    let cold_state = sent.cold_state.as_deref();
    let episode = cold_state.and_then(|cold_state| cold_state.episode());
    let last_answer = cold_state.and_then(|cold_state| cold_state.last_answer);
    let backoff = episode.map_or(0, |episode| episode.backoff);
    // A timer started by a retransmission uses the estimate of that time.
    let resend = episode.and_then(|episode| episode.last_resend(seq, old_end));
    let base_rto_ns = sent
        .ledger
        .rto_ns(rtt_to_sender_ns)
        .min(resend.map_or(i64::MAX, |resend| resend.rto_ns));
    let estimator = sent.ledger.estimator();
    let smoothed_ns = estimator
        .has_samples()
        .then(|| estimator.smoothed_ns().saturating_add(rtt_to_sender_ns));
    let round_ns = smoothed_ns.unwrap_or(0).saturating_mul(3) / 2;
    let heard_ns = sent
        .last_ack_ns
        .max(last_answer.map_or(i64::MIN, |(time_ns, _)| time_ns))
        .saturating_add(rtt_to_sender_ns);
    let has_sack = sent.syn.has(syn_kind::SACK_PERMITTED) && peer.syn.has(syn_kind::SACK_PERMITTED)
        || cold_state.is_some_and(|cold_state| !cold_state.sacked.is_empty());
    let LossReports {
        duplicate_acks,
        sacked_above,
        sacked_ranges,
        are_enough,
    } = loss_reports_at_sender(sent, seq, rtt_to_sender_ns, now_ns);
    ResendContext {
        phase: episode.map_or(Phase::Open, |episode| episode.phase),
        is_head: !una.is_before(seq),
        is_tail: old_end == nxt,
        is_repeated: episode.is_some_and(|episode| episode.is_repeated(seq, old_end)),
        is_probe_out: episode.is_some_and(|episode| episode.is_probe_out()),
        is_lone: una.to(nxt) <= seq.to(old_end).max(0),
        sends_probes: episode.and_then(|episode| episode.sends_probes),
        is_near: smoothed_ns.is_some_and(|smoothed_ns| rtt_to_sender_ns < smoothed_ns / 4),
        has_sack,
        duplicate_acks,
        sacked_above,
        sacked_ranges,
        is_reported: are_enough,
        mss: sent.segment_size(),
        was_recovered: episode.is_some_and(|episode| episode.was_recovered(seq, old_end)),
        is_sacked_again: last_answer
            .is_some_and(|(time_ns, _)| has_reached(time_ns, rtt_to_sender_ns, now_ns))
            && episode
                .zip(cold_state)
                .is_some_and(|(episode, cold_state)| {
                    episode.is_any_repeated(seq, cold_state.sacked.iter())
                }),
        is_going_on: episode
            .and_then(|episode| episode.newest_resend_ns())
            .is_some_and(|ns| now_ns.saturating_sub(ns) < round_ns),
        is_overtaken: episode
            .zip(last_sent_ns)
            .is_some_and(|(episode, sent_ns)| episode.is_overtaken(sent_ns)),
        backoff,
        oldest_ns: sent.ledger.oldest_ns().map_or(0, since_ns),
        age_ns: since_ns(last_sent_ns.unwrap_or(sent.last_data_ns)),
        is_answered: sent.last_data_ns >= heard_ns.saturating_sub(rtt_to_sender_ns / 5),
        advance_ns: since_ns(sent.last_ack_ns.saturating_add(rtt_to_sender_ns)),
        quiet_ns: since_ns(sent.last_data_ns.max(heard_ns)),
        smoothed_ns,
        rto_ns: base_rto_ns
            .saturating_mul(1 << backoff.min(10))
            .min(RTO_MAX_NS),
        base_rto_ns,
    }
}

/// Diagnose a retransmission: by the segment and the window first, then by the sender's timers and ACKs.
fn judge_resent(
    sent: &Direction,
    segment: &Segment,
    below: &SegmentBelowNxt,
    context: &ResendContext,
) -> Diagnosis {
    let una = sent.flight.una;
    let is_closed = is_window_closed(sent);
    if !below.end.is_after(una) {
        Diagnosis::certain(
            RetransmissionCause::Spurious,
            "acknowledged before it was captured",
        )
    } else if is_closed && below.seq == una && sent.flight.is_outstanding() {
        Diagnosis::certain(
            RetransmissionCause::ZeroWindow,
            "the receive window is closed",
        )
    } else if segment.payload_len == 0 {
        Diagnosis::certain(
            RetransmissionCause::Fin,
            "the FIN was not acknowledged in time",
        )
    } else if sent.is_left_out(below.seq) {
        Diagnosis::certain(
            RetransmissionCause::FastOpen,
            "the SYN/ACK did not acknowledge the SYN's data: the server rejected it (RFC 7413 §4.2)",
        )
    } else {
        judge(context)
    }
}

/// Learn whether the sender probes for tail loss; return its timeout.
fn learn_probing(sent: &mut Direction, context: &ResendContext, diagnosis: &Diagnosis) -> i64 {
    let Some(sends_probes) = shows_probing(context, diagnosis) else {
        return context.rto_ns;
    };
    // The presumed probe was a timeout's retransmission.
    let was_timeout = context.is_probe_out && !sends_probes;
    sent.cold_state().change_episode(|episode| {
        episode.sends_probes = Some(sends_probes);
        if was_timeout {
            episode.backoff = 1;
        }
    });
    if was_timeout {
        context.rto_ns.saturating_mul(2).min(RTO_MAX_NS)
    } else {
        context.rto_ns
    }
}

/// Return the frame of the ACK that triggered the retransmission.
///
/// None while the distance to the sender is unknown.
fn trigger_frame(
    sent: &Direction,
    peer: &Direction,
    now_ns: i64,
    cause: RetransmissionCause,
) -> Option<u64> {
    let cold_state = sent.cold_state.as_deref()?;
    let rtt_to_sender_ns = peer.rtt_to_receiver_ns()?;
    let answers = cold_state.episode().map(|episode| &episode.answers);
    // The newest ACK that can have reached the sender: at least one minimum round trip old or, failing that, 80 % of
    // one, to allow for jitter.
    let heard = || {
        [rtt_to_sender_ns, rtt_to_sender_ns / 5 * 4]
            .into_iter()
            .find_map(|way_ns| {
                let since_ns = now_ns.saturating_sub(way_ns);
                let newest = cold_state.last_answer.filter(|(ns, _)| *ns <= since_ns);
                newest.or_else(|| answers.and_then(|answers| answers.until(since_ns)))
            })
    };
    let answer = match cause {
        RetransmissionCause::Fast => cold_state
            .loss_report
            .filter(|(ns, _)| has_reached(*ns, rtt_to_sender_ns, now_ns))
            .or_else(heard),
        RetransmissionCause::Recovery
        | RetransmissionCause::LostRetransmission
        | RetransmissionCause::GoBackN => heard(),
        _ => None,
    };
    answer.map(|(_, frame)| frame)
}

/// Judge bytes captured for the first time but late, due to reordering on the path or in the capture.
fn judge_late(
    hole: Option<&Hole>,
    segment: &Segment,
    newest_tsval: Option<u32>,
    round_trip_ns: Option<i64>,
    clock_ns: i64,
) -> Option<Evidence> {
    let hole = hole?;
    let lateness = lateness(hole, segment, newest_tsval, round_trip_ns, clock_ns)?;
    let diagnosis = match lateness {
        Lateness::CaptureOrder => Diagnosis::certain(
            RetransmissionCause::CaptureReordered,
            "earlier by the capture's clock",
        ),
        Lateness::Timestamp => {
            Diagnosis::certain(RetransmissionCause::OutOfOrder, "its timestamp is older")
        }
        Lateness::Identification => {
            Diagnosis::certain(RetransmissionCause::OutOfOrder, "its IP ID is earlier")
        }
        Lateness::Time => Diagnosis::likely(
            RetransmissionCause::OutOfOrder,
            "it fills a hole sooner than a retransmission could",
        ),
    };
    // A negative difference is not an age.
    let age_ns = segment.time_ns.saturating_sub(hole.time_ns);
    Some(Evidence {
        original_frame: Some(hole.frame),
        age_ns: (lateness != Lateness::CaptureOrder).then_some(age_ns),
        ..Evidence::of(diagnosis)
    })
}
