//! Measurements of a direction's path: the delivery rates of its trains, and, round by round, the bytes delivered, the time
//! this took, and the sender's activity.
//!
//! In: deliveries, round trips, rounds. Neither judges nor charges time, which `reassignment` does.

use crate::cache::{ask_for_all, ask_for_items};
use crate::sequence::Seq;
use crate::tables::budget_item::SenderState;
use crate::tcp::path::burst_drops::Drops;
use crate::tcp::path::congestion_response::{Moved, Response};
use crate::tcp::path::loss_spans::{LossSpans, Steady};
use crate::tcp::path::packed_records::Records;
use crate::tcp::path::round_queue::{EndedRound, RoundQueue};
use crate::tcp::recovery::cause::RetransmissionCause;

/// Maximum number of records; beyond it neighbours are joined, and each record holds twice as many rounds.
const MAX_RECORDS: usize = 256;
/// Smaller flights do not show the sender's response to losses and marks.
const RESPONSE_SEGMENTS: u32 = 8;
/// The slowest distinguishable rate, and the number of bins per doubling.
const LEAST_RATE_BYTES_PER_S: f64 = 100.0;
const BINS_PER_DOUBLING: f64 = 14.0;
/// Number of classes of trains by length, and the minimum segments of the second and third.
const CLASSES: usize = 3;
const CLASS_SEGMENTS: [u64; CLASSES - 1] = [8, 16];
/// Minimum significant part of a round, as a divisor.
const HELD_SHARE: i64 = 5;
/// Number of trains recorded together.
const NEWEST: usize = 16;

/// Bins of rates in ascending order, each with its number of trains.
pub type Rates = Vec<(u16, u32)>;

fn enter(rates: &mut Rates, bin: u16, count: u32) {
    match rates.binary_search_by_key(&bin, |entry| entry.0) {
        Ok(place) => rates[place].1 = rates[place].1.saturating_add(count),
        Err(place) => rates.insert(place, (bin, count)),
    }
}

fn newest(trains: &[(u8, u16); NEWEST], count: u8) -> impl Iterator<Item = (usize, u16)> + '_ {
    let taken = trains.iter().take(usize::from(count));
    taken.map(|(class, bin)| (usize::from(*class), *bin))
}

/// Return the middle of a bin in bytes per second.
pub fn rate_of(bin: u16) -> f64 {
    LEAST_RATE_BYTES_PER_S * ((f64::from(bin) + 0.5) / BINS_PER_DOUBLING).exp2()
}

/// One round, or several in a row.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub end_ns: i64,
    pub elapsed_ns: i64,
    pub delivered_bytes: u64,
    /// Time with data in flight and room for more, and the item that it was charged to.
    pub busy_ns: i64,
    pub item: SenderState,
    /// The item of the busy time if the path had spare capacity.
    pub otherwise: SenderState,
    /// Time with nothing to send, with the window full, and in fast recovery.
    pub idle_ns: i64,
    pub full_ns: i64,
    pub recovery_ns: i64,
    /// Longest silence of the sender.
    pub gap_ns: i64,
    /// Maximum bytes in flight.
    pub peak_bytes: u32,
    /// Window at the end.
    pub window_bytes: u32,
    /// Mean round trip; 0 without a sample.
    pub delay_us: u32,
    /// Minimum and maximum round trip.
    pub least_delay_us: u32,
    pub most_delay_us: u32,
    /// Rounds in which loss was detected, and the largest round trip just before.
    pub losses: u32,
    pub loss_delay_us: u32,
    /// Rounds in which the receiver echoed marks that the path set instead of dropping (RFC 3168 §6.1).
    pub marked: u32,
}

