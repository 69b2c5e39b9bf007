//! Measurements of a direction with several segments in flight: its round trips, bursts and ACKs.

use std::collections::VecDeque;

use crate::sequence::Seq;
use crate::tcp::budget::idle_restart::Idle;
use crate::tcp::budget::reassignment::{reassignments, Reassignment};
use crate::tcp::budget::round_limit::RoundTrip;
use crate::tcp::budget::Budget;
use crate::tcp::connection::direction::is_full;
#[cfg(doc)]
use crate::tcp::connection::direction::Direction;
use crate::tcp::path::bottleneck::Bottleneck;
use crate::tcp::path::history::{Delay, PathHistory, Record};
use crate::tcp::path::round_queue::EndedRound;
use crate::tcp::path::train::Train;
use crate::tcp::timing::estimator::RttEstimator;
use crate::tcp::timing::messages::{Messages, PAUSE_MIN_NS};
use crate::tcp::timing::missing_acks::{AckIds, NONE};
use crate::tcp::timing::sent::Sent;
use crate::tcp::window::sender_view::SenderView;
use crate::wire::{Segment, FIN, PSH};

/// Maximum number of separate segments in flight; beyond it neighbours are joined and keep the time of the older one.
const MAX_SENT: usize = 4096;
/// Growth of the flight over the previous round that means slow start, which grows with every ACK or every second one
/// (RFC 5681 §3.1, RFC 3465).
const GROWTH_NUMERATOR: u64 = 4;
const GROWTH_DENOMINATOR: u64 = 3;
/// Initial window of Linux and RFC 6928, in segments.
pub const INITIAL_WINDOW_SEGMENTS: u32 = 10;

/// A stack sets PSH on the segment that empties its buffer (RFC 9293 §3.9.1.2). A short segment without it was cut by the
/// window, the congestion window or pacing. No length has this bit, so such a segment does not count as short.
const WRITE_GOES_ON: u32 = 1 << 31;

/// Fields that every segment accesses are in the first three cache lines, and in [`Late`].
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Pace {
    /// Segments in flight, except the oldest.
    pub rest: VecDeque<Sent>,
    pub view: Option<Box<SenderView>>,
    /// Time at which the newest TSval was first sent.
    pub tick_ns: i64,
    /// Length of the newest data, with `WRITE_GOES_ON` if it did not end a write.
    pub last_payload: u32,
    pub tinygrams: u32,
    /// Gaps after data that did not end its message, until the message's next data.
    pub transfer_ns: i64,
    /// IP IDs of the newest data, and of the peer's newest packet without data.
    pub last_id: u32,
    pub bare_id: u32,
    /// SND.MAX when the round began; its acknowledgment ends the round.
    round_end: Seq,
    pub stretch: u32,
    train: Train,
    last_acked_sent_ns: i64,
    /// Time between the last two ACKs that moved SND.UNA.
    pub ack_spacing_ns: i64,
    pub samples: u32,
    pub compressed: u32,
    pub estimator: RttEstimator,
    pub delay: Delay,
    /// Present once a round is over.
    pub path: Option<Box<PathHistory>>,
    /// Silence that separates two messages: two round trips of the path.
    pub pause_ns: i64,
    pub idle: Option<Box<Idle>>,
    /// Delay by the receiver of the ACK that just arrived; 0 if it was not delayed.
    pub late_by_ns: i64,
    pub rounds: u32,
    round_ns: i64,
    pub slow_start_ns: i64,
    pub turns: Option<Box<Messages>>,
    acked_bytes: u64,
    pub nagle_ns: i64,
    /// Peaks of bytes in flight: in the last round, since the last pause, overall, and before the first ACK of data.
    round_peak: u32,
    pub period_peak: u32,
    pub peak: u32,
    pub initial_flight: Option<u32>,
    pub is_initial_missed: bool,
    /// A model of the sender's congestion window in bytes, at least what was in flight (see [`Pace::end_round`]).
    pub window_bytes: u32,
    threshold_bytes: u32,
    pub nagle_delays: u32,
    pub nagle_waits: u32,
    pub nagle_wait_ns: i64,
    bottleneck: Option<Bottleneck>,
    pub late: Late,
}

/// Further fields that every segment accesses, in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Late {
    pub ack_ids: AckIds,
    pub budget: Budget,
}

/// Facts for judging a round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub now_ns: i64,
    pub nxt: Seq,
    /// Maximum bytes in flight since the round began.
    pub peak_bytes: u32,
    pub acked_bytes: u64,
    /// Bytes acknowledged or reported by SACK.
    pub delivered_bytes: u64,
    pub window_bytes: u32,
    pub mss: u32,
    pub is_recovering: bool,
    /// Minimum RTT of the path.
    pub round_trip_ns: i64,
    pub last_data_ns: i64,
    /// Whether the capture contains the connection's start.
    pub is_from_start: bool,
}

