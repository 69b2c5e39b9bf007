//! The pace of a direction: what each new segment and each ACK says of round trips, bursts, pauses and messages.

use crate::connection::direction::Direction;
use crate::event::{self, Events};
use crate::recovery::episode::Phase;
use crate::sequence::Seq;
use crate::timing::idle::{restart_window, Gap};
use crate::timing::ledger::Covered;
use crate::timing::pace::{Pace, Round, INITIAL_WINDOW_SEGMENTS};
use crate::timing::sender_view::{Known, SenderView};
use crate::timing::turns::PAUSE_MIN_NS;
use crate::tracker::spending::open_state;
use crate::wire::Segment;

/// An ACK that much later than the fastest was delayed: Linux waits 40 ms at least (TCP_DELACK_MIN), others up to the
/// half second that RFC 9293 §3.8.6.3 allows.
const DELAYED_MIN_NS: u64 = 38_000_000;
const DELAYED_MAX_NS: u64 = 520_000_000;
/// Least silence of the receiver before it: the delay, less what the path's jitter may take off.
const SILENT_MIN_NS: i64 = 35_000_000;
/// Data this soon after the ACK had been waiting for it.
const AT_ONCE_NS: i64 = 2_000_000;
/// The capture point is away from an end when this share of the path lies between them.
const AWAY_SHARE: i64 = 10;
const AWAY_MIN_NS: i64 = 200_000;
/// Rounds after which the path is looked at once in so many.
const EARLY_ROUNDS: u32 = 16;
/// [`Direction::first_answer_us`] of a side that answered nothing, or more than once.
const NO_ANSWER: u32 = 0;

/// A direction before its next ordinary data.
pub struct BeforeData {
    /// SND.MAX.
    pub nxt: Seq,
    pub mss: u32,
    /// Since the last data.
    pub since_data_ns: i64,
    /// The data's TSval, where it is another than the last one's.
    pub new_tsval: Option<u32>,
}

impl Direction {
    /// Round trip between the capture point and the far end of this direction: to the receiver of its data.
    pub fn far_ns(&self) -> Option<i64> {
        let least = [self.ledger.min_ns(), self.echo.min_ns()];
        least
            .into_iter()
            .flatten()
            .min()
            .and_then(|ns| i64::try_from(ns).ok())
    }

    /// Whether the ACK that comes now may have been delayed by its receiver: a quick look, which errs on the safe side.
    #[inline(always)]
    pub fn may_be_late(&self, now_ns: i64) -> bool {
        // Without a segment or a sample the differences are far from the range, or the full way sorts it out.
        let waited_ns = now_ns.wrapping_sub(self.ledger.oldest_or_none_ns()) as u64;
        let over_ns = waited_ns.wrapping_sub(self.ledger.least_or_none_ns());
        over_ns.wrapping_sub(DELAYED_MIN_NS) <= DELAYED_MAX_NS - DELAYED_MIN_NS
            && self.has_been_silent(now_ns)
    }

    /// While a receiver delays an ACK it sends none; one that merely queued follows others closely.
    #[inline(always)]
    fn has_been_silent(&self, now_ns: i64) -> bool {
        now_ns.wrapping_sub(self.last_ack_ns) >= SILENT_MIN_NS
    }

    /// By how much an ACK of one segment came later than the fastest, if its receiver delayed it.
    pub fn late_by_ns(&self, covered: Covered, ack: Seq, now_ns: i64) -> Option<i64> {
        let advance = self.flight.una.to(ack);
        let least_ns = self.ledger.min_ns()?;
        let waited_ns = now_ns.saturating_sub(covered.oldest_ns).max(0) as u64;
        let over_ns = waited_ns.saturating_sub(least_ns);
        ((DELAYED_MIN_NS..=DELAYED_MAX_NS).contains(&over_ns)
            && advance as u32 <= self.segment_size()
            && self.has_been_silent(now_ns))
        .then_some(over_ns as i64)
    }

