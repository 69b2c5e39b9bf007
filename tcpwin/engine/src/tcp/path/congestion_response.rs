//! Identifies a sender's congestion control by its response to losses and marks, and its growth in between.
//!
//! In: rounds as they end, and their retransmissions, as captured at the sender. Out: the algorithm if several responses
//! agree, and those responses. Ignores flights that something else limited.

use crate::tcp::path::rate_probe::RateProbe;
use crate::tcp::recovery::cause::{Confidence, RetransmissionCause};

/// Smaller flights, in segments, do not distinguish algorithms after a cut: of seven, Reno leaves three and CUBIC four.
const LEAST_SEGMENTS: f32 = 8.0;
/// Share of a round spent waiting above which the application or the receiver limited it.
const HELD_SHARE: i64 = 50;
/// Share of the window that Reno (RFC 5681 §3.1) and CUBIC (RFC 9438 §4.6) keep.
const RENO_LEAVES: f32 = 0.5;
const CUBIC_LEAVES: f32 = 0.7;
/// CUBIC's minimum growth in segments per round, to be fair to Reno (RFC 9438 §4.3), and its C (§5).
const CUBIC_FAIR: f32 = 0.53;
const CUBIC_C: f32 = 0.4;
/// Share of the window left after a loss: above it, the window was not cut; below it, it was cut twice.
const KEPT: f32 = 0.92;
const CUT_TWICE: f32 = 0.35;
/// The flight at a loss is the window only if it continues the round before.
const STEADY: std::ops::Range<f32> = 0.8..1.25;
/// Growth over this many rounds distinguishes the algorithms.
const GROWN_ROUNDS: u32 = 4;
/// Maximum difference of logarithms that counts.
const MOST_DIFFERENCE: f32 = 0.35;
const MOST_MISS: f32 = 0.7;
/// An algorithm fits if the mean error is below the first value, and the other's is larger by the second.
const FITS: f32 = 0.2;
const FITS_BETTER: f32 = 0.08;
/// If slow start ends without loss (HyStart), Linux's CUBIC grows by a twentieth per round until its first loss
/// (`bictcp_update`). From the second value on, in segments, growth by one segment per round is less than that.
const FIRST_GROWTH: std::ops::Range<f32> = 1.03..1.07;
const FIRST_SEGMENTS: f32 = 40.0;
/// DCTCP cuts by half of the marked share (RFC 8257 §3.3), all others as after a loss (RFC 3168 §6.1.2).
const MILD_CUT: f32 = 0.8;
const MARK_SEGMENTS: f32 = 10.0;
/// Number of responses of a kind that identify an algorithm, and number that make it likely.
const FEW: u32 = 3;
const MANY: u32 = 5;
/// This many nearly consecutive losses without a cut are not a coincidence.
const MANY_KEPT: u32 = 8;
const KEPT_SHARE: f32 = 0.9;

/// One round, as seen by its sender.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub end_ns: i64,
    pub elapsed_ns: i64,
    /// Time in which it waited for its application or the receive window.
    pub held_ns: i64,
    /// Maximum bytes in flight.
    pub peak_bytes: u32,
    pub mss: u32,
    /// Whether losses are still being repaired.
    pub is_recovering: bool,
    pub is_marked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    segments: f32,
    is_held: bool,
    is_lossy: bool,
    is_marked: bool,
    /// Whether data arrived after a gap: SACKed bytes count as in flight, although they no longer use the window.
    is_disordered: bool,
}

impl Round {
    fn is_free(self) -> bool {
        !(self.is_held || self.is_lossy || self.is_marked)
    }

    /// Return whether its flight equals the window.
    fn is_plain(self) -> bool {
        self.is_free() && !self.is_disordered
    }
}

/// The sender's progress in repairing a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Recovering,
    /// All losses are repaired; the next round is the first with the new window.
    Repaired,
}

/// The rounds from a cut on.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    before: f32,
    after: f32,
    last: f32,
    rounds: u32,
    from_ns: i64,
    until_ns: i64,
}

/// The responses so far.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    last: Option<Round>,
    phase: Phase,
    /// Flight at the loss being repaired; None if that is not the window.
    lost_at: Option<f32>,
    is_resent: bool,
    is_disordered: bool,
    cycle: Option<Cycle>,
    /// Flight when marks began to arrive, and the minimum since.
    marked_at: Option<(f32, f32)>,
    probe: RateProbe,
    has_lost: bool,
    has_marks: bool,
    /// Number of cuts; the following fields count those that left the window unchanged and sum the shares left.
    pub cuts: u32,
    kept: u32,
    left: f32,
    /// Cuts that may be Reno's or CUBIC's: their number, the error against each, and which error is larger.
    fitted: u32,
    fitted_marks: u32,
    misses: (f32, f32),
    lead: f32,
    mild: u32,
    deep: u32,
    first_growth: u32,
    pub probes: u32,
}

