//! The relation of capture B's clock to capture A's, from the packets that both have.
//!
//! A packet from A to B cannot arrive before it left: B's clock minus A's is at most its time at B minus its time at A.
//! A packet from B to A bounds the same difference from below. Any line between the two sets of bounds is possible; the
//! result is the middle one, and its uncertainty is the distance to the farthest possible one (V. Paxson, On
//! Calibrating Measurements of Packet Transit Times, SIGMETRICS 1998; S. Moon et al., Estimation and Removal of Clock
//! Skew, INFOCOM 1999). If no line is possible, a clock was set, and time is divided there.

use super::settings::{parts_of, slack_of};

/// Faster drift is implausible: a computer's quartz keeps within 200 ppm (RFC 5905 §10 allows 500).
const MAX_DRIFT: f64 = 1e-3;
/// Capture times may be truncated to microseconds.
pub(super) const SLACK_NS: f64 = 2_000.0;
const FIRST_WIDTH_NS: i64 = 10_000_000;
const MAX_WINDOWS: usize = 4_096;
pub(super) const MAX_PIECES: usize = 64;
const TERNARY_STEPS: usize = 100;
/// Number of newest windows searched for a packet's, because packets of the two directions come slightly out of order
/// by A's clock.
const NEWEST: usize = 128;
/// A drift is significant if it moves the clocks apart by this multiple of the mean variation of the quickest packets.
/// Random slopes reach up to 3.3 times the variation (captures of one clock, started anywhere); 20 ppm over half a
/// second reaches at least 9, unless packets are delayed individually.
const SURE: f64 = 4.0;

/// A bound: a packet's time by A's clock, and the difference of B's time and A's.
pub type Point = (i64, i64);

/// The tightest bounds within a short time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) first_ns: i64,
    epoch: u32,
    /// Packets paired before the window.
    pairs_before: u64,
    pub(super) upper: Option<Point>,
    pub(super) lower: Option<Point>,
}

/// The bounds, thinned to limit memory.
#[derive(Debug)]
pub struct Bounds {
    windows: Vec<Window>,
    width_ns: i64,
    pairs: u64,
}

/// A line: the difference of the clocks from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Start by A's clock.
    pub from_ns: i64,
    pub until_ns: i64,
    /// Number of clock settings before it.
    pub epoch: u32,
    /// Packets paired before its start.
    pub pairs_before: u64,
    /// B's clock minus A's at `from_ns`.
    pub offset_ns: i64,
    /// How much faster B's clock runs than A's.
    pub drift_ppm: f64,
    /// Maximum error of the offset; `None` if only packets of one direction were paired.
    pub uncertainty_ns: Option<i64>,
    pub drift_uncertainty_ppm: Option<f64>,
}

impl Piece {
    /// Return B's clock minus A's at a time of A's clock.
    pub fn offset_at(&self, time_ns: i64) -> i64 {
        let elapsed_ns = time_ns.wrapping_sub(self.from_ns) as f64;
        self.offset_ns + (elapsed_ns * self.drift_ppm * 1e-6).round() as i64
    }
}

impl Bounds {
    pub fn new() -> Self {
        Self {
            windows: Vec::new(),
            width_ns: FIRST_WIDTH_NS,
            pairs: 0,
        }
    }

    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Add a packet of an epoch that left at A (`is_upper`) or at B, with its times at A and at B.
    pub fn add(&mut self, is_upper: bool, a_ns: i64, b_ns: i64, epoch: u32) {
        let point = (a_ns, b_ns.wrapping_sub(a_ns));
        let from = self.windows.len().saturating_sub(NEWEST);
        let fitting = self.windows[from..].iter().rposition(|window| {
            let since_ns = a_ns.wrapping_sub(window.first_ns);
            window.epoch == epoch && (0..self.width_ns).contains(&since_ns)
        });
        let at = fitting.map(|at| from + at);
        if at.is_none() {
            if self.windows.len() >= MAX_WINDOWS {
                self.halve();
            }
            self.windows.push(Window {
                first_ns: a_ns,
                epoch,
                pairs_before: self.pairs,
                upper: None,
                lower: None,
            });
        }
        self.pairs += 1;
        let at = at.unwrap_or(self.windows.len() - 1);
        if let Some(window) = self.windows.get_mut(at) {
            let one = if is_upper {
                (Some(point), None)
            } else {
                (None, Some(point))
            };
            window.take(one.0, one.1);
        }
    }