impl Record {
    /// Return the delivery rate in bytes per second.
    pub fn rate(&self) -> f64 {
        self.delivered_bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Return whether the window was full for a significant part.
    pub fn is_windowed(&self) -> bool {
        self.full_ns >= self.elapsed_ns / HELD_SHARE
    }

    /// Return whether the sender had nothing to send for a significant part.
    pub fn is_idle(&self) -> bool {
        self.idle_ns >= self.elapsed_ns / HELD_SHARE
    }

    /// Return whether the sender waited for its application or the window for a significant part.
    pub fn is_held(&self) -> bool {
        self.idle_ns.saturating_add(self.full_ns) >= self.elapsed_ns / HELD_SHARE
    }

    /// Merge the next record: sums and extremes; delays as means over time.
    pub(super) fn join(&mut self, next: &Record) {
        let mut open = Open::from(&*self);
        open.add(next);
        *self = open.closed();
    }
}

/// Consecutive rounds that will form one record; until then the means are sums.
#[derive(Clone, Copy, Debug)]
struct Open {
    record: Record,
    delay: Mean,
    least_delay: Mean,
}

/// A mean weighted by time.
#[derive(Clone, Copy, Debug)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn of(value: u32, elapsed_ns: i64) -> Self {
        let weight = if value > 0 {
            elapsed_ns.max(1) as f64
        } else {
            0.0
        };
        Mean {
            sum: f64::from(value) * weight,
            weight,
        }
    }

    fn add(&mut self, value: u32, elapsed_ns: i64) {
        let other = Mean::of(value, elapsed_ns);
        self.sum += other.sum;
        self.weight += other.weight;
    }

    /// Return the rounded mean; 0 without values.
    fn value(&self) -> u32 {
        (self.sum / self.weight.max(1.0) + 0.5) as u32
    }
}

impl From<&Record> for Open {
    fn from(record: &Record) -> Self {
        Open {
            record: *record,
            delay: Mean::of(record.delay_us, record.elapsed_ns),
            least_delay: Mean::of(record.least_delay_us, record.elapsed_ns),
        }
    }
}

impl Open {
    fn add(&mut self, next: &Record) {
        let record = &mut self.record;
        if record.busy_ns <= next.busy_ns {
            (record.item, record.otherwise) = (next.item, next.otherwise);
        }
        record.end_ns = next.end_ns;
        record.elapsed_ns = record.elapsed_ns.saturating_add(next.elapsed_ns);
        record.delivered_bytes = record.delivered_bytes.saturating_add(next.delivered_bytes);
        record.busy_ns = record.busy_ns.saturating_add(next.busy_ns);
        record.idle_ns = record.idle_ns.saturating_add(next.idle_ns);
        record.full_ns = record.full_ns.saturating_add(next.full_ns);
        record.recovery_ns = record.recovery_ns.saturating_add(next.recovery_ns);
        record.gap_ns = record.gap_ns.max(next.gap_ns);
        record.peak_bytes = record.peak_bytes.max(next.peak_bytes);
        record.window_bytes = next.window_bytes;
        self.delay.add(next.delay_us, next.elapsed_ns);
        self.least_delay.add(next.least_delay_us, next.elapsed_ns);
        record.most_delay_us = record.most_delay_us.max(next.most_delay_us);
        record.losses = record.losses.saturating_add(next.losses);
        record.loss_delay_us = record.loss_delay_us.max(next.loss_delay_us);
        record.marked = record.marked.saturating_add(next.marked);
    }

    fn closed(&self) -> Record {
        Record {
            delay_us: self.delay.value(),
            least_delay_us: self.least_delay.value(),
            ..self.record
        }
    }
}

#[cfg(test)]
impl Record {
    /// A round of 100 ms and 100 kB, with room in the window and no loss.
    pub const PLAIN: Record = Record {
        end_ns: 100_000_000,
        elapsed_ns: 100_000_000,
        delivered_bytes: 100_000,
        busy_ns: 100_000_000,
        item: SenderState::Congestion,
        otherwise: SenderState::Congestion,
        idle_ns: 0,
        full_ns: 0,
        recovery_ns: 0,
        gap_ns: 0,
        peak_bytes: 100_000,
        window_bytes: 1_000_000,
        delay_us: 100_000,
        least_delay_us: 100_000,
        most_delay_us: 100_000,
        losses: 0,
        loss_delay_us: 0,
        marked: 0,
    };
}

