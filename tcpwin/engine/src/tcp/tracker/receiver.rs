//! The receiver's half of a direction: the state changed by ACKs of its data and their windows.
//!
//! SND.UNA moves only here, except at the start of a capture: covered data is timed before the time of the last ACK is
//! updated, and the sender's view gets SND.UNA and the window of an ACK together, after the window is applied.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::ace::Ace;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::ecn::Ecn;
use crate::tcp::timing::ledger::{Covered, Echoed};
use crate::tcp::tracker::ack::Answer;
use crate::tcp::tracker::time_charge::open_state;
use crate::tcp::window::flight::Unknown;
use crate::tcp::window::receive::Advertisement;
use crate::tcp::window::sender_view::Known;
use crate::wire::{Segment, FIN};

/// Range of delay, relative to the fastest ACK, that means a delayed ACK: Linux waits at least 40 ms (TCP_DELACK_MIN),
/// others up to the half second that RFC 9293 §3.8.6.3 allows.
const DELAYED_MIN_NS: u64 = 38_000_000;
const DELAYED_MAX_NS: u64 = 520_000_000;
/// Minimum silence of the receiver before a delayed ACK: the delay, less the path's jitter.
pub(super) const SILENT_MIN_NS: i64 = 35_000_000;

impl Direction {
    /// Read the AccECN counter of a receiver, whose own direction is `sent`, from a segment without SYN.
    #[cold]
    pub(super) fn take_counter(&mut self, sent: &Direction, segment: &Segment, answer: &Answer) {
        if Ecn::of(&sent.syn, &self.syn) != Ecn::Accurate || answer.is_old {
            return;
        }
        let is_handshake = !sent.syn.is_answer() && segment.ack == (self.isn + 1).0;
        let ace = self.cold_state().ace.get_or_insert_with(Box::default);
        if ace.take(Ace::value(segment), is_handshake, answer.is_new) > 0 {
            self.note_mark();
        }
    }

    /// Advance SND.UNA. `covered`: the acknowledged data that was sent once; `echoed`: the copy that its timestamps
    /// identify. Return the round trip that it completed.
    #[inline]
    pub(super) fn acknowledge_to(
        &mut self,
        ack: Seq,
        segment: &Segment,
        covered: Option<Covered>,
        echoed: Option<Echoed>,
    ) -> (Events, Option<u64>) {
        debug_assert!(self.flight.una.is_before(ack) && !self.flight.nxt.is_before(ack));
        let now_ns = segment.time_ns;
        let advance = self.flight.una.to(ack) as u32;
        // An ACK that carries data waited for the data.
        let late_by_ns = covered
            .filter(|_| segment.payload_len == 0)
            .and_then(|covered| self.late_by_ns(covered, ack, now_ns));
        self.flight.una = ack;
        if self.flight.control > 0 {
            self.acknowledge_fin(advance, now_ns);
            self.flight.control = u8::from(self.is_fin_out());
        }
        self.acked_bytes += u64::from(advance);
        self.duplicate_acks = 0;
        let rtt_ns = match (covered, echoed) {
            (None, Some(echoed)) => self.time_echo(echoed, now_ns),
            _ => self.time(covered, now_ns),
        };
        self.last_ack_ns = now_ns;
        let events = late_by_ns.map_or(0, |over_ns| self.delay_ack(advance, over_ns));
        (events, rtt_ns)
    }

    /// Finish an ACK whose window is applied; if it moved SND.UNA, the round may end. `is_report`: it SACKed more.
    /// `peer`: the direction of its sender.
    #[inline(always)]
    pub(super) fn end_ack(
        &mut self,
        now_ns: i64,
        is_advance: bool,
        is_report: bool,
        peer: &Direction,
    ) {
        let una = self.flight.una;
        let is_una_known = self.flight.unknown != Unknown::Una;
        let known = Known {
            una,
            edge: self.window.edge,
        };
        let (delivered_bytes, flight_bytes) = (self.delivered_bytes(), self.flight.bytes());
        let mss = self.segment_size();
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        if is_advance || is_report {
            pace.note_delivered(delivered_bytes, flight_bytes, mss, now_ns);
        }
        if let (Some(view), true) = (&mut pace.view, is_una_known) {
            view.acked(known, now_ns);
        }
        if is_advance && pace.is_round_over(una) {
            self.end_round(now_ns, Some(peer));
        }
    }

