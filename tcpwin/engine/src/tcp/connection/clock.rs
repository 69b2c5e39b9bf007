//! Detects that a capture's clock was set back: two consecutive segments are at least a second earlier than the one
//! before.

/// Shorter steps are not detected.
pub const LEAST_STEP_NS: i64 = 1_000_000_000;
/// A segment recorded late by less than this still measures round trips.
pub const LEAST_DISORDER_NS: i64 = 1_000_000;

/// The correction of a capture's clock that was set back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Added to the time of each segment.
    shift_ns: i64,
    /// `shift_ns` before the last step: the clock may return to it.
    before_ns: i64,
    /// Capture time of the previous segment, if it was so early that the clock may have been set back.
    early_at_ns: Option<i64>,
}

impl Clock {
    /// Return the corrected time of a segment captured at `time_ns`, and the step of the clock if this segment shows
    /// one. `end_ns`: the latest time so far. A single early segment was only recorded late.
    #[cold]
    pub fn set_right(&mut self, time_ns: i64, end_ns: i64) -> (i64, Option<i64>) {
        let now_ns = time_ns.saturating_add(self.shift_ns);
        let returned_ns = time_ns.saturating_add(self.before_ns);
        let early_ns = end_ns.saturating_sub(now_ns);
        let is_early = early_ns >= LEAST_STEP_NS;
        let early_at_ns = std::mem::replace(&mut self.early_at_ns, is_early.then_some(time_ns));
        let skipped_ns = now_ns.saturating_sub(end_ns);
        if skipped_ns >= LEAST_STEP_NS && (0..skipped_ns / 2).contains(&(returned_ns - end_ns)) {
            let stepped_ns = self.set(self.before_ns);
            return (returned_ns, Some(stepped_ns));
        }
        let is_still_early = early_ns >= LEAST_STEP_NS / 2;
        match early_at_ns.filter(|at_ns| is_still_early && *at_ns <= time_ns) {
            Some(at_ns) => {
                self.early_at_ns = None;
                let stepped_ns = self.set(end_ns.saturating_sub(at_ns));
                (time_ns.saturating_add(self.shift_ns), Some(stepped_ns))
            }
            None => (now_ns, None),
        }
    }

    fn set(&mut self, shift_ns: i64) -> i64 {
        self.before_ns = std::mem::replace(&mut self.shift_ns, shift_ns);
        shift_ns.saturating_sub(self.before_ns).saturating_abs()
    }

    /// Return whether the clock was set, or the previous segment was early.
    pub fn is_doubted(&self) -> bool {
        self.shift_ns != 0 || self.before_ns != 0 || self.early_at_ns.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_clock_set_back_goes_on_from_the_latest_time() {
        let mut clock = Clock::default();
        assert_eq!(
            clock.set_right(2 * S, 10 * S),
            (2 * S, None),
            "one segment proves no step"
        );
        assert_eq!(
            clock.set_right(2 * S + 5, 10 * S),
            (10 * S + 5, Some(8 * S))
        );
        assert_eq!(clock.set_right(2 * S + 9, 10 * S + 5), (10 * S + 9, None));
        let back = clock.set_right(10 * S + 20, 10 * S + 9);
        assert_eq!(back, (10 * S + 20, Some(8 * S)), "set forward again");
    }

    #[test]
    fn a_lone_early_segment_moves_no_clock() {
        let mut clock = Clock::default();
        clock.set_right(2 * S, 10 * S);
        assert_eq!(clock.set_right(10 * S + 1, 10 * S), (10 * S + 1, None));
        assert!(!clock.is_doubted());
        assert_eq!(clock.set_right(3 * S, 10 * S + 1), (3 * S, None));
    }
}
