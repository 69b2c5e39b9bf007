//! Whether the path was full: judged when a connection is over, of all its rounds, before window, loss and application.
//!
//! Comes in: trains and rounds of a direction. Goes out: the bottleneck's rate, and time that belongs to another item than the
//! one that its round was charged to. A window that is full above a standing queue gains nothing when it grows, and a loss
//! by which a full queue overflows is a symptom: lifting either would not have ended the transfer sooner.

use std::ops::Range;

use crate::timing::item::Item;
use crate::timing::path::{rate_of, Delay, Path, Rates, Record};

/// Share of the long trains at the plateau, and the least of them.
const LONG_SHARE: f64 = 0.08;
const LEAST_LONG: u32 = 4;
/// Trains of any length that show a rate which most never had: of the bursts at the start, or after a pause.
const LEAST_FAST: u32 = 5;
/// Fewer trains of a length say too little: shorter ones are taken in.
const LEAST_TRAINS: u32 = 12;
/// Bins so far apart are not the same rate.
const DIFFERENT_BINS: u16 = 4;
/// Share of the bottleneck's rate that is all of it: what rounds cut off at their ends takes the rest.
const FULL: f64 = 0.85;
/// Share at which a loss may be the queue's, and below which a rate is certainly not the path's.
const NEAR: f64 = 0.8;
const SPARE: f64 = 0.7;
/// A queue that never empties in a round keeps the path full where so much of its rate is had at least: more where the
/// window is full now and then, and the queue may be another's.
const SHARED: f64 = 0.15;
const OWN: f64 = 0.4;
/// One of so many parts of a round that a window must be full to hold it.
const HELD_SHARE: i64 = 5;
/// Segments that wait for each other without any queue: what delayed ACKs and bursts of two make.
const QUEUED_SEGMENTS: f64 = 3.0;
/// What clocks, timers and the receiver's delay of an ACK add.
const STANDING_LEAST_US: u32 = 500;
const WAITING_LEAST_US: u32 = 1000;
const WAITING_MOST_US: u32 = 4000;
/// Rounds of one flight that a congestion window would have widened by several segments.
const FLAT_ROUNDS: usize = 16;
const FLAT_SEGMENTS: u32 = 3;
const FLAT_LEAST_SEGMENTS: u32 = 8;

/// Time of an item that is another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub from_ns: i64,
    pub to_ns: i64,
    pub item: Item,
    pub into: Item,
    pub span_ns: i64,
}

/// What limits the rate on the path.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    pub bytes_per_s: f64,
    /// The least round trip; None where none was timed.
    pub base_us: Option<u32>,
}

impl Bottleneck {
    /// The plateau of the trains' rates, where they have one. `far`: round trips between capture point and receiver.
    pub fn of(path: &Path, far: &Delay) -> Option<Bottleneck> {
        let base_us = path.base_us(far);
        let long = [2..3, 1..3, 0..3]
            .into_iter()
            .map(|classes| path.trains(classes))
            .find(|rates| number(rates) >= LEAST_TRAINS)
            .and_then(|rates| plateau(&rates, LONG_SHARE, LEAST_LONG));
        let fast_bin = plateau(&path.trains(0..3), 0.0, LEAST_FAST);
        let at = |bin: u16| Bottleneck {
            bytes_per_s: rate_of(bin),
            base_us,
        };
        match (long.map(at), fast_bin.map(at)) {
            (Some(slow), Some(fast)) if fast_bin >= long.map(|bin| bin + DIFFERENT_BINS) => {
                // Where nothing waited no queue spaced the long trains: the bursts of the start are the better witness.
                Some(if slow.had_queue(path.records()) {
                    slow
                } else {
                    fast
                })
            }
            (long, short) => long.or(short),
        }
    }

    /// Share of its rate that a round had.
    fn used(&self, record: &Record) -> f64 {
        record.delivered_bytes as f64 * 1e9 / (self.bytes_per_s * record.elapsed_ns.max(1) as f64)
    }

    /// How long segments wait that stand in a queue of so many.
    fn queue_us(&self, segments: f64, mss: u32) -> u32 {
        (segments * f64::from(mss) * 1e6 / self.bytes_per_s) as u32
    }

    /// Whether segments waited in most of the rounds that went at its rate.
    fn had_queue(&self, records: &[Record]) -> bool {
        let Some(base_us) = self.base_us else {
            return false;
        };
        let waited_us = base_us + (base_us / 10).max(WAITING_LEAST_US);
        let (mut at_it, mut queued) = (0u32, 0u32);
        for record in records.iter().filter(|record| self.used(record) >= FULL) {
            at_it += 1;
            queued += u32::from(record.delay_us >= waited_us);
        }
        queued * 2 > at_it
    }

