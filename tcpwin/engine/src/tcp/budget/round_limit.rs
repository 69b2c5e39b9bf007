//! Judges, once per round trip, what limited a sender that had data in flight and room to send.
//!
//! In: a round, and how its time passed. Out: the item of its busy time (rules 8.a to 8.l). Charges nothing.

use crate::tables::budget_item::SenderState;

/// Share of the best rate from which a round is at the path's rate.
const PATH_RATE: f64 = 0.85;
/// Share of a round trip above which the gap between two segments is the sender's pause rather than the path's spacing.
const BURST_SHARE: i64 = 4;
/// Number of rounds with the same flight to within a segment that suggest a buffer of fixed size.
const FLAT_ROUNDS: u32 = 16;
/// Smaller flights may be the same to within a segment by chance.
const FLAT_SEGMENTS: u32 = 8;
/// Charge the whole round to the application if nothing was in flight for this part of it (a divisor).
const IDLE_SHARE: i64 = 4;
/// Charge the whole round to the window if it was full for this part of it (a divisor).
const WINDOW_SHARE: i64 = 2;

#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    pub elapsed_ns: i64,
    pub acked_bytes: u64,
    pub peak_bytes: u32,
    pub before_bytes: u32,
    pub round_trip_ns: i64,
    pub grows: bool,
    pub is_recovering: bool,
    /// Whether the start was not captured, so that the growth of the flight is unknown.
    pub is_after_unseen: bool,
    pub mss: u32,
}

#[cfg(test)]
impl RoundTrip {
    /// A round without growth or loss.
    pub const PLAIN: RoundTrip = RoundTrip {
        elapsed_ns: 100,
        acked_bytes: 1000,
        peak_bytes: 1000,
        before_bytes: 500,
        round_trip_ns: 100,
        grows: false,
        is_recovering: false,
        is_after_unseen: false,
        mss: 100,
    };
}

/// How a round's time passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    pub idle_ns: i64,
    pub window_ns: i64,
    /// Largest gap between two data segments while the sender was busy.
    pub gap_ns: i64,
    /// Whether the round included recovery: its flight then counts lost bytes.
    pub has_recovered: bool,
}

/// Facts about earlier rounds, for judging the next one.
#[derive(Clone, Debug)]
pub struct Rounds {
    best_rate: f64,
    round_trip_ns: i64,
    /// Flight at the last loss, until it is regained.
    lost_at_bytes: u32,
    /// Whether the receiver dropped the lost data because it had withdrawn the window.
    is_refused: bool,
    flat_rounds: u32,
    flat_bytes: u32,
}

impl Rounds {
    pub const NONE: Rounds = Rounds {
        best_rate: 0.0,
        round_trip_ns: 0,
        lost_at_bytes: 0,
        is_refused: false,
        flat_rounds: 0,
        flat_bytes: 0,
    };

    /// Record a loss at this flight. `is_refused`: the receiver had withdrawn the window for the lost data.
    pub fn lose(&mut self, flight_bytes: u32, is_refused: bool) {
        self.is_refused = is_refused;
        self.lost_at_bytes = self.lost_at_bytes.max(flight_bytes);
    }

    /// Forget the rates of rounds that were shorter than a round trip.
    pub fn forget_rates(&mut self) {
        self.best_rate = 0.0;
    }

