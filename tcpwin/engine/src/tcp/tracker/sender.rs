//! The sender's half of a direction: the state changed by its own data.
//!
//! SND.MAX moves only here, which ensures the order: first a pause before the data is judged and the time until now is
//! charged, with the old flight; then the data is recorded and counted.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::budget::idle_restart::{restart_window, Gap};
use crate::tcp::connection::direction::Direction;
use crate::tcp::path::pace::INITIAL_WINDOW_SEGMENTS;
use crate::tcp::timing::messages::PAUSE_MIN_NS;
use crate::tcp::timing::missing_acks::NONE;
use crate::tcp::tracker::receiver::SILENT_MIN_NS;
use crate::tcp::tracker::time_charge::open_state;
use crate::tcp::window::zero::EndedBy;
use crate::wire::{Segment, FIN};

/// Bytes of options that a sender may omit to make room for payload.
const MSS_SLACK_BYTES: u32 = 12;
/// Data that follows an ACK within this time was waiting for it.
const AT_ONCE_NS: i64 = 2_000_000;
/// Data held back leaves this soon after the ACK, or within this part of the wait.
const RELEASE_NS: i64 = 200_000;
const RELEASE_PART: i64 = 8;
/// [`Direction::first_answer_us`] of a side with no answer or several.
const NO_ANSWER: u32 = 0;

/// State of a direction before its next ordinary data.
struct BeforeData {
    /// SND.MAX.
    nxt: Seq,
    mss: u32,
    /// Time since the last data.
    since_data_ns: i64,
    /// TSval of the data, if it differs from the last one.
    new_tsval: Option<u32>,
}

impl Direction {
    /// Process new data or a FIN at or beyond SND.MAX, up to `end`. `was_known`: whether the flight until now was known.
    #[inline]
    pub(super) fn send(
        &mut self,
        peer: &Direction,
        segment: &Segment,
        end: Seq,
        was_known: bool,
    ) -> Events {
        let seq = Seq(segment.seq);
        let events = self.resume_sending(peer, segment);
        let from = self.flight.extend(end, segment.time_ns, was_known);
        // The first captured segment does not show when the missing data before it was sent.
        if end.is_after(seq) && (self.is_seen || from == seq) {
            self.enter(segment, from);
        }
        self.count_data(segment);
        events
    }

    /// Process the new part of data that begins below SND.MAX, after the time until now was charged.
    pub(super) fn send_rest(&mut self, segment: &Segment, end: Seq) {
        debug_assert!(self.flight.is_counted_until(segment.time_ns));
        if self.flight.nxt.is_before(end) {
            let from = std::mem::replace(&mut self.flight.nxt, end);
            self.enter(segment, from);
        }
        self.count_data(segment);
    }

    /// Process one byte sent into a closed window. It will be retransmitted, so it is neither timed nor part of a burst.
    /// Return true if it was sent before.
    pub(super) fn send_probe(&mut self, segment: &Segment, end: Seq) -> bool {
        let is_resent = !self.flight.nxt.is_before(end);
        let (nxt, is_known) = (self.flight.nxt.max(end), self.is_flight_known());
        self.flight.extend(nxt, segment.time_ns, is_known);
        self.count_data(segment);
        is_resent
    }

    /// Like [`Direction::send`], for an ordinary segment with data. `new_tsval`: its TSval, if that differs from the
    /// last one. Call it after applying the rest of the segment; it also updates the sender's activity.
    #[inline(always)]
    pub(super) fn send_ordinary(&mut self, segment: &Segment, new_tsval: Option<u32>) -> Events {
        let now_ns = segment.time_ns;
        let before = BeforeData {
            nxt: Seq(segment.seq),
            mss: self.segment_size(),
            since_data_ns: now_ns.wrapping_sub(self.last_data_ns),
            new_tsval,
        };
        let end = before.nxt + segment.payload_len;
        self.flight.extend_ordinary(end, now_ns);
        self.has_only_syn = false;
        self.count_data(segment);
        let events = judge_edge(self, segment, end);
        self.limit_ordinary(now_ns);
        self.enter_ordinary(segment, &before);
        events
    }

