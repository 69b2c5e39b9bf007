//! Applies a segment to its connection, step by step.
//!
//! In: a connection and one of its segments. Out: events, a round trip, the row. Never reads another connection.

use super::{ack, clock_step, fast, handshake, reset, send, stall, Annotation, SegmentOutcome};
use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tables::budget_item::SenderState;
use crate::tcp::connection::clock::{LEAST_DISORDER_NS, LEAST_STEP_NS};
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::ecn;
use crate::tcp::connection::incidents::DoubtfulReset;
use crate::tcp::connection::marks::Initiator;
use crate::tcp::connection::stalls::Stall;
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::cause::Confidence;
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::timing::pipeline::Pipeline;
use crate::tcp::tracker::end_stall::ASKING;
use crate::tcp::tracker::reset::Reset;
use crate::tcp::tracker::segment_size::may_reveal_size;
use crate::tcp::tracker::stall::BeforeSegment;
use crate::tcp::window::scale::ScaleState;
use crate::tcp::window::zero::EndedBy;
use crate::wire::{capture_flag, Segment, ACK, CWR, FIN, RST, SYN};

impl Connection {
    /// Return whether the segment is redundant: no new sequence space and no new acknowledgment.
    #[inline]
    pub(super) fn brings_nothing(&self, side: usize, segment: &Segment) -> bool {
        let (sent, acked) = (&self.directions[side], &self.directions[1 - side]);
        let end = Seq(segment.seq) + segment.sequence_length();
        sent.flight.is_started
            && !sent.flight.nxt.is_before(end)
            && (segment.flags & ACK == 0 || !acked.flight.una.is_before(Seq(segment.ack)))
    }

    /// Track the segment if it is ordinary; return its events and the round trip that it completed.
    #[inline(always)]
    pub(super) fn take_ordinary(
        &mut self,
        side: usize,
        segment: &Segment,
    ) -> Option<(Events, Option<u64>)> {
        // A negative value, after the clock ran backwards, is larger than any other.
        let silence_ns = segment.time_ns.wrapping_sub(self.end_ns) as u64;
        if !self.is_ordinary[side & 1] | (silence_ns > stall::MIN_NS as u64) {
            return None;
        }
        let (sent, acked) = self.sent_and_acked(side);
        let taken = fast::take(sent, acked, segment)?;
        if taken.events != 0 {
            self.incidents_mut().count(side, taken.events);
        }
        self.end_ns = segment.time_ns;
        if taken.is_last {
            self.is_ordinary[side & 1] = false;
        }
        if taken.overtakes || (self.is_pipelined() && segment.payload_len > 0) {
            self.follow_pipeline(side & 1, segment);
        }
        Some((taken.events, taken.rtt_ns))
    }

    /// Update the state by a segment of any kind. A segment earlier than its predecessor counts at the predecessor's
    /// time, and after the clock was set back all segments are shifted by the step: no interval is negative, and the
    /// sum of all intervals never exceeds the connection's life.
    #[inline(never)]
    pub(super) fn take(
        &mut self,
        side: usize,
        segment: &Segment,
        evidence: &mut Option<Evidence>,
        stall: &mut Option<Stall>,
    ) -> (Events, Option<u64>) {
        let mut early_ns = self.end_ns.saturating_sub(segment.time_ns);
        if early_ns <= 0 && !self.is_clock_doubted() {
            return self.take_in_time(side, segment, evidence, stall);
        }
        let mut time_ns = segment.time_ns;
        if self.is_clock_doubted() || early_ns >= LEAST_STEP_NS {
            time_ns = self.set_clock_right(time_ns);
            early_ns = self.end_ns.saturating_sub(time_ns);
        }
        if early_ns > 0 {
            self.forget_round_trips(early_ns);
        }
        let segment = Segment {
            time_ns: time_ns.max(self.end_ns),
            ..*segment
        };
        if early_ns <= 0 {
            return self.take_in_time(side, &segment, evidence, stall);
        }
        self.directions[side].cold_state().early_ns = early_ns;
        let taken = self.take_in_time(side, &segment, evidence, stall);
        self.directions[side].cold_state().early_ns = 0;
        taken
    }

