//! The bottleneck of a path: its rate, and whether it queues or drops the excess.
//!
//! In: trains and rounds of a direction, and the throughput between its losses. Out: the rate, with the minimum RTT.
//! `reassignment` uses it.

use crate::tcp::budget::reassignment::SPARE;
use crate::tcp::path::history::{elapsed_ns, rate_of, Delay, PathHistory, Rates, Record};
use crate::tcp::path::loss_spans::Steady;

/// Minimum share and number of long trains at the plateau.
const LONG_SHARE: f64 = 0.08;
const LEAST_LONG: u32 = 4;
/// Minimum number, and share, of trains of any length that show a higher rate than most others, such as bursts at the
/// start or after a pause.
const LEAST_FAST: u32 = 5;
const FAST_TRAINS_SHARE: f64 = 0.005;
/// A rate that exceeds a full window's by less than this factor may be the window's own.
const PACED: f64 = 1.5;
/// With fewer trains of a length, shorter ones are included.
const LEAST_TRAINS: u32 = 12;
/// Bins this far apart are different rates.
const DIFFERENT_BINS: u16 = 4;
/// Share of the bottleneck's rate that counts as all of it: the ends of rounds account for the rest.
pub const FULL: f64 = 0.85;
/// Segments that wait for each other even without a queue, because of delayed ACKs and bursts of two.
const QUEUED_SEGMENTS: f64 = 3.0;
/// Delay added by clocks, timers and the receiver's delayed ACKs.
const STANDING_LEAST_US: u32 = 500;
const WAITING_LEAST_US: u32 = 1000;
const WAITING_MOST_US: u32 = 4000;
/// A policer's bucket empties after about the same number of bytes each time; random losses come after any number.
const POLICED_SPREAD: f64 = 0.65;
/// Minimum queue before a loss, in segments at the flow's rate, for the loss to count as queued. At the link's rate it
/// is longer if another flow uses the rest.
const WAITED_SEGMENTS: f64 = 0.75;
/// Minimum share of losses without a queue for a policer; otherwise a queue drops the packets.
const UNQUEUED_SHARE: f64 = 0.8;
/// Factor by which trains exceed the throughput, and their share of all trains, if nothing queues.
const FAST: f64 = 1.3;
const FAST_SHARE: f64 = 0.15;
/// Minimum number of rounds at one rate, and their share of the time, if no train shows it.
const LEAST_ROUNDS: usize = 8;
const ROUNDS_SHARE: f64 = 0.5;
/// Rounds whose rates differ by less count as equal; their flights must differ by at least the second factor to show
/// that the rate does not depend on the flight.
const SAME_RATE: f64 = 1.1;
const OTHER_FLIGHT: u32 = 3;
/// A smaller flight is not limited by a send buffer: Linux allocates at least 16 KiB (tcp_wmem).
const FEW_SEGMENTS: u32 = 8;
const CALM_ROUNDS: usize = 16;
/// Largest gap between evenly spaced segments, in serialization times.
const EVEN: f64 = 2.5;

/// The bottleneck's rate and behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    pub bytes_per_s: f64,
    /// Minimum RTT; None if none was measured.
    pub base_us: Option<u32>,
    /// Whether the excess over the rate is dropped, and nothing is queued.
    pub is_policed: bool,
    /// Whether the rate was the same between all losses, whatever was in flight.
    pub is_steady: bool,
}

impl Bottleneck {
    /// Measure by the best available evidence: throughput between losses, the trains, or the rounds themselves.
    /// `records`: the path's rounds. `far`: RTTs between the capture point and the receiver.
    pub fn of(path: &PathHistory, records: &[Record], far: &Delay, mss: u32) -> Option<Bottleneck> {
        let plain = Bottleneck {
            bytes_per_s: 0.0,
            base_us: path.base_us(far),
            is_policed: false,
            is_steady: false,
        };
        let steady = path.steady().filter(Steady::is_of_the_path);
        if let Some(steady) = steady {
            let found = plain.at_steady(steady, path, records, mss);
            // Other traffic through the same queue is not counted, but spaces the trains.
            let link = plain.by_trains(path, records).filter(|_| !found.is_policed);
            return Some(link.map_or(found, |link| found.at(link.bytes_per_s)));
        }
        let found = match plain.by_trains(path, records) {
            Some(found) if found.is_the_windows_pace(records, mss) => return None,
            Some(found) if found.is_the_writers_pace(records, mss) => return None,
            Some(found) => found,
            None => (plain.by_rounds(records, mss)).or_else(|| plain.by_few(records, mss))?,
        };
        Some(Bottleneck {
            is_policed: found.drops_below_its_rate(path, records),
            ..found
        })
    }

