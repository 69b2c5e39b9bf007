//! Judges, once a connection is over, whether the receiver's application read the data that arrived.
//!
//! In: rounds with the window at their ends. Out: the effect of the receiver's application in each round. Linux
//! advertises the room that unread data leaves, and acknowledges immediately only data that advances the window.
//! Otherwise it sends the ACK when the delayed-ACK timer expires or the application reads (`__tcp_ack_snd_check`,
//! net/ipv4/tcp_input.c; `tcp_cleanup_rbuf`, net/ipv4/tcp.c).

use crate::tcp::budget::reassignment::SPARE;
use crate::tcp::path::bottleneck::{Bottleneck, FULL};
use crate::tcp::path::history::{elapsed_ns, Record};

/// Minimum part of the largest window that unread data occupies, as a divisor.
const UNREAD_SHARE: u64 = 4;
const UNREAD_SEGMENTS: u32 = 4;
/// Share of the window above which a flight fills it: the rest has no room for a full burst.
pub const FILLS: (u64, u64) = (9, 10);
/// An ACK delayed by this much waited for the application or the timer.
const LATE_US: u32 = 20_000;
/// Delays above this multiple of the delay of a queue that dropped packets come from the receiver or its timers.
const LONGER: u32 = 2;
const LEAST_DROPPED: usize = 3;

/// The effect of the receiver's application in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderState {
    /// The application read promptly, as far as the packets show.
    Prompt,
    /// The application delayed the sender while the sender had data to send.
    Blocking,
    /// The window had no room for a segment because of unread data, even while the sender seemed to have nothing to
    /// send.
    FillingWindow,
    /// All data arrived in this round, and reading it took this long afterwards.
    DrainingAtEnd(i64),
}

impl ReaderState {
    /// Judge each round. `base_us`: minimum RTT. `waiting_us`: minimum RTT of a segment that waited in a queue.
    pub fn of(
        records: &[Record],
        bottleneck: Option<&Bottleneck>,
        base_us: Option<u32>,
        waiting_us: u32,
        mss: u32,
    ) -> Vec<ReaderState> {
        let late_us = base_us.map_or(u32::MAX, |base_us| base_us.saturating_add(LATE_US));
        let longest_us = longest_queue_us(records, bottleneck);
        let mut readings = vec![ReaderState::Prompt; records.len()];
        let mut most = 0;
        let mut before = 0;
        let mut behind = vec![false; records.len()];
        for (place, record) in records.iter().enumerate() {
            most = most.max(record.window_bytes);
            let unread = most - record.window_bytes;
            let is_spare = bottleneck.is_none_or(|bottleneck| bottleneck.used(record) < SPARE);
            // While a loss is repaired at the path's rate, buffered data waits for the repair, not for the reader.
            let is_full = bottleneck.is_some_and(|bottleneck| bottleneck.used(record) >= FULL);
            let is_repairing = is_full && record.recovery_ns > 0;
            behind[place] = !is_repairing
                && u64::from(unread) * UNREAD_SHARE >= u64::from(most)
                && unread >= mss.saturating_mul(UNREAD_SEGMENTS);
            let window = u64::from(before.max(record.window_bytes));
            let fills = u64::from(record.peak_bytes) * FILLS.1 >= window * FILLS.0;
            let fell = before.saturating_sub(record.window_bytes);
            let is_unread = u64::from(fell) * 2 >= record.delivered_bytes && fell > 0;
            let waited = record.delay_us >= waiting_us.min(late_us);
            let is_late = record.delay_us >= late_us;
            let is_longer =
                longest_us.is_some_and(|us| record.least_delay_us >= us.saturating_mul(LONGER));
            let is_small = behind[place] && fills;
            let is_slow = is_unread || is_longer || is_small;
            if is_spare && record.losses == 0 && is_late && waited && is_slow {
                readings[place] = if is_small {
                    ReaderState::FillingWindow
                } else {
                    ReaderState::Blocking
                };
            } else if is_spare && is_small && record.is_held() {
                readings[place] = ReaderState::FillingWindow;
            }
            before = record.window_bytes;
        }
        if let Some((from, span_ns)) = at_the_end(records, &behind) {
            readings[from..].fill(ReaderState::Blocking);
            if let Some(last) = readings.last_mut() {
                *last = ReaderState::DrainingAtEnd(span_ns);
            }
        }
        readings
    }
}

/// Return the first of the last rounds with unread data, and the maximum time to read the rest at the rate observed
/// before.
fn at_the_end(records: &[Record], behind: &[bool]) -> Option<(usize, i64)> {
    let (last, before) = records.split_last()?;
    let begun = before.len()
        - behind[..before.len()]
            .iter()
            .rev()
            .take_while(|is| **is)
            .count();
    let run = &before[begun..];
    let (first, end) = (run.first()?, run.last()?);
    let most = before.iter().map(|record| record.window_bytes).max()?;
    let unread = u64::from(most - end.window_bytes).saturating_add(last.delivered_bytes);
    let delivered = (run[1..].iter()).fold(0u64, |sum, record| {
        sum.saturating_add(record.delivered_bytes)
    });
    let read = (delivered.saturating_add(u64::from(end.window_bytes)))
        .checked_sub(u64::from(first.window_bytes));
    let elapsed_ns = elapsed_ns(run[1..].iter());
    let span_ns = match read.filter(|read| *read > 0 && elapsed_ns > 0) {
        Some(read) => (unread as f64 / read as f64 * elapsed_ns as f64 * 2.0) as i64,
        None => i64::MAX,
    };
    Some((begun, span_ns))
}

