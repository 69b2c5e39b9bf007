//! Epochs: the time between two settings of a clock. Detected while packets are paired, so that no bound, delay or
//! timeout mixes two epochs.
//!
//! Within an epoch, B's clock minus A's is at most what packets from A to B show, and at least what packets back show.
//! A packet that contradicts this was paired after a clock was set, or was in flight at that time; in the latter case
//! it belongs to the epoch in which its delay is similar to its predecessors'.

/// A capture's clocks may disagree by direction (receive queues), and files may be slightly out of order.
const SLACK_NS: i64 = 1_000_000;
/// Maximum clock drift (RFC 5905 §10): 500 ppm.
const MAX_DRIFT: i64 = 2_000;
/// No queue changes the delay by this much at once: detects a step when there are packets of only one direction.
const STEP_NS: i64 = 1_000_000_000;
/// Bounds cover between one and two of these periods.
const BUCKET_NS: i64 = 1_000_000_000;
/// Packets of the previous epoch may still arrive within this many packets of its end.
const ON_THEIR_WAY: u64 = 1 << 16;
/// And within this time plus the round trip; later ones show that the clock was set back.
const MAX_QUEUED_NS: i64 = 1_000_000_000;
/// Further settings are merged into the last.
const MAX_EPOCHS: u32 = 64;

/// A packet's time by A's clock, and the difference of B's time and A's.
type Point = (i64, i64);

/// The tightest recent bounds: from above by packets from A, from below by packets from B.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    buckets: [[Option<Point>; 2]; 2],
    since_ns: i64,
    newest: [Option<i64>; 2],
}

/// A detected setting, and the amount by which B's clock was set against A's.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub step_ns: i64,
    /// The first packet that showed it.
    first: Point,
    /// The bounds before it.
    before: Bounds,
}

#[derive(Debug, Default)]
pub struct Epochs {
    current: u32,
    now: Bounds,
    last: Option<Setting>,
    pairs: u64,
    setting_at: u64,
}

impl Bounds {
    fn take(&mut self, direction: usize, point: Point) {
        if point.0.wrapping_sub(self.since_ns).saturating_abs() > BUCKET_NS {
            self.buckets[1] = self.buckets[0];
            self.buckets[0] = [None; 2];
            self.since_ns = point.0;
        }
        self.newest[direction] = Some(point.1);
        self.buckets[0][direction] = tighter(direction, self.buckets[0][direction], Some(point));
    }

    fn of(&self, direction: usize) -> Option<Point> {
        tighter(
            direction,
            self.buckets[0][direction],
            self.buckets[1][direction],
        )
    }

    /// Return how much longer a packet took than the quickest of its direction.
    fn excess_ns(&self, direction: usize, apart_ns: i64) -> Option<i64> {
        let quickest = self.of(direction)?.1;
        let later_ns = apart_ns.saturating_sub(quickest);
        Some(if direction == 0 { later_ns } else { -later_ns })
    }

    /// Return true if a packet is consistent with the current epoch.
    fn allows(&self, direction: usize, point: Point) -> bool {
        let jump_ns = self.newest[direction].map_or(0, |newest| point.1.saturating_sub(newest));
        if jump_ns.saturating_abs() > STEP_NS {
            return false;
        }
        let Some(bound) = self.of(1 - direction) else {
            return true;
        };
        let age_ns = point.0.wrapping_sub(bound.0).saturating_abs();
        let slack_ns = SLACK_NS + age_ns / MAX_DRIFT;
        let beyond_ns = bound.1.saturating_sub(point.1);
        (if direction == 0 {
            beyond_ns
        } else {
            -beyond_ns
        }) <= slack_ns
    }
}

fn tighter(direction: usize, one: Option<Point>, other: Option<Point>) -> Option<Point> {
    match (one, other) {
        (Some(a), Some(b)) if direction == 0 => Some(if b.1 < a.1 { b } else { a }),
        (Some(a), Some(b)) => Some(if b.1 > a.1 { b } else { a }),
        (one, other) => one.or(other),
    }
}

impl Epochs {
    pub fn current(&self) -> u32 {
        self.current
    }

    /// Return the epoch of a paired packet, and the setting if it is the first to show one. `is_upper`: it left at A.
    #[inline]
    pub fn judge(&mut self, is_upper: bool, a_ns: i64, apart_ns: i64) -> (u32, Option<Setting>) {
        self.pairs += 1;
        let (direction, point) = (usize::from(!is_upper), (a_ns, apart_ns));
        if self.last.is_some() && self.is_of_before(direction, point) {
            return (self.current - 1, None);
        }
        if self.current < MAX_EPOCHS && !self.now.allows(direction, point) {
            let setting = self.begin(direction, point);
            return (self.current, Some(setting));
        }
        self.now.take(direction, point);
        (self.current, None)
    }