    /// Silence that parts two messages.
    fn pause_ns(&self) -> i64 {
        self.pace().map_or(PAUSE_MIN_NS, |pace| pace.pause_ns)
    }

    /// Whether new data follows a pause, or data of the peer, with nothing in flight.
    #[inline(always)]
    pub fn is_resuming(&self, peer: &Direction, now_ns: i64) -> bool {
        self.flight.una == self.flight.nxt
            && (peer.last_data_ns > self.last_data_ns
                || now_ns.wrapping_sub(self.last_data_ns) > self.pause_ns())
    }

    /// Take in the round trip of an ACK that moved SND.UNA.
    #[inline]
    pub fn note_covered(&mut self, covered: Option<Covered>, now_ns: i64) -> Option<u64> {
        let covered = covered?;
        let una = self.flight.una;
        let rtt_ns = self.ledger.sample(covered, una, now_ns);
        let since_ns = now_ns.wrapping_sub(self.last_ack_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.note_ack(covered.newest_ns, since_ns);
        }
        rtt_ns
    }

    /// Take in how far an ACK moved SND.UNA, and compare its IP identification with that of the one before. `is_bare`:
    /// it carries nothing and stands where its side's data ends.
    #[inline(always)]
    pub fn note_advance(&mut self, segment: &Segment, advance: u32, is_bare: bool) {
        let mss = self.segment_size();
        if let Some(pace) = self.ledger.pace_mut() {
            pace.note_advance(segment, advance, mss, is_bare);
        }
    }

    /// Take in an ordinary ACK, whose window was taken already. `peer` is the direction of its sender.
    #[inline(never)]
    pub fn take_ordinary_ack(
        &mut self,
        ack: Seq,
        advance: i32,
        now_ns: i64,
        peer: &Direction,
    ) -> Option<u64> {
        let covered = self.ledger.cover_plain(ack, self.offload_bytes());
        self.flight.una = ack;
        self.acked_bytes += advance as u64;
        self.duplicate_acks = 0;
        let since_ns = now_ns.wrapping_sub(self.last_ack_ns);
        self.last_ack_ns = now_ns;
        let rtt_ns = covered.and_then(|covered| self.ledger.sample(covered, ack, now_ns));
        let known = Known {
            una: ack,
            edge: self.window.edge,
        };
        let Some(pace) = self.ledger.pace_mut() else {
            return rtt_ns;
        };
        if let Some(covered) = covered {
            pace.note_ack(covered.newest_ns, since_ns);
        }
        if let Some(view) = &mut pace.view {
            view.acked(known, now_ns);
        }
        if pace.is_round_over(ack) {
            self.end_round(now_ns, Some(peer));
        }
        rtt_ns
    }

    /// SND.UNA moved: the round trip may be over.
    #[inline]
    pub fn note_round(&mut self, now_ns: i64, peer: &Direction) {
        let una = self.flight.una;
        if self.pace().is_some_and(|pace| pace.is_round_over(una)) {
            self.end_round(now_ns, Some(peer));
        }
    }

    /// An ACK was taken in, with its window.
    #[inline(always)]
    pub fn note_known(&mut self, now_ns: i64) {
        let known = Known {
            una: self.flight.una,
            edge: self.window.edge,
        };
        if let Some(view) = self.ledger.pace_mut().and_then(|pace| pace.view.as_mut()) {
            view.acked(known, now_ns);
        }
    }