    /// Round trips from which on segments waited in a queue: one that never emptied, and one that was there at all.
    fn waits_us(&self, mss: u32) -> Option<(u32, u32)> {
        let base_us = self.base_us?;
        let queued_us = self.queue_us(QUEUED_SEGMENTS, mss);
        let part_us = base_us / 20;
        let standing_us = queued_us.max(part_us).max(STANDING_LEAST_US);
        let waiting_us = queued_us.max(part_us.clamp(WAITING_LEAST_US, WAITING_MOST_US));
        Some((base_us + standing_us, base_us + waiting_us))
    }

    /// Time that belongs to another item, by all that the rounds show.
    pub fn moves(&self, records: &[Record], mss: u32) -> Vec<Move> {
        let (standing_us, waiting_us) = self.waits_us(mss).unwrap_or((u32::MAX, u32::MAX));
        let flat = flat_runs(records, mss);
        let mut moves = Vec::new();
        let (mut was_near, mut overflowed) = (false, false);
        for (place, record) in records.iter().enumerate() {
            let used = self.used(record);
            let least_used = if record.full_ns > 0 { OWN } else { SHARED };
            let stands = record.least_delay_us >= standing_us && used >= least_used;
            // Without a queue it is the window that keeps a sender just below the path's rate.
            let is_held =
                record.full_ns >= record.elapsed_ns / HELD_SHARE && record.delay_us < waiting_us;
            let (is_full, is_near) = (used >= FULL || stands, used >= NEAR || stands);
            if record.losses > 0 {
                let waited_us = record.loss_delay_us.max(record.most_delay_us);
                overflowed = (is_near || was_near) && waited_us >= waiting_us;
            } else if record.item != Item::AfterLoss && record.recovery_ns == 0 {
                overflowed = false;
            }
            was_near = is_near;
            let mut give = |item: Item, into: Item, span_ns: i64| {
                if span_ns > 0 && item != into {
                    moves.push(Move {
                        from_ns: record.end_ns.saturating_sub(record.elapsed_ns),
                        to_ns: record.end_ns,
                        item,
                        into,
                        span_ns,
                    });
                }
            };
            if is_held && used >= SPARE {
                if matches!(record.item, Item::Path | Item::Congestion) {
                    give(record.item, Item::WindowFull, record.busy_ns);
                }
            } else if is_full || (overflowed && record.item == Item::AfterLoss) {
                give(record.item, Item::Path, record.busy_ns);
                give(Item::FastRecovery, Item::Path, record.recovery_ns);
            } else if flat.iter().any(|run| run.contains(&place)) {
                give(record.item, Item::SendBuffer, record.busy_ns);
            } else if record.item == Item::Path && used < SPARE {
                give(Item::Path, record.otherwise, record.busy_ns);
            }
            if is_full && !is_held {
                give(Item::WindowFull, Item::Path, record.full_ns);
            }
            if used >= FULL && !is_held {
                give(Item::Application, Item::Path, record.idle_ns);
            }
        }
        moves
    }

