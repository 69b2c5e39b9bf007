//! RTT by timestamps: from a segment to the peer's first segment that echoes its TSval (RFC 7323 §4).
//!
//! Also works for pure ACKs, so near the receiver it measures the part of the path that data-to-ACK times cannot. A
//! late echo only lengthens a sample, so the minimum is used.

/// `sent_ns` if no segment is being timed.
const IDLE: i64 = i64::MIN;

#[derive(Clone, Debug)]
pub struct EchoTimer {
    sent_ns: i64,
    tsval: u32,
    least_us: u32,
}

/// An RTT sample.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    pub elapsed_us: u32,
    /// Whether it is the minimum so far.
    pub is_least: bool,
}

impl Default for EchoTimer {
    fn default() -> Self {
        EchoTimer {
            sent_ns: IDLE,
            tsval: 0,
            least_us: u32::MAX,
        }
    }
}

impl EchoTimer {
    /// Start timing the first segment with this TSval, unless another is being timed.
    #[inline(always)]
    pub fn sent(&mut self, tsval: u32, now_ns: i64) {
        if self.sent_ns == IDLE {
            (self.sent_ns, self.tsval) = (now_ns, tsval);
        }
    }

    /// Stop timing until the next new TSval.
    pub fn forget(&mut self) {
        self.sent_ns = IDLE;
    }

    /// Return the TSval that is being timed, and when it was first sent.
    pub fn pending(&self) -> Option<(u32, i64)> {
        (self.sent_ns != IDLE).then_some((self.tsval, self.sent_ns))
    }

    /// Handle an echoed TSval. Returns a sample if it is the TSval being timed.
    #[inline(always)]
    pub fn echoed(&mut self, tsecr: u32, now_ns: i64) -> Option<Echo> {
        if self.sent_ns == IDLE || (tsecr.wrapping_sub(self.tsval) as i32) < 0 {
            return None;
        }
        self.sample(tsecr, now_ns)
    }

    #[inline(always)]
    fn sample(&mut self, tsecr: u32, now_ns: i64) -> Option<Echo> {
        let elapsed_ns = now_ns.saturating_sub(self.sent_ns);
        self.sent_ns = IDLE;
        if tsecr != self.tsval || elapsed_ns < 0 {
            return None;
        }
        let elapsed_us = u32::try_from(elapsed_ns / 1000).unwrap_or(u32::MAX);
        let is_least = elapsed_us < self.least_us;
        self.least_us = self.least_us.min(elapsed_us);
        Some(Echo {
            elapsed_us,
            is_least,
        })
    }

    /// Return the minimum sample, in whole microseconds.
    pub fn min_ns(&self) -> Option<u64> {
        (self.least_us != u32::MAX).then_some(u64::from(self.least_us) * 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_exact_echo_counts() {
        let mut timer = EchoTimer::default();
        timer.sent(100, 0);
        timer.sent(101, 5_000_000);
        timer.echoed(99, 1_000_000);
        assert_eq!(timer.min_ns(), None);
        timer.echoed(100, 300_000_000);
        timer.sent(400, 400_000_000);
        timer.echoed(405, 500_000_000);
        assert_eq!(
            timer.min_ns(),
            Some(300_000_000),
            "a later value's echo is not a sample"
        );
        timer.sent(600, 600_000_000);
        timer.echoed(600, 850_000_000);
        assert_eq!(timer.min_ns(), Some(250_000_000));
    }
}
