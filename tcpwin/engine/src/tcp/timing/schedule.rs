//! Whether a side sends its messages on a schedule, whatever it receives in between.
//!
//! A side that answers starts each message some time after the peer's last one arrived. If those arrive sooner or later,
//! for example because its own messages took longer, its next message shifts with them. A side with a schedule starts
//! them a period apart all the same, and after a message that could not leave in time returns to the same beat.

/// Periods are equal if they differ by less than this part of one: so is one in 250 by chance.
const JITTER_PART: i64 = 500;
/// Periods and waits are uneven if they differ by more than this part of a period: something held a message back.
const UNEVEN_PART: i64 = 10;
/// Equal periods that show a schedule, and those among them for which the peer's messages varied.
const FEWEST_EQUAL: u32 = 4;
const FEWEST_VARIED: u32 = 3;
/// Equal periods in a row after which a beat is compared with the first.
const SETTLED: u32 = 3;

/// The starts of one side's messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    first_ns: i64,
    last_ns: i64,
    period_ns: i64,
    wait_ns: i64,
    /// Periods equal to the one before; of these, in a row, and after waits that differ.
    equal: u32,
    in_a_row: u32,
    varied: u32,
    /// Whether some periods differed so far.
    is_uneven: bool,
    /// Beats that settled after an uneven period: the same as the first, or another.
    kept: u32,
    shifted: u32,
}

impl Schedule {
    /// Add a message that starts `wait_ns` after the peer's last data. `first_ns`: start of the first message.
    pub fn note(&mut self, first_ns: i64, start_ns: i64, wait_ns: i64) {
        if self.last_ns == 0 {
            (self.first_ns, self.last_ns) = (first_ns, first_ns);
        }
        let period_ns = start_ns - self.last_ns;
        let is_within = |apart_ns: i64, part: i64| apart_ns.abs() <= period_ns / part;
        let change_ns = period_ns - self.period_ns;
        if !is_within(change_ns, JITTER_PART) {
            self.is_uneven |= self.period_ns != 0 && !is_within(change_ns, UNEVEN_PART);
            self.in_a_row = 0;
        } else {
            self.equal = self.equal.saturating_add(1);
            self.in_a_row = self.in_a_row.saturating_add(1);
            let is_varied = !is_within(wait_ns - self.wait_ns, UNEVEN_PART);
            self.varied = self.varied.saturating_add(u32::from(is_varied));
            if self.in_a_row == SETTLED && self.is_uneven {
                let off_ns = (start_ns - self.first_ns) % period_ns.max(1);
                let is_kept = is_within(off_ns.min(period_ns - off_ns), JITTER_PART);
                self.kept += u32::from(is_kept);
                self.shifted += u32::from(!is_kept);
            }
        }
        (self.last_ns, self.period_ns, self.wait_ns) = (start_ns, period_ns, wait_ns);
    }

    /// Return whether the side has a schedule. `is_asked_at_once`: the peer reacts to each message at once, so
    /// the beat cannot be the peer's.
    pub fn is_kept(&self, is_asked_at_once: bool) -> bool {
        let is_even = self.equal >= FEWEST_EQUAL;
        let is_indifferent = self.varied >= FEWEST_VARIED && self.varied * 2 >= self.equal;
        is_even && (is_indifferent || is_asked_at_once && self.kept > self.shifted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Messages start at these times, each some time after the peer's last data.
    fn schedule(messages: impl IntoIterator<Item = (i64, i64)>) -> Schedule {
        let mut schedule = Schedule::default();
        for (start_ms, wait_ms) in messages {
            schedule.note(7 * MS, (7 + start_ms) * MS, wait_ms * MS);
        }
        schedule
    }

    #[test]
    fn even_starts_after_uneven_waits_are_scheduled() {
        // Lab world 5-037.
        let waits = [704, 133, 145, 146, 433, 144, 430, 150, 437];
        let own = schedule((1..10).map(|nth| 741 * nth).zip(waits));
        assert!(own.is_kept(false));
        // A server that answers a steady client has none, nor one whose work varies.
        assert!(!schedule((1..10).map(|nth| (741 * nth, 20))).is_kept(true));
        let work =
            (1..10).map(|nth| (300 * nth + waits[nth as usize - 1], waits[nth as usize - 1]));
        assert!(!schedule(work).is_kept(true));
        // Short periods repeat by chance.
        let mut noise = Schedule::default();
        let mut now_ns = 0;
        for each_us in [2700, 2610, 2705, 2300, 2702, 2660, 2657, 2990]
            .into_iter()
            .cycle()
            .take(80)
        {
            now_ns += each_us * 1000;
            noise.note(0, now_ns, each_us * 500);
        }
        assert!(!noise.is_kept(true));
    }

    #[test]
    fn a_beat_that_returns_after_a_late_message_is_a_schedule() {
        // Lab world 4-020: slow start held the first messages back.
        let starts = [1416, 1697].into_iter().chain((3..12).map(|nth| 719 * nth));
        let own = schedule(starts.clone().map(|start_ms| (start_ms, 298)));
        assert!(own.is_kept(true));
        // A client's schedule could cause it.
        assert!(!own.is_kept(false));
        // After a late message, answers stay late.
        let shifted =
            starts.map(|start_ms| (start_ms + if start_ms > 1700 { 250 } else { 0 }, 298));
        assert!(!schedule(shifted).is_kept(true));
    }
}
