//! Round-trip time from data to its acknowledgment at the capture point: one segment timed at a time.
//!
//! Karn's rule (RFC 6298 §3): no sample from a segment that was sent again. Smoothing is RFC 6298 §2 (1/8).

use crate::sequence::Seq;

/// `sent_ns` while nothing is being timed.
const IDLE: i64 = i64::MIN;

#[derive(Clone, Debug)]
pub struct RttTimer {
    sent_ns: i64,
    least_ns: u64,
    pub smoothed_ns: u64,
    end: Seq,
    pub samples: u32,
}

impl Default for RttTimer {
    fn default() -> Self {
        RttTimer {
            sent_ns: IDLE,
            least_ns: u64::MAX,
            smoothed_ns: 0,
            end: Seq(0),
            samples: 0,
        }
    }
}

impl RttTimer {
    /// The least sample.
    pub fn min_ns(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.least_ns)
    }

    /// New data up to `end` was sent.
    #[inline]
    pub fn sent(&mut self, end: Seq, now_ns: i64) {
        if self.sent_ns == IDLE {
            (self.sent_ns, self.end) = (now_ns, end);
        }
    }

    /// Something was sent again, or bytes are missing from the capture: what is being timed is ambiguous.
    #[inline]
    pub fn cancel(&mut self) {
        self.sent_ns = IDLE;
    }

    /// Everything below `ack` has arrived.
    #[inline]
    pub fn acked(&mut self, ack: Seq, now_ns: i64) -> Option<u64> {
        if self.sent_ns == IDLE || self.end.is_after(ack) {
            return None;
        }
        let elapsed_ns = now_ns.saturating_sub(self.sent_ns);
        self.sent_ns = IDLE;
        let sample_ns = u64::try_from(elapsed_ns).ok()?;
        self.least_ns = self.least_ns.min(sample_ns);
        self.smoothed_ns = if self.samples == 0 {
            sample_ns
        } else {
            self.smoothed_ns - self.smoothed_ns / 8 + sample_ns / 8
        };
        self.samples = self.samples.saturating_add(1);
        Some(sample_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_is_timed_and_karn_holds() {
        let mut timer = RttTimer::default();
        timer.sent(Seq(100), 1_000);
        timer.sent(Seq(200), 2_000);
        assert_eq!(timer.acked(Seq(50), 3_000), None);
        assert_eq!(timer.acked(Seq(200), 5_000), Some(4_000));
        timer.sent(Seq(300), 6_000);
        timer.cancel();
        assert_eq!(timer.acked(Seq(300), 7_000), None);
        timer.sent(Seq(400), 8_000);
        assert_eq!(timer.acked(Seq(400), 7_500), None, "time ran backwards");
        assert_eq!((timer.min_ns(), timer.samples), (Some(4_000), 1));
    }
}
