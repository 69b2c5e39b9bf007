//! Throughput between losses: a full or policed path delivers the same rate in every span, however long; a path with random
//! losses does not.
//!
//! Comes in: rounds as they end. Goes out: the rate, how far spans differ from it, and how far they differ in length.

/// Fewer spans say little.
const LEAST_SPANS: u32 = 5;
/// Spans between losses whose rates differ by less were all at the rate of the path: losses at random strike slow and fast
/// flights alike, and spans between them differ by a fifth and more.
const STEADY_SPREAD: f64 = 0.12;
/// Many spans of much the same length differ in their rates by more, for few segments are in each: so they are a policer's
/// that lets little through.
const SAME_SPREAD: f64 = 0.5;
const SAME_RATE_SPREAD: f64 = 0.2;
const MANY_SPANS: u32 = 12;

/// [`LossSpans::open_ns`] while no span is open.
const NO_SPAN: i64 = -1;

/// Sums over the spans so far, and the span that is open.
#[derive(Clone, Copy, Debug)]
pub struct LossSpans {
    count: u32,
    elapsed_s: f64,
    bytes: f64,
    /// Sums over the spans of their squared bytes, and of these by their seconds.
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
    /// By how much a second of a span differs from the mean, and a span's bytes from theirs: standard deviations by means.
    pub rate_spread: f64,
    pub size_spread: f64,
}

impl LossSpans {
    /// A round is over. `is_held`: its sender waited for its application or the window in part of it.
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

    /// None of too few.
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
    /// Whether all spans were at the rate of the path.
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

    /// Spans of so many rounds of 100 ms, each with so many bytes.
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
    fn a_span_in_which_the_sender_was_held_is_none() {
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