    /// Return true if a packet was in flight when the clock was set: in the previous epoch its delay is similar to
    /// others.
    fn is_of_before(&mut self, direction: usize, point: Point) -> bool {
        if self.pairs - self.setting_at > ON_THEIR_WAY {
            self.last = None;
        }
        let Some(last) = self.last else {
            return false;
        };
        let Some(before_ns) = last.before.excess_ns(direction, point.1) else {
            return false;
        };
        if last.elapsed_ns(point) > last.most_on_the_way_ns() {
            self.last = None;
            return false;
        }
        let half_ns = last.step_ns.saturating_abs() / 2;
        let now_ns = self.now.excess_ns(direction, point.1);
        before_ns.saturating_abs() < half_ns
            && now_ns.is_none_or(|now_ns| now_ns.saturating_abs() > half_ns)
    }

    #[cold]
    fn begin(&mut self, direction: usize, point: Point) -> Setting {
        let before = self.now;
        let known = before.of(direction).map(|bound| bound.1);
        let bound = before.of(1 - direction).map(|bound| bound.1);
        let step_ns = point.1.saturating_sub(known.or(bound).unwrap_or(point.1));
        let setting = Setting {
            step_ns,
            first: point,
            before,
        };
        self.current += 1;
        self.setting_at = self.pairs;
        self.last = Some(setting);
        self.now = Bounds::default();
        self.now.take(direction, point);
        setting
    }
}

impl Setting {
    /// Return the time since the setting, by the clock that was not set.
    fn elapsed_ns(&self, point: Point) -> i64 {
        let by_a_ns = point.0.wrapping_sub(self.first.0);
        let by_b_ns = by_a_ns.saturating_add(point.1.saturating_sub(self.first.1));
        by_a_ns.saturating_abs().min(by_b_ns.saturating_abs())
    }

    fn most_on_the_way_ns(&self) -> i64 {
        let trip_ns = match (self.before.of(0), self.before.of(1)) {
            (Some(upper), Some(lower)) => upper.1.saturating_sub(lower.1).max(0),
            _ => 0,
        };
        trip_ns.saturating_add(MAX_QUEUED_NS)
    }

    /// Return true if a packet paired shortly before the setting belongs to the time after it.
    pub fn precedes(&self, is_upper: bool, apart_ns: i64) -> bool {
        let direction = usize::from(!is_upper);
        let Some(excess_ns) = self.before.excess_ns(direction, apart_ns) else {
            return false;
        };
        let sign = if is_upper { 1 } else { -1 };
        let after_ns = excess_ns.saturating_sub(sign * self.step_ns);
        after_ns.saturating_abs() < excess_ns.saturating_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Packets every millisecond in both directions over 25 ms, in pairing order; B's clock is set at 2 s.
    fn epochs(step_ns: i64, seconds: i64) -> Vec<(bool, i64, u32)> {
        let mut packets = Vec::new();
        let set = |t| if t < 2_000 * MS { 0 } else { step_ns };
        for left in (0..seconds * 1_000 * MS).step_by(MS as usize) {
            let came = left + 25 * MS;
            packets.push((came, true, left, set(came) + 25 * MS));
            packets.push((came, false, came, set(left) - 25 * MS));
        }
        packets.sort_unstable();
        let mut epochs = Epochs::default();
        let judged = packets.iter().map(|&(_, is_upper, a_ns, apart_ns)| {
            let (epoch, _) = epochs.judge(is_upper, a_ns, apart_ns);
            (is_upper, apart_ns, epoch)
        });
        judged.collect()
    }

    #[test]
    fn each_packet_belongs_to_the_setting_that_stamped_it() {
        for step_ns in [
            3_000 * MS,
            -3_000 * MS,
            400 * MS,
            -400 * MS,
            60 * MS,
            -60 * MS,
        ] {
            let judged = epochs(step_ns, 4);
            let wrong = |&&(is_upper, apart_ns, epoch): &&(bool, i64, u32)| {
                let delay_ns = if is_upper { 25 * MS } else { -25 * MS };
                let truth = u32::from(apart_ns != delay_ns);
                epoch != truth
            };
            let count = judged.iter().filter(wrong).count();
            // Until the other direction shows the setting, a packet may just as well have been queued.
            assert!(count <= 26, "{step_ns}: {count}");
            assert_eq!(judged.last().unwrap().2, 1);
        }
    }

    #[test]
    fn drifting_clocks_and_filling_queues_are_not_a_setting() {
        let mut epochs = Epochs::default();
        for step in 0..100_000i64 {
            let a_ns = step * MS;
            let drift_ns = a_ns / 5_000;
            let queue_ns = (step * 31 % 700) * MS;
            let (upper, _) = epochs.judge(true, a_ns, drift_ns + 10 * MS + queue_ns);
            let (lower, _) = epochs.judge(false, a_ns, drift_ns - 10 * MS);
            assert_eq!((upper, lower), (0, 0));
        }
    }

    #[test]
    fn a_single_direction_shows_steps_larger_than_any_queue() {
        let mut epochs = Epochs::default();
        for step in 0..1_000i64 {
            let set = if step < 500 { 0 } else { -3_000 * MS };
            assert_eq!(epochs.judge(true, step * MS, set).0, u32::from(set != 0));
        }
    }
}
