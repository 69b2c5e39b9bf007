//! A Linux sender's RTT estimate and retransmission timeout.
//!
//! Follows `tcp_rtt_estimator` and `__tcp_set_rto` (net/ipv4/tcp_input.c) in integer microseconds: RFC 6298 §2, except
//! that the deviation rises at once, falls only once per round trip and never counts for less than 200 ms.

/// Minimum deviation in the timeout: TCP_RTO_MIN (include/net/tcp.h).
pub const RTO_MIN_US: u32 = 200_000;
/// Timeout before the first sample: RFC 6298 §2.1, TCP_TIMEOUT_INIT.
pub const RTO_INITIAL_NS: i64 = 1_000_000_000;
/// TCP_RTO_MAX.
pub const RTO_MAX_NS: i64 = 120_000_000_000;
/// Maximum sample, so that eight times a sample fits in 32 bits.
const MAX_SAMPLE_US: u32 = 1 << 27;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimator {
    /// Eight times the smoothed RTT; 0 before the first sample.
    smoothed_8_us: u32,
    /// Four times the mean deviation.
    deviation_4_us: u32,
    /// Largest deviation in the current round trip.
    round_max_us: u32,
    variation_us: u32,
}

impl RttEstimator {
    /// Add a sample. `is_new_round`: all data in flight at the start of the round has been acknowledged.
    #[inline(always)]
    pub fn sample(&mut self, sample_us: u32, is_new_round: bool) {
        let sample_us = sample_us.min(MAX_SAMPLE_US);
        if self.smoothed_8_us == 0 {
            self.smoothed_8_us = (sample_us << 3).max(1);
            self.deviation_4_us = sample_us << 1;
            self.variation_us = self.deviation_4_us.max(RTO_MIN_US);
            self.round_max_us = self.variation_us;
            return;
        }
        // No overflow: samples are at most 2^27.
        let error_us = sample_us as i32 - (self.smoothed_8_us >> 3) as i32;
        self.smoothed_8_us = (self.smoothed_8_us as i32).wrapping_add(error_us).max(1) as u32;
        let mut change_us = error_us.wrapping_abs() - (self.deviation_4_us >> 2) as i32;
        // If the RTT falls, raise the deviation by only an eighth, as in Eifel (see the comment in the kernel).
        if error_us < 0 && change_us > 0 {
            change_us >>= 3;
        }
        self.deviation_4_us = (self.deviation_4_us as i32).wrapping_add(change_us).max(0) as u32;
        if self.deviation_4_us > self.round_max_us {
            self.round_max_us = self.deviation_4_us;
            self.variation_us = self.variation_us.max(self.round_max_us);
        }
        if is_new_round {
            if self.round_max_us < self.variation_us {
                self.variation_us -= (self.variation_us - self.round_max_us) >> 2;
            }
            self.round_max_us = RTO_MIN_US;
        }
    }

    pub fn has_samples(&self) -> bool {
        self.smoothed_8_us > 0
    }

    pub fn smoothed_ns(&self) -> i64 {
        i64::from(self.smoothed_8_us >> 3) * 1000
    }

    /// Return the mean deviation, which `ss` prints after the RTT.
    pub fn deviation_ns(&self) -> i64 {
        i64::from(self.deviation_4_us >> 2) * 1000
    }

    /// Return the timeout without back-off. `further_ns`: by how much the sender's RTT exceeds the samples.
    pub fn rto_ns(&self, further_ns: i64) -> i64 {
        if !self.has_samples() {
            return RTO_INITIAL_NS;
        }
        let variation_ns = i64::from(self.variation_us) * 1000;
        self.smoothed_ns()
            .saturating_add(variation_ns)
            .saturating_add(further_ns)
            .min(RTO_MAX_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_gives_three_round_trips_or_the_floor() {
        let mut estimator = RttEstimator::default();
        assert_eq!(estimator.rto_ns(0), RTO_INITIAL_NS);
        estimator.sample(180_000, true);
        assert_eq!(estimator.smoothed_ns(), 180_000_000);
        assert_eq!(estimator.deviation_ns(), 90_000_000);
        assert_eq!(estimator.rto_ns(0), 540_000_000);
        let mut short = RttEstimator::default();
        short.sample(40, true);
        assert_eq!(short.rto_ns(0), 200_040_000);
    }

    #[test]
    fn a_steady_path_comes_down_to_the_floor_a_quarter_a_round() {
        let mut estimator = RttEstimator::default();
        for _ in 0..60 {
            estimator.sample(180_000, true);
        }
        assert_eq!(estimator.smoothed_ns(), 180_000_000);
        let above_ns = estimator.rto_ns(0) - 380_000_000;
        assert!((0..10_000).contains(&above_ns), "{above_ns}");
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut estimator = RttEstimator::default();
        for sample_us in [0, u32::MAX, 0, 1, u32::MAX, u32::MAX] {
            estimator.sample(sample_us, false);
            assert!(estimator.rto_ns(i64::MAX) <= RTO_MAX_NS);
        }
    }
}
