//! A segment as an acknowledgment: SND.UNA, SACK, the advertised window, and their events.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::ecn;
use crate::tcp::connection::syn::syn_kind;
use crate::tcp::recovery::episode::{Advance, Shown};
use crate::tcp::recovery::resent::DUPLICATE_THRESHOLD;
use crate::tcp::timing::ledger::{Arrival, Covered, Echoed};
use crate::tcp::window::flight::Unknown;
use crate::tcp::window::receive::{Advertised, Advertisement};
use crate::tcp::window::scale::ScaleState;
use crate::tcp::window::zero::EndedBy;
use crate::wire::{Segment, ECE, FIN, RST, SYN};

/// An acknowledgment further ahead than any window allows (RFC 7323 §2.3: 2^30) is ignored.
const MAX_JUMP: i32 = 1 << 30;

#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    pub events: Events,
    pub rtt_ns: Option<u64>,
    pub(super) is_new: bool,
    pub(super) is_old: bool,
    /// Whether the ACK is ignored because it covers data that no window allowed, as far as one segment shows.
    pub is_doubted: bool,
    is_partial: bool,
}

/// State of a direction before the current ACK.
struct PreAckState {
    una: Seq,
    is_started: bool,
    had_doubts: bool,
    /// Last window field; None before the first.
    window_raw: Option<u16>,
}

impl PreAckState {
    fn of(acked: &Direction) -> Self {
        let window = &acked.window;
        PreAckState {
            una: acked.flight.una,
            is_started: acked.flight.is_started,
            had_doubts: acked.has_doubts(),
            window_raw: window.is_known.then_some(window.last_raw),
        }
    }
}

/// Process the ACK and window of a segment without SYN and RST.
#[inline]
pub fn take(sent: &mut Direction, acked: &mut Direction, segment: &Segment) -> Answer {
    let before = PreAckState::of(acked);
    let mut answer = acknowledge(
        acked,
        Seq(segment.ack),
        segment,
        sent.own_scale.is_certain(),
    );
    if answer.is_doubted {
        return answer;
    }
    let advance = before.una.to(acked.flight.una).max(0) as u32;
    if !acked.is_seen {
        acked.infer_fin(sent, segment, advance);
    }
    let is_bare = is_empty(segment) && Seq(segment.seq) == sent.flight.nxt;
    acked.compare_ack(segment, advance, is_bare && before.is_started);
    let mut new_sacked = 0;
    if segment.options.sack_count > 0 {
        let reported = take_sack(acked, segment, answer.is_new);
        answer.events |= reported.events;
        new_sacked = reported.new_bytes;
    }
    let advertised = take_window(sent, acked, segment, &answer);
    if sent.own_scale.is_certain() {
        acked.note_left(advance);
    }
    if segment.flags & ECE != 0 && ecn::distinguishes(&sent.syn, &acked.syn, segment) {
        acked.note_mark();
        answer.events |= event::CONGESTION_ECHO;
    }
    if ecn::may_count(&sent.syn, &acked.syn) {
        acked.take_counter(sent, segment, &answer);
    }
    acked.end_ack(segment.time_ns, answer.is_new, new_sacked > 0, sent);
    answer.events |= judge_window(sent, acked, segment, &advertised);
    if is_empty(segment) {
        answer.events |= if answers_probe(acked, segment, &before) {
            event::ZERO_WINDOW_PROBE_ACK
        } else if !answer.is_new {
            judge_empty(sent, acked, segment, &before, new_sacked)
        } else {
            0
        };
    }
    if new_sacked > 0 || answer.events & event::DUPLICATE_ACK != 0 {
        acked.note_disorder();
    }
    let is_of_loss = before.had_doubts || answer.events & event::DUPLICATE_ACK != 0;
    keep_answer(sent, acked, segment, is_of_loss);
    answer
}

/// Return whether the segment has neither payload nor FIN.
#[inline]
fn is_empty(segment: &Segment) -> bool {
    segment.payload_len == 0 && segment.flags & FIN == 0
}