    /// New data of this side, after SND.MAX moved to its end. `was_nxt` is SND.MAX before.
    #[inline(never)]
    pub fn note_sent(&mut self, segment: &Segment, was_nxt: Seq) {
        let (una, now_ns) = (self.flight.una, segment.time_ns);
        self.ledger
            .sent(self.flight.nxt, una, now_ns, segment.frame);
        let (mss, least_room) = (self.segment_size(), self.least_room());
        let nxt = self.flight.nxt;
        let since_ns = now_ns.wrapping_sub(self.last_data_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            if segment.payload_len > 0 {
                let ahead_bytes = una.to(was_nxt).max(0) as u32;
                pace.note_payload(segment.payload_len, ahead_bytes, mss);
                if ahead_bytes > 0 {
                    pace.late.budget.note_gap(since_ns);
                }
            }
            if let Some(view) = &mut pace.view {
                view.sent(nxt, least_room, now_ns);
            }
        } else if una.is_before(was_nxt) && una.to(was_nxt) < mss as i32 && segment.payload_len > 0
        {
            self.ledger.note_tinygram();
        }
    }

    /// Close the round: all that was in flight when it began is acknowledged, or the sender paused.
    #[cold]
    pub fn end_round(&mut self, now_ns: i64, peer: Option<&Direction>) {
        let round = Round {
            now_ns,
            nxt: self.flight.nxt,
            peak_bytes: self.flight.max_bytes,
            acked_bytes: self.acked_bytes,
            mss: self.segment_size(),
            is_recovering: self.is_recovering(),
            round_trip_ns: peer.map_or(0, |peer| self.path_ns(peer)),
            last_data_ns: self.last_data_ns,
            is_from_start: self.has_syn || peer.is_some_and(|peer| peer.has_syn),
        };
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        if let Some(view) = &mut pace.view {
            view.arrive(now_ns);
            let budget = &mut pace.late.budget;
            let is_blocked = view.is_blocked() && budget.has_known_room();
            budget.drain(open_state(is_blocked, false, true), view.drained_ns);
        }
        pace.end_round(&round);
        pace.settle_restart();
        let has_view = pace.view.is_some();
        let is_early = pace.rounds < EARLY_ROUNDS || pace.rounds % EARLY_ROUNDS == 0;
        self.flight.max_bytes = self.flight.bytes();
        // The path's round trip is found early, and changes little later.
        let Some(peer) = peer.filter(|_| is_early) else {
            return;
        };
        if has_view {
            self.note_shorter_way(peer);
        } else {
            self.begin_view(peer, now_ns);
        }
        let path_ns = self.path_ns(peer);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.pause_ns = path_ns.saturating_mul(2).max(PAUSE_MIN_NS);
        }
    }

    /// The least round trip of the path, as far as it is known.
    fn path_ns(&self, peer: &Direction) -> i64 {
        let (near_ns, far_ns) = (peer.far_ns().unwrap_or(0), self.far_ns().unwrap_or(0));
        near_ns.saturating_add(far_ns)
    }

    /// A shorter round trip to the sender was seen: it holds also for the ACKs still under way.
    #[cold]
    pub fn note_shorter_way(&mut self, peer: &Direction) {
        let near_ns = peer.far_ns().unwrap_or(i64::MAX);
        let view = self.ledger.pace_mut().and_then(|pace| pace.view.as_mut());
        if let Some(view) = view {
            view.shift_ns = view.shift_ns.min(near_ns);
        }
    }

    /// Follow what the sender sees, where that is not what is captured: from its third segment on, before which nothing
    /// is lost by waiting.
    #[cold]
    pub fn begin_view(&mut self, peer: &Direction, now_ns: i64) {
        let away_ns = self.away_ns(peer);
        let (Some(away_ns), None) = (away_ns, self.pace().and_then(|pace| pace.view.as_ref()))
        else {
            return;
        };
        let newest = Known {
            una: self.flight.una,
            edge: self.window.edge,
        };
        let first = Known {
            una: self.isn + 1,
            ..newest
        };
        let is_early = self.has_syn && self.first_data_ns.saturating_add(away_ns) > now_ns;
        let known = if is_early { first } else { newest };
        let mut view = SenderView::new(away_ns, known, self.flight.nxt, now_ns);
        view.has_edge = peer.own_scale.is_certain();
        if !is_early {
            view.miss_initial();
        }
        // What was acknowledged or reported here so far has not reached the sender.
        view.acked(newest, self.last_ack_ns);
        let last_answer = self.rare.as_ref().and_then(|rare| rare.last_answer);
        if let Some((time_ns, _)) = last_answer.filter(|_| self.sacked_bytes() > 0) {
            view.reported(time_ns);
        }
        let una = self.flight.una;
        let is_from_start = self.has_syn || peer.has_syn;
        let is_late = self.data_segments > 2;
        let pace = self.ledger.pace_from(una);
        pace.view = Some(Box::new(view));
        pace.late.budget.forget_rates();
        if !is_from_start && is_late {
            pace.late.budget.void();
        }
    }

    /// Round trip between the capture point and this direction's sender, where it is a part of the path that counts.
    pub fn away_ns(&self, peer: &Direction) -> Option<i64> {
        let (near_ns, far_ns) = (peer.far_ns()?, self.far_ns()?);
        (near_ns >= AWAY_MIN_NS && near_ns >= near_ns.saturating_add(far_ns) / AWAY_SHARE)
            .then_some(near_ns)
    }

    fn is_recovering(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.phase() != Phase::Open)
    }

    /// [`Direction::note_state`] after an ordinary segment of this side, with what [`Direction::note_sent`] does and, where the timestamp
    /// clock shows a new value, [`Direction::note_tick`]. Called once all else of the segment was taken in.
    #[inline(never)]
    pub fn note_ordinary_data(&mut self, segment: &Segment, before: &BeforeData) {
        let now_ns = segment.time_ns;
        let (una, nxt, mss) = (self.flight.una, self.flight.nxt, self.segment_size());
        let (is_limited, least_room) = (self.is_limited, self.least_room());
        if let Some(tsval) = before.new_tsval {
            self.echo.sent(tsval, now_ns);
        }
        let ahead_bytes = una.to(before.nxt).max(0) as u32;
        let Some(pace) = self.ledger.sent(nxt, una, now_ns, segment.frame) else {
            if ahead_bytes > 0 && ahead_bytes < before.mss {
                self.ledger.note_tinygram();
            }
            return;
        };
        if before.new_tsval.is_some() {
            pace.tick_ns = now_ns;
        }
        pace.note_payload(segment.payload_len, ahead_bytes, before.mss);
        if ahead_bytes > 0 {
            pace.late.budget.note_gap(before.since_data_ns);
        }
        let ran_out = pace.last_payload < mss;
        let budget = &pace.late.budget;
        let (state, is_same) = match &mut pace.view {
            None => {
                let state = open_state(is_limited, true, ran_out);
                (state, state == budget.state)
            }
            Some(view) => {
                view.sent(nxt, least_room, now_ns);
                let state = open_state(view.is_blocked(), view.bytes() > 0, ran_out);
                let has_drained = view.drained_ns > budget.since_ns();
                (state, (state == budget.state) & !has_drained)
            }
        };
        if !is_same {
            self.change_ordinary_state(state, now_ns, true);
        }
    }

    /// The same after an ordinary ACK of this side's data; with what [`Direction::note_advance`] does, and
    /// [`Direction::note_known`] where the ACK moved nothing.
    #[inline(always)]
    pub fn note_ordinary_answer(&mut self, segment: &Segment, advance: u32) {
        let mss = self.segment_size();
        let is_outstanding = self.flight.una != self.flight.nxt;
        let is_limited = self.is_limited;
        let known = Known {
            una: self.flight.una,
            edge: self.window.edge,
        };
        if let Some(pace) = self.ledger.pace_mut() {
            pace.note_advance(segment, advance, mss, segment.payload_len == 0);
            if let (Some(view), 0) = (&mut pace.view, advance) {
                view.acked(known, segment.time_ns);
            }
            let state = open_state(is_limited, is_outstanding, pace.last_payload < mss);
            let is_same = (state == pace.late.budget.state)
                | (pace.view.is_some() & pace.late.budget.state.is_open());
            if !is_same {
                self.change_ordinary_state(state, segment.time_ns, false);
            }
        }
    }

    /// Bytes in flight as the sender has them.
    pub fn flight_as_sent(&self) -> u32 {
        let view = self.pace().and_then(|pace| pace.view.as_ref());
        view.map_or(self.flight.bytes(), |view| view.bytes())
    }

    /// Most bytes in flight so far.
    pub fn flight_max_bytes(&self) -> u32 {
        let before = self.pace().map_or(0, |pace| pace.peak);
        before.max(self.flight.max_bytes)
    }

    /// Most bytes in flight, as the sender saw it where the capture point is another.
    pub fn flight_seen(&self) -> Option<u32> {
        let here = (self.flight.is_acked && self.is_seen).then(|| self.flight_max_bytes());
        let view = self.pace().and_then(|pace| pace.view.as_deref());
        view.map(|view| view.max_bytes).max(here)
    }

    /// The receiver held back the ACK of a lone segment.
    #[cold]
    pub fn note_late_ack(&mut self, advance: u32, over_ns: i64) -> Events {
        let una = self.flight.una;
        let is_small = advance < self.segment_size();
        let pace = self.ledger.pace_from(una);
        pace.late_by_ns = if is_small { over_ns.max(1) } else { 0 };
        event::DELAYED_ACK
    }

    /// New data with nothing in flight, after a silence or after the peer spoke: a message begins, or an idle sender
    /// goes on. True where it begins another message.
    #[cold]
    pub fn resume(&mut self, peer: &Direction, segment: &Segment) -> bool {
        let now_ns = segment.time_ns;
        let is_first = self.data_segments == 0;
        let is_answer =
            peer.data_segments > 0 && (is_first || peer.last_data_ns > self.last_data_ns);
        let delay_ns = now_ns.saturating_sub(peer.last_data_ns).max(0);
        if is_first {
            if is_answer {
                let delay_us = u32::try_from(delay_ns / 1000).unwrap_or(u32::MAX - 1);
                self.first_answer_us = delay_us.saturating_add(1);
            }
            return true;
        }
        let near_ns = peer.far_ns().unwrap_or(0);
        let path_ns = self.path_ns(peer);
        let silence_ns = now_ns.saturating_sub(self.last_data_ns);
        if !is_answer && silence_ns <= path_ns.saturating_mul(2).max(PAUSE_MIN_NS) {
            return false;
        }
        let (first_ns, last_ns, una) = (self.first_data_ns, self.last_data_ns, self.flight.una);
        let first_answer_ns = self.first_answer_ns();
        self.first_answer_us = NO_ANSWER;
        let pace = self.ledger.pace_from(una);
        let turns = pace.turns.get_or_insert_with(Box::default);
        turns.next_message(first_ns, last_ns, now_ns);
        if let Some(delay_ns) = first_answer_ns {
            turns.answer(delay_ns);
        }
        if is_answer {
            turns.answer(delay_ns);
        }
        if let Some(idle) = &mut pace.idle {
            idle.end();
        }
        let rto_ns = self.ledger.rto_ns(near_ns);
        if silence_ns > rto_ns {
            self.note_idle(segment, path_ns, rto_ns);
        }
        true
    }

    /// Nothing was in flight for longer than the timeout.
    fn note_idle(&mut self, segment: &Segment, round_trip_ns: i64, rto_ns: i64) {
        let now_ns = segment.time_ns;
        self.end_round(now_ns, None);
        let mss = self.segment_size();
        let gap_ns = now_ns.saturating_sub(self.last_data_ns);
        let idle_ns = now_ns.saturating_sub(self.last_ack_ns.max(self.last_data_ns));
        let has_room = self.has_room_behind(segment);
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        let window_bytes = pace.window_before_pause();
        let initial_bytes = mss.saturating_mul(INITIAL_WINDOW_SEGMENTS);
        let predicted_bytes = restart_window(window_bytes, gap_ns, rto_ns, initial_bytes);
        pace.window_bytes = predicted_bytes;
        pace.period_peak = 0;
        let gap = Gap {
            gap_ns,
            rto_ns,
            round_trip_ns,
            mss,
            window_bytes,
            predicted_bytes,
        };
        let idle = pace.idle.get_or_insert_with(Box::default);
        idle.begin(gap, idle_ns, segment, has_room);
        idle.before = pace.late.budget.mark();
    }

    /// Whether the window that the sender knew held another segment behind this one, which is its next.
    fn has_room_behind(&mut self, segment: &Segment) -> bool {
        let (nxt, mss) = (self.flight.nxt + segment.payload_len, self.segment_size());
        let view = self.ledger.pace_mut().and_then(|pace| pace.view.as_mut());
        match view {
            Some(view) => {
                view.arrive(segment.time_ns);
                view.has_room(nxt, mss)
            }
            None => nxt.to(self.window.edge) >= mss as i32,
        }
    }

    /// New data after a delayed ACK: Nagle's algorithm held it back if it is small and goes out at once.
    #[cold]
    pub fn follow_late_ack(&mut self, peer: &Direction, segment: &Segment) {
        let waited_ns = segment.time_ns.saturating_sub(self.last_ack_ns);
        let is_drained = self.flight.una == self.flight.nxt;
        let is_small = segment.payload_len < self.segment_size();
        let near_ns = peer.far_ns().unwrap_or(0);
        // What the peer said since may be what is answered.
        let is_answer = peer.data_segments > 0 && peer.last_data_ns >= self.last_data_ns;
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        let is_at_once = waited_ns <= near_ns + near_ns / 8 + AT_ONCE_NS;
        if pace.late_by_ns > 0 && is_drained && is_small && is_at_once && !is_answer {
            pace.nagle_delays = pace.nagle_delays.saturating_add(1);
            pace.nagle_ns = pace.nagle_ns.saturating_add(pace.late_by_ns);
        }
        pace.late_by_ns = 0;
    }

    /// New data while the ramp after an idle gap is followed. Called before SND.MAX moves.
    #[cold]
    pub fn follow_ramp(&mut self, segment: &Segment) -> Events {
        let has_room = self.has_room_behind(segment);
        let last_data_ns = self.last_data_ns;
        let flight_bytes = self.flight.bytes();
        let idle = self.ledger.pace_mut().and_then(|pace| pace.idle.as_mut());
        let Some(idle) = idle else {
            return 0;
        };
        let has_waited = idle.sent(segment.time_ns, last_data_ns, segment.payload_len, has_room);
        if idle.is_regained(flight_bytes) {
            idle.end();
        }
        if has_waited {
            event::IDLE_RESTART
        } else {
            0
        }
    }

    /// Close what is open at the end of the connection.
    pub fn finish_pace(&mut self, end_ns: i64) {
        if let Some(episode) = self.rare.as_mut().and_then(|rare| rare.episode.as_mut()) {
            episode.leave(end_ns);
        }
        if let Some(rare) = &mut self.rare {
            rare.note_episode();
        }
        self.end_round(end_ns, None);
        let (first_ns, last_ns) = (self.first_data_ns, self.last_data_ns);
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        if let Some(turns) = &mut pace.turns {
            turns.close(first_ns, last_ns);
        }
        if let Some(idle) = &mut pace.idle {
            idle.end();
        }
        pace.settle_restart();
        if let Some(view) = &mut pace.view {
            view.finish(end_ns);
        }
    }

    /// How soon the side's first data followed the peer's, while it is the only answer.
    pub fn first_answer_ns(&self) -> Option<i64> {
        let delay_us = self.first_answer_us.checked_sub(1)?;
        Some(i64::from(delay_us) * 1000)
    }

    pub fn pace(&self) -> Option<&Pace> {
        self.ledger.pace()
    }
}