    fn take_in_time(
        &mut self,
        side: usize,
        segment: &Segment,
        evidence: &mut Option<Evidence>,
        stall: &mut Option<Stall>,
    ) -> (Events, Option<u64>) {
        let (now_ns, before_ns) = (segment.time_ns, self.end_ns);
        let mut before = None;
        if now_ns.saturating_sub(before_ns) > stall::MIN_NS {
            before = BeforeSegment::new(self, side, before_ns, now_ns);
            if self.note_clock(side, segment, before_ns) {
                before = None;
            }
        }
        self.end_ns = segment.time_ns;
        if segment.capture_flags & capture_flag::SAMPLED != 0 {
            self.incidents_mut().is_sampled = true;
        }
        if segment.options.multipath != 0 {
            self.directions[side].cold_state().multipath |= segment.options.multipath;
        }
        reset::refute(self, side, segment);
        let (events, rtt_ns) = if segment.flags & (SYN | RST) != 0 {
            // The next plain segment decides again.
            self.is_ordinary = [false; 2];
            self.take_control(side, segment, evidence)
        } else {
            let taken = self.take_plain(side, segment, evidence, before_ns);
            self.judge_ordinary();
            taken
        };
        for direction in &mut self.directions {
            if direction.is_flight_known() {
                direction.flight.note_max();
            }
        }
        if events != 0 {
            self.incidents_mut().count(side, events);
        }
        if let (true, Some(evidence)) = (self.is_sampled(), evidence.as_mut()) {
            // Segments between two samples may explain the retransmission.
            evidence.diagnosis.confidence = Confidence::Possible;
        }
        if let Some(before) = before {
            let ended = before.judge(self, side, segment, events);
            let stalls = &mut self.incidents_mut().rare_mut().stalls;
            stalls.get_or_insert_with(Box::default).add(&ended);
            *stall = Some(ended);
        }
        (events, rtt_ns)
    }

    /// Return a segment's time, corrected for a capture clock that was set back.
    #[cold]
    fn set_clock_right(&mut self, time_ns: i64) -> i64 {
        let end_ns = self.end_ns;
        let clock = &mut self.incidents_mut().rare_mut().clock;
        let (time_ns, stepped_ns) = clock.set_right(time_ns, end_ns);
        let is_doubted = clock.is_doubted();
        self.doubt_clock(is_doubted);
        if let Some(stepped_ns) = stepped_ns {
            for direction in &mut self.directions {
                let cold_state = direction.cold_state();
                cold_state.clock_step_ns = cold_state.clock_step_ns.saturating_add(stepped_ns);
            }
        }
        time_ns
    }

    /// Discard the RTT samples that a segment may complete: the segment counts `early_ns` later than it was captured.
    #[cold]
    fn forget_round_trips(&mut self, early_ns: i64) {
        if early_ns < LEAST_DISORDER_NS {
            return;
        }
        for direction in &mut self.directions {
            direction.echo.forget();
            let (una, nxt) = (direction.flight.una, direction.flight.nxt);
            if direction.flight.is_started && una.is_before(nxt) {
                direction
                    .cold_state()
                    .change_episode(|episode| episode.step(una, nxt, 0));
            }
        }
    }

    /// Skip a silence that only the capture's clock measured: it belongs to no budget, round trip, gap or stall. Return
    /// whether there was one.
    #[cold]
    fn note_clock(&mut self, side: usize, segment: &Segment, before_ns: i64) -> bool {
        let Some(stepped_ns) = clock_step::stepped_ns(self, side, segment, before_ns) else {
            return false;
        };
        for direction in &mut self.directions {
            direction.ledger.step(stepped_ns);
            let (una, nxt) = (direction.flight.una, direction.flight.nxt);
            let has_data = direction.data_segments > 0;
            let cold_state = direction.cold_state();
            cold_state.clock_step_ns = cold_state.clock_step_ns.saturating_add(stepped_ns);
            if has_data {
                let (ns, _) = cold_state.transfer_step.unwrap_or_default();
                cold_state.transfer_step = Some((ns.saturating_add(stepped_ns), segment.time_ns));
            }
            if una.is_before(nxt) {
                cold_state.change_episode(|episode| episode.step(una, nxt, stepped_ns));
            }
            let from_ns = segment.time_ns.saturating_sub(stepped_ns);
            if direction.data_segments > 0 {
                direction.spend_silence(SenderState::Unknown, from_ns, segment.time_ns);
            }
        }
        if segment.payload_len > 0 {
            // Later segments are compared with this time.
            let last_data_ns = &mut self.directions[side].last_data_ns;
            *last_data_ns = last_data_ns.saturating_add(stepped_ns);
        }
        true
    }