/// Apply the window that a segment of `sent` advertises for the acknowledged direction.
#[inline]
fn take_window(
    sent: &Direction,
    acked: &mut Direction,
    segment: &Segment,
    answer: &Answer,
) -> Advertised {
    let is_stale = answer.is_old || sent.is_overtaken(segment.options.timestamps);
    if !sent.own_scale.is_certain() {
        acked.cold_state().has_unscaled_windows = true;
    }
    let advertised = acked.window.advertise(
        segment.time_ns,
        &Advertisement {
            seq: Seq(segment.seq),
            ack: Seq(segment.ack),
            bytes: u32::from(segment.window) << sent.own_shift,
            unit_bytes: 1 << sent.own_shift,
            is_new_ack: answer.is_new,
            is_stale,
        },
    );
    if !is_stale {
        acked.window.last_raw = segment.window;
    }
    advertised
}

/// Derive the events of the advertised window: closed or opened, small, withdrawn, or of unknown scale.
#[inline]
fn judge_window(
    sent: &Direction,
    acked: &mut Direction,
    segment: &Segment,
    advertised: &Advertised,
) -> Events {
    let is_certain = sent.own_scale.is_certain();
    let is_plain = segment.flags & FIN == 0;
    let mut events = 0;
    if advertised.shrink_bytes > 0 && is_certain {
        acked.take_back(acked.window.edge, advertised.shrink_bytes);
        events |= event::WINDOW_SHRINK;
    }
    let bytes = u32::from(segment.window) << sent.own_shift;
    if !advertised.is_accepted {
        acked.take_back_unheard(sent, segment, Seq(segment.ack) + bytes);
        return events;
    }
    if (bytes == 0 && is_plain)
        || acked
            .cold_state
            .as_ref()
            .is_some_and(|cold_state| cold_state.is_zero_open())
    {
        note_zero(acked, segment, bytes);
    }
    if is_certain && is_plain && bytes > 0 && bytes < acked.segment_size() {
        events |= event::SUB_MSS_WINDOW;
    }
    if is_plain && matches!(sent.own_scale, ScaleState::Unknown | ScaleState::SynOnly) {
        let inference = &mut acked.cold_state().inference;
        inference
            .get_or_insert_with(Box::default)
            .advertise(Seq(segment.ack), segment.window);
    }
    events
}

/// Return whether an empty segment answers a probe by reporting that the window is still closed.
#[inline]
fn answers_probe(acked: &Direction, segment: &Segment, before: &PreAckState) -> bool {
    let ack = Seq(segment.ack);
    segment.window == 0
        && before.window_raw == Some(0)
        && (ack == before.una || ack == before.una + 1)
        && (acked.cold_state.as_ref()).is_some_and(|cold_state| cold_state.is_probe_unanswered())
}

/// Judge an empty segment that acknowledges nothing new and does not answer a probe.
#[inline]
fn judge_empty(
    sent: &Direction,
    acked: &mut Direction,
    segment: &Segment,
    before: &PreAckState,
    new_sacked: u32,
) -> Events {
    let is_repeated = before.is_started && Seq(segment.ack) == before.una;
    match before.window_raw {
        Some(was_raw) if is_repeated && sent.is_seen && Seq(segment.seq) == sent.flight.nxt => {
            judge_repeated(acked, segment, was_raw, new_sacked)
        }
        _ => 0,
    }
}