impl Pace {
    pub fn new(estimator: RttEstimator, samples: u32, una: Seq) -> Self {
        Pace {
            rest: VecDeque::new(),
            estimator,
            samples,
            round_end: una,
            round_ns: i64::MIN,
            rounds: 0,
            round_peak: 0,
            period_peak: 0,
            peak: 0,
            // Earlier acknowledgments can no longer be separated.
            is_initial_missed: samples > 1,
            initial_flight: None,
            slow_start_ns: 0,
            tick_ns: i64::MIN,
            pause_ns: PAUSE_MIN_NS,
            window_bytes: 0,
            threshold_bytes: u32::MAX,
            acked_bytes: 0,
            stretch: 0,
            compressed: 0,
            last_acked_sent_ns: i64::MIN,
            ack_spacing_ns: i64::MAX,
            train: Train::NONE,
            delay: Delay::NONE,
            path: None,
            tinygrams: 0,
            transfer_ns: 0,
            last_id: NONE,
            bare_id: NONE,
            last_payload: u32::MAX,
            late_by_ns: 0,
            nagle_delays: 0,
            nagle_waits: 0,
            nagle_wait_ns: 0,
            bottleneck: None,
            late: Late {
                ack_ids: AckIds::EMPTY,
                budget: Budget::EMPTY,
            },
            nagle_ns: 0,
            idle: None,
            turns: None,
            view: None,
        }
    }

    /// Note how far an ACK moved SND.UNA, and whether earlier ACKs are missing.
    #[inline(always)]
    pub fn note_advance(&mut self, segment: &Segment, advance: u32, mss: u32, is_bare: bool) {
        let is_stretch = advance > mss.wrapping_mul(2);
        self.stretch = self.stretch.wrapping_add(u32::from(is_stretch));
        if is_bare {
            self.bare_id = segment.ip_id;
            self.late.ack_ids.note(segment.ip_id, advance, mss);
        } else {
            self.late.ack_ids.interrupt();
        }
    }

    /// Return whether the last segment was a small one that ends a write: all written data is sent (rule 8.g).
    pub fn ran_out(&self, mss: u32) -> bool {
        self.last_payload < mss
    }

    /// Return whether the newest data did not end its message ([`Direction::ends_message`]).
    pub fn goes_on(&self, mss: u32) -> bool {
        self.last_payload & WRITE_GOES_ON != 0 || is_full(self.last_payload, mss)
    }

    /// Note that the peer answered the newest data, which ended its message.
    pub fn end_message(&mut self) {
        self.last_payload = 0;
    }

    pub fn is_followed(&self) -> bool {
        self.late_by_ns > 0 || self.idle.as_ref().is_some_and(|idle| idle.ramp.is_some())
    }

    #[inline]
    pub fn push(&mut self, sent: Sent) {
        if self.rest.len() >= MAX_SENT {
            self.join();
        }
        self.rest.push_back(sent);
    }

    #[cold]
    fn join(&mut self) {
        let mut joined = VecDeque::with_capacity(MAX_SENT / 2 + 1);
        for pair in self.rest.make_contiguous().chunks(2) {
            if let (Some(older), Some(newer)) = (pair.first(), pair.last()) {
                joined.push_back(older.joined(*newer));
            }
        }
        self.rest = joined;
    }

    #[inline]
    pub fn sample(&mut self, sample_us: u32, una: Seq) {
        self.estimator.sample(sample_us, self.is_round_over(una));
        self.samples = self.samples.wrapping_add(1);
        self.delay.add(sample_us);
    }

    /// Process an ACK, with the total delivered and the bytes in flight.
    #[inline(always)]
    pub fn note_delivered(
        &mut self,
        delivered_bytes: u64,
        flight_bytes: u32,
        mss: u32,
        now_ns: i64,
    ) {
        let (is_more, is_over) = self.train.take(delivered_bytes, now_ns);
        if !is_more {
            return;
        }
        let flight_bytes = match &self.view {
            Some(view) => view.bytes(),
            None => flight_bytes,
        };
        if is_over && self.train.is_possible(flight_bytes, mss) {
            self.next_train(delivered_bytes, flight_bytes, mss, now_ns);
        }
        if flight_bytes == 0 {
            self.train.end();
        }
    }

