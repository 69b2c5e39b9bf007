//! Whether the path was full: judged when a connection is over, of all its rounds, before window, loss and application.
//!
//! Comes in: trains and rounds of a direction. Goes out: the bottleneck's rate, and time that belongs to another item than the
//! one that its round was charged to. A window that is full above a standing queue gains nothing when it grows, and a loss
//! by which a full queue overflows is a symptom: lifting either would not have ended the transfer sooner.

use crate::budget_item::SenderState;
use crate::tcp::budget::constant_flight::flat_runs;
use crate::tcp::budget::reader_state::{ReaderState, FILLS};
use crate::tcp::path::bottleneck::{Bottleneck, FULL};
use crate::tcp::path::history::Record;

/// Share at which a loss may be the queue's, and below which a rate is certainly not the path's.
const NEAR: f64 = 0.8;
pub const SPARE: f64 = 0.7;
/// A queue that never empties in a round keeps the path full where so much of its rate is had at least: more where the
/// window is full now and then, and the queue may be another's.
const SHARED: f64 = 0.15;
const OWN: f64 = 0.4;
/// A sender whose longest silence is a smaller part of a round trip had something to send all the time.
const SILENT_PART: i64 = 4;

/// Time of an item that is another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub from_ns: i64,
    pub to_ns: i64,
    pub item: SenderState,
    pub into: SenderState,
    pub span_ns: i64,
}