    /// Apply everything that an ordinary segment acknowledges and advertises. `peer` is the direction of its sender.
    ///
    /// Most data repeats the last ACK and its window, which then change nothing.
    #[inline(always)]
    pub(super) fn answer_ordinary(
        &mut self,
        segment: &Segment,
        advertisement: &Advertisement,
        advance: u32,
        peer: &Direction,
    ) -> (Events, Option<u64>) {
        let now_ns = segment.time_ns;
        self.window.last_raw = segment.window;
        if (advance == 0) & self.window.is_repeated(advertisement) {
            self.window.confirm(advertisement.seq);
            self.settle_ordinary(segment, 0);
            return (0, None);
        }
        let advertised = self.window.renew(now_ns, advertisement);
        let mut rtt_ns = None;
        if advance > 0 {
            self.flight.pass_time(now_ns, self.flight.span());
            rtt_ns = self.acknowledge_ordinary(advertisement.ack, advance, now_ns, peer);
            self.note_left(advance);
        }
        self.limit_ordinary(now_ns);
        self.settle_ordinary(segment, advance);
        let events = if advertised.shrink_bytes > 0 {
            self.take_back(self.window.edge, advertised.shrink_bytes);
            event::WINDOW_SHRINK
        } else {
            0
        };
        (events, rtt_ns)
    }

    /// Infer the FIN of a side that was never captured: it shows only as the last sequence number that the peer
    /// acknowledges, a single one, when the peer closes too.
    #[cold]
    pub(super) fn infer_fin(&mut self, peer: &Direction, segment: &Segment, advance: u32) {
        if advance > 0 {
            self.cold_state().ends_with_one = advance == 1;
            self.forget_fin();
        }
        let is_closing = peer.has_fin() || segment.flags & FIN != 0;
        if is_closing
            && self
                .cold_state
                .as_ref()
                .is_some_and(|cold_state| cold_state.ends_with_one)
        {
            self.send_fin(self.flight.una);
        }
    }

    /// Judge whether a rejected advertisement of this edge withdrew the window. The sender sends on, and the receiver drops
    /// the data, as its ACKs show. Without timestamps, a late advertisement looks the same.
    #[cold]
    pub(super) fn take_back_unheard(&mut self, peer: &Direction, segment: &Segment, edge: Seq) {
        let retreat = edge.to(self.window.edge);
        let timestamps = segment.options.timestamps;
        let is_newest = segment.payload_len == 0
            && timestamps.is_some()
            && !peer.is_overtaken(timestamps)
            && peer.own_scale.is_certain()
            && Seq(segment.ack) == self.flight.una;
        if is_newest && retreat >= 1 << peer.own_shift {
            self.take_back(edge, retreat as u32);
        }
    }

    /// Note that the right edge moved left to `edge`, by `shrink_bytes`.
    #[cold]
    pub(super) fn take_back(&mut self, edge: Seq, shrink_bytes: u32) {
        let (una, nxt, acked_bytes) = (self.flight.una, self.flight.nxt, self.acked_bytes);
        // The sender stays within the edge that it knows, so away from the sender, data beyond the new edge arrives for
        // one more round trip.
        let is_near = self.pace().is_none_or(|pace| pace.view.is_none());
        let right = edge + shrink_bytes;
        let right = if is_near && nxt.is_before(right) {
            nxt
        } else {
            right
        };
        let known = self.cold_state.as_ref();
        if !edge.is_before(right) && known.is_none_or(|known| known.taken_back.is_none()) {
            return;
        }
        let taken = self
            .cold_state()
            .taken_back
            .get_or_insert_with(Box::default);
        taken.add((edge, right), una, acked_bytes);
    }

    /// Compare how far an ACK moved SND.UNA, and its IP identification, with those of the one before. `is_bare`:
    /// it has no payload and its sequence number is where its side's data ends.
    #[inline(always)]
    pub(super) fn compare_ack(&mut self, segment: &Segment, advance: u32, is_bare: bool) {
        let mss = self.segment_size();
        if let Some(pace) = self.ledger.pace_mut() {
            pace.note_advance(segment, advance, mss, is_bare);
        }
    }

    /// Add the round trip of an ACK that moved SND.UNA.
    #[inline]
    fn time(&mut self, covered: Option<Covered>, now_ns: i64) -> Option<u64> {
        let covered = covered?;
        let una = self.flight.una;
        let rtt_ns = self.ledger.sample(covered, una, now_ns);
        let since_ns = now_ns.wrapping_sub(self.last_ack_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.note_ack(covered.newest_ns, since_ns);
        }
        rtt_ns
    }