    /// Decide which directions are ordinary. Both must be known and open, and none reset; data is unaffected by doubts
    /// about its own direction, and an acknowledgment by pauses of its sender.
    #[inline]
    fn judge_ordinary(&mut self) {
        let [first, second] = &self.directions;
        let is_open = first.is_ordinary_to_send() && second.is_ordinary_to_send();
        let is_reset = self.marks.reset_by().is_some() || self.doubtful_reset().is_some();
        if !is_open || is_reset {
            self.is_ordinary = [false; 2];
            return;
        }
        let is_free =
            |sent: &Direction, acked: &Direction| !acked.has_doubts() && !sent.ledger.is_followed();
        self.is_ordinary = [is_free(first, second), is_free(second, first)];
    }

    fn take_plain(
        &mut self,
        side: usize,
        segment: &Segment,
        evidence: &mut Option<Evidence>,
        before_ns: i64,
    ) -> (Events, Option<u64>) {
        let now_ns = segment.time_ns;
        let handshake_rtt_ns = self.handshake_rtt_ns();
        if self.directions[side].own_scale == ScaleState::SynOnly {
            handshake::confirm_scale(&mut self.directions[side], segment);
        }
        let (sent, acked) = self.sent_and_acked(side);
        let overtakes = segment.payload_len > 0 && sent.overtakes(acked, segment);
        if sent.has_only_syn && acked.has_syn {
            handshake::begin_where_answered(sent, acked.isn, segment);
        }
        sent.segments += 1;
        acked.note_heard();
        let last_data_ns = sent.last_data_ns;
        let mut events = 0;
        let mut rtt_ns = None;
        if segment.window == 0 && segment.flags & FIN == 0 {
            events |= event::ZERO_WINDOW;
        }
        if segment.flags & ACK != 0 {
            let answer = ack::take(sent, acked, segment);
            events |= answer.events;
            rtt_ns = answer.rtt_ns;
        }
        if let Some((_, echo)) = segment.options.timestamps {
            if let Some(echo) = acked.echo.echoed(echo, now_ns) {
                sent.note_echo(acked, echo, now_ns);
            }
        }
        if segment.payload_len == 0 {
            acked.note_bare(segment);
        }
        if segment.payload_len > 0
            && sent.is_mss_certain
            && may_reveal_size(segment, u32::from(sent.mss))
        {
            sent.follow_segment_size(segment, acked.own_scale.is_certain());
        }
        events |= send::take(sent, acked, segment, handshake_rtt_ns, evidence);
        if segment.flags & CWR != 0 && ecn::distinguishes(&sent.syn, &acked.syn, segment) {
            events |= event::WINDOW_REDUCED;
        }
        if segment.is_marked() {
            events |= event::CONGESTION_EXPERIENCED;
        }
        if events & ASKING != 0 {
            sent.note_try(now_ns, last_data_ns);
        } else if segment.payload_len > 0 {
            // New data needs room, so an answer was missing from the capture.
            sent.note_heard();
        }
        sent.is_seen = true;
        sent.note_timestamps(segment.options.timestamps, now_ns);
        if segment.payload_len > 0 {
            if !sent.is_mss_certain {
                sent.learn_segment_size(segment.payload_len);
            }
            if let Some(zero) = sent
                .cold_state
                .as_mut()
                .and_then(|cold_state| cold_state.zero.as_mut())
            {
                zero.decide(now_ns, handshake_rtt_ns);
            }
        }
        let (sent_certain, acked_certain) =
            (sent.own_scale.is_certain(), acked.own_scale.is_certain());
        let silence = timer_after_gap(segment, events).map(|item| (item, before_ns));
        let has_data = segment.payload_len > 0 || segment.flags & FIN != 0;
        sent.settle_sent(now_ns, acked_certain, silence, has_data);
        acked.settle_acked(now_ns, sent_certain);
        if overtakes || (self.is_pipelined() && segment.payload_len > 0) {
            self.follow_pipeline(side, segment);
        }
        if segment.flags & FIN != 0 {
            self.marks.close(side as u8);
        }
        if self.established_ns().is_none() && self.syn_ack_ns().is_some() {
            self.judge_established(side, segment);
        }
        (events, rtt_ns)
    }

    /// Follow requests and answers that are under way at once, from the first data that crosses the other side's.
    #[cold]
    fn follow_pipeline(&mut self, side: usize, segment: &Segment) {
        let asking = self.initiator_side();
        let directions = [asking, 1 - asking].map(|side| &self.directions[side]);
        let legs_ns = [1, 0].map(|nth: usize| directions[nth].rtt_to_receiver_ns().unwrap_or(0));
        let is_answer = side != asking;
        let ends = directions[usize::from(is_answer)].ends_message(segment);
        if !self.is_pipelined() {
            let Some(pipeline) = Pipeline::begin(directions, is_answer, segment) else {
                return;
            };
            self.set_pipeline(pipeline);
        }
        let rare = self.incidents_mut().rare_mut();
        if let Some(pipeline) = &mut rare.pipeline {
            pipeline.take(is_answer, segment, ends, legs_ns);
        }
    }