    /// Process new data that may follow a pause, before SND.MAX moves.
    #[inline]
    fn resume_sending(&mut self, peer: &Direction, segment: &Segment) -> Events {
        if segment.payload_len == 0 {
            return 0;
        }
        // Without the SYNs, timestamps show the distance to the sender later.
        let may_be_late = !self.is_mss_certain && self.data_segments.is_power_of_two();
        if self.data_segments == 2 || may_be_late {
            self.begin_view(peer, segment.time_ns);
        }
        if self.ledger.is_followed() {
            self.follow_late_ack(peer, segment);
        }
        if self.crosses(peer) {
            self.note_crossing();
        } else if self.flight.una == self.flight.nxt {
            self.note_released(peer, segment);
        }
        let may_begin = self.data_segments == 0 || self.is_resuming(peer, segment.time_ns);
        if may_begin && self.begin_message(peer, segment) || !self.ledger.is_followed() {
            return 0;
        }
        self.follow_ramp(segment)
    }

    /// Count the payload; [`Direction::enter`] compares it with the payload before.
    #[inline(always)]
    pub(super) fn count_data(&mut self, segment: &Segment) {
        if segment.payload_len == 0 {
            return;
        }
        if self.data_segments == 0 {
            self.first_data_ns = segment.time_ns;
        }
        self.data_segments += 1;
        if self.ends_message(segment) {
            self.writes = self.writes.wrapping_add(1);
        }
        self.payload_bytes += u64::from(segment.payload_len);
        self.max_payload = self.max_payload.max(segment.payload_len);
        self.last_data_ns = segment.time_ns;
        if self.mss > 0 && segment.payload_len > u32::from(self.mss) + MSS_SLACK_BYTES {
            self.cold_state().super_segments += 1;
        }
    }

    /// Return whether new data follows a pause or the peer's data, with nothing in flight.
    #[inline(always)]
    pub(super) fn is_resuming(&self, peer: &Direction, now_ns: i64) -> bool {
        self.flight.una == self.flight.nxt
            && (peer.last_data_ns > self.last_data_ns
                || now_ns.wrapping_sub(self.last_data_ns) > self.pause_ns())
    }

    /// Return whether new data follows the peer's while earlier data is in flight.
    #[inline(always)]
    pub(super) fn crosses(&self, peer: &Direction) -> bool {
        self.flight.una != self.flight.nxt && peer.last_data_ns > self.last_data_ns
    }

    /// Return whether new data follows the peer's without acknowledging all of it, or while earlier data is in flight.
    #[inline(always)]
    pub(super) fn overtakes(&self, peer: &Direction, segment: &Segment) -> bool {
        peer.last_data_ns > self.last_data_ns
            && self.flight.nxt == Seq(segment.seq)
            && (self.flight.una != self.flight.nxt || Seq(segment.ack).is_before(peer.flight.nxt))
    }

    #[cold]
    pub(super) fn note_crossing(&mut self) {
        if let Some(pace) = self.ledger.pace_mut() {
            pace.turns.get_or_insert_with(Box::default).waits.cross();
        }
    }

    /// Note small data with nothing in flight. Nagle's algorithm held it back if it follows the ACK of small data at once,
    /// and answers nothing (RFC 9293 §3.7.4; Linux holds it only for a small segment, `tcp_minshall_check`).
    #[cold]
    pub(super) fn note_released(&mut self, peer: &Direction, segment: &Segment) {
        let mss = self.segment_size();
        let is_answer = peer.data_segments > 0 && peer.last_data_ns >= self.last_data_ns;
        if segment.payload_len >= mss || is_answer || self.data_segments == 0 {
            return;
        }
        // A window or a stack that holds one segment causes the same pattern, but with segments of one size.
        let is_alike = self
            .pace()
            .is_none_or(|pace| pace.last_payload == segment.payload_len);
        if is_alike {
            return;
        }
        let leg_ns = peer.rtt_to_receiver_ns().unwrap_or(0);
        let waited_ns = self.last_ack_ns.saturating_sub(self.last_data_ns) + leg_ns;
        let since_ack_ns = segment.time_ns.saturating_sub(self.last_ack_ns);
        let slack_ns = (waited_ns / RELEASE_PART + RELEASE_NS).min(AT_ONCE_NS);
        let is_at_once = since_ack_ns >= leg_ns - leg_ns / RELEASE_PART - RELEASE_NS
            && since_ack_ns <= leg_ns + leg_ns / RELEASE_PART + slack_ns;
        if let Some(pace) = self.ledger.pace_mut() {
            let view = pace.view.as_mut();
            let is_clocked = view.is_some_and(|view| view.is_clocked(segment.time_ns, RELEASE_NS));
            if is_at_once && !is_clocked && waited_ns > RELEASE_NS && pace.ran_out(mss) {
                pace.nagle_waits = pace.nagle_waits.saturating_add(1);
                pace.nagle_wait_ns = pace.nagle_wait_ns.saturating_add(waited_ns);
            }
        }
    }