    /// Merge adjacent windows of an epoch in pairs.
    fn halve(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        self.windows.sort_by_key(|window| window.epoch);
        self.windows = self
            .windows
            .chunk_by(|a, b| a.epoch == b.epoch)
            .flat_map(|epoch| epoch.chunks(2))
            .map(|pair| {
                let mut first = pair[0];
                if let Some(second) = pair.get(1) {
                    first.take(second.upper, second.lower);
                }
                first
            })
            .collect();
    }

    /// Return the line, or one per clock setting; empty if nothing was paired.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut windows = self.windows.clone();
        windows.sort_by_key(|window| window.epoch);
        let slack_ns = slack_of(&windows);
        for epoch in windows.chunk_by(|a, b| a.epoch == b.epoch) {
            let mut from = 0;
            while from < epoch.len() && pieces.len() < MAX_PIECES {
                let until = longest_possible(epoch, from, slack_ns);
                let run = &epoch[from..until];
                for part in parts_of(run) {
                    // Packets in flight while a clock is set bound both settings.
                    if part.len() > 1 || Hulls::of(part, slack_ns).is_possible() {
                        pieces.extend(fit(part, slack_ns));
                    }
                }
                // The window in which a clock was set contains bounds of both settings.
                from = if until < epoch.len() && until > from + 1 {
                    until + 1
                } else {
                    until
                };
            }
        }
        // Between two settings there may be packets of one direction only, which add no information.
        if pieces.iter().any(|piece| piece.uncertainty_ns.is_some()) {
            pieces.retain(|piece| piece.uncertainty_ns.is_some());
        }
        pieces
    }
}

