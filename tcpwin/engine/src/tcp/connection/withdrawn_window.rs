//! Window that the receiver withdrew while data was in transit: the receiver drops that data, not the path.

use crate::sequence::Seq;
use crate::tcp::recovery::ranges::RangeSet;

/// Ranges are forgotten after this many bytes: sequence numbers wrap around after twice as many.
const FORGET_AFTER_BYTES: u64 = 1 << 31;

/// The ranges between old and new right edges (RFC 9293 §3.8.6.2.1). A receiver accepts no segment that begins beyond
/// its right edge (§3.10.7.4, first check; Linux `tcp_sequence`, and `tcp_data_queue` at a window of zero).
#[derive(Clone, Debug, Default)]
pub struct TakenBack {
    ranges: RangeSet,
    /// Bytes acknowledged when a range was last withdrawn.
    acked_bytes: u64,
}

impl TakenBack {
    /// Withdraw the window from `left` to `right`. `una`: SND.UNA; `acked_bytes`: bytes acknowledged so far.
    pub fn add(&mut self, (left, right): (Seq, Seq), una: Seq, acked_bytes: u64) {
        if !self.is_recent(acked_bytes) {
            self.ranges.clear();
        }
        self.acked_bytes = acked_bytes;
        self.ranges.remove_below(una);
        if left.is_before(right) {
            self.ranges.insert(left, right);
        }
    }

    /// Return whether the receiver refused the byte at `seq`.
    pub fn has_refused(&self, seq: Seq, acked_bytes: u64) -> bool {
        self.is_recent(acked_bytes) && self.ranges.overlap(seq, seq + 1) > 0
    }

    fn is_recent(&self, acked_bytes: u64) -> bool {
        acked_bytes.saturating_sub(self.acked_bytes) <= FORGET_AFTER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_refused_until_it_is_acknowledged_or_numbers_come_round() {
        let mut taken = TakenBack::default();
        taken.add((Seq(5_000), Seq(9_000)), Seq(5_000), 0);
        taken.add((Seq(12_000), Seq(13_000)), Seq(5_000), 0);
        let refused = |taken: &TakenBack, seq| taken.has_refused(Seq(seq), 0);
        assert!(refused(&taken, 5_000) && refused(&taken, 8_999) && refused(&taken, 12_500));
        assert!(!refused(&taken, 4_999) && !refused(&taken, 9_000));
        assert!(!taken.has_refused(Seq(5_000), 1 << 32));
        taken.add((Seq(14_000), Seq(14_000)), Seq(10_000), 5_000);
        assert!(!refused(&taken, 5_000) && refused(&taken, 12_500) && !refused(&taken, 14_000));
    }
}