/// Return the longest RTT in rounds that lost packets at the path's rate.
fn longest_queue_us(records: &[Record], bottleneck: Option<&Bottleneck>) -> Option<u32> {
    let bottleneck = bottleneck?;
    let dropped = (records.iter())
        .filter(|record| record.losses > 0 && bottleneck.used(record) >= SPARE)
        .map(|record| record.most_delay_us.max(record.loss_delay_us));
    (dropped.clone().count() >= LEAST_DROPPED).then(|| dropped.max())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::budget_item::SenderState;
    use crate::tcp::budget::reassignment::reassignments;

    const MSS: u32 = 1000;
    /// 60 kB per round of 60 ms, into a window of which three quarters hold unread data.
    const ROUND: Record = Record {
        end_ns: 60_000_000,
        elapsed_ns: 60_000_000,
        delivered_bytes: 60_000,
        busy_ns: 60_000_000,
        peak_bytes: 60_000,
        window_bytes: 60_000,
        delay_us: 20_000,
        least_delay_us: 20_000,
        most_delay_us: 20_000,
        ..Record::PLAIN
    };
    const PATH: Bottleneck = Bottleneck {
        bytes_per_s: 10e6,
        base_us: Some(20_000),
        is_policed: false,
        is_steady: false,
    };

    fn read(records: &[Record]) -> Vec<(SenderState, i64)> {
        let moves = reassignments(Some(&PATH), records, PATH.base_us, MSS);
        let of_the_reader = moves.iter().filter(|each| each.into == SenderState::Reader);
        of_the_reader
            .map(|each| (each.item, each.span_ns / 1_000_000))
            .collect()
    }

    const EMPTY: Record = Record {
        window_bytes: 240_000,
        ..ROUND
    };

    #[test]
    fn a_full_window_that_unread_data_takes_up_is_the_readers() {
        let full = Record {
            busy_ns: 10_000_000,
            full_ns: 50_000_000,
            ..ROUND
        };
        let all_read = Record {
            window_bytes: 240_000,
            peak_bytes: 240_000,
            ..full
        };
        assert_eq!(
            read(&[EMPTY, full, full, EMPTY, EMPTY]),
            [(SenderState::Congestion, 10)]
        );
        assert_eq!(read(&[EMPTY, all_read, all_read, EMPTY, EMPTY]), []);
        let late = Record {
            delay_us: 50_000,
            ..full
        };
        assert_eq!(
            read(&[EMPTY, full, late, EMPTY, EMPTY]),
            [(SenderState::Congestion, 10)]
        );
    }

    #[test]
    fn acks_that_wait_while_the_window_falls_wait_for_the_reader() {
        let late = Record {
            window_bytes: 180_000,
            delay_us: 60_000,
            ..ROUND
        };
        assert_eq!(
            read(&[EMPTY, late, EMPTY, EMPTY]),
            [(SenderState::Congestion, 60)]
        );
        let prompt = Record {
            delay_us: 21_000,
            ..late
        };
        assert_eq!(read(&[EMPTY, prompt, EMPTY, EMPTY]), []);
        let all_read = Record {
            window_bytes: 240_000,
            ..late
        };
        assert_eq!(read(&[EMPTY, all_read, all_read, EMPTY, EMPTY]), []);
    }

    #[test]
    fn what_had_arrived_and_was_read_afterwards_is_the_readers() {
        let falls = |window_bytes| Record {
            window_bytes,
            ..ROUND
        };
        let last = Record {
            window_bytes: 240_000,
            delivered_bytes: 20_000,
            ..ROUND
        };
        // 30 kB of 60 were read in a round of 60 ms; twice the time that 110 kB would take is the most.
        let rounds = [falls(240_000), falls(180_000), falls(150_000), last];
        assert_eq!(
            read(&rounds),
            [
                (SenderState::Congestion, 60),
                (SenderState::Congestion, 60),
                (SenderState::Closed, 440)
            ]
        );
        let idle = Record {
            item: SenderState::Application,
            busy_ns: 0,
            idle_ns: 60_000_000,
            ..falls(180_000)
        };
        assert_eq!(
            read(&[falls(240_000), idle, last]),
            [(SenderState::Closed, i64::MAX / 1_000_000)]
        );
    }

    #[test]
    fn short_segments_into_what_room_unread_data_leaves_are_no_ends_of_writes() {
        let last = Record {
            window_bytes: 240_000,
            delivered_bytes: 20_000,
            ..ROUND
        };
        let cut_short = Record {
            item: SenderState::Application,
            busy_ns: 20_000_000,
            idle_ns: 40_000_000,
            ..ROUND
        };
        assert_eq!(
            read(&[EMPTY, cut_short, last])[..2],
            [
                (SenderState::Application, 20),
                (SenderState::Application, 40)
            ]
        );
    }

    #[test]
    fn what_takes_up_the_window_at_the_paths_rate_waits_for_a_repair() {
        let overflows = Record {
            delivered_bytes: 600_000,
            losses: 1,
            recovery_ns: 60_000_000,
            busy_ns: 0,
            window_bytes: 150_000,
            ..ROUND
        };
        let last = Record {
            delivered_bytes: 20_000,
            ..EMPTY
        };
        assert_eq!(read(&[EMPTY, overflows, overflows, last]), []);
        let unread = Record {
            recovery_ns: 0,
            ..overflows
        };
        assert_eq!(read(&[EMPTY, unread, unread, last]).len(), 1);
    }
}