impl Default for Response {
    fn default() -> Self {
        Response {
            last: None,
            phase: Phase::Open,
            lost_at: None,
            is_resent: false,
            is_disordered: false,
            cycle: None,
            marked_at: None,
            probe: RateProbe::None,
            has_lost: false,
            has_marks: false,
            cuts: 0,
            kept: 0,
            left: 0.0,
            fitted: 0,
            fitted_marks: 0,
            misses: (0.0, 0.0),
            lead: 0.0,
            mild: 0,
            deep: 0,
            first_growth: 0,
            probes: 0,
        }
    }
}

/// Linux's name of the algorithm, and the confidence.
pub type Algorithm = (&'static str, Confidence);

impl Response {
    /// Note a retransmission, with the bytes in flight that SACK has not reported.
    pub fn note_resent(&mut self, cause: RetransmissionCause, pipe_bytes: u32, mss: u32) {
        if matches!(
            cause,
            RetransmissionCause::Rto | RetransmissionCause::GoBackN
        ) {
            self.lost_at = None;
            self.phase = Phase::Recovering;
        } else if !self.is_resent && self.phase == Phase::Open {
            let segments = pipe_bytes as f32 / mss.max(1) as f32;
            let is_steady = |last: Round| {
                last.is_free() && STEADY.contains(&(segments / last.segments.max(1.0)))
            };
            let is_window = cause == RetransmissionCause::Fast && self.last.is_some_and(is_steady);
            self.lost_at = is_window.then_some(segments);
        }
        self.is_resent = true;
    }

    /// Note a duplicate ACK or SACK report.
    pub fn note_disorder(&mut self) {
        self.is_disordered = true;
    }

    /// Process a finished round.
    pub fn end_round(&mut self, moved: &Moved) {
        let is_resent = std::mem::take(&mut self.is_resent);
        let round = Round {
            segments: moved.peak_bytes as f32 / moved.mss.max(1) as f32,
            is_held: moved.held_ns > moved.elapsed_ns / HELD_SHARE,
            is_lossy: is_resent || moved.is_recovering,
            is_marked: moved.is_marked,
            is_disordered: std::mem::take(&mut self.is_disordered),
        };
        let last = self.last.replace(round);
        self.follow_first_growth(last, round);
        self.has_lost |= round.is_lossy;
        self.has_marks |= round.is_marked;
        self.follow_probe(last, round);
        self.follow_marks(last, round);
        self.follow_cycle(round, moved);
    }

    fn follow_first_growth(&mut self, last: Option<Round>, round: Round) {
        let Some(last) = last.filter(|last| last.is_plain() && last.segments >= FIRST_SEGMENTS)
        else {
            return;
        };
        let is_first = round.is_plain() && !self.has_lost && !self.has_marks;
        if is_first && FIRST_GROWTH.contains(&(round.segments / last.segments)) {
            self.first_growth = self.first_growth.saturating_add(1);
        }
    }

    fn follow_probe(&mut self, last: Option<Round>, round: Round) {
        if !round.is_plain() {
            self.probe = RateProbe::None;
        } else if last.is_some_and(Round::is_plain) && self.probe.take(round.segments) {
            self.probes = self.probes.saturating_add(1);
        }
    }

    /// Follow the rounds from the first with marks to the one after the last.
    fn follow_marks(&mut self, last: Option<Round>, round: Round) {
        if round.is_lossy || round.is_held {
            self.marked_at = None;
            return;
        }
        match self.marked_at {
            None => {
                let begins = round.is_marked && last.is_some_and(Round::is_free);
                if begins && round.segments >= MARK_SEGMENTS {
                    self.marked_at = Some((round.segments, round.segments));
                }
            }
            Some((before, least)) => {
                let least = least.min(round.segments);
                self.marked_at = round.is_marked.then_some((before, least));
                if !round.is_marked && least / before > MILD_CUT {
                    self.mild = self.mild.saturating_add(1);
                } else if !round.is_marked {
                    self.deep = self.deep.saturating_add(1);
                    self.fitted_marks = self.fitted_marks.saturating_add(1);
                    self.fit(&Cycle {
                        before,
                        after: least,
                        last: least,
                        rounds: 0,
                        from_ns: 0,
                        until_ns: 0,
                    });
                }
            }
        }
    }

    fn follow_cycle(&mut self, round: Round, moved: &Moved) {
        if round.is_lossy {
            self.close_cycle(true);
            if self.phase == Phase::Repaired {
                // Another loss came before the new window showed.
                self.lost_at = None;
            }
            if self.phase == Phase::Open && round.is_held {
                self.lost_at = None;
            }
            self.phase = if moved.is_recovering {
                Phase::Recovering
            } else {
                Phase::Repaired
            };
            return;
        }
        match self.phase {
            Phase::Recovering => self.phase = Phase::Repaired,
            Phase::Repaired => {
                self.phase = Phase::Open;
                let before = self.lost_at.take().filter(|_| round.is_free());
                self.cycle = before.map(|before| Cycle {
                    before,
                    after: round.segments,
                    last: round.segments,
                    rounds: 0,
                    from_ns: moved.end_ns,
                    until_ns: moved.end_ns,
                });
            }
            Phase::Open if !round.is_free() => self.close_cycle(false),
            Phase::Open => {
                if let Some(cycle) = self.cycle.as_mut().filter(|_| !round.is_disordered) {
                    cycle.last = round.segments;
                    cycle.rounds = cycle.rounds.saturating_add(1);
                    cycle.until_ns = moved.end_ns;
                }
            }
        }
    }

    /// Close the cycle. `by_loss`: ended by the next loss, rather than by something that limited the flight.
    fn close_cycle(&mut self, by_loss: bool) {
        let cycle = self.cycle.take();
        if let Some(cycle) = cycle.filter(|cycle| by_loss || cycle.rounds >= GROWN_ROUNDS) {
            self.fit(&cycle);
        }
    }

    /// Compare a cut, and the growth after it, with those of Reno and CUBIC.
    fn fit(&mut self, cycle: &Cycle) {
        if cycle.before < LEAST_SEGMENTS {
            return;
        }
        let left = cycle.after / cycle.before;
        self.cuts = self.cuts.saturating_add(1);
        self.left += left;
        if left > KEPT {
            self.kept = self.kept.saturating_add(1);
            return;
        }
        if left < CUT_TWICE {
            return;
        }
        // The window grows by one while the first round after the cut passes.
        let miss = |leaves: f32| (cycle.after / (leaves * cycle.before + 1.0)).ln().abs();
        let mut misses = (miss(RENO_LEAVES), miss(CUBIC_LEAVES));
        if cycle.rounds >= GROWN_ROUNDS {
            let grown = (cycle.last - cycle.after).max(0.0);
            let rounds = cycle.rounds as f32;
            let seconds = cycle.until_ns.saturating_sub(cycle.from_ns).max(0) as f32 / 1e9;
            let cubic = cubic_growth(cycle.before, seconds).max(CUBIC_FAIR * rounds);
            let miss = |by: f32| ((grown + 1.0) / (by + 1.0)).ln().abs().min(MOST_MISS);
            misses.0 = (misses.0 + miss(rounds)) / 2.0;
            misses.1 = (misses.1 + miss(cubic)) / 2.0;
        }
        self.fitted = self.fitted.saturating_add(1);
        self.misses.0 += misses.0;
        self.misses.1 += misses.1;
        self.lead += (misses.1 - misses.0).clamp(-MOST_DIFFERENCE, MOST_DIFFERENCE);
    }

    /// Return the mean share of the window left by a cut.
    pub fn left(&self) -> Option<f32> {
        (self.cuts > 0).then(|| self.left / self.cuts as f32)
    }

    /// Return the algorithm that explains the responses; None if they are too few, or fit none.
    pub fn algorithm(&self) -> Option<Algorithm> {
        let sure = |moves: u32| {
            if moves >= MANY {
                Confidence::Likely
            } else {
                Confidence::Possible
            }
        };
        if self.mild >= FEW && self.mild >= self.deep.saturating_mul(2) {
            return Some(("dctcp", sure(self.mild)));
        }
        if self.probes >= FEW {
            return Some(("bbr", sure(self.probes)));
        }
        if self.probes > 0 {
            return None;
        }
        if self.kept >= MANY_KEPT && self.kept as f32 >= self.cuts as f32 * KEPT_SHARE {
            // A sender whose own link is the bottleneck also hides cuts, but not consecutive ones.
            return Some(("bbr", Confidence::Possible));
        }
        if let Some(name) = self.by_cuts() {
            return Some((name, sure(self.fitted)));
        }
        let has_grown = self.first_growth >= MANY && !self.fits_reno();
        has_grown.then(|| ("cubic", sure(self.first_growth)))
    }

    fn by_cuts(&self) -> Option<&'static str> {
        let is_most = self.fitted as f32 >= self.cuts as f32 * 0.6;
        if self.fitted < FEW || !is_most {
            return None;
        }
        if self.fits_reno() {
            // DCTCP halves its window after a loss as well (RFC 8257 §3.4).
            let may_be_dctcp = self.mild > 0 || (self.has_marks && self.fitted_marks < FEW);
            return (!may_be_dctcp).then_some("reno");
        }
        let count = self.fitted as f32;
        (self.lead < -FITS_BETTER * count && self.misses.1 < FITS * count).then_some("cubic")
    }

    fn fits_reno(&self) -> bool {
        let count = self.fitted as f32;
        count > 0.0 && self.lead > FITS_BETTER * count && self.misses.0 < FITS * count
    }
}

/// Return the growth of CUBIC's window in segments, a number of seconds after a cut (RFC 9438 §4.2).
fn cubic_growth(before: f32, seconds: f32) -> f32 {
    let back_s = (before * (1.0 - CUBIC_LEAVES) / CUBIC_C).cbrt();
    CUBIC_C * ((seconds - back_s).powi(3) + back_s.powi(3))
}

#[cfg(test)]
mod tests;
