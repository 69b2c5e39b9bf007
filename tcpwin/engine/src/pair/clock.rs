//! What the clock of capture B says beside that of capture A, from the packets that both have.
//!
//! A packet from A to B cannot arrive before it left: B's clock less A's is at most its time at B less its time at A.
//! One from B to A bounds the same difference from below. All lines between the two sets of bounds are possible; the
//! answer is the middle one, with the farthest possible as its uncertainty (V. Paxson, On Calibrating Measurements of
//! Packet Transit Times, SIGMETRICS 1998; S. Moon et al., Estimation and Removal of Clock Skew, INFOCOM 1999).
//! Where no line is possible, a clock was set: the time is cut into pieces there.

use super::settings::{parts_of, slack_of};

/// Faster drift is no drift: quartz of any computer keeps within 200 ppm (RFC 5905 §10 allows 500).
const MOST_DRIFT: f64 = 1e-3;
/// Times of captures may be cut to microseconds.
pub(super) const SLACK_NS: f64 = 2_000.0;
const FIRST_WIDTH_NS: i64 = 10_000_000;
const MOST_WINDOWS: usize = 4_096;
pub(super) const MOST_PIECES: usize = 64;
const TERNARY_STEPS: usize = 100;
/// Packets of both ways come a little out of the order of A's clock: among so many windows theirs is looked for.
const NEWEST: usize = 128;
/// A drift is seen where it moves the clocks apart by so many times what the quickest packets vary by on average. By
/// chance slopes reach 3.3 times that (captures of one clock, begun anywhere), 20 ppm over half a second 9 and more,
/// except where each packet is delayed for itself.
const SURE: f64 = 4.0;

/// A bound: A's time of a packet, and B's time of it less that.
pub type Point = (i64, i64);

/// The tightest bounds of a short while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) first_ns: i64,
    epoch: u32,
    /// Packets paired before it.
    pairs_before: u64,
    pub(super) upper: Option<Point>,
    pub(super) lower: Option<Point>,
}

/// Bounds as they come, thinned so that memory is bounded.
#[derive(Debug)]
pub struct Bounds {
    windows: Vec<Window>,
    width_ns: i64,
    pairs: u64,
}

/// One line: the difference of the clocks from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// By A's clock.
    pub from_ns: i64,
    pub until_ns: i64,
    /// Between two settings of a clock, counted from 0.
    pub epoch: u32,
    /// Packets paired before it began.
    pub pairs_before: u64,
    /// B's clock less A's at `from_ns`.
    pub offset_ns: i64,
    /// How much faster B's clock runs.
    pub drift_ppm: f64,
    /// The true offset lies no farther away; `None` where packets of one direction only were paired.
    pub uncertainty_ns: Option<i64>,
    pub drift_uncertainty_ppm: Option<f64>,
}

impl Piece {
    /// B's clock less A's at a time of A's clock.
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

    /// A packet of an epoch that left at A (`is_upper`) or at B, with its time at A and at B.
    pub fn add(&mut self, is_upper: bool, a_ns: i64, b_ns: i64, epoch: u32) {
        let point = (a_ns, b_ns.wrapping_sub(a_ns));
        let from = self.windows.len().saturating_sub(NEWEST);
        let fitting = self.windows[from..].iter().rposition(|window| {
            let since_ns = a_ns.wrapping_sub(window.first_ns);
            window.epoch == epoch && (0..self.width_ns).contains(&since_ns)
        });
        let at = fitting.map(|at| from + at);
        if at.is_none() {
            if self.windows.len() >= MOST_WINDOWS {
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

    /// Join windows of one epoch two by two.
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

    /// The line, or the lines where a clock was set in between; none where nothing was paired.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut windows = self.windows.clone();
        windows.sort_by_key(|window| window.epoch);
        let slack_ns = slack_of(&windows);
        for epoch in windows.chunk_by(|a, b| a.epoch == b.epoch) {
            let mut from = 0;
            while from < epoch.len() && pieces.len() < MOST_PIECES {
                let until = longest_possible(epoch, from, slack_ns);
                let run = &epoch[from..until];
                for part in parts_of(run) {
                    // While a clock is set, packets on their way bound both its settings.
                    if part.len() > 1 || Hulls::of(part, slack_ns).is_possible() {
                        pieces.extend(fit(part, slack_ns));
                    }
                }
                // The window in which a clock was set holds bounds of both its settings.
                from = if until < epoch.len() && until > from + 1 {
                    until + 1
                } else {
                    until
                };
            }
        }
        // Between two settings there may be packets of one direction alone: they say nothing that the others do not.
        if pieces.iter().any(|piece| piece.uncertainty_ns.is_some()) {
            pieces.retain(|piece| piece.uncertainty_ns.is_some());
        }
        pieces
    }
}

/// The end of the longest run of windows from one on through which a line is possible.
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

/// The bounds that matter, relative to a first point so that they keep their precision.
struct Hulls {
    slack_ns: f64,
    base: Point,
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
    /// All of them, for the distance from a line.
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

    /// The highest offset at the base time that a drift allows.
    fn ceiling(&self, drift: f64) -> f64 {
        let below = self.upper.iter().map(|(t, d)| d - drift * t);
        below.fold(f64::INFINITY, f64::min)
    }

    fn floor(&self, drift: f64) -> f64 {
        let above = self.lower.iter().map(|(t, d)| d - drift * t);
        above.fold(f64::NEG_INFINITY, f64::max)
    }

    /// How far the bounds stand apart along a drift: concave.
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
        let widest = highest(-MOST_DRIFT, MOST_DRIFT, |drift| self.gap(drift));
        self.gap(widest) >= -self.slack_ns
    }

    /// The drifts that leave a line possible, around one that does.
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
        (edge(-MOST_DRIFT), edge(MOST_DRIFT))
    }