/// Return the end of the longest run of windows from `from` through which a line is possible.
fn longest_possible(windows: &[Window], from: usize, slack_ns: f64) -> usize {
    let is_possible = |until: usize| Hulls::of(&windows[from..until], slack_ns).is_possible();
    let total = windows.len();
    if is_possible(total) {
        return total;
    }
    let (mut good, mut step) = (from + 1, 1);
    while good + step < total && is_possible(good + step) {
        good += step;
        step *= 2;
    }
    let mut bad = (good + step).min(total);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if is_possible(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

impl Window {
    fn take(&mut self, upper: Option<Point>, lower: Option<Point>) {
        let tighter = |old: Option<Point>, new: Option<Point>, sign: i64| match (old, new) {
            (Some(old), Some(new)) => Some(if sign * new.1 < sign * old.1 {
                new
            } else {
                old
            }),
            (old, new) => old.or(new),
        };
        self.upper = tighter(self.upper, upper, 1);
        self.lower = tighter(self.lower, lower, -1);
    }
}

/// The relevant bounds, relative to a first point to preserve precision.
struct Hulls {
    slack_ns: f64,
    base: Point,
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
    /// All bounds, to measure the distance from a line.
    all_upper: Vec<(f64, f64)>,
    all_lower: Vec<(f64, f64)>,
}

impl Hulls {
    fn of(windows: &[Window], slack_ns: f64) -> Self {
        let first = windows
            .iter()
            .find_map(|window| window.upper.or(window.lower));
        let offset = first.map_or(0, |point| point.1);
        let from_ns = windows
            .iter()
            .flat_map(|window| [window.upper, window.lower])
            .flatten()
            .map(|point| point.0)
            .min()
            .unwrap_or(0);
        let base = (from_ns, offset);
        let relative = |point: Point| {
            (
                point.0.wrapping_sub(base.0) as f64,
                point.1.wrapping_sub(base.1) as f64,
            )
        };
        let all_upper: Vec<_> = windows
            .iter()
            .filter_map(|w| w.upper.map(relative))
            .collect();
        let all_lower: Vec<_> = windows
            .iter()
            .filter_map(|w| w.lower.map(relative))
            .collect();
        Self {
            slack_ns,
            base,
            upper: hull(&all_upper, 1.0),
            lower: hull(&all_lower, -1.0),
            all_upper,
            all_lower,
        }
    }

    /// Return the highest offset at the base time that is possible with a drift.
    fn ceiling(&self, drift: f64) -> f64 {
        let below = self.upper.iter().map(|(t, d)| d - drift * t);
        below.fold(f64::INFINITY, f64::min)
    }

    fn floor(&self, drift: f64) -> f64 {
        let above = self.lower.iter().map(|(t, d)| d - drift * t);
        above.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Return the gap between the bounds for a drift, a concave function.
    fn gap(&self, drift: f64) -> f64 {
        self.ceiling(drift) - self.floor(drift)
    }

    fn has_both(&self) -> bool {
        !self.upper.is_empty() && !self.lower.is_empty()
    }

    fn is_possible(&self) -> bool {
        if !self.has_both() || self.gap(0.0) >= -self.slack_ns {
            return true;
        }
        let widest = highest(-MAX_DRIFT, MAX_DRIFT, |drift| self.gap(drift));
        self.gap(widest) >= -self.slack_ns
    }

    /// Return the range of drifts that allow a line, around one that does.
    fn possible_drifts(&self, inside: f64) -> (f64, f64) {
        let edge = |outside: f64| {
            if self.gap(outside) >= -self.slack_ns {
                return outside;
            }
            let (mut good, mut bad) = (inside, outside);
            for _ in 0..TERNARY_STEPS {
                let middle = (good + bad) / 2.0;
                if self.gap(middle) >= -self.slack_ns {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            good
        };
        (edge(-MAX_DRIFT), edge(MAX_DRIFT))
    }

    /// Return the drift shown by the direction with the steadier delay.
    fn steadiest_drift(&self) -> Option<f64> {
        let upper = edge_at_middle(&self.upper, &self.all_upper);
        let lower = edge_at_middle(&self.lower, &self.all_lower);
        let steadier = match (upper, lower) {
            (Some(upper), Some(lower)) => Some(if upper.1 <= lower.1 { upper } else { lower }),
            (upper, lower) => upper.or(lower),
        };
        let (drift, apart) = steadier?;
        // A slope smaller than the variation of the delays is an accident of the quickest packets.
        let is_seen = drift.abs() * self.span() >= SURE * apart && self.is_of_both(drift);
        let drift = if is_seen { drift } else { 0.0 };
        (drift.abs() <= MAX_DRIFT).then_some(drift)
    }

    /// Return true if neither direction's delays are steadier without a drift: a clock's drift shows in both.
    fn is_of_both(&self, drift: f64) -> bool {
        let is_steadier =
            |points: &[(f64, f64)], sign| spread(points, sign, drift) <= spread(points, sign, 0.0);
        is_steadier(&self.all_upper, 1.0) && is_steadier(&self.all_lower, -1.0)
    }

    /// Return the time from the first bound to the last.
    fn span(&self) -> f64 {
        let all = || self.all_upper.iter().chain(&self.all_lower);
        let last = all().map(|point| point.0).fold(0.0, f64::max);
        last - all().map(|point| point.0).fold(last, f64::min)
    }
}

/// Return the argument that maximizes a concave function.
fn highest(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..TERNARY_STEPS {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if of(left) < of(right) {
            low = left;
        } else {
            high = right;
        }
    }
    (low + high) / 2.0
}

/// Return the lower hull of points (`sign` 1), or the upper one (-1), from left to right.
fn hull(points: &[(f64, f64)], sign: f64) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| {
        a.0.total_cmp(&b.0)
            .then((sign * a.1).total_cmp(&(sign * b.1)))
    });
    sorted.dedup_by(|later, earlier| later.0 == earlier.0);
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        while let [.., a, b] = hull[..] {
            let turn = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
            if sign * turn > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Return the hull's slope at the centre of the points (Moon's line), and their mean distance from it.
fn edge_at_middle(hull: &[(f64, f64)], points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let middle = points.iter().map(|point| point.0).sum::<f64>() / points.len().max(1) as f64;
    let edge = hull
        .windows(2)
        .find(|edge| edge[0].0 <= middle && middle <= edge[1].0)?;
    let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
    let line = |t: f64| edge[0].1 + slope * (t - edge[0].0);
    let apart = points
        .iter()
        .map(|(t, d)| (d - line(*t)).abs())
        .sum::<f64>();
    Some((slope, apart / points.len() as f64))
}

/// Return the mean distance of points from the tightest bound with a slope.
fn spread(points: &[(f64, f64)], sign: f64, slope: f64) -> f64 {
    let beyond = points.iter().map(|(t, d)| sign * (d - slope * t));
    let least = beyond.clone().fold(f64::INFINITY, f64::min);
    let sum = beyond.sum::<f64>();
    sum / points.len().max(1) as f64 - if points.is_empty() { 0.0 } else { least }
}

/// Return the line through a run of windows that allows one.
fn fit(windows: &[Window], slack_ns: f64) -> Option<Piece> {
    let hulls = Hulls::of(windows, slack_ns);
    let times = windows.iter().flat_map(|w| [w.upper, w.lower]).flatten();
    let until_ns = times.map(|point| point.0).max()?;
    let piece = |offset: f64, drift: f64, uncertainty: Option<(f64, f64)>| Piece {
        from_ns: hulls.base.0,
        until_ns,
        epoch: windows.first().map_or(0, |window| window.epoch),
        pairs_before: windows.first().map_or(0, |window| window.pairs_before),
        offset_ns: hulls.base.1.saturating_add(offset.round() as i64),
        drift_ppm: drift * 1e6,
        uncertainty_ns: uncertainty.map(|(offset, _)| offset.max(slack_ns / 2.0).ceil() as i64),
        drift_uncertainty_ppm: uncertainty.map(|(_, drift)| drift * 1e6),
    };
    let steadiest = hulls.steadiest_drift();
    if !hulls.has_both() {
        let drift = steadiest.unwrap_or(0.0);
        let ceiling = hulls.ceiling(drift);
        let offset = if ceiling.is_finite() {
            ceiling
        } else {
            hulls.floor(drift)
        };
        return Some(piece(offset, drift, None));
    }
    let drift = steadiest
        .filter(|drift| hulls.gap(*drift) >= -slack_ns)
        .unwrap_or_else(|| highest(-MAX_DRIFT, MAX_DRIFT, |drift| hulls.gap(drift)));
    let offset = (hulls.ceiling(drift) + hulls.floor(drift)) / 2.0;
    let (least, most) = hulls.possible_drifts(drift);
    let ceiling = hulls.ceiling(highest(least, most, |drift| hulls.ceiling(drift)));
    let floor = hulls.floor(highest(least, most, |drift| -hulls.floor(drift)));
    let uncertainty = (ceiling - offset).max(offset - floor);
    let drift_uncertainty = (most - drift).max(drift - least);
    Some(piece(offset, drift, Some((uncertainty, drift_uncertainty))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1_000_000_000;

    /// Packets in both directions every 10 ms over delays of `there` and `back`, with a queue in the forward direction.
    fn bounds(seconds: i64, there: i64, back: i64, offset: impl Fn(i64) -> i64) -> Bounds {
        let mut bounds = Bounds::new();
        for step in 0..seconds * 100 {
            let t = step * 10 * MS;
            let queue = (step * 7 % 13) * MS;
            bounds.add(true, t, t + offset(t) + there + queue, 0);
            bounds.add(false, t, t + offset(t) - back, 0);
        }
        bounds
    }

    #[test]
    fn equal_clocks_are_equal() {
        let pieces = bounds(20, 50 * MS, 50 * MS, |_| 0).pieces();
        assert_eq!(pieces.len(), 1);
        assert!(pieces[0].offset_ns.abs() <= 2);
        assert!(pieces[0].drift_ppm.abs() < 1e-3);
        // No packet shows how the hundred milliseconds are divided.
        let uncertainty = pieces[0].uncertainty_ns.unwrap();
        assert!((49 * MS..53 * MS).contains(&uncertainty), "{uncertainty}");
    }

    #[test]
    fn drift_is_accurate_to_one_part_per_million() {
        for ppm in [200, -200] {
            let pieces = bounds(20, 50 * MS, 50 * MS, |t| 7 * MS + t / 1_000_000 * ppm).pieces();
            assert_eq!(pieces.len(), 1);
            assert!((pieces[0].drift_ppm - ppm as f64).abs() < 0.1);
            assert!((pieces[0].offset_ns - 7 * MS).abs() < 10_000);
        }
    }

    #[test]
    fn a_clock_setting_makes_two_pieces() {
        for step in [3 * SECOND, -3 * SECOND] {
            let set = |t| if t < 9 * SECOND { 0 } else { step };
            let pieces = bounds(20, 50 * MS, 50 * MS, set).pieces();
            assert_eq!(pieces.len(), 2, "{pieces:?}");
            assert!(pieces[0].offset_ns.abs() < 10_000);
            assert!((pieces[1].offset_ns - step).abs() < 10_000);
        }
    }

    #[test]
    fn the_true_offset_is_within_the_uncertainty() {
        for (there, back) in [(90 * MS, 10 * MS), (MS, 99 * MS), (0, 0)] {
            let pieces = bounds(10, there, back, |_| -5 * SECOND).pieces();
            let error = (pieces[0].offset_ns + 5 * SECOND).abs();
            assert!(error <= pieces[0].uncertainty_ns.unwrap(), "{pieces:?}");
        }
    }

    #[test]
    fn a_single_direction_has_no_uncertainty() {
        let mut bounds = Bounds::new();
        for t in 0..100 {
            bounds.add(true, t * 10 * MS, t * 10 * MS + 30 * MS, 0);
        }
        let pieces = bounds.pieces();
        assert_eq!((pieces.len(), pieces[0].uncertainty_ns), (1, None));
    }

    #[test]
    fn a_clock_setting_smaller_than_the_round_trip_makes_two_pieces() {
        for step in [30 * MS, -30 * MS, 100 * MS, -95 * MS] {
            let mut bounds = Bounds::new();
            for number in 0..2_000 {
                let t = number * 10 * MS;
                let set = if number < 900 { 0 } else { step };
                let queue = number * 7 % 13 * MS / 4;
                bounds.add(true, t, t + set + 50 * MS + queue, 0);
                bounds.add(false, t, t + set - 50 * MS, 0);
            }
            let pieces = bounds.pieces();
            assert_eq!(pieces.len(), 2, "{step}: {pieces:?}");
            assert!(pieces[0].offset_ns.abs() < 10_000);
            assert!((pieces[1].offset_ns - step).abs() < 10_000);
        }
    }

    #[test]
    fn filling_and_emptying_queues_are_not_a_step() {
        let mut bounds = Bounds::new();
        for number in 0..2_000 {
            let t = number * 10 * MS;
            // One direction's queue fills while the other's empties, back and forth.
            let saw = (number % 200 - 100).abs() * MS / 2;
            bounds.add(true, t, t + 20 * MS + saw, 0);
            bounds.add(false, t, t - 20 * MS - (50 * MS - saw), 0);
        }
        assert_eq!(bounds.pieces().len(), 1);
    }

    #[test]
    fn times_that_disagree_by_direction_are_not_a_step() {
        let mut bounds = Bounds::new();
        for step in 0..2_000 {
            let t = step * 10 * MS;
            // 20 us each way; arriving packets are stamped up to 90 us early.
            let early = 10_000 * (step * 7 % 10);
            bounds.add(true, t, t + 5 * SECOND + 20_000 - early, 0);
            bounds.add(false, t, t + 5 * SECOND - 20_000 + early, 0);
        }
        let pieces = bounds.pieces();
        assert_eq!(pieces.len(), 1, "{pieces:?}");
        let error = (pieces[0].offset_ns - 5 * SECOND).abs();
        assert!(error <= pieces[0].uncertainty_ns.unwrap());
        assert!(error <= 90_000);
    }

    #[test]
    fn memory_is_bounded() {
        let mut bounds = Bounds::new();
        for t in 0..100_000 {
            bounds.add(t % 2 == 0, t * 50 * MS, t * 50 * MS, 0);
        }
        assert!(bounds.windows.len() <= MAX_WINDOWS);
        assert_eq!(bounds.pieces().len(), 1);
    }
}