/// Note that the sender's probe is answered, and keep an ACK that reports loss: it may trigger the next segment.
#[inline]
fn keep_answer(sent: &Direction, acked: &mut Direction, segment: &Segment, is_of_loss: bool) {
    let round_trip_ns = acked.ledger.min_ns();
    let Some(cold_state) = &mut acked.cold_state else {
        return;
    };
    let (now_ns, answer) = (segment.time_ns, (segment.time_ns, segment.frame));
    cold_state.is_keep_alive_unanswered = false;
    if is_of_loss || cold_state.has_doubts() {
        cold_state.last_answer = Some(answer);
        let shift_ns = sent.rtt_to_receiver_ns().unwrap_or(0);
        cold_state.change_known_episode(|episode| episode.answers.note(answer, shift_ns));
    }
    if let Some(zero) = &mut cold_state.zero {
        if zero.is_answer(now_ns, round_trip_ns) {
            zero.is_probe_unanswered = false;
        }
    }
}

/// Move SND.UNA of the acknowledged direction.
#[inline]
pub fn acknowledge(
    acked: &mut Direction,
    ack: Seq,
    segment: &Segment,
    is_scale_certain: bool,
) -> Answer {
    let now_ns = segment.time_ns;
    let mut answer = Answer::default();
    if acked.doubts_ack(segment, is_scale_certain) {
        answer.is_doubted = true;
        return answer;
    }
    let is_first = !acked.flight.is_acked;
    if is_first {
        begin(acked, ack, segment);
    }
    let advance = acked.flight.una.to(ack);
    if advance <= 0 {
        answer.is_old = advance < 0;
        return answer;
    }
    let beyond = acked.flight.nxt.to(ack);
    if beyond > MAX_JUMP && is_first {
        answer.is_old = true;
        return answer;
    }
    let is_known = acked.is_flight_known();
    acked.flight.integrate(now_ns, is_known);
    if beyond > 0 && is_first && !acked.has_syn {
        // Data in flight when the capture begins was sent before it: the capture lacks no frame.
        acked.flight.nxt = ack;
        acked.ledger.forget();
        acked.cold_state().before_bytes += beyond as u64;
    } else if beyond > 0 {
        answer.events |= acknowledge_unseen(acked, ack, now_ns);
    }
    let mut by_echo = None;
    let covered = if acked.has_doubts() {
        let (covered, echoed, shown) = cover_doubtful(acked, ack, segment);
        answer.is_partial = shown.is_partial;
        by_echo = echoed;
        covered
    } else {
        acked.ledger.cover_plain(ack, acked.offload_bytes())
    };
    let (events, rtt_ns) = acked.acknowledge_to(ack, segment, covered, by_echo);
    answer.events |= events;
    (answer.is_new, answer.rtt_ns) = (true, rtt_ns);
    if acked.flight.unknown == Unknown::Una
        && acked.flight.bytes() <= acked.likely_window_bytes(is_scale_certain)
    {
        acked.flight.unknown = Unknown::Neither;
    }
    let acked_bytes = acked.acked_bytes;
    if let Some(cold_state) = &mut acked.cold_state {
        answer.events |= leave_behind(cold_state, ack, acked_bytes);
    }
    if answer.is_partial {
        answer.events |= event::PARTIAL_ACK;
    }
    answer
}

/// Forget the state of bytes below SND.UNA.
fn leave_behind(cold_state: &mut ColdState, ack: Seq, acked_bytes: u64) -> Events {
    let mut events = 0;
    cold_state.forget_reports();
    if !cold_state.sacked.is_empty() {
        let gone = cold_state.sacked.remove_below(ack);
        cold_state.sacked_bytes = cold_state.sacked_bytes.saturating_sub(gone);
    }
    if !cold_state.unseen.is_empty() {
        let below: Vec<_> = (cold_state.unseen.iter())
            .take_while(|(left, _)| left.is_before(ack))
            .collect();
        for (left, right) in below {
            let right = if right.is_after(ack) { ack } else { right };
            cold_state.missed.note(left, right, acked_bytes);
            events |= event::ACKED_UNSEEN;
        }
        cold_state.unseen.remove_below(ack);
    }
    if !cold_state.holes.is_empty() {
        cold_state.holes.forget_below(ack);
    }
    events
}