    #[cold]
    fn next_train(&mut self, delivered_bytes: u64, flight_bytes: u32, mss: u32, now_ns: i64) {
        let over = self.train.next(delivered_bytes, flight_bytes, mss, now_ns);
        if let Some((bytes, elapsed_ns)) = over {
            self.path
                .get_or_insert_with(Box::default)
                .add_train(bytes, elapsed_ns, mss);
        }
    }

    /// Return whether everything in flight at the round's start is acknowledged, as seen by the sender.
    #[inline(always)]
    pub fn is_round_over(&self, una: Seq) -> bool {
        let una = self.view.as_ref().map_or(una, |view| view.una());
        una.is_after(self.round_end)
    }

    /// Process an ACK that moved SND.UNA, `ack_spacing_ns` after the previous one.
    #[inline(always)]
    pub fn note_ack(&mut self, newest_sent_ns: i64, ack_spacing_ns: i64) {
        let sent_spacing_ns = newest_sent_ns.wrapping_sub(self.last_acked_sent_ns);
        self.last_acked_sent_ns = newest_sent_ns;
        self.ack_spacing_ns = ack_spacing_ns;
        // Data sent at least a millisecond apart but acknowledged within a quarter of that: the ACKs queued on their way
        // (Zhang, Shenker, Clark 1991).
        let is_apart = (sent_spacing_ns.wrapping_sub(1_000_000) as u64) < 60_000_000_000;
        let is_compressed = is_apart & ((ack_spacing_ns as u64) < sent_spacing_ns as u64 / 4);
        self.compressed = self.compressed.wrapping_add(u32::from(is_compressed));
    }

    /// Process a segment with payload, after `ahead_bytes` in flight: a small one before it did not end the write.
    #[inline]
    pub fn note_payload(&mut self, segment: &Segment, ahead_bytes: u32, gap_ns: i64, mss: u32) {
        if self.last_payload >= mss && self.goes_on(mss) {
            self.transfer_ns = self.transfer_ns.saturating_add(gap_ns);
        }
        let before = (self.last_payload & !WRITE_GOES_ON).min(ahead_bytes);
        let is_tinygram = (ahead_bytes > 0) & (before < mss);
        self.tinygrams = self.tinygrams.wrapping_add(u32::from(is_tinygram));
        self.last_id = segment.ip_id;
        let goes_on = segment.flags & (PSH | FIN) == 0;
        self.last_payload = segment.payload_len | (u32::from(goes_on) * WRITE_GOES_ON);
    }

    /// Close the round: determine its phase, and the congestion window by Linux's rules.
    ///
    /// In slow start the window grows by every acknowledged byte, while more than half of it was used
    /// (`tcp_is_cwnd_limited`); beyond the threshold it grows by one segment per round (RFC 5681 §3.1).
    #[cold]
    pub fn end_round(&mut self, round: &Round) {
        self.round_end = round.nxt;
        self.rounds = self.rounds.wrapping_add(1);
        let acked = round.acked_bytes.saturating_sub(self.acked_bytes);
        self.acked_bytes = round.acked_bytes;
        self.peak = self.peak.max(round.peak_bytes);
        let peak = match &mut self.view {
            Some(view) => view.take_peak(),
            None => round.peak_bytes,
        };
        let before = std::mem::replace(&mut self.round_peak, peak);
        self.period_peak = self.period_peak.max(peak);
        if acked > 0 {
            self.note_initial(peak);
        }
        let elapsed_ns = round.now_ns.saturating_sub(self.round_ns);
        let has_begun = self.round_ns != i64::MIN;
        self.round_ns = round.now_ns;
        let grows = u64::from(peak) * GROWTH_DENOMINATOR >= u64::from(before) * GROWTH_NUMERATOR;
        // Once a loss has set the threshold, a growing flight only fills the existing window.
        let is_below = self.window_bytes < self.threshold_bytes;
        if has_begun && elapsed_ns > 0 && grows && before > 0 && is_below && !round.is_recovering {
            self.slow_start_ns = self.slow_start_ns.saturating_add(elapsed_ns);
        }
        let round_trip = RoundTrip {
            elapsed_ns: if has_begun {
                elapsed_ns
            } else {
                self.late.budget.age_ns(round.now_ns)
            },
            acked_bytes: acked,
            peak_bytes: peak,
            before_bytes: before,
            round_trip_ns: round.round_trip_ns,
            grows: grows || self.rounds < 2,
            is_recovering: round.is_recovering,
            is_after_unseen: self.rounds < 2 && !round.is_from_start,
            mss: round.mss,
        };
        if round.last_data_ns > i64::MIN {
            self.late
                .budget
                .note_gap(round.now_ns.saturating_sub(round.last_data_ns));
        }
        let spent = self.late.budget.end_round(&round_trip, round.now_ns);
        let record = Record {
            end_ns: round.now_ns,
            elapsed_ns: round_trip.elapsed_ns,
            delivered_bytes: 0,
            busy_ns: spent.busy_ns,
            item: spent.item,
            otherwise: spent.otherwise,
            idle_ns: spent.idle_ns,
            full_ns: spent.full_ns,
            recovery_ns: spent.recovery_ns,
            gap_ns: spent.gap_ns,
            peak_bytes: peak,
            window_bytes: round.window_bytes,
            delay_us: 0,
            least_delay_us: 0,
            most_delay_us: 0,
            losses: 0,
            loss_delay_us: 0,
            marked: 0,
        };
        let path = self.path.get_or_insert_with(Box::default);
        let over = EndedRound {
            record,
            mss: round.mss,
            is_recovering: round.is_recovering,
            is_disordered: false,
        };
        let delay_us = path.end_round(over, &mut self.delay, round.delivered_bytes);
        let round_trip_ns = round.round_trip_ns.max(i64::from(delay_us) * 1000);
        if round_trip_ns > 0 {
            self.train.gap_ns = round_trip_ns / 2;
        }
        let initial = round.mss.saturating_mul(INITIAL_WINDOW_SEGMENTS);
        self.window_bytes = self.window_bytes.max(initial);
        let used = u64::from(peak.max(before));
        let was_limited = u64::from(self.window_bytes) < used * 2;
        if was_limited && !round.is_recovering {
            let widened = if self.window_bytes < self.threshold_bytes {
                u32::try_from(acked).unwrap_or(u32::MAX)
            } else {
                round.mss
            };
            self.window_bytes = self.window_bytes.saturating_add(widened);
        }
        self.window_bytes = self.window_bytes.max(peak);
    }