/// Return the total duration of rounds.
pub fn elapsed_ns<'a>(records: impl Iterator<Item = &'a Record>) -> i64 {
    records.fold(0, |sum: i64, record| sum.saturating_add(record.elapsed_ns))
}

/// Round trips of one part of the path: sum and number in the current round, the last one, and the minimum of all.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    sum_us: u64,
    count: u32,
    last_us: u32,
    round_least_us: u32,
    round_most_us: u32,
    least_us: u32,
}

impl Delay {
    pub const NONE: Delay = Delay {
        sum_us: 0,
        count: 0,
        last_us: 0,
        round_least_us: u32::MAX,
        round_most_us: 0,
        least_us: u32::MAX,
    };

    #[inline(always)]
    pub fn add(&mut self, sample_us: u32) {
        self.sum_us += u64::from(sample_us);
        self.count += 1;
        self.last_us = sample_us;
        self.round_least_us = self.round_least_us.min(sample_us);
        self.round_most_us = self.round_most_us.max(sample_us);
    }

    /// Return the minimum of the finished rounds.
    pub fn least_us(&self) -> Option<u32> {
        (self.least_us != u32::MAX).then_some(self.least_us)
    }

    /// Return the mean, minimum and maximum of the finished round, and start the next.
    fn take_round(&mut self) -> Option<[u32; 3]> {
        let mean_us = self.sum_us.checked_div(u64::from(self.count))?;
        let least_us = std::mem::replace(&mut self.round_least_us, u32::MAX);
        self.least_us = self.least_us.min(least_us);
        let most_us = std::mem::take(&mut self.round_most_us);
        (self.sum_us, self.count) = (0, 0);
        Some([mean_us as u32, least_us, most_us])
    }
}

/// The path of a direction, measured by its rounds. Fields that every round accesses are in the first cache lines; the
/// rest is read once per several rounds.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct PathHistory {
    pub near: Delay,
    delivered_bytes: u64,
    round_queue: RoundQueue,
    loss_delay_us: u32,
    /// Present once something was lost.
    drops: Option<Box<Drops>>,
    /// Whether the sender is away from the capture point; `near` then holds the RTTs in between.
    is_away: bool,
    /// Whether loss was detected in this round.
    is_lossy: bool,
    is_marked: bool,
    is_disordered: bool,
    newest_count: u8,
    /// Newest trains by class and bin, recorded in batches so that few of them wait for memory.
    newest: [(u8, u16); NEWEST],
    /// Present once a flight was large enough to show it.
    response: Option<Box<Response>>,
    rates: [Rates; CLASSES],
    /// Rounds per record, and rounds in the open one.
    rounds_each: u32,
    rounds_open: u32,
    /// Placed here because every round reads these lines anyway.
    open: Option<Open>,
    records: Records,
    spans: LossSpans,
    /// Mean and maximum queueing delay, known once the connection is over.
    pub queue_ns: Option<(i64, i64)>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<PathHistory>() <= 512);

impl Default for PathHistory {
    fn default() -> Self {
        PathHistory::new(0, false)
    }
}

impl PathHistory {
    /// Start when `delivered_bytes` were delivered. `is_away`: the sender is away from the capture point.
    pub fn new(delivered_bytes: u64, is_away: bool) -> Self {
        PathHistory {
            near: Delay::NONE,
            delivered_bytes,
            round_queue: RoundQueue::default(),
            loss_delay_us: 0,
            drops: None,
            is_away,
            is_lossy: false,
            is_marked: false,
            is_disordered: false,
            newest_count: 0,
            newest: [(0, 0); NEWEST],
            response: None,
            rates: Default::default(),
            rounds_each: 1,
            rounds_open: 0,
            open: None,
            records: Records::default(),
            spans: LossSpans::default(),
            queue_ns: None,
        }
    }