/// Remove the segments that an ACK covers, of which some were retransmitted, SACKed or never captured. Return those whose
/// round trip is certain, and the copy that timestamps identify.
#[cold]
fn cover_doubtful(
    acked: &mut Direction,
    ack: Seq,
    segment: &Segment,
) -> (Option<Covered>, Option<Echoed>, Shown) {
    let una = acked.flight.una;
    let advance_bytes = una.to(ack).max(0) as u32;
    let rest_bytes = acked.offload_bytes();
    let original_ns = acked.first_copy(una).map(|sent| sent.time_ns);
    let had_duplicates = acked.duplicate_acks > 0;
    let has_sack = acked.syn.has(syn_kind::SACK_PERMITTED);
    let Some(cold_state) = acked.cold_state.as_deref_mut() else {
        return (None, None, Shown::default());
    };
    let (sacked, unseen) = (&cold_state.sacked, &cold_state.unseen);
    let ambiguous = cold_state.episode().map(|episode| &episode.ambiguous);
    let is_doubtful = |start: Seq, end: Seq| {
        unseen.overlap(start, end) > 0 || ambiguous.is_some_and(|set| set.overlap(start, end) > 0)
    };
    let covered = acked.ledger.cover(una, ack, rest_bytes, |start, end| {
        if is_doubtful(start, end) {
            Arrival::Doubtful
        } else if sacked.overlap(start, end) == start.to(end).max(0) as u32 {
            Arrival::Reported
        } else {
            Arrival::Plain
        }
    });
    let ambiguous_bytes = ambiguous.map_or(0, |set| set.overlap(una, ack));
    let known = sacked.overlap(una, ack) + unseen.overlap(una, ack) + ambiguous_bytes;
    let advance = Advance {
        una,
        ack,
        tsecr: segment.options.timestamps.map(|(_, echo)| echo),
        now_ns: segment.time_ns,
        plain_bytes: advance_bytes.saturating_sub(known),
        ambiguous_bytes,
        had_duplicates,
        has_sack,
    };
    let Some(shown) = cold_state.change_known_episode(|episode| episode.acked(&advance)) else {
        return (covered, None, Shown::default());
    };
    // Timestamps identify the acknowledged copy where sequence numbers cannot (RFC 7323 §4).
    let echoed_ns = if shown.is_original && shown.echoed_ns.is_none() {
        original_ns
    } else {
        shown.echoed_ns
    };
    // The echo of an older copy may come with the ACK of the newest one (Karn's algorithm, RFC 6298 §3), unless it is
    // too soon for that ACK.
    let is_too_soon = |newest_ns: i64| {
        let since_ns = segment.time_ns.saturating_sub(newest_ns).max(0) as u64;
        (acked.ledger.min_ns()).is_some_and(|least_ns| since_ns < least_ns)
    };
    let is_certain = shown.is_newest || shown.newest_ns.is_some_and(is_too_soon);
    let by_echo = echoed_ns.map(|sent_ns| Echoed {
        sent_ns,
        is_certain,
    });
    (covered, by_echo, shown)
}

/// Set SND.UNA by the first captured acknowledgment of this direction.
#[cold]
fn begin(acked: &mut Direction, ack: Seq, segment: &Segment) {
    acked.flight.is_acked = true;
    if !acked.flight.is_started {
        acked.flight.start(ack, segment.time_ns);
        acked.flight.is_started = true;
    } else if !acked.has_syn
        && segment.flags & SYN == 0
        && ack.is_before(acked.flight.una)
        && ack.to(acked.flight.una) < MAX_JUMP
    {
        // The capture began after this data was sent: it is in flight too. Before a SYN is answered, no data of an
        // established connection was (RFC 9293 §3.10.7.3).
        acked.cold_state().before_bytes += u64::from(ack.to(acked.flight.una).unsigned_abs());
        acked.flight.una = ack;
    }
    if acked.is_seen && acked.flight.unknown == Unknown::Neither {
        // Whether the data captured so far was acknowledged before is unknown.
        acked.flight.note_max();
    }
    if acked.window.is_known && !acked.has_syn {
        // Place the window of a SYN that was captured before any segment of this side.
        acked.window.anchor(ack);
    }
    acked.flight.integrate(segment.time_ns, false);
}