    /// Return the silence that separates two messages.
    fn pause_ns(&self) -> i64 {
        self.pace().map_or(PAUSE_MIN_NS, |pace| pace.pause_ns)
    }

    /// Record new data in the ledger and the pace, after SND.MAX moved from `was_nxt` to its end.
    #[inline(never)]
    fn enter(&mut self, segment: &Segment, was_nxt: Seq) {
        let (una, now_ns) = (self.flight.una, segment.time_ns);
        self.ledger
            .sent(self.flight.nxt, una, now_ns, segment.frame);
        let (mss, least_room) = (self.segment_size(), self.least_room());
        let nxt = self.flight.nxt;
        let since_ns = now_ns.wrapping_sub(self.last_data_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            if segment.payload_len > 0 {
                let ahead_bytes = una.to(was_nxt).max(0) as u32;
                pace.note_payload(segment, ahead_bytes, since_ns, mss);
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

    /// Like [`Direction::enter`], for ordinary data: also updates TSval and activity, with one access to the pace.
    #[inline(never)]
    fn enter_ordinary(&mut self, segment: &Segment, before: &BeforeData) {
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
        pace.note_payload(segment, ahead_bytes, before.since_data_ns, before.mss);
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
            self.turn_ordinary(state, now_ns, true);
        }
    }

    /// Note new data with nothing in flight, after a silence or after data of the peer. Return true if it begins another
    /// message, false if an idle sender continues.
    #[cold]
    pub(super) fn begin_message(&mut self, peer: &Direction, segment: &Segment) -> bool {
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
        // Its acknowledgment number shows what it had received when it sent this segment.
        let has_all = !Seq(segment.ack).is_before(peer.flight.nxt);
        let rtt_to_sender_ns = peer.rtt_to_receiver_ns().unwrap_or(0);
        let path_ns = self.path_ns(peer);
        let silence_ns = now_ns.saturating_sub(self.last_data_ns);
        let mss = self.segment_size();
        if !is_answer {
            self.note_unfinished(mss, silence_ns);
            if silence_ns <= path_ns.saturating_mul(2).max(PAUSE_MIN_NS) {
                return false;
            }
        }
        let acks_id = peer.pace().map_or(NONE, |pace| pace.bare_id);
        let (first_ns, last_ns, una) = (self.first_data_ns, self.last_data_ns, self.flight.una);
        let first_answer_ns = self.first_answer_ns();
        self.first_answer_us = NO_ANSWER;
        let ack_ns = peer.ack_before_ns(now_ns).saturating_sub(peer.last_data_ns);
        let pace = self.ledger.pace_from(una);
        let turns = pace.turns.get_or_insert_with(Box::default);
        turns.next_message(first_ns, last_ns, now_ns);
        if let Some(delay_ns) = first_answer_ns {
            turns.answer(delay_ns, rtt_to_sender_ns, 0, false);
        }
        let is_missing = turns.ids.note(segment.ip_id, [acks_id, pace.last_id]);
        if is_answer {
            turns.schedule.note(first_ns, now_ns, delay_ns);
        }
        if is_answer && has_all {
            turns.answer(delay_ns, rtt_to_sender_ns, ack_ns, is_missing);
        } else if is_answer {
            turns.waits.cross();
        }
        if is_answer {
            pace.end_message();
        }
        if let Some(idle) = &mut pace.idle {
            idle.end();
        }
        let rto_ns = self.ledger.rto_ns(rtt_to_sender_ns);
        if silence_ns > rto_ns {
            self.begin_idle_restart(segment, path_ns, rto_ns);
        }
        true
    }

    /// Note a silence before data of the same message.
    fn note_unfinished(&mut self, mss: u32, silence_ns: i64) {
        if let Some(pace) = self.ledger.pace_mut().filter(|pace| pace.goes_on(mss)) {
            let turns = pace.turns.get_or_insert_with(Box::default);
            turns.waits.add_unfinished(silence_ns);
        }
    }

    /// Note data that filled a hole, which its sender had sent again.
    #[cold]
    pub(super) fn note_filled(&mut self, now_ns: i64) {
        let wait_ns = now_ns.saturating_sub(self.last_data_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            let turns = pace.turns.get_or_insert_with(Box::default);
            turns.waits.add_repair(wait_ns);
        }
    }

    /// Note a packet of the peer without data.
    pub(super) fn note_bare(&mut self, segment: &Segment) {
        if let Some(pace) = self.ledger.pace_mut() {
            pace.bare_id = segment.ip_id;
        }
    }

    /// Return the time of the last ACK before `now_ns` that moved SND.UNA and was not delayed by the receiver; 0
    /// without one.
    fn ack_before_ns(&self, now_ns: i64) -> i64 {
        match self.pace() {
            // The receiver still owed an ACK.
            Some(pace) if self.last_ack_ns == now_ns => now_ns.saturating_sub(pace.ack_spacing_ns),
            Some(pace) if pace.ack_spacing_ns < SILENT_MIN_NS => self.last_ack_ns,
            _ => 0,
        }
    }

    /// Begin to follow an idle restart: nothing was in flight for longer than the timeout.
    fn begin_idle_restart(&mut self, segment: &Segment, round_trip_ns: i64, rto_ns: i64) {
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

    /// Return whether the window known to the sender had room for another segment after this next one.
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

    /// Process new data after a delayed ACK: Nagle's algorithm held it back if it is small and follows at once.
    #[cold]
    fn follow_late_ack(&mut self, peer: &Direction, segment: &Segment) {
        let waited_ns = segment.time_ns.saturating_sub(self.last_ack_ns);
        let is_drained = self.flight.una == self.flight.nxt;
        let is_small = segment.payload_len < self.segment_size();
        let rtt_to_sender_ns = peer.rtt_to_receiver_ns().unwrap_or(0);
        // The data may be an answer to data that the peer has sent since.
        let is_answer = peer.data_segments > 0 && peer.last_data_ns >= self.last_data_ns;
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        // Data that comes sooner was on its way when the ACK passed.
        let is_at_once = waited_ns
            >= rtt_to_sender_ns - rtt_to_sender_ns / RELEASE_PART - RELEASE_NS
            && waited_ns <= rtt_to_sender_ns + rtt_to_sender_ns / RELEASE_PART + AT_ONCE_NS;
        let view = pace.view.as_mut();
        let is_clocked = view.is_some_and(|view| view.is_clocked(segment.time_ns, RELEASE_NS));
        let is_held = is_drained && is_small && is_at_once && !is_answer && !is_clocked;
        if pace.late_by_ns > 0 && is_held {
            pace.nagle_delays = pace.nagle_delays.saturating_add(1);
            pace.nagle_ns = pace.nagle_ns.saturating_add(pace.late_by_ns);
        }
        pace.late_by_ns = 0;
    }

    /// Process new data while following the ramp after an idle gap.
    #[cold]
    fn follow_ramp(&mut self, segment: &Segment) -> Events {
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
}

/// Compare the segment's end with the right edge: exactly there, less than a segment short of it, or beyond every edge.
#[inline]
pub(super) fn judge_edge(sent: &mut Direction, segment: &Segment, end: Seq) -> Events {
    let room = end.to(sent.window.edge);
    if room >= sent.segment_size() as i32 {
        return 0;
    }
    judge_near_edge(sent, segment, end, room)
}

#[cold]
fn judge_near_edge(sent: &mut Direction, segment: &Segment, end: Seq, room: i32) -> Events {
    if segment.flags & FIN != 0 {
        // The FIN needs no room, but the data before it does.
        let is_beyond = end.minus(1).is_after(sent.window.edge_max);
        if segment.payload_len > 0 && is_beyond {
            sent.cold_state().window_overrun += 1;
        }
        return 0;
    }
    if room == 0 {
        return event::WINDOW_FULL;
    }
    if room > 0 {
        sent.cold_state().window_near_full += 1;
    } else if end.is_after(sent.window.edge_max) {
        let cold_state = sent.cold_state();
        cold_state.window_overrun += 1;
        if segment.payload_len > 1 {
            // A probe carries one byte.
            cold_state.end_zero(segment.frame, segment.time_ns, EndedBy::Data);
        }
    }
    0
}