    /// Return whether much of a flight was dropped without a queue, although the path carries more: a policer drops the
    /// excess while its bucket is empty. A policer does not change the rate of trains.
    fn drops_below_its_rate(&self, path: &PathHistory, records: &[Record]) -> bool {
        let (Some(base_us), Some(delay_us)) = (self.base_us, path.drops_at_us()) else {
            return false;
        };
        let is_unqueued = delay_us < base_us.saturating_add((base_us / 20).max(STANDING_LEAST_US));
        let struck = records.iter().filter(|record| record.losses > 0);
        let below = struck.clone().filter(|record| self.used(record) < SPARE);
        is_unqueued && below.count() * 2 > struck.count()
    }

    fn at(self, bytes_per_s: f64) -> Self {
        Bottleneck {
            bytes_per_s,
            ..self
        }
    }

    fn at_steady(self, steady: Steady, path: &PathHistory, records: &[Record], mss: u32) -> Self {
        let found = Bottleneck {
            is_steady: true,
            ..self.at(steady.bytes_per_s)
        };
        let trains = path.trains(0..3);
        // A queue spaces all segments that leave it; a policer does not change the spacing.
        let is_fast = |(bin, _): &&(u16, u32)| rate_of(*bin) > steady.bytes_per_s * FAST;
        let is_policed = if number(&trains) >= LEAST_TRAINS {
            let fast: u32 = trains.iter().filter(is_fast).map(|(_, count)| count).sum();
            f64::from(fast) >= f64::from(number(&trains)) * FAST_SHARE
        } else if number(&trains) >= LEAST_LONG && !trains.iter().any(|train| is_fast(&train)) {
            false
        } else {
            steady.size_spread <= POLICED_SPREAD && found.drops_unqueued(records, mss)
        };
        Bottleneck {
            is_policed,
            ..found
        }
    }

    /// Return whether nearly all losses occurred without a queue.
    fn drops_unqueued(&self, records: &[Record], mss: u32) -> bool {
        let Some(base_us) = self.base_us else {
            return false;
        };
        let queued_us = self.queue_us(WAITED_SEGMENTS, mss).max(STANDING_LEAST_US);
        let waited_us = base_us.saturating_add(queued_us.max(base_us / 20));
        let struck = records.iter().filter(|record| record.losses > 0);
        let (mut all, mut unqueued) = (0u32, 0u32);
        for record in struck {
            all += 1;
            unqueued += u32::from(record.loss_delay_us < waited_us);
        }
        f64::from(unqueued) > f64::from(all) * UNQUEUED_SHARE
    }

    /// Return the plateau of the trains' rates, if there is one.
    fn by_trains(self, path: &PathHistory, records: &[Record]) -> Option<Self> {
        let long = [2..3, 1..3, 0..3]
            .into_iter()
            .map(|classes| path.trains(classes))
            .find(|rates| number(rates) >= LEAST_TRAINS)
            .and_then(|rates| plateau(&rates, LONG_SHARE, LEAST_LONG));
        // A full window spaces the trains by its own ACKs, however many there are: only bursts show the path.
        let share = if is_mostly(records, Record::is_windowed) {
            0.0
        } else {
            FAST_TRAINS_SHARE
        };
        let fast_bin = plateau(&path.trains(0..3), share, LEAST_FAST);
        let at = |bin: u16| self.at(rate_of(bin));
        match (long.map(at), fast_bin.map(at)) {
            (Some(slow), Some(fast)) if fast_bin >= long.map(|bin| bin + DIFFERENT_BINS) => {
                // Without a queue nothing spaced the long trains: the initial bursts are better evidence.
                Some(if slow.had_queue(records) { slow } else { fast })
            }
            (long, short) => long.or(short),
        }
    }

    /// Return whether the rate is no more than that of ACKs of a full window, without a queue as evidence of the path.
    fn is_the_windows_pace(&self, records: &[Record], mss: u32) -> bool {
        let standing_us = self.waits_us(mss).map_or(u32::MAX, |waits_us| waits_us.0);
        let is_queued = is_mostly(records, |record| record.delay_us >= standing_us);
        is_mostly(records, Record::is_windowed) && self.is_near_the_mean(records) && !is_queued
    }