/// Handle an ACK of bytes that the capture lacks (Wireshark's "ACKed unseen segment").
#[cold]
fn acknowledge_unseen(acked: &mut Direction, ack: Seq, now_ns: i64) -> Events {
    let from = std::mem::replace(&mut acked.flight.nxt, ack);
    if acked.data_segments == 0 {
        acked.cold_state().unseen_since_ns.get_or_insert(now_ns);
    }
    if !acked.is_seen {
        return 0;
    }
    let acked_bytes = acked.acked_bytes;
    acked.cold_state().missed.note(from, ack, acked_bytes);
    acked.flight.unknown = Unknown::Max;
    acked.ledger.forget();
    event::ACKED_UNSEEN
}

/// Effect of an ACK's SACK blocks.
#[derive(Default)]
struct Reported {
    new_bytes: u32,
    events: Events,
}

/// Enter the SACK blocks into the scoreboard (RFC 6675 §4, Update).
#[cold]
fn take_sack(acked: &mut Direction, segment: &Segment, is_advance: bool) -> Reported {
    let (una, nxt) = (acked.flight.una, acked.flight.nxt);
    let mut reported = Reported::default();
    let blocks = segment.options.sack_blocks();
    if let Some((left, right)) = duplicate_block(Seq(segment.ack), blocks) {
        let acked_bytes = acked.acked_bytes;
        acked.cold_state().change_episode(|episode| {
            episode.forget_old(acked_bytes);
            episode.note_dsack(left, right, is_advance, segment.time_ns);
        });
        reported.events |= event::DSACK;
    }
    let mut covered: Option<Covered> = None;
    for (left, right) in blocks {
        let (left, right) = (Seq(*left), Seq(*right));
        // A block at or below the acknowledgment reports a duplicate (RFC 2883 §4), no new data.
        if !right.is_after(una) || left.is_before(una) || right.is_after(nxt) {
            continue;
        }
        let cold_state = acked.cold_state();
        let added = cold_state.sacked.insert(left, right);
        if added == 0 {
            continue;
        }
        cold_state.sacked_bytes = cold_state.sacked_bytes.saturating_add(added);
        reported.new_bytes = reported.new_bytes.saturating_add(added);
        // A block grows at its end.
        let fresh = right.minus(added.min(left.to(right) as u32));
        if !acked.is_plain(fresh) {
            continue;
        }
        let has_timestamps = segment.options.timestamps.is_some();
        acked.cold_state().change_known_episode(|episode| {
            episode.note_original_reported(right, has_timestamps, segment.time_ns);
        });
        if let Some(sent) = acked.ledger.find(fresh) {
            let (oldest_ns, newest_ns) = covered.map_or((sent.time_ns, sent.time_ns), |covered| {
                (covered.oldest_ns, covered.newest_ns)
            });
            covered = Some(Covered {
                oldest_ns: oldest_ns.min(sent.time_ns),
                newest_ns: newest_ns.max(sent.time_ns),
            });
        }
    }
    if let (Some(covered), false) = (covered, una.is_before(Seq(segment.ack))) {
        // The sender also times newly reported data (Linux `tcp_ack_update_rtt`, sack_rtt_us).
        acked.ledger.sample(covered, una, segment.time_ns);
    }
    let (mss, flight_max_bytes) = (acked.segment_size(), acked.flight_max_bytes());
    if let Some(pace) = acked.ledger.pace_mut() {
        pace.note_initial(flight_max_bytes);
        if let Some(view) = &mut pace.view {
            view.reported(segment.time_ns);
        }
    }
    let cold_state = acked.cold_state();
    if reported.new_bytes > 0 {
        cold_state.first_report_ns.get_or_insert(segment.time_ns);
    }
    if cold_state.sacked_bytes > mss.saturating_mul(2) {
        cold_state
            .loss_report
            .get_or_insert((segment.time_ns, segment.frame));
    }
    reported
}