    /// The drift that the direction with the steadier delay shows.
    fn steadiest_drift(&self) -> Option<f64> {
        let upper = edge_at_middle(&self.upper, &self.all_upper);
        let lower = edge_at_middle(&self.lower, &self.all_lower);
        let steadier = match (upper, lower) {
            (Some(upper), Some(lower)) => Some(if upper.1 <= lower.1 { upper } else { lower }),
            (upper, lower) => upper.or(lower),
        };
        let (drift, apart) = steadier?;
        // Within what the delays vary by, a slope is an accident of the quickest packets.
        let is_seen = drift.abs() * self.span() >= SURE * apart && self.is_of_both(drift);
        let drift = if is_seen { drift } else { 0.0 };
        (drift.abs() <= MOST_DRIFT).then_some(drift)
    }

    /// Whether neither direction's delays are steadier without a drift: one of the clocks shows in both.
    fn is_of_both(&self, drift: f64) -> bool {
        let is_steadier =
            |points: &[(f64, f64)], sign| spread(points, sign, drift) <= spread(points, sign, 0.0);
        is_steadier(&self.all_upper, 1.0) && is_steadier(&self.all_lower, -1.0)
    }

    /// Time from the first bound to the last.
    fn span(&self) -> f64 {
        let all = || self.all_upper.iter().chain(&self.all_lower);
        let last = all().map(|point| point.0).fold(0.0, f64::max);
        last - all().map(|point| point.0).fold(last, f64::min)
    }
}

/// The argument at which a concave function is highest.
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

/// The lower hull of points (`sign` 1), or the upper one (-1), from left to right.
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

/// The slope of the hull where the points have their middle (Moon's line), and how far the points are from it on average.
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

/// How far points are on average from the tightest bound of a slope.
fn spread(points: &[(f64, f64)], sign: f64, slope: f64) -> f64 {
    let beyond = points.iter().map(|(t, d)| sign * (d - slope * t));
    let least = beyond.clone().fold(f64::INFINITY, f64::min);
    let sum = beyond.sum::<f64>();
    sum / points.len().max(1) as f64 - if points.is_empty() { 0.0 } else { least }
}

/// The line through a run of windows that allows one.
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
        .unwrap_or_else(|| highest(-MOST_DRIFT, MOST_DRIFT, |drift| hulls.gap(drift)));
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

    /// Packets both ways every 10 ms over a path of `there` and `back`, with a queue on the way there.
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
        // No packet says how the hundred milliseconds are divided.
        let uncertainty = pieces[0].uncertainty_ns.unwrap();
        assert!((49 * MS..53 * MS).contains(&uncertainty), "{uncertainty}");
    }

    #[test]
    fn drift_is_found_to_the_part_per_million() {
        for ppm in [200, -200] {
            let pieces = bounds(20, 50 * MS, 50 * MS, |t| 7 * MS + t / 1_000_000 * ppm).pieces();
            assert_eq!(pieces.len(), 1);
            assert!((pieces[0].drift_ppm - ppm as f64).abs() < 0.1);
            assert!((pieces[0].offset_ns - 7 * MS).abs() < 10_000);
        }
    }

    #[test]
    fn a_clock_that_was_set_makes_two_pieces() {
        for step in [3 * SECOND, -3 * SECOND] {
            let set = |t| if t < 9 * SECOND { 0 } else { step };
            let pieces = bounds(20, 50 * MS, 50 * MS, set).pieces();
            assert_eq!(pieces.len(), 2, "{pieces:?}");
            assert!(pieces[0].offset_ns.abs() < 10_000);
            assert!((pieces[1].offset_ns - step).abs() < 10_000);
        }
    }

    #[test]
    fn the_truth_lies_within_what_is_stated() {
        for (there, back) in [(90 * MS, 10 * MS), (MS, 99 * MS), (0, 0)] {
            let pieces = bounds(10, there, back, |_| -5 * SECOND).pieces();
            let error = (pieces[0].offset_ns + 5 * SECOND).abs();
            assert!(error <= pieces[0].uncertainty_ns.unwrap(), "{pieces:?}");
        }
    }

    #[test]
    fn one_direction_alone_has_no_uncertainty_to_state() {
        let mut bounds = Bounds::new();
        for t in 0..100 {
            bounds.add(true, t * 10 * MS, t * 10 * MS + 30 * MS, 0);
        }
        let pieces = bounds.pieces();
        assert_eq!((pieces.len(), pieces[0].uncertainty_ns), (1, None));
    }

    #[test]
    fn a_clock_that_was_set_by_less_than_the_round_trip_makes_two_pieces() {
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
    fn queues_that_fill_and_empty_are_no_step() {
        let mut bounds = Bounds::new();
        for number in 0..2_000 {
            let t = number * 10 * MS;
            // One way fills up while the other one empties, to and fro.
            let saw = (number % 200 - 100).abs() * MS / 2;
            bounds.add(true, t, t + 20 * MS + saw, 0);
            bounds.add(false, t, t - 20 * MS - (50 * MS - saw), 0);
        }
        assert_eq!(bounds.pieces().len(), 1);
    }

    #[test]
    fn times_that_disagree_by_direction_are_no_step() {
        let mut bounds = Bounds::new();
        for step in 0..2_000 {
            let t = step * 10 * MS;
            // 20 us each way, and packets that come are stamped up to 90 us early.
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
        assert!(bounds.windows.len() <= MOST_WINDOWS);
        assert_eq!(bounds.pieces().len(), 1);
    }
}