    /// Return whether the rate is no more than that of the application's writes, while round trips show no queue.
    fn is_the_writers_pace(&self, records: &[Record], mss: u32) -> bool {
        let standing_us = self.waits_us(mss).map_or(0, |waits_us| waits_us.0);
        let is_unqueued = is_mostly(records, |record| {
            record.delay_us > 0 && record.delay_us < standing_us && record.losses == 0
        });
        is_mostly(records, Record::is_idle) && self.is_near_the_mean(records) && is_unqueued
    }

    /// Return whether the rate is little more than the throughput including pauses.
    fn is_near_the_mean(&self, records: &[Record]) -> bool {
        let delivered = (records.iter()).fold(0u64, |sum, record| {
            sum.saturating_add(record.delivered_bytes)
        });
        let mean = delivered as f64 * 1e9 / elapsed_ns(records.iter()).max(1) as f64;
        self.bytes_per_s < mean * PACED
    }

    /// Return the rate of most rounds despite different flights, or despite few segments in flight that queued.
    fn by_rounds(self, records: &[Record], mss: u32) -> Option<Self> {
        let mut free: Vec<(f64, &Record)> = (records.iter())
            .filter(|record| record.elapsed_ns > 0 && !record.is_held())
            .map(|record| (record.rate(), record))
            .filter(|(rate, _)| *rate > 0.0)
            .collect();
        free.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all_ns = elapsed_ns(free.iter().map(|(_, record)| *record));
        let same = (0..free.len())
            .map(|from| {
                let until = free.partition_point(|(rate, _)| *rate <= free[from].0 * SAME_RATE);
                &free[from..until]
            })
            .max_by_key(|run| elapsed_ns(run.iter().map(|(_, record)| *record)))?;
        let same_ns = elapsed_ns(same.iter().map(|(_, record)| *record));
        if same.len() < LEAST_ROUNDS || (same_ns as f64) < all_ns as f64 * ROUNDS_SHARE {
            return None;
        }
        let found = self.at(same[same.len() / 2].0);
        let peaks = same.iter().map(|(_, record)| record.peak_bytes);
        let (least, most) = (peaks.clone().min()?, peaks.max()?);
        // Without a round trip it is unknown whether a segment queued: near a receiver without timestamps none is measured,
        // and with slow ones few are.
        let timed = same.iter().filter(|(_, record)| record.delay_us > 0);
        let has_waited = self.base_us.is_some_and(|base_us| {
            let waited_us = base_us.saturating_add(found.queue_us(0.5, mss));
            let waited = timed
                .clone()
                .filter(|(_, record)| record.delay_us >= waited_us);
            waited.count() * 2 > timed.clone().count()
        });
        let differs = u64::from(most) * 2 >= u64::from(least) * u64::from(OTHER_FLIGHT);
        let is_few = most < mss.saturating_mul(FEW_SEGMENTS);
        // A flight this small that stays constant without loss is limited by the network card, which takes one segment
        // at a time: any window would have grown (by at least half a segment per round, RFC 9438 §4.3).
        let spaced_ns = EVEN * f64::from(found.queue_us(1.0, mss)) * 1e3;
        let even = same
            .iter()
            .filter(|(_, record)| (record.gap_ns as f64) < spaced_ns);
        let is_calm = same.len() >= CALM_ROUNDS
            && even.count() * 2 > same.len()
            && records
                .iter()
                .map(|record| record.losses as usize)
                .sum::<usize>()
                * CALM_ROUNDS
                <= records.len();
        ((has_waited && (differs || is_few)) || (is_few && is_calm)).then_some(found)
    }

    /// Return the rate of most rounds that had nothing in flight for part of the time, if full segments follow each
    /// other evenly and queue when two are in transit. A network card that takes few segments at a time (TCP small
    /// queues, `tcp_small_queue_check`, net/ipv4/tcp_output.c) leaves nothing in flight between two segments; an
    /// application that paces its writes causes no queue.
    fn by_few(self, records: &[Record], mss: u32) -> Option<Self> {
        let mut few: Vec<(f64, &Record)> = (records.iter())
            .filter(|record| record.peak_bytes < mss.saturating_mul(FEW_SEGMENTS))
            .filter(|record| !record.is_windowed())
            .map(|record| (record.rate(), record))
            .filter(|(rate, _)| *rate > 0.0)
            .collect();
        few.sort_by(|one, other| one.0.total_cmp(&other.0));
        let found = self.at(few.get(few.len() / 2)?.0);
        let near = 1.0 / SAME_RATE..=SAME_RATE;
        let spaced_ns = EVEN * f64::from(found.queue_us(1.0, mss)) * 1e3;
        let waited_us = self.base_us?.saturating_add(found.queue_us(0.5, mss));
        let same = few.iter().filter(|(rate, record)| {
            near.contains(&(rate / found.bytes_per_s))
                && (record.gap_ns as f64) < spaced_ns
                && record.delay_us >= waited_us
        });
        let same_ns = elapsed_ns(same.clone().map(|(_, record)| *record));
        let all_ns = elapsed_ns(records.iter());
        let is_most = same_ns as f64 >= all_ns as f64 * ROUNDS_SHARE;
        (same.count() >= CALM_ROUNDS && is_most).then_some(found)
    }

