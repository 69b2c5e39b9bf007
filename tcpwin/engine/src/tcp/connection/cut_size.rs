//! A size below the MSS that recurs among segments within a write.

/// Number of segments of one size that rules out coincidence.
const RECURRING: u8 = 4;

/// The newest segment size below the one that the SYNs allow.
#[derive(Clone, Copy, Debug, Default)]
pub struct CutSize {
    size: u32,
    count: u8,
    /// Payload sent up to the end of the newest segment of this size.
    at_bytes: u64,
}

impl CutSize {
    /// Record a short segment, sent after `sent_bytes` of payload. Return true if its size recurs.
    pub fn note(&mut self, size: u32, sent_bytes: u64) -> bool {
        let between = sent_bytes.wrapping_sub(self.at_bytes);
        let goes_on = self.size == size && between % u64::from(size).max(1) == 0;
        self.count = if goes_on {
            self.count.saturating_add(1)
        } else {
            1
        };
        (self.size, self.at_bytes) = (size, sent_bytes + u64::from(size));
        self.count >= RECURRING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_size_with_multiples_between_recurs() {
        let mut cut = CutSize::default();
        let at = [0, 1376, 4 * 1376, 5 * 1376].map(|sent| cut.note(1376, sent));
        assert_eq!(at, [false, false, false, true]);
    }

    #[test]
    fn a_full_segment_between_them_begins_anew() {
        let mut cut = CutSize::default();
        let at = [0, 2448, 4896, 7344, 9792].map(|sent| cut.note(1000, sent));
        assert_eq!(at, [false; 5], "not one size");
    }
}