    /// Add the round trip of an ACK of retransmitted data, from the copy that its timestamps identify.
    #[cold]
    fn time_echo(&mut self, echoed: Echoed, now_ns: i64) -> Option<u64> {
        let una = self.flight.una;
        // The copy with that timestamp had arrived: the round trip is at most this long, whichever copy triggered the
        // ACK.
        let since_ns = now_ns.saturating_sub(echoed.sent_ns).max(0) as u64;
        let least_ns = self.ledger.min_ns();
        if !echoed.is_certain && least_ns.is_none_or(|least_ns| since_ns >= least_ns) {
            // An estimate that began with it would be below every true round trip.
            if least_ns.is_some() {
                self.ledger.estimate_only(echoed.sent_ns, una, now_ns);
            }
            return None;
        }
        let covered = Covered {
            oldest_ns: echoed.sent_ns,
            newest_ns: echoed.sent_ns,
        };
        self.time(Some(covered), now_ns)
    }

    /// Return how much later than the fastest an ACK of one segment came, if its receiver delayed it.
    fn late_by_ns(&self, covered: Covered, ack: Seq, now_ns: i64) -> Option<i64> {
        let advance = self.flight.una.to(ack);
        let least_ns = self.ledger.min_ns()?;
        let waited_ns = now_ns.saturating_sub(covered.oldest_ns).max(0) as u64;
        let over_ns = waited_ns.saturating_sub(least_ns);
        ((DELAYED_MIN_NS..=DELAYED_MAX_NS).contains(&over_ns)
            && advance as u32 <= self.segment_size()
            && self.has_been_silent(now_ns))
        .then_some(over_ns as i64)
    }

    /// Return whether the receiver was silent before the ACK: it sends none while delaying one, whereas a queued ACK
    /// follows others closely.
    #[inline(always)]
    fn has_been_silent(&self, now_ns: i64) -> bool {
        now_ns.wrapping_sub(self.last_ack_ns) >= SILENT_MIN_NS
    }

    /// Return whether the receiver may have delayed the current ACK: a quick check that errs on the safe side.
    #[inline(always)]
    pub(super) fn may_be_late(&self, now_ns: i64) -> bool {
        // Without a segment or a sample the differences are far out of range, or the slow path decides.
        let waited_ns = now_ns.wrapping_sub(self.ledger.oldest_or_none_ns()) as u64;
        let over_ns = waited_ns.wrapping_sub(self.ledger.least_or_none_ns());
        over_ns.wrapping_sub(DELAYED_MIN_NS) <= DELAYED_MAX_NS - DELAYED_MIN_NS
            && self.has_been_silent(now_ns)
    }

    /// Note that the receiver delayed the ACK of a lone segment.
    #[cold]
    fn delay_ack(&mut self, advance: u32, over_ns: i64) -> Events {
        let una = self.flight.una;
        let is_small = advance < self.segment_size();
        let pace = self.ledger.pace_from(una);
        pace.late_by_ns = if is_small { over_ns.max(1) } else { 0 };
        event::DELAYED_ACK
    }

    /// Forget the duplicate ACKs, at the next ACK.
    #[cold]
    fn forget_reports(&mut self) {
        self.duplicate_acks = 0;
        if let Some(cold_state) = &mut self.cold_state {
            cold_state.forget_reports();
        }
    }

    /// Like [`Direction::acknowledge_to`] and [`Direction::end_ack`], for an ordinary ACK.
    #[inline(never)]
    fn acknowledge_ordinary(
        &mut self,
        ack: Seq,
        advance: u32,
        now_ns: i64,
        peer: &Direction,
    ) -> Option<u64> {
        let covered = self.ledger.cover_plain(ack, self.offload_bytes());
        self.flight.una = ack;
        self.acked_bytes += u64::from(advance);
        if self.duplicate_acks > 0 {
            self.forget_reports();
        }
        let since_ns = now_ns.wrapping_sub(self.last_ack_ns);
        self.last_ack_ns = now_ns;
        let rtt_ns = covered.and_then(|covered| self.ledger.sample(covered, ack, now_ns));
        let known = Known {
            una: ack,
            edge: self.window.edge,
        };
        let (delivered_bytes, flight_bytes) = (self.acked_bytes, self.flight.bytes());
        let mss = self.segment_size();
        let Some(pace) = self.ledger.pace_mut() else {
            return rtt_ns;
        };
        pace.note_delivered(delivered_bytes, flight_bytes, mss, now_ns);
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

    /// Update the sender's activity after an ordinary ACK, with [`Direction::compare_ack`], and its view if the ACK moved
    /// nothing.
    #[inline(always)]
    fn settle_ordinary(&mut self, segment: &Segment, advance: u32) {
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
                self.turn_ordinary(state, segment.time_ns, false);
            }
        }
    }
}
