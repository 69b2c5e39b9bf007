//! The capture's clock was set. Forward: a silence in which it went on and the sender's own clock did not. Back: two
//! segments in a row that are a second and more before the one that was captured before them.
//!
//! Comes in: a segment, and what its sender's timestamps were before. Goes out: how much of a silence no clock but the
//! capture's knows of (without timestamps nothing is said), and what makes up for a clock that was set back.

use crate::connection::direction::Direction;
use crate::connection::state::Connection;
use crate::wire::Segment;

/// Shorter silences are not looked at: coarse timestamps cannot tell them.
pub const LEAST_SILENCE_NS: i64 = 1_000_000_000;
/// A segment written down later than others by less still tells round trips.
pub const LEAST_DISORDER_NS: i64 = 1_000_000;
/// The slowest timestamp clock (RFC 7323 §5.4: one tick in 1 ms to 1 s).
const SLOWEST_TICK_NS: i64 = 1_000_000_000;
/// Ticks and time since the SYN from which the length of a tick is told.
const TELLING_TICKS: i64 = 10;
const TELLING_NS: i64 = 50_000_000;

/// What makes up for a capture's clock that was set back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Added to each time since.
    shift_ns: i64,
    /// The same before the last step: the clock may return.
    before_ns: i64,
    /// The segment before was so early that the clock may have been set: when it was captured.
    early_at_ns: Option<i64>,
}

impl Clock {
    /// The time of a segment that was captured at `time_ns`, `end_ns` being the latest so far; and by how much the clock
    /// was set, where this segment shows it. A lone early segment is written down late, and moves no clock.
    #[cold]
    pub fn set_right(&mut self, time_ns: i64, end_ns: i64) -> (i64, Option<i64>) {
        let now_ns = time_ns.saturating_add(self.shift_ns);
        let returned_ns = time_ns.saturating_add(self.before_ns);
        let early_ns = end_ns.saturating_sub(now_ns);
        let is_early = early_ns >= LEAST_SILENCE_NS;
        let early_at_ns = std::mem::replace(&mut self.early_at_ns, is_early.then_some(time_ns));
        let skipped_ns = now_ns.saturating_sub(end_ns);
        if skipped_ns >= LEAST_SILENCE_NS && (0..skipped_ns / 2).contains(&(returned_ns - end_ns)) {
            let stepped_ns = self.set(self.before_ns);
            return (returned_ns, Some(stepped_ns));
        }
        let is_still_early = early_ns >= LEAST_SILENCE_NS / 2;
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

    /// Whether the clock was set, or the segment before was early.
    pub fn is_doubted(&self) -> bool {
        self.shift_ns != 0 || self.before_ns != 0 || self.early_at_ns.is_some()
    }
}

/// Time of the silence from `before_ns` to this segment that its sender's timestamps do not know of.
#[cold]
pub fn stepped_ns(
    connection: &Connection,
    side: usize,
    segment: &Segment,
    before_ns: i64,
) -> Option<i64> {
    let silence_ns = segment.time_ns.saturating_sub(before_ns);
    let sent = &connection.directions[side];
    let (tsval, _) = segment.options.timestamps?;
    if silence_ns < LEAST_SILENCE_NS || !sent.has_tsval {
        return None;
    }
    let ticks = i64::from(tsval.wrapping_sub(sent.tsval) as i32);
    let tick_ns = match tick_ns(connection, sent, before_ns) {
        Some(tick_ns) => tick_ns,
        // A clock that stands still says nothing.
        None if ticks > 0 => SLOWEST_TICK_NS,
        None => return None,
    };
    let passed_ns = ticks.saturating_add(1).saturating_mul(tick_ns);
    (ticks >= 0 && passed_ns < silence_ns / 2).then(|| silence_ns - passed_ns)
}

/// How long a tick of a side's clock is, at most: from its SYN, or the start of the capture, to the silence.
fn tick_ns(connection: &Connection, sent: &Direction, before_ns: i64) -> Option<i64> {
    let syn_ns = if sent.syn.is_answer() {
        connection.syn_ack_ns()
    } else {
        connection.syn_ns()
    };
    let began_ns = syn_ns.filter(|_| sent.has_syn);
    let passed_ns = before_ns.saturating_sub(began_ns.unwrap_or(connection.start_ns));
    let ticks = i64::from(sent.tsval.wrapping_sub(sent.first_tsval) as i32);
    (ticks >= TELLING_TICKS && passed_ns >= TELLING_NS).then(|| passed_ns / ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_clock_set_back_goes_on_from_the_latest_time() {
        let mut clock = Clock::default();
        assert_eq!(clock.set_right(2 * S, 10 * S), (2 * S, None), "may be one");
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