    /// Return the path's bottleneck, as shown by all rounds together; known once the connection is over.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        self.bottleneck
    }

    /// End with the connection: find the bottleneck, and return the time that belongs to another item. Drop the rounds
    /// unless they are kept for later.
    pub fn conclude(&mut self, mss: u32, keeps_rounds: bool) -> Vec<Reassignment> {
        let Some(path) = &mut self.path else {
            return Vec::new();
        };
        path.close();
        let records = path.records();
        self.bottleneck = Bottleneck::of(path, &records, &self.delay, mss);
        path.queue_ns = (self.bottleneck.as_ref()).and_then(|path| path.queue_ns(&records));
        let moves = self.moves_in(&records, mss);
        if let (Some(path), false) = (&mut self.path, keeps_rounds) {
            path.let_go();
        }
        moves
    }

    /// Return the budget's time that all rounds together attribute to another item, once the connection is over.
    pub fn moves(&self, mss: u32) -> Vec<Reassignment> {
        let records = self.path.as_ref().map(|path| path.records());
        self.moves_in(&records.unwrap_or_default(), mss)
    }

    fn moves_in(&self, records: &[Record], mss: u32) -> Vec<Reassignment> {
        let base_us = (self.path.as_ref()).and_then(|path| path.base_us(&self.delay));
        reassignments(self.bottleneck.as_ref(), records, base_us, mss)
    }

    /// Forget the path so far, which was not measured from the sender's view.
    pub fn forget_path(&mut self, delivered_bytes: u64) {
        (self.train, self.delay) = (Train::NONE, Delay::NONE);
        self.path = Some(Box::new(PathHistory::new(delivered_bytes, true)));
    }

    /// Charge the cost of the last idle restart, if known by now. Called when a round is over.
    pub fn settle_restart(&mut self) {
        let Some(idle) = &mut self.idle else {
            return;
        };
        let owed_ns = idle.take_owed_ns();
        if owed_ns > 0 {
            self.late.budget.charge_restart(&idle.before, owed_ns);
        }
    }

    /// Note the first ACK or SACK of data, with the peak flight until then.
    pub fn note_initial(&mut self, peak_bytes: u32) {
        if self.initial_flight.is_none() && !self.is_initial_missed && peak_bytes > 0 {
            self.initial_flight = Some(peak_bytes);
        }
    }

    /// Return the congestion window before a pause: by the model while nothing was lost, then by the flight.
    pub fn window_before_pause(&self) -> u32 {
        if self.threshold_bytes == u32::MAX {
            self.window_bytes.max(self.period_peak)
        } else {
            self.period_peak
        }
    }

    /// Note a loss at this flight: CUBIC continues with seven tenths (RFC 9438 §4.6).
    pub fn note_loss(&mut self, flight_bytes: u32) {
        self.threshold_bytes = (u64::from(flight_bytes) * 7 / 10) as u32;
        self.window_bytes = self.threshold_bytes;
    }
}