    /// By how much round trips were longer than the least: the mean over time, and of the round that waited longest.
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

fn number(rates: &Rates) -> u32 {
    rates.iter().map(|(_, count)| count).sum()
}

/// The fullest of the three highest adjacent bins that hold such a share of the trains, and at least so many of them.
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

/// Rounds of which the flight stayed the same before anything was lost. A congestion window would have grown, by half a
/// segment a round at least (RFC 9438 §4.3, RFC 5681 §3.1).
fn flat_runs(records: &[Record], mss: u32) -> Vec<Range<usize>> {
    let until = records.iter().position(|record| record.losses > 0);
    let calm = &records[..until.unwrap_or(records.len())];
    let mut runs = Vec::new();
    let mut from = 0;
    while from < calm.len() {
        let (mut least, mut most) = (u32::MAX, 0);
        let run = (calm[from..].iter())
            .take_while(|record| {
                (least, most) = (least.min(record.peak_bytes), most.max(record.peak_bytes));
                matches!(
                    record.item,
                    Item::Congestion | Item::SendBuffer | Item::Path
                ) && most - least <= mss.saturating_mul(FLAT_SEGMENTS)
            })
            .count();
        if run >= FLAT_ROUNDS && calm[from].peak_bytes >= mss.saturating_mul(FLAT_LEAST_SEGMENTS) {
            runs.push(from..from + run);
        }
        from += run.max(1);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    /// 100 kB a round of 100 ms.
    const PATH: Bottleneck = Bottleneck {
        bytes_per_s: 1e6,
        base_us: Some(100_000),
    };
    const ROUND: Record = Record {
        end_ns: 100_000_000,
        elapsed_ns: 100_000_000,
        delivered_bytes: 95_000,
        busy_ns: 100_000_000,
        item: Item::Congestion,
        otherwise: Item::Congestion,
        idle_ns: 0,
        full_ns: 0,
        recovery_ns: 0,
        peak_bytes: 100_000,
        window_bytes: 1_000_000,
        delay_us: 100_000,
        least_delay_us: 100_000,
        most_delay_us: 100_000,
        losses: 0,
        loss_delay_us: 0,
    };

    fn moved(records: &[Record]) -> Vec<(Item, Item, i64)> {
        let moves = PATH.moves(records, MSS);
        let told = |each: &Move| (each.item, each.into, each.span_ns / 1_000_000);
        moves.iter().map(told).collect()
    }

    #[test]
    fn a_round_at_the_rate_is_the_paths() {
        assert_eq!(moved(&[ROUND]), [(Item::Congestion, Item::Path, 100)]);
        let slow = Record {
            delivered_bytes: 60_000,
            ..ROUND
        };
        assert_eq!(moved(&[slow]), []);
        let was_best = Record {
            item: Item::Path,
            otherwise: Item::SendBuffer,
            ..slow
        };
        assert_eq!(moved(&[was_best]), [(Item::Path, Item::SendBuffer, 100)]);
    }

    #[test]
    fn a_full_window_is_the_paths_above_a_queue_only() {
        let window = Record {
            busy_ns: 0,
            item: Item::WindowFull,
            full_ns: 100_000_000,
            ..ROUND
        };
        assert_eq!(moved(&[window]), []);
        let queued = Record {
            delay_us: 300_000,
            least_delay_us: 290_000,
            ..window
        };
        assert_eq!(moved(&[queued]), [(Item::WindowFull, Item::Path, 100)]);
    }

    #[test]
    fn a_queue_that_never_empties_keeps_the_path_full_whoever_fills_it() {
        let shared = Record {
            delivered_bytes: 20_000,
            delay_us: 180_000,
            least_delay_us: 150_000,
            ..ROUND
        };
        assert_eq!(moved(&[shared]), [(Item::Congestion, Item::Path, 100)]);
        let emptied = Record {
            least_delay_us: 100_000,
            ..shared
        };
        assert_eq!(moved(&[emptied]), []);
    }

    #[test]
    fn a_loss_by_which_a_full_queue_overflowed_is_the_paths_and_what_follows_too() {
        let before = Record {
            most_delay_us: 200_000,
            ..ROUND
        };
        let after = Record {
            delivered_bytes: 50_000,
            item: Item::AfterLoss,
            losses: 1,
            busy_ns: 60_000_000,
            recovery_ns: 40_000_000,
            ..ROUND
        };
        let by_the_queue = Record {
            loss_delay_us: 200_000,
            ..after
        };
        let regained = Record { losses: 0, ..after };
        assert_eq!(
            moved(&[before, by_the_queue, regained])[1..],
            [
                (Item::AfterLoss, Item::Path, 60),
                (Item::FastRecovery, Item::Path, 40),
                (Item::AfterLoss, Item::Path, 60),
                (Item::FastRecovery, Item::Path, 40),
            ]
        );
        let at_random = Record {
            loss_delay_us: 100_000,
            ..after
        };
        assert_eq!(moved(&[before, at_random, regained]).len(), 1);
    }

    #[test]
    fn a_flight_that_does_not_grow_is_the_buffers() {
        let flat = Record {
            delivered_bytes: 30_000,
            peak_bytes: 30_000,
            ..ROUND
        };
        let grown = |round: u32| Record {
            peak_bytes: 30_000 + round * 500,
            ..flat
        };
        assert!(moved(&[flat; 16])
            .iter()
            .all(|(_, into, _)| *into == Item::SendBuffer));
        assert_eq!(moved(&[flat; 16]).len(), 16);
        assert_eq!(moved(&(0..16).map(grown).collect::<Vec<_>>()), []);
        assert_eq!(moved(&[flat; 15]), []);
    }

    #[test]
    fn a_plateau_is_the_highest_rate_that_many_trains_had() {
        let rates: Rates = vec![(10, 50), (40, 9), (41, 3), (90, 1)];
        assert_eq!(plateau(&rates, 0.08, 4), Some(40));
        assert_eq!(plateau(&rates, 0.3, 4), Some(10));
        assert_eq!(plateau(&rates, 0.0, 1), Some(90));
        assert_eq!(plateau(&rates, 0.0, 60), None);
    }

    #[test]
    fn bursts_of_the_start_tell_the_rate_where_nothing_ever_waited() {
        let path = |delay_us: u32| {
            let mut path = Path::default();
            for _ in 0..100 {
                path.add_train(24_000, 24_000_000, MSS);
            }
            for _ in 0..5 {
                path.add_train(4_000, 1_000_000, MSS);
            }
            let mut far = Delay::NONE;
            for (delivered_bytes, sample_us) in [(1, 100_000), (95_001, delay_us)] {
                far.add(sample_us);
                path.end_round(ROUND, &mut far, delivered_bytes);
            }
            Bottleneck::of(&path, &far).unwrap().bytes_per_s
        };
        assert!((path(100_500) / 4e6 - 1.0).abs() < 0.05);
        assert!((path(200_000) / 1e6 - 1.0).abs() < 0.05);
    }
}