    /// Add a train: its bytes, and the time in which they were delivered.
    pub fn add_train(&mut self, bytes: u64, elapsed_ns: i64, mss: u32) {
        let rate = bytes as f64 * 1e9 / elapsed_ns.max(1) as f64;
        let bin = ((rate / LEAST_RATE_BYTES_PER_S).log2().max(0.0) * BINS_PER_DOUBLING) as u16;
        let is_of = |least: &&u64| bytes >= **least * u64::from(mss.max(1));
        let class = CLASS_SEGMENTS.iter().filter(is_of).count() as u8;
        if usize::from(self.newest_count) >= NEWEST {
            self.enter_trains();
        }
        if let Some(place) = self.newest.get_mut(usize::from(self.newest_count)) {
            *place = (class, bin);
            self.newest_count += 1;
        }
    }

    #[inline(never)]
    fn enter_trains(&mut self) {
        // Prefetch all bins: a binary search would wait for memory at each step.
        self.rates.iter().for_each(|rates| ask_for_items(rates));
        for (class, bin) in newest(&self.newest, self.newest_count) {
            if let Some(rates) = self.rates.get_mut(class) {
                enter(rates, bin, 1);
            }
        }
        self.newest_count = 0;
    }

    /// Note that loss was detected, with the bytes in flight.
    pub fn note_loss(&mut self, far: &Delay, flight_bytes: u32) {
        self.is_lossy = true;
        let delay_us = far.last_us.saturating_add(self.near.last_us);
        self.loss_delay_us = self.loss_delay_us.max(delay_us);
        let is_timed = !self.is_away || self.near.last_us > 0;
        let drops = self.drops.get_or_insert_with(Box::default);
        drops.begin(flight_bytes, if is_timed { delay_us } else { 0 });
    }

    /// Return the longest round trip before much of a flight was dropped.
    pub fn drops_at_us(&self) -> Option<u32> {
        self.drops.as_ref()?.most_delay_us()
    }

    /// Note that the receiver echoed a mark.
    pub fn note_mark(&mut self) {
        self.is_marked = true;
    }

    /// Note that these bytes were retransmitted.
    pub fn note_filled(&mut self, seq: Seq, end: Seq) {
        if let Some(drops) = &mut self.drops {
            drops.resend(seq, end);
        }
    }

    /// Note a retransmission, with the bytes in flight that SACK has not reported.
    pub fn note_resent(&mut self, cause: RetransmissionCause, pipe_bytes: u32, mss: u32) {
        if self.is_away {
            return;
        }
        self.catch_up();
        if let Some(response) = &mut self.response {
            response.note_resent(cause, pipe_bytes, mss);
        }
    }

    /// Note a duplicate ACK or SACK report.
    pub fn note_disorder(&mut self) {
        self.is_disordered = true;
    }

    /// Note how the sender's flight changed in a round. Away from the sender, the captured flight is not its window.
    fn note_moves(&mut self, over: &EndedRound) {
        let (record, mss) = (&over.record, over.mss);
        if self.is_away {
            return;
        }
        match &mut self.response {
            // The response is not followed yet, so disorder cannot disturb it.
            None if record.peak_bytes < mss.saturating_mul(RESPONSE_SEGMENTS) => return,
            Some(response) if over.is_disordered => response.note_disorder(),
            _ => {}
        }
        self.response
            .get_or_insert_with(Box::default)
            .end_round(&Moved {
                end_ns: record.end_ns,
                elapsed_ns: record.elapsed_ns,
                held_ns: record.idle_ns.max(record.full_ns),
                peak_bytes: record.peak_bytes,
                mss,
                is_recovering: over.is_recovering,
                is_marked: record.marked > 0,
            });
    }

    /// Return the sender's response to losses and marks, if its flights were large enough to show it.
    pub fn response(&self) -> Option<&Response> {
        self.response.as_deref()
    }

    /// Return the throughput between losses, if it was steady.
    pub fn steady(&self) -> Option<Steady> {
        self.spans.steady()
    }

