//! Bytes that were acknowledged but not captured: lost by the capture, unless a later frame contains them after all.

use crate::sequence::Seq;
use crate::tcp::recovery::ranges::RangeSet;

/// Ranges are forgotten before sequence numbers wrap around.
const FORGET_AFTER_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug, Default)]
pub struct Missed {
    bytes: u64,
    ranges: RangeSet,
    /// Total bytes acknowledged when the newest range was noted.
    noted_at: u64,
}

impl Missed {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Note that `[left, right)` was acknowledged; `acked_bytes` is the total so far.
    pub fn note(&mut self, left: Seq, right: Seq, acked_bytes: u64) {
        self.forget(acked_bytes);
        // After a few jumps of an ACK, sequence numbers wrap around: the same numbers are then different bytes.
        self.ranges
            .remove_below(left.minus(FORGET_AFTER_BYTES as u32));
        self.noted_at = acked_bytes;
        self.bytes += u64::from(self.ranges.insert(left, right));
    }

    /// Remove `[left, right)`, which a frame contains; return how many of its bytes were missed until now.
    pub fn take_back(&mut self, left: Seq, right: Seq, acked_bytes: u64) -> u32 {
        self.forget(acked_bytes);
        let found = self.ranges.remove(left, right);
        self.bytes = self.bytes.saturating_sub(u64::from(found));
        found
    }

    fn forget(&mut self, acked_bytes: u64) {
        if acked_bytes.saturating_sub(self.noted_at) > FORGET_AFTER_BYTES {
            self.ranges = RangeSet::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_later_frame_are_not_missed() {
        let mut missed = Missed::default();
        missed.note(Seq(u32::MAX - 99), Seq(200), 1_000);
        assert_eq!(missed.bytes(), 300);
        missed.take_back(Seq(u32::MAX - 199), Seq(0), 1_000);
        assert_eq!(missed.bytes(), 200);
        missed.take_back(Seq(u32::MAX - 199), Seq(0), 1_000);
        assert_eq!(missed.bytes(), 200, "taken back once");
    }

    #[test]
    fn the_same_numbers_a_round_later_are_other_bytes() {
        let mut missed = Missed::default();
        missed.note(Seq(100), Seq(200), 1_000);
        missed.take_back(Seq(100), Seq(200), 1_000 + (1 << 32));
        assert_eq!(missed.bytes(), 100);
    }

    #[test]
    fn jumps_that_wrap_around_are_other_bytes_too() {
        let mut missed = Missed::default();
        let jump = 1_u32 << 29;
        for count in 0..20 {
            let left = Seq(100) + jump.wrapping_mul(count);
            missed.note(left, left + jump, u64::from(jump) * u64::from(count));
        }
        assert_eq!(missed.bytes(), u64::from(jump) * 20);
    }
}