    fn judge_established(&mut self, side: usize, segment: &Segment) {
        let answered = &self.directions[1 - side];
        if self.directions[side].has_syn
            && answered.has_syn
            && Seq(segment.ack).is_after(answered.isn)
        {
            self.note_established(segment.time_ns);
        }
    }

    /// Process a SYN or RST.
    #[cold]
    fn take_control(
        &mut self,
        side: usize,
        segment: &Segment,
        evidence: &mut Option<Evidence>,
    ) -> (Events, Option<u64>) {
        let now_ns = segment.time_ns;
        self.directions[side].segments += 1;
        if segment.flags & RST == 0 {
            return handshake::take_syn(self, side, segment, evidence);
        }
        let judged = reset::judge(self, side, segment);
        if self.marks.reset_by().is_some() || !matches!(judged, Reset::Obeyed) {
            // The marks hold the first one that was obeyed.
            self.directions[side].cold_state().has_rst = true;
        }
        match judged {
            Reset::Obeyed => {}
            Reset::Refused => return (0, None),
            Reset::Doubtful => {
                let doubt = &mut self.incidents_mut().rare_mut().doubtful_reset;
                doubt.get_or_insert(DoubtfulReset {
                    side: side as u8,
                    time_ns: now_ns,
                    frame: segment.frame,
                });
                return (0, None);
            }
        }
        self.marks.close(side as u8);
        if self.marks.reset_by().is_none() {
            self.note_end_stalls(now_ns);
            self.marks.reset(side as u8);
            if self
                .directions
                .iter()
                .any(|direction| direction.data_segments > 0)
            {
                self.incidents_mut().rare_mut().reset = Some((now_ns, segment.frame));
            }
        }
        for direction in &mut self.directions {
            direction.abort(now_ns);
            if let Some(cold_state) = &mut direction.cold_state {
                cold_state.end_zero(segment.frame, now_ns, EndedBy::Reset);
            }
        }
        // The reset comes first: its ACK acknowledges nothing (RFC 9293 §3.10.7.4, second before fifth; Linux
        // `tcp_validate_incoming` before `tcp_ack`).
        (0, None)
    }

    #[inline]
    pub(super) fn annotate(&self, segment: &Segment, taken: &SegmentOutcome) -> Annotation {
        let sent = &self.directions[taken.side];
        let is_syn = segment.flags & SYN != 0;
        let is_certain = is_syn || sent.own_scale.is_certain();
        let shift = if is_syn { 0 } else { sent.own_shift };
        let flight_bytes = sent.known_flight();
        Annotation {
            connection: taken.connection,
            side: taken.side as u8,
            is_from_initiator: taken.side == self.initiator_side(),
            events: taken.events,
            window_bytes: is_certain.then(|| u32::from(segment.window) << shift),
            shift: is_certain.then_some(shift),
            flight_bytes,
            pipe_bytes: flight_bytes.map(|bytes| bytes.saturating_sub(sent.sacked_bytes())),
            rtt_ns: taken.rtt_ns,
            ..Annotation::default()
        }
    }

    /// End the connection at `until_ns`: the capture is over, or nothing later belongs to it.
    pub(super) fn finish(&mut self, until_ns: i64, keeps_rounds: bool) {
        reset::conclude(self);
        if self.marks.reset_by().is_none() {
            self.end_ns = until_ns;
            self.note_end_stalls(until_ns);
        }
        let end_ns = self.end_ns;
        for direction in &mut self.directions {
            direction.finish(end_ns, keeps_rounds);
            if let Some(cold_state) = &mut direction.cold_state {
                cold_state.end_zero(0, end_ns, EndedBy::Open);
            }
        }
        if let Initiator::Guessed(side) = self.marks.initiator() {
            if self.directions.iter().any(|direction| direction.has_syn) {
                self.marks.set_initiator(Initiator::Known(side));
            }
        }
    }
}

/// Return the item of the silence before a segment if a timer ended it.
fn timer_after_gap(segment: &Segment, events: Events) -> Option<SenderState> {
    let is_timed_fin = segment.flags & FIN != 0 && events & event::RETRANSMISSION != 0;
    if events & event::RTO_RETRANSMISSION != 0 || is_timed_fin {
        Some(SenderState::Timeout)
    } else if events & event::TAIL_LOSS_PROBE != 0 {
        Some(SenderState::Tail)
    } else {
        None
    }
}