/// Time that belongs to another item, by all that the rounds show.
pub fn moves(
    bottleneck: Option<&Bottleneck>,
    records: &[Record],
    base_us: Option<u32>,
    mss: u32,
) -> Vec<Move> {
    let waits_us = bottleneck.and_then(|bottleneck| bottleneck.waits_us(mss));
    let (standing_us, waiting_us) = waits_us.unwrap_or((u32::MAX, u32::MAX));
    let readings = ReaderState::of(records, bottleneck, base_us, waiting_us, mss);
    let mut flat = flat_runs(records, mss);
    if let Some(bottleneck) = bottleneck {
        // A full path keeps a flight as well.
        let is_full = |record: &&Record| bottleneck.used(record) >= FULL;
        flat.retain(|run| records[run.clone()].iter().filter(is_full).count() * 2 < run.len());
    }
    let mut moves = Vec::new();
    let (mut was_near, mut overflowed, mut has_lost) = (false, false, false);
    // The path asks for less in one round, and the flight grows back in several.
    let (mut marked_peak, mut before_peak) = (0, 0);
    for (place, record) in records.iter().enumerate() {
        let mut reassign = |item: SenderState, into: SenderState, span_ns: i64| {
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
        match readings[place] {
            ReaderState::Prompt => {}
            reading @ (ReaderState::Blocking | ReaderState::FillingWindow) => {
                reassign(record.item, SenderState::Reader, record.busy_ns);
                // A full window stays one: that the reader keeps it full is the judge's to say.
                if reading == ReaderState::FillingWindow || keeps_the_window_full(record) {
                    reassign(
                        SenderState::Application,
                        SenderState::Reader,
                        record.idle_ns,
                    );
                }
                continue;
            }
            ReaderState::DrainingAtEnd(span_ns) => {
                reassign(SenderState::Closed, SenderState::Reader, span_ns)
            }
        }
        let is_of_rounds = matches!(
            record.item,
            SenderState::Congestion
                | SenderState::AfterLoss
                | SenderState::Path
                | SenderState::SendBuffer
        );
        if record.marked > 0 {
            marked_peak = record.peak_bytes.max(before_peak).max(marked_peak);
        } else if record.peak_bytes > marked_peak {
            marked_peak = 0;
        }
        before_peak = record.peak_bytes;
        let is_asked_for_less = marked_peak > 0 && is_of_rounds;
        let is_cut_short = keeps_the_window_full(record);
        // A flight that stays the same because it comes to the window each time is the window's, however soon an ACK opens it.
        let held_by = if comes_to_the_window(record, mss) {
            SenderState::WindowFull
        } else {
            SenderState::SendBuffer
        };
        let Some(bottleneck) = bottleneck else {
            if is_asked_for_less {
                reassign(record.item, SenderState::Path, record.busy_ns);
            } else {
                if matches!(record.item, SenderState::SendBuffer | SenderState::Path)
                    && held_by == SenderState::WindowFull
                {
                    reassign(record.item, held_by, record.busy_ns);
                }
                if is_cut_short {
                    if record.item == SenderState::Application {
                        reassign(record.item, SenderState::WindowFull, record.busy_ns);
                    }
                    reassign(
                        SenderState::Application,
                        SenderState::WindowFull,
                        record.idle_ns,
                    );
                }
            }
            continue;
        };
        let used = bottleneck.used(record);
        has_lost |= record.losses > 0;
        if bottleneck.is_policed && has_lost && is_of_rounds {
            reassign(record.item, SenderState::Policer, record.busy_ns);
            reassign(
                SenderState::FastRecovery,
                SenderState::Policer,
                record.recovery_ns,
            );
            continue;
        }
        let is_steady = bottleneck.is_steady && used >= SPARE;
        let least_used = if record.full_ns > 0 { OWN } else { SHARED };
        let stands = record.least_delay_us >= standing_us && used >= least_used;
        // Without a queue it is the window that keeps a sender just below the path's rate, or the pace of its writer.
        let is_held = record.delay_us < waiting_us
            && (record.is_windowed() || record.item == SenderState::Application);
        let is_full = used >= FULL || stands || is_asked_for_less || is_steady;
        let is_near = used >= NEAR || stands;
        // Bursts may show a rate that is a little above the path's own.
        let is_at_its_best = record.item == SenderState::Path && used >= SPARE;
        if record.losses > 0 {
            let waited_us = record.loss_delay_us.max(record.most_delay_us);
            overflowed = (is_near || was_near) && waited_us >= waiting_us;
        } else if record.item != SenderState::AfterLoss && record.recovery_ns == 0 {
            overflowed = false;
        }
        was_near = is_near;
        if is_held && used >= SPARE {
            let is_the_windows = matches!(record.item, SenderState::Path | SenderState::Congestion)
                || (record.item == SenderState::Application && is_cut_short);
            if is_the_windows {
                reassign(record.item, SenderState::WindowFull, record.busy_ns);
            }
        } else if !is_full && !is_at_its_best && flat.iter().any(|run| run.contains(&place)) {
            // Whatever the loss before: what a sender holds for good is not what the loss left of its window.
            reassign(record.item, held_by, record.busy_ns);
        } else if is_full || (overflowed && record.item == SenderState::AfterLoss) {
            reassign(record.item, SenderState::Path, record.busy_ns);
            reassign(
                SenderState::FastRecovery,
                SenderState::Path,
                record.recovery_ns,
            );
        } else if record.item == SenderState::Path && used < SPARE {
            reassign(SenderState::Path, record.otherwise, record.busy_ns);
        } else if record.item == SenderState::SendBuffer {
            reassign(SenderState::SendBuffer, held_by, record.busy_ns);
        } else if record.item == SenderState::Application && is_cut_short {
            reassign(
                SenderState::Application,
                SenderState::WindowFull,
                record.busy_ns,
            );
        }
        if is_full && !is_held {
            reassign(SenderState::WindowFull, SenderState::Path, record.full_ns);
        }
        if used >= FULL && !is_held {
            reassign(SenderState::Application, SenderState::Path, record.idle_ns);
        } else if is_cut_short {
            reassign(
                SenderState::Application,
                SenderState::WindowFull,
                record.idle_ns,
            );
        }
    }
    moves
}

/// Whether what was in flight filled the window, and the sender was never silent: a short segment was cut by what room there
/// was, though PSH ended it (Linux sets it for every half of the largest window that was written: `forced_push`,
/// net/ipv4/tcp.c), and not the end of what it had.
fn keeps_the_window_full(record: &Record) -> bool {
    let fills = u64::from(record.peak_bytes) * FILLS.1 >= u64::from(record.window_bytes) * FILLS.0;
    let is_long = record.gap_ns.saturating_mul(SILENT_PART) >= i64::from(record.delay_us) * 1000;
    // While the window is full, it keeps a sender silent.
    let is_silent = is_long && record.gap_ns > record.full_ns;
    fills && record.window_bytes > 0 && !is_silent
}

/// Whether what was in flight came to the window's end, but for less than a segment.
fn comes_to_the_window(record: &Record, mss: u32) -> bool {
    record.window_bytes > 0
        && record.full_ns > 0
        && record.peak_bytes.saturating_add(mss) > record.window_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    /// 100 kB a round of 100 ms.
    const PATH: Bottleneck = Bottleneck {
        bytes_per_s: 1e6,
        base_us: Some(100_000),
        is_policed: false,
        is_steady: false,
    };
    const ROUND: Record = Record {
        delivered_bytes: 95_000,
        ..Record::PLAIN
    };

    fn moved(records: &[Record]) -> Vec<(SenderState, SenderState, i64)> {
        let moves = moves(Some(&PATH), records, PATH.base_us, MSS);
        let told = |each: &Move| (each.item, each.into, each.span_ns / 1_000_000);
        moves.iter().map(told).collect()
    }

    #[test]
    fn a_round_at_the_rate_is_the_paths() {
        assert_eq!(
            moved(&[ROUND]),
            [(SenderState::Congestion, SenderState::Path, 100)]
        );
        let slow = Record {
            delivered_bytes: 60_000,
            ..ROUND
        };
        assert_eq!(moved(&[slow]), []);
        let was_best = Record {
            item: SenderState::Path,
            otherwise: SenderState::SendBuffer,
            ..slow
        };
        assert_eq!(
            moved(&[was_best]),
            [(SenderState::Path, SenderState::SendBuffer, 100)]
        );
    }

    #[test]
    fn a_full_window_is_the_paths_above_a_queue_only() {
        let window = Record {
            busy_ns: 0,
            item: SenderState::WindowFull,
            full_ns: 100_000_000,
            ..ROUND
        };
        assert_eq!(moved(&[window]), []);
        let queued = Record {
            delay_us: 300_000,
            least_delay_us: 290_000,
            ..window
        };
        assert_eq!(
            moved(&[queued]),
            [(SenderState::WindowFull, SenderState::Path, 100)]
        );
    }

    #[test]
    fn a_paced_writer_that_fills_no_queue_is_not_the_path() {
        let paced = Record {
            busy_ns: 50_000_000,
            idle_ns: 50_000_000,
            item: SenderState::Application,
            ..ROUND
        };
        assert_eq!(moved(&[paced]), []);
        let queued = Record {
            delay_us: 300_000,
            ..paced
        };
        let path = |ns| (SenderState::Application, SenderState::Path, ns);
        assert_eq!(moved(&[queued]), [path(50), path(50)]);
    }

    #[test]
    fn a_queue_that_never_empties_keeps_the_path_full_whoever_fills_it() {
        let shared = Record {
            delivered_bytes: 20_000,
            delay_us: 180_000,
            least_delay_us: 150_000,
            ..ROUND
        };
        assert_eq!(
            moved(&[shared]),
            [(SenderState::Congestion, SenderState::Path, 100)]
        );
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
            item: SenderState::AfterLoss,
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
                (SenderState::AfterLoss, SenderState::Path, 60),
                (SenderState::FastRecovery, SenderState::Path, 40),
                (SenderState::AfterLoss, SenderState::Path, 60),
                (SenderState::FastRecovery, SenderState::Path, 40),
            ]
        );
        let at_random = Record {
            loss_delay_us: 100_000,
            ..after
        };
        assert_eq!(moved(&[before, at_random, regained]).len(), 1);
    }

    #[test]
    fn after_a_mark_the_path_asks_for_less_until_the_flight_is_regained() {
        let slow = |marked, peak_bytes| Record {
            delivered_bytes: 60_000,
            marked,
            peak_bytes,
            ..ROUND
        };
        let rounds = [
            slow(0, 90_000),
            slow(1, 80_000),
            slow(0, 85_000),
            slow(0, 91_000),
        ];
        let path = (SenderState::Congestion, SenderState::Path, 100);
        assert_eq!(moved(&rounds), [path, path]);
        assert_eq!(moves(None, &rounds, None, MSS).len(), 2);
    }

    #[test]
    fn what_a_policer_drops_is_its_and_a_steady_rate_is_the_paths() {
        let after = Record {
            delivered_bytes: 75_000,
            item: SenderState::AfterLoss,
            losses: 1,
            loss_delay_us: 100_000,
            busy_ns: 60_000_000,
            recovery_ns: 40_000_000,
            ..ROUND
        };
        let into = |is_policed| {
            let bottleneck = Bottleneck {
                is_steady: true,
                is_policed,
                ..PATH
            };
            let moves = moves(Some(&bottleneck), &[after], PATH.base_us, MSS);
            moves
                .iter()
                .map(|each| (each.item, each.into))
                .collect::<Vec<_>>()
        };
        let of_both = |into| {
            [
                (SenderState::AfterLoss, into),
                (SenderState::FastRecovery, into),
            ]
        };
        assert_eq!(into(true), of_both(SenderState::Policer));
        assert_eq!(into(false), of_both(SenderState::Path));
        assert_eq!(moved(&[after]), []);
    }

    #[test]
    fn short_segments_into_a_full_window_are_no_ends_of_writes() {
        let short = Record {
            delivered_bytes: 60_000,
            item: SenderState::Application,
            busy_ns: 60_000_000,
            idle_ns: 40_000_000,
            peak_bytes: 62_000,
            window_bytes: 64_000,
            gap_ns: 1_000_000,
            ..ROUND
        };
        let window = |ns| (SenderState::Application, SenderState::WindowFull, ns);
        let both = [window(60), window(40)];
        assert_eq!(moved(&[short]), both);
        let at_the_rate = Record {
            delivered_bytes: 90_000,
            ..short
        };
        assert_eq!(moved(&[at_the_rate]), both);
        assert_eq!(moves(None, &[short], None, MSS).len(), 2);
        let silent = Record {
            gap_ns: 30_000_000,
            ..short
        };
        assert_eq!(moved(&[silent]), []);
        let by_the_window = Record {
            full_ns: 30_000_000,
            ..silent
        };
        assert_eq!(moved(&[by_the_window]), both, "it kept the sender silent");
        let with_room = Record {
            window_bytes: 80_000,
            ..short
        };
        assert_eq!(moved(&[with_room]), []);
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
            .all(|(_, into, _)| *into == SenderState::SendBuffer));
        assert_eq!(moved(&[flat; 16]).len(), 16);
        assert_eq!(moved(&(0..16).map(grown).collect::<Vec<_>>()), []);
        assert_eq!(moved(&[flat; 15]), []);
    }

    #[test]
    fn a_flight_that_stays_the_same_because_it_comes_to_the_window_is_the_windows() {
        let flat = Record {
            delivered_bytes: 30_000,
            peak_bytes: 30_000,
            window_bytes: 30_500,
            full_ns: 10_000_000,
            ..ROUND
        };
        let into = |record: Record, count: usize| {
            let moved = moved(&vec![record; count]).into_iter();
            moved.map(|(_, into, _)| into).collect::<Vec<_>>()
        };
        assert_eq!(into(flat, 16), [SenderState::WindowFull; 16]);
        let judged = Record {
            item: SenderState::SendBuffer,
            ..flat
        };
        assert_eq!(into(judged, 3), [SenderState::WindowFull; 3]);
        for item in [SenderState::SendBuffer, SenderState::Path] {
            let unknown = moves(None, &[Record { item, ..flat }], None, MSS);
            assert_eq!(unknown.len(), 1);
            assert_eq!(unknown[0].into, SenderState::WindowFull);
        }
        let with_room = Record {
            window_bytes: 31_000,
            ..flat
        };
        assert_eq!(into(with_room, 16), [SenderState::SendBuffer; 16]);
        let never_full = Record { full_ns: 0, ..flat };
        assert_eq!(into(never_full, 16), [SenderState::SendBuffer; 16]);
    }

    #[test]
    fn a_flight_that_comes_to_the_same_again_and_again_and_never_beyond_is_the_buffers() {
        let round = |peak_bytes| Record {
            delivered_bytes: 40_000,
            peak_bytes,
            ..ROUND
        };
        // Paced: two rounds below for each that comes to the end of the buffer.
        let paced = |rounds: usize, cap: &dyn Fn(usize) -> u32| -> Vec<_> {
            let peak = |place: usize| match place % 3 {
                0 => cap(place),
                other => 40_000 + other as u32 * 3_000,
            };
            (0..rounds).map(|place| round(peak(place))).collect()
        };
        assert_eq!(moved(&paced(46, &|_| 50_000)).len(), 46);
        assert_eq!(moved(&paced(43, &|_| 50_000)), [], "too few");
        let grows = |place: usize| 50_000 + place as u32 * 300;
        assert_eq!(moved(&paced(60, &grows)), []);
        let mut probed = paced(46, &|_| 50_000);
        probed[20].peak_bytes = 60_000;
        assert_eq!(moved(&probed), [], "it went beyond");
        let once = [paced(46, &|_| 50_000), vec![round(42_000); 15]].concat();
        assert_eq!(moved(&once).len(), 46);
    }

    #[test]
    fn a_flight_that_has_come_back_to_where_a_loss_struck_and_stays_is_the_buffers() {
        let loss = Record {
            delivered_bytes: 40_000,
            peak_bytes: 45_000,
            losses: 1,
            loss_delay_us: 100_000,
            item: SenderState::AfterLoss,
            ..ROUND
        };
        let held = |item| Record {
            delivered_bytes: 40_000,
            peak_bytes: 42_000,
            item,
            ..ROUND
        };
        let then = |item| moved(&[[loss].as_slice(), &[held(item); 16]].concat()).len();
        assert_eq!(then(SenderState::Congestion), 16);
        assert_eq!(then(SenderState::AfterLoss), 0, "a plateau of CUBIC's");
    }

    #[test]
    fn a_flight_that_is_held_far_below_the_last_loss_is_the_buffers_too() {
        let overflows = Record {
            peak_bytes: 200_000,
            most_delay_us: 200_000,
            losses: 1,
            loss_delay_us: 200_000,
            recovery_ns: 40_000_000,
            item: SenderState::AfterLoss,
            ..ROUND
        };
        let held = |peak_bytes| Record {
            delivered_bytes: 40_000,
            item: SenderState::AfterLoss,
            peak_bytes,
            ..ROUND
        };
        let then = |rounds: &[Record]| {
            let all = [&[overflows][..], rounds].concat();
            let moved = moved(&all).into_iter().skip(2);
            moved.map(|(_, into, _)| into).collect::<Vec<_>>()
        };
        assert_eq!(then(&[held(40_000); 16]), [SenderState::SendBuffer; 16]);
        assert_eq!(
            then(&[held(140_000); 16]),
            [SenderState::Path; 16],
            "a plateau"
        );
        let grown: Vec<_> = (0..16).map(|round| held(40_000 + round * 500)).collect();
        assert_eq!(then(&grown), [SenderState::Path; 16]);
    }
}
