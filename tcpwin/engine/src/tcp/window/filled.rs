//! Whether data was lost when unread data had filled the receiver's buffer, although the window had room for it.
//!
//! A path loses segments whatever the receiver has read. A receiver that runs out of memory loses those that arrive
//! while much is unread: the window of its last ACK is smaller than the maximum by that much.

use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;

/// Windows are compared in eighths of their maximum so far.
const PARTS: u32 = 8;
/// Bursts that the application has not read yet when they are acknowledged make a window smaller than its maximum by
/// less than this many eighths.
const LEAST_UNREAD: usize = 2;

/// Probability below which chance does not explain the losses, at any of six thresholds.
const CHANCE: f64 = 0.001;

/// How much had arrived, and how often data was lost, by how much of the window was left.
#[derive(Clone, Debug, Default)]
pub struct FilledWindow {
    /// Acknowledged bytes by the eighths of the window that their ACK left; windows of seven or more are not counted.
    arrived_bytes: [u64; PARTS as usize - 1],
    /// Times at which the next data was lost.
    lost: [u32; PARTS as usize - 1],
    /// The last ACK that is counted, and the eighths that it left.
    last: (Seq, u8),
}

/// The times at which the next data is lost, by a threshold of unread data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostUnread {
    /// Share of the window's maximum that was unread, or more.
    pub unread_share: f64,
    /// Times at which data was lost while so much was unread.
    pub times: u32,
    /// Share of all acknowledged data that arrived while so much was unread.
    pub arrived_share: f64,
    /// Upper bound of the probability that a path that loses at any time would have lost so often then.
    pub chance: f64,
}

impl FilledWindow {
    /// Return the acknowledged bytes whose ACK left less than half of the window.
    pub fn low_bytes(&self) -> u64 {
        self.arrived_bytes[..PARTS as usize / 2].iter().sum()
    }

    /// Return the threshold that covers the most of `all` times of loss of those at which chance does not explain them.
    pub fn most_unlikely(&self, all: u32, acked_bytes: u64) -> Option<LostUnread> {
        let (mut times, mut arrived_bytes) = (0, 0);
        let mut most: Option<LostUnread> = None;
        for left in 0..PARTS as usize - LEAST_UNREAD {
            times += self.lost[left];
            arrived_bytes += self.arrived_bytes[left];
            let arrived_share = arrived_bytes as f64 / acked_bytes.max(1) as f64;
            let chance = chance_of(times, all, arrived_share);
            if chance <= CHANCE && most.is_none_or(|most| times > most.times) {
                most = Some(LostUnread {
                    unread_share: 1.0 - (left as f64 + 1.0) / f64::from(PARTS),
                    times,
                    arrived_share,
                    chance,
                });
            }
        }
        most
    }
}

/// Return Chernoff's bound of the probability of at least `times` of `all`, of which each has the probability `share`.
fn chance_of(times: u32, all: u32, share: f64) -> f64 {
    let had = f64::from(times) / f64::from(all.max(1));
    if times == 0 || had <= share {
        return 1.0;
    }
    let term = |had: f64, share: f64| {
        if had > 0.0 {
            had * (had / share).ln()
        } else {
            0.0
        }
    };
    (-f64::from(all) * (term(had, share) + term(1.0 - had, 1.0 - share))).exp()
}

impl Direction {
    /// Note the window that an ACK of new data left.
    #[inline(always)]
    pub(in crate::tcp) fn note_left(&mut self, advance: u32) {
        let most = self.window.max_bytes;
        if advance > 0 && self.window.bytes < most - most / PARTS {
            self.note_unread(advance);
        }
    }

    #[cold]
    fn note_unread(&mut self, advance: u32) {
        let (bytes, most) = (
            u64::from(self.window.bytes),
            u64::from(self.window.max_bytes),
        );
        let left = (bytes * u64::from(PARTS) / most).min(u64::from(PARTS) - 2) as u8;
        let una = self.flight.una;
        let filled = &mut self.cold_state().filled;
        let filled = filled.get_or_insert_with(Box::default);
        filled.arrived_bytes[left as usize] += u64::from(advance);
        filled.last = (una, left);
    }

    /// Note the first retransmission of data.
    pub(in crate::tcp) fn note_first_loss(&mut self, now_ns: i64, seq: Seq) {
        let Some(sent) = self.first_copy(seq) else {
            return;
        };
        let una = self.flight.una;
        let cold_state = self.cold_state();
        let episode = cold_state.episode();
        if episode.is_some_and(|episode| episode.newest_copy(seq).is_some()) {
            return;
        }
        // A later hole is as old as the first, whose ACK shows what was unread when both were lost.
        if seq != una || cold_state.loss_times > 0 && sent.time_ns <= cold_state.loss_resent_ns {
            return;
        }
        cold_state.loss_times = cold_state.loss_times.saturating_add(1);
        cold_state.loss_resent_ns = now_ns;
        if let Some(filled) = &mut cold_state.filled {
            if filled.last.0 == una {
                let lost = &mut filled.lost[filled.last.1 as usize];
                *lost = lost.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_among_unread_data_are_unlikely_by_chance() {
        let mut filled = FilledWindow {
            arrived_bytes: [0, 0, 30, 0, 0, 0, 100],
            ..FilledWindow::default()
        };
        filled.lost[2] = 3;
        let all = filled.most_unlikely(3, 1000).unwrap();
        assert_eq!((all.times, all.unread_share), (3, 0.625));
        assert!((all.chance - 0.03_f64.powi(3)).abs() < 1e-9);
        // Three of four, by Chernoff's bound; of six it leaves room for chance.
        assert!(filled.most_unlikely(4, 1000).unwrap().chance > all.chance);
        assert_eq!(filled.most_unlikely(6, 1000), None);
        // A lower threshold is preferred if it covers more of the losses.
        filled.lost[4] = 2;
        let lower = filled.most_unlikely(5, 1000).unwrap();
        assert_eq!((lower.times, lower.unread_share), (5, 0.375));
        filled.lost[4] = 0;
        // Losses that keep to the share of the data are the path's.
        assert_eq!(filled.most_unlikely(100, 1000), None);
        // Data that a burst leaves unread for a moment is not counted.
        filled.lost = [0, 0, 0, 0, 0, 0, 9];
        assert_eq!(filled.most_unlikely(9, 1000), None);
    }

    #[test]
    fn losses_where_nothing_arrived_have_no_chance() {
        let mut filled = FilledWindow::default();
        filled.lost[0] = 2;
        assert_eq!(filled.most_unlikely(2, 1000).unwrap().chance, 0.0);
        assert_eq!(chance_of(0, 0, 0.0), 1.0);
        assert_eq!(chance_of(5, 5, 1.0), 1.0);
    }
}