    /// Return the share of the bottleneck's rate that a round achieved.
    pub fn used(&self, record: &Record) -> f64 {
        record.delivered_bytes as f64 * 1e9 / (self.bytes_per_s * record.elapsed_ns.max(1) as f64)
    }

    /// Return the waiting time in a queue of this many segments.
    pub fn queue_us(&self, segments: f64, mss: u32) -> u32 {
        (segments * f64::from(mss) * 1e6 / self.bytes_per_s) as u32
    }

    /// Return whether segments queued in most of the rounds at the bottleneck's rate.
    fn had_queue(&self, records: &[Record]) -> bool {
        let Some(base_us) = self.base_us else {
            return false;
        };
        let waited_us = base_us.saturating_add((base_us / 10).max(WAITING_LEAST_US));
        let (mut at_it, mut queued) = (0u32, 0u32);
        for record in records.iter().filter(|record| self.used(record) >= FULL) {
            at_it += 1;
            queued += u32::from(record.delay_us >= waited_us);
        }
        queued * 2 > at_it
    }

    /// Return the round trips from which a queue never emptied, and from which there was a queue at all.
    pub fn waits_us(&self, mss: u32) -> Option<(u32, u32)> {
        let base_us = self.base_us?;
        let queued_us = self.queue_us(QUEUED_SEGMENTS, mss);
        let part_us = base_us / 20;
        let standing_us = queued_us.max(part_us).max(STANDING_LEAST_US);
        let waiting_us = queued_us.max(part_us.clamp(WAITING_LEAST_US, WAITING_MOST_US));
        Some((
            base_us.saturating_add(standing_us),
            base_us.saturating_add(waiting_us),
        ))
    }

    /// Return the queueing delay: the mean over time, and the mean of the longest round.
    pub fn queue_ns(&self, records: &[Record]) -> Option<(i64, i64)> {
        let base_us = self.base_us?;
        let (mut sum, mut elapsed_ns, mut most_us) = (0i128, 0i128, 0);
        for record in records.iter().filter(|record| record.delay_us > 0) {
            let waited_us = record.delay_us.saturating_sub(base_us);
            sum += i128::from(waited_us) * i128::from(record.elapsed_ns);
            elapsed_ns += i128::from(record.elapsed_ns);
            most_us = most_us.max(waited_us);
        }
        (elapsed_ns > 0).then(|| ((sum * 1000 / elapsed_ns) as i64, i64::from(most_us) * 1000))
    }
}

/// Return whether most of the rounds, by time, satisfy a condition.
fn is_mostly(records: &[Record], is_such: impl Fn(&Record) -> bool) -> bool {
    let such_ns = elapsed_ns(records.iter().filter(|record| is_such(record)));
    such_ns * 2 > elapsed_ns(records.iter())
}

fn number(rates: &Rates) -> u32 {
    rates.iter().map(|(_, count)| count).sum()
}

/// Return the fullest of the three highest adjacent bins that hold at least this share and number of the trains.
fn plateau(rates: &Rates, share: f64, least: u32) -> Option<u16> {
    let wanted = ((f64::from(number(rates)) * share).ceil() as u32).max(least);
    (0..rates.len()).rev().find_map(|place| {
        let top = rates[place].0;
        let three = rates[..=place].iter().rev();
        let three: Vec<_> = three.take_while(|(bin, _)| top - bin < 3).collect();
        let held: u32 = three.iter().map(|(_, count)| count).sum();
        let fullest = three.iter().rev().max_by_key(|(_, count)| count);
        fullest.filter(|_| held >= wanted).map(|(bin, _)| *bin)
    })
}

#[cfg(test)]
mod tests;
