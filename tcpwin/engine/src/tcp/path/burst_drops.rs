//! Many scattered drops in one flight, as a policer or an overflowing queue causes.
//!
//! In: losses with the round trip before them, and retransmissions. Out: the longest round trip before such drops. If that
//! is the path's minimum, nothing queued.

use crate::sequence::Seq;

/// Number of holes in one flight that neither random losses nor a few bursts of them cause.
const LEAST_HOLES: u32 = 10;
/// The same number of holes with at most two segments between most of them: a policer passes one segment each time that
/// its bucket has filled for one, and drops all that come in between.
const LEAST_NEAR_HOLES: u32 = 5;
const NEAR_BYTES: i32 = 3000;
/// Minimum share of the flight, as a divisor.
const PART: u64 = 8;

/// The current recovery, and the result of all recoveries so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drops {
    flight_bytes: u32,
    /// Round trip before the first loss; 0 where it was not timed.
    delay_us: u32,
    resent_until: Option<Seq>,
    holes: u32,
    /// Holes that begin at most [`NEAR_BYTES`] after another one.
    near_holes: u32,
    resent_bytes: u32,
    most_delay_us: u32,
}

impl Drops {
    /// Begin a recovery, with the flight at the loss.
    pub fn begin(&mut self, flight_bytes: u32, delay_us: u32) {
        *self = Drops {
            flight_bytes,
            delay_us,
            most_delay_us: self.most_delay_us,
            ..Drops::default()
        };
    }

    /// Add a retransmission. Data before the highest one is sent a third time and is not another hole.
    pub fn resend(&mut self, seq: Seq, end: Seq) {
        let until = self.resent_until.unwrap_or(seq);
        if self.flight_bytes == 0 || seq.is_before(until) {
            return;
        }
        if self.resent_until != Some(seq) {
            self.holes += 1;
            let is_near = self
                .resent_until
                .is_some_and(|until| until.to(seq) <= NEAR_BYTES);
            self.near_holes += u32::from(is_near);
        }
        self.resent_until = Some(end);
        self.resent_bytes = (self.resent_bytes).saturating_add(seq.to(end).max(0) as u32);
        let is_much = u64::from(self.resent_bytes) * PART >= u64::from(self.flight_bytes);
        let is_even = self.holes >= LEAST_NEAR_HOLES && self.near_holes * 4 >= self.holes * 3;
        let is_policing = is_even && (is_much || self.holes >= 2 * LEAST_HOLES);
        if (self.holes >= LEAST_HOLES && is_much) || is_policing {
            self.most_delay_us = self.most_delay_us.max(self.delay_us);
        }
    }

    /// Return the longest round trip before scattered drops; None if there were none, or it was not measured.
    pub fn most_delay_us(&self) -> Option<u32> {
        (self.most_delay_us > 0).then_some(self.most_delay_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retransmit each `every`th of 100 segments.
    fn drops(every: u32, count: u32) -> Drops {
        let mut drops = Drops::default();
        drops.begin(100_000, 50_000);
        for number in 0..count {
            let seq = Seq(number * every * 1000);
            drops.resend(seq, seq + 1000);
        }
        drops
    }

    #[test]
    fn many_holes_in_one_flight_are_not_random_losses() {
        assert_eq!(drops(2, 13).most_delay_us(), Some(50_000));
        assert_eq!(drops(2, 12).most_delay_us(), None, "less than an eighth");
        assert_eq!(drops(1, 50).most_delay_us(), None, "one hole");
        let mut again = drops(2, 9);
        for _ in 0..9 {
            again.resend(Seq(0), Seq(1000));
            again.resend(Seq(2000), Seq(3000));
        }
        assert_eq!(again.most_delay_us(), None, "sent a third time");
    }

    #[test]
    fn holes_with_a_segment_between_them_are_a_policers() {
        // Of 60 segments, every tenth passes: bursts of random losses leave longer gaps.
        let holes = |passed: u32, count: u32| {
            let mut drops = Drops::default();
            drops.begin(60_000, 50_000);
            for number in 0..count {
                let seq = Seq(number * (9 + passed) * 1000);
                (0..9u32)
                    .for_each(|place| drops.resend(seq + place * 1000, seq + (place + 1) * 1000));
            }
            drops.most_delay_us()
        };
        assert_eq!(holes(1, 5), Some(50_000));
        assert_eq!(holes(1, 4), None);
        assert_eq!(holes(4, 5), None);
    }

    #[test]
    fn the_next_loss_starts_over_and_the_longest_round_trip_stays() {
        let mut drops = drops(2, 13);
        drops.begin(50_000, 80_000);
        let hole = |number: u32| (Seq(number * 5000), Seq(number * 5000 + 1000));
        (0..5)
            .map(hole)
            .for_each(|(seq, end)| drops.resend(seq, end));
        assert_eq!(drops.most_delay_us(), Some(50_000));
        (5..10)
            .map(hole)
            .for_each(|(seq, end)| drops.resend(seq, end));
        assert_eq!(drops.most_delay_us(), Some(80_000));
        drops.begin(20_000, 0);
        assert_eq!(drops.most_delay_us(), Some(80_000));
    }
}
