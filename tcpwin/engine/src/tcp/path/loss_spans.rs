//! Throughput between losses: a full or policed path delivers the same rate in every span, however long; a path with random
//! losses does not.
//!
//! In: rounds as they end. Out: the common rate, and the spread of the spans' rates and lengths.

/// Minimum number of spans.
const LEAST_SPANS: u32 = 5;
/// Maximum spread of rates for spans at the path's rate: random losses hit slow and fast flights alike, so that spans
/// between them differ by a fifth or more.
const STEADY_SPREAD: f64 = 0.12;
/// Larger spread allowed for many spans of similar length, each of few segments, as with a policer of a low rate.
const SAME_SPREAD: f64 = 0.5;
const SAME_RATE_SPREAD: f64 = 0.2;
const MANY_SPANS: u32 = 12;

/// [`LossSpans::open_ns`] while no span is open.
const NO_SPAN: i64 = -1;

/// Sums over the spans so far, and the open span.
#[derive(Clone, Copy, Debug)]
pub struct LossSpans {
    count: u32,
    elapsed_s: f64,
    bytes: f64,
    /// Sums over the spans of squared bytes, and of squared bytes per second.
    squares: f64,
    squares_per_s: f64,
    /// Start of the open span; [`NO_SPAN`] if none is open.
    open_ns: i64,
    open_bytes: u64,
    was_lossy: bool,
}

impl Default for LossSpans {
    fn default() -> Self {
        LossSpans {
            count: 0,
            elapsed_s: 0.0,
            bytes: 0.0,
            squares: 0.0,
            squares_per_s: 0.0,
            open_ns: NO_SPAN,
            open_bytes: 0,
            was_lossy: false,
        }
    }
}

/// The common rate of the spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    pub count: u32,
    pub bytes_per_s: f64,
    /// Relative standard deviations of the spans' rates (weighted by time) and sizes.
    pub rate_spread: f64,
    pub size_spread: f64,
}

impl LossSpans {
    /// Add a finished round. `is_held`: its sender waited for its application or the window for part of it.
    pub fn end_round(
        &mut self,
        elapsed_ns: i64,
        delivered_bytes: u64,
        is_lossy: bool,
        is_held: bool,
    ) {
        let begins = is_lossy && !self.was_lossy;
        self.was_lossy = is_lossy;
        if is_held {
            self.open_ns = NO_SPAN;
            return;
        }
        if self.open_ns != NO_SPAN {
            self.open_ns = self.open_ns.saturating_add(elapsed_ns);
            self.open_bytes = self.open_bytes.saturating_add(delivered_bytes);
        }
        if begins {
            if self.open_ns > 0 {
                let (seconds, bytes) = (self.open_ns as f64 / 1e9, self.open_bytes as f64);
                self.count = self.count.saturating_add(1);
                self.elapsed_s += seconds;
                self.bytes += bytes;
                self.squares += bytes * bytes;
                self.squares_per_s += bytes * bytes / seconds;
            }
            (self.open_ns, self.open_bytes) = (0, 0);
        }
    }

    /// Return the common rate; None with too few spans.
    pub fn steady(&self) -> Option<Steady> {
        if self.count < LEAST_SPANS || self.bytes <= 0.0 {
            return None;
        }
        let spread = |squares: f64| (squares - 1.0).max(0.0).sqrt();
        Some(Steady {
            count: self.count,
            bytes_per_s: self.bytes / self.elapsed_s,
            rate_spread: spread(self.squares_per_s * self.elapsed_s / (self.bytes * self.bytes)),
            size_spread: spread(self.squares * f64::from(self.count) / (self.bytes * self.bytes)),
        })
    }
}

impl Steady {
    /// Return whether all spans were at the path's rate.
    pub fn is_of_the_path(&self) -> bool {
        let is_same = self.count >= MANY_SPANS && self.size_spread <= SAME_SPREAD;
        self.rate_spread
            <= if is_same {
                SAME_RATE_SPREAD
            } else {
                STEADY_SPREAD
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans of a number of rounds of 100 ms, with the bytes per round.
    fn spans(of: &[(u32, u64)]) -> LossSpans {
        let mut spans = LossSpans::default();
        spans.end_round(100_000_000, 1, true, false);
        for (rounds, bytes) in of {
            for round in 1..=*rounds {
                spans.end_round(100_000_000, *bytes, round == *rounds, false);
            }
        }
        spans
    }

    #[test]
    fn spans_of_one_rate_are_steady_whatever_their_length() {
        let even = spans(&[(2, 100), (4, 100), (6, 100), (2, 100), (6, 100)]);
        let steady = even.steady().unwrap();
        assert!((steady.bytes_per_s - 1000.0).abs() < 1e-6);
        assert!(steady.rate_spread < 1e-6);
        // Of 200, 400, 600, 200, 600 bytes: 178.9 by 400.
        assert!((steady.size_spread - 0.447).abs() < 0.001);
        let uneven = spans(&[(2, 50), (4, 150), (6, 100), (2, 50), (6, 150)]);
        assert!(uneven.steady().unwrap().rate_spread > 0.3);
        assert_eq!(spans(&[(2, 100); 4]).steady(), None);
    }

    #[test]
    fn a_span_with_a_held_sender_does_not_count() {
        let mut held = spans(&[(2, 100); 4]);
        held.end_round(100_000_000, 100, false, true);
        held.end_round(100_000_000, 100, true, false);
        assert_eq!(held.steady(), None);
        held.end_round(100_000_000, 100, false, false);
        held.end_round(100_000_000, 100, true, false);
        assert!(held.steady().is_some());
    }

    #[test]
    fn many_spans_of_one_length_may_differ_more_in_their_rates() {
        let steady = |count, rate_spread, size_spread| {
            Steady {
                count,
                bytes_per_s: 1e6,
                rate_spread,
                size_spread,
            }
            .is_of_the_path()
        };
        assert!(steady(5, 0.12, 0.9));
        assert!(!steady(40, 0.16, 0.9));
        assert!(steady(40, 0.16, 0.36));
        assert!(!steady(11, 0.16, 0.36));
        assert!(!steady(40, 0.21, 0.36));
    }
}