impl Direction {
    /// Return whether the byte was captured and sent only once.
    fn is_plain(&self, seq: Seq) -> bool {
        self.cold_state.as_ref().is_none_or(|cold_state| {
            let episode = cold_state.episode();
            cold_state.unseen.overlap(seq, seq + 1) == 0
                && episode.is_none_or(|episode| episode.ambiguous.overlap(seq, seq + 1) == 0)
        })
    }
}

/// Return the first block if it is a D-SACK: below the acknowledgment, or inside the second block (RFC 2883 §4).
fn duplicate_block(ack: Seq, blocks: &[(u32, u32)]) -> Option<(Seq, Seq)> {
    let (left, right) = blocks.first().map(|block| (Seq(block.0), Seq(block.1)))?;
    if !left.is_before(right) {
        return None;
    }
    let is_below = !ack.is_before(right) && right.to(ack) < MAX_JUMP;
    let is_inside = blocks
        .get(1)
        .is_some_and(|second| !left.is_before(Seq(second.0)) && !right.is_after(Seq(second.1)));
    (is_below || is_inside).then_some((left, right))
}

/// Begin a zero-window episode at a window of zero; end it at a larger one.
#[cold]
fn note_zero(acked: &mut Direction, segment: &Segment, bytes: u32) {
    let now_ns = segment.time_ns;
    let round_trip_ns = acked.ledger.min_ns();
    let zero = acked.cold_state().zero();
    if bytes == 0 {
        zero.begin(segment.frame, now_ns);
    } else {
        zero.note_opening(now_ns, segment.options.timestamps.map(|(value, _)| value));
        let by = if zero.is_answer(now_ns, round_trip_ns) {
            EndedBy::ProbeAnswer
        } else {
            EndedBy::Update
        };
        zero.end(segment.frame, now_ns, by);
    }
}

/// Judge a segment without payload that repeats the last acknowledgment.
#[cold]
fn judge_repeated(
    acked: &mut Direction,
    segment: &Segment,
    was_raw: u16,
    new_sacked: u32,
) -> Events {
    debug_assert!(segment.flags & (SYN | RST) == 0);
    let is_same_window = segment.window == was_raw;
    // If the other side was not captured, its outstanding data is unknown, so the repetition alone must suffice.
    let has_outstanding = acked.flight.is_outstanding() || !acked.is_seen;
    let cold_state = acked.cold_state.as_deref();
    if cold_state.is_some_and(|cold_state| cold_state.is_keep_alive_unanswered)
        && is_same_window
        && segment.window != 0
    {
        return event::KEEP_ALIVE_ACK;
    }
    if segment.window == 0 && is_same_window && new_sacked == 0 {
        // The answer to a probe that was not captured.
        return 0;
    }
    // RFC 5681 §2: data outstanding and the window unchanged; RFC 6675 §2: or new SACK information.
    if has_outstanding && (new_sacked > 0 || (is_same_window && segment.options.sack_count == 0)) {
        acked.duplicate_acks = acked.duplicate_acks.saturating_add(1);
        let is_third = u32::from(acked.duplicate_acks) == DUPLICATE_THRESHOLD;
        let cold_state = acked.cold_state();
        cold_state.first_report_ns.get_or_insert(segment.time_ns);
        if is_third {
            cold_state
                .loss_report
                .get_or_insert((segment.time_ns, segment.frame));
        }
        return event::DUPLICATE_ACK;
    }
    if has_outstanding && is_same_window {
        // SACK that only repeats known data, such as a DSACK, is still the same acknowledgment.
        return event::DUPLICATE_ACK;
    }
    if !is_same_window && segment.window != 0 && new_sacked == 0 {
        return event::WINDOW_UPDATE;
    }
    0
}
