//! pcapng timestamps: ticks with an interface's resolution and offset → nanoseconds since the Unix epoch.
//! Times outside the range of 64-bit nanoseconds (years 1677 to 2262) are clamped.

/// Conversion of ticks to nanoseconds (`if_tsresol`, draft-ietf-opsawg-pcapng §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Multiply(u64),
    Divide(u64),
    /// Ticks of 2^-n seconds.
    Binary(u32),
    /// Ticks so short that any 64-bit count of them is less than a nanosecond.
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeScale {
    scale: Scale,
    offset_ns: i64,
}

impl TimeScale {
    /// Microseconds, the default if `if_tsresol` is absent.
    pub const DEFAULT_RESOLUTION: u8 = 6;

    /// Create a scale from the octet of `if_tsresol` and the seconds of `if_tsoffset`.
    pub fn new(resolution: u8, offset_seconds: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let scale = if resolution & 0x80 != 0 {
            Scale::Binary(exponent)
        } else if exponent <= 9 {
            Scale::Multiply(10u64.pow(9 - exponent))
        } else {
            10u64
                .checked_pow(exponent - 9)
                .map_or(Scale::Zero, Scale::Divide)
        };
        Self {
            scale,
            offset_ns: offset_seconds.saturating_mul(1_000_000_000),
        }
    }

    #[inline(always)]
    pub fn to_ns(self, ticks: u64) -> i64 {
        let ns = match self.scale {
            Scale::Multiply(factor) => match ticks.checked_mul(factor) {
                Some(ns) => i64::try_from(ns).unwrap_or(i64::MAX),
                None => i64::MAX,
            },
            Scale::Divide(divisor) => i64::try_from(ticks / divisor).unwrap_or(i64::MAX),
            Scale::Binary(exponent) => {
                let ns = (u128::from(ticks) * 1_000_000_000) >> exponent;
                i64::try_from(ns).unwrap_or(i64::MAX)
            }
            Scale::Zero => 0,
        };
        ns.saturating_add(self.offset_ns)
    }
}

/// Return the ticks per second for an `if_tsresol` octet, saturated.
pub(super) fn ticks_per_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 != 0 { 2 } else { 10 };
    base.saturating_pow(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn powers_of_ten() {
        assert_eq!(TimeScale::new(0, 0).to_ns(7), 7 * SECOND);
        assert_eq!(TimeScale::new(3, 0).to_ns(1_500), 1_500_000_000);
        assert_eq!(TimeScale::new(6, 0).to_ns(1), 1_000);
        assert_eq!(TimeScale::new(9, 0).to_ns(1), 1);
        assert_eq!(TimeScale::new(12, 0).to_ns(1_999), 1);
        assert_eq!(TimeScale::new(28, 0).to_ns(u64::MAX), 1);
        assert_eq!(TimeScale::new(29, 0).to_ns(u64::MAX), 0);
        assert_eq!(TimeScale::new(127, 0).to_ns(u64::MAX), 0);
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(TimeScale::new(0x80, 0).to_ns(3), 3 * SECOND);
        // 2^-10 s: 512 ticks are half a second.
        assert_eq!(TimeScale::new(0x8a, 0).to_ns(512), 500_000_000);
        // 2^-32 s, as in NTP: 3.25 s.
        assert_eq!(
            TimeScale::new(0xa0, 0).to_ns((3 << 32) + (1 << 30)),
            3_250_000_000
        );
        assert_eq!(TimeScale::new(0xff, 0).to_ns(u64::MAX), 0);
    }

    #[test]
    fn offset_is_in_seconds_and_signed() {
        assert_eq!(TimeScale::new(6, -1).to_ns(1), -SECOND + 1_000);
        assert_eq!(
            TimeScale::new(6, 1_700_000_000).to_ns(0),
            1_700_000_000 * SECOND
        );
    }

    #[test]
    fn out_of_range_times_are_clamped() {
        assert_eq!(TimeScale::new(6, 0).to_ns(u64::MAX), i64::MAX);
        assert_eq!(TimeScale::new(9, 0).to_ns(u64::MAX), i64::MAX);
        assert_eq!(TimeScale::new(0x80, 0).to_ns(u64::MAX), i64::MAX);
        assert_eq!(TimeScale::new(6, i64::MIN).to_ns(0), i64::MIN);
        assert_eq!(TimeScale::new(6, i64::MAX).to_ns(u64::MAX), i64::MAX);
    }

    #[test]
    fn ticks_per_second_saturates() {
        assert_eq!(ticks_per_second(6), 1_000_000);
        assert_eq!(ticks_per_second(0x8a), 1024);
        assert_eq!(ticks_per_second(20), u64::MAX);
        assert_eq!(ticks_per_second(0xc0), u64::MAX);
    }
}