    /// End a round, with the total delivered so far. Return its mean round trip; 0 without a sample.
    #[inline]
    pub fn end_round(
        &mut self,
        mut over: EndedRound,
        far: &mut Delay,
        delivered_bytes: u64,
    ) -> u32 {
        let record = &mut over.record;
        record.delivered_bytes = delivered_bytes.saturating_sub(self.delivered_bytes);
        self.delivered_bytes = delivered_bytes;
        let rounds = (far.take_round(), self.near.take_round());
        let of_both = match (self.is_away, rounds) {
            (false, (Some(far), _)) => Some((far, [0; 3])),
            (true, (far_round, Some(near))) => Some((far_round.unwrap_or([far.last_us; 3]), near)),
            _ => None,
        };
        if let Some((far, near)) = of_both {
            let sum = |place: usize| far[place].saturating_add(near[place]);
            (record.delay_us, record.least_delay_us) = (sum(0), sum(1));
            record.most_delay_us = sum(2);
        }
        record.losses = u32::from(std::mem::take(&mut self.is_lossy));
        record.loss_delay_us = std::mem::take(&mut self.loss_delay_us);
        record.marked = u32::from(std::mem::take(&mut self.is_marked));
        over.is_disordered = std::mem::take(&mut self.is_disordered);
        let delay_us = record.delay_us;
        if !self.round_queue.push(&over) {
            self.catch_up();
            self.take_in(&over);
        }
        delay_us
    }

    /// Process the queued rounds.
    #[inline(never)]
    fn catch_up(&mut self) {
        if self.round_queue.is_empty() {
            return;
        }
        ask_for_all(self);
        if let Some(response) = &self.response {
            ask_for_all(response.as_ref());
        }
        self.records.ask_for_end();
        let waiting = self.round_queue.take();
        waiting.rounds().for_each(|over| self.take_in(&over));
        self.round_queue.put_back(waiting);
    }

    fn take_in(&mut self, over: &EndedRound) {
        self.note_moves(over);
        let record = &over.record;
        (self.spans).end_round(
            record.elapsed_ns,
            record.delivered_bytes,
            record.losses > 0,
            record.is_held(),
        );
        match &mut self.open {
            Some(open) => open.add(record),
            None => {
                if self.records.len() >= MAX_RECORDS {
                    self.halve();
                }
                if self.rounds_each == 1 {
                    self.records.push(record);
                    return;
                }
                self.open = Some(Open::from(record));
            }
        }
        self.rounds_open += 1;
        if self.rounds_open >= self.rounds_each {
            self.close_record();
        }
    }

    /// End with the connection: drain the queue, and close the open record.
    pub fn close(&mut self) {
        self.catch_up();
        self.close_record();
        self.round_queue.end();
    }

    /// Free the rounds and trains, which are no longer needed.
    pub fn let_go(&mut self) {
        (self.records, self.rates) = Default::default();
    }

    /// Close the open record.
    fn close_record(&mut self) {
        if let Some(open) = self.open.take() {
            self.records.push(&open.closed());
        }
        self.rounds_open = 0;
    }

    /// Return the closed records.
    pub fn records(&self) -> Vec<Record> {
        self.records.unpack()
    }

    /// Return the trains of these classes, shortest to longest, by rate.
    pub fn trains(&self, classes: std::ops::Range<usize>) -> Rates {
        let mut rates = Rates::new();
        for (bin, count) in (self.rates.get(classes.clone()).into_iter().flatten()).flatten() {
            enter(&mut rates, *bin, *count);
        }
        for (_, bin) in
            newest(&self.newest, self.newest_count).filter(|(class, _)| classes.contains(class))
        {
            enter(&mut rates, bin, 1);
        }
        rates
    }

    /// Return the minimum RTT of the whole path; `far` is the part beyond the capture point.
    pub fn base_us(&self, far: &Delay) -> Option<u32> {
        let near_us = if self.is_away {
            self.near.least_us()?
        } else {
            0
        };
        Some(far.least_us()?.saturating_add(near_us))
    }

    #[cold]
    fn halve(&mut self) {
        self.records = self.records.halved();
        self.rounds_each *= 2;
    }
}