    /// Return the item of a round's busy time, and the item if the path has spare capacity.
    #[inline]
    pub fn judge(&mut self, round: &RoundTrip, passed: &Passed) -> (SenderState, SenderState) {
        let elapsed_ns = round.elapsed_ns.max(1);
        let is_best = self.is_best(round, elapsed_ns);
        let is_flat = self.is_flat(round);
        let is_lossy = self.is_after_loss(round, passed);
        let of_the_sender = if is_flat {
            SenderState::SendBuffer
        } else {
            SenderState::Congestion
        };
        let item = if passed.idle_ns >= elapsed_ns / IDLE_SHARE {
            SenderState::Application
        } else if is_lossy && self.is_refused {
            SenderState::Reader
        } else if is_lossy {
            SenderState::AfterLoss
        } else if passed.window_ns >= elapsed_ns / WINDOW_SHARE {
            SenderState::WindowFull
        } else if round.is_after_unseen {
            SenderState::Unknown
        } else if round.grows {
            SenderState::SlowStart
        } else if is_best && passed.gap_ns < self.round_trip_ns / BURST_SHARE {
            return (SenderState::Path, of_the_sender);
        } else {
            of_the_sender
        };
        (item, item)
    }

    /// Return whether the round reached the path's rate, judged by the best rate so far.
    fn is_best(&mut self, round: &RoundTrip, elapsed_ns: i64) -> bool {
        let rate = round.acked_bytes as f64 / elapsed_ns as f64;
        let is_best = rate >= self.best_rate * PATH_RATE;
        if round.round_trip_ns > 0 {
            self.round_trip_ns = round.round_trip_ns;
        }
        let is_whole =
            self.round_trip_ns > 0 && elapsed_ns >= self.round_trip_ns / 2 && round.acked_bytes > 0;
        if is_whole {
            self.best_rate = self.best_rate.max(rate);
        }
        is_best
    }

    /// Return whether the flight has been constant for long.
    fn is_flat(&mut self, round: &RoundTrip) -> bool {
        if round.peak_bytes.abs_diff(self.flat_bytes) > round.mss {
            (self.flat_bytes, self.flat_rounds) = (round.peak_bytes, 0);
        }
        self.flat_rounds = self.flat_rounds.saturating_add(1);
        self.flat_rounds > FLAT_ROUNDS && self.flat_bytes >= round.mss.saturating_mul(FLAT_SEGMENTS)
    }

    /// Return whether the flight at the last loss is not regained yet.
    fn is_after_loss(&mut self, round: &RoundTrip, passed: &Passed) -> bool {
        let is_regained = round.peak_bytes > self.lost_at_bytes.saturating_add(round.mss);
        if is_regained && !passed.has_recovered && !round.is_recovering {
            self.lost_at_bytes = 0;
        }
        self.lost_at_bytes > 0 || round.is_recovering
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_judged_by_what_it_shows() {
        let round = RoundTrip::PLAIN;
        let grows = RoundTrip {
            grows: true,
            ..round
        };
        let mut rounds = Rounds::NONE;
        let mut passed = Passed::default();
        assert_eq!(rounds.judge(&grows, &passed).0, SenderState::SlowStart);
        let even_at_the_best_rate = rounds.judge(&round, &passed).0;
        assert_eq!(even_at_the_best_rate, SenderState::Path);
        passed.gap_ns = 60;
        assert_eq!(
            rounds.judge(&round, &passed).0,
            SenderState::Congestion,
            "in bursts"
        );
        passed.window_ns = 50;
        assert_eq!(rounds.judge(&round, &passed).0, SenderState::WindowFull);
        passed.idle_ns = 25;
        assert_eq!(rounds.judge(&round, &passed).0, SenderState::Application);
        (passed.idle_ns, passed.window_ns) = (0, 0);
        rounds.lose(2000, false);
        assert_eq!(rounds.judge(&round, &passed).0, SenderState::AfterLoss);
        rounds.lose(2000, true);
        assert_eq!(
            rounds.judge(&round, &passed).0,
            SenderState::Reader,
            "refused"
        );
        rounds.lose(2000, false);
        let regained = RoundTrip {
            peak_bytes: 2101,
            ..round
        };
        assert_ne!(rounds.judge(&regained, &passed).0, SenderState::AfterLoss);
        let unseen = RoundTrip {
            is_after_unseen: true,
            ..grows
        };
        assert_eq!(rounds.judge(&unseen, &passed).0, SenderState::Unknown);
    }
}
