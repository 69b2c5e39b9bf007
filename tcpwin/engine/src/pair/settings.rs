//! Decide whether contradictory clock bounds are a step, and find steps that contradict no bound.

use super::clock::{Window, MAX_PIECES, SLACK_NS};

/// Maximum disagreement between the directions of one capture's clock.
const MAX_DISAGREEMENT_NS: i64 = 1_000_000;
/// If one in this many periods contradicts itself, disagreement is common.
const CONTRADICTORY_SHARE: usize = 10;
/// Windows examined on each side of a possible step, and the minimum number needed.
const ADJACENT: usize = 48;
const MIN_ADJACENT: usize = 8;
/// Smaller steps cannot be distinguished from queueing.
const MIN_STEP_NS: i64 = 2_000_000;
/// Windows that form a short period.
const NEIGHBOURS: usize = 4;

/// Split a run where the quickest packets of both directions show a clock setting smaller than the round trip: a line
/// through both parts is possible, but wrong. Packets in flight at that time are left out.
pub fn parts_of(run: &[Window]) -> Vec<&[Window]> {
    let (mut parts, mut rest) = (Vec::new(), run);
    while let Some((end, from)) = setting_in(rest).filter(|_| parts.len() < MAX_PIECES) {
        parts.push(&rest[..end]);
        rest = &rest[from..];
    }
    parts.push(rest);
    parts
}

/// Find the first clock setting: from then on one direction takes longer by as much as the other takes less. Return the
/// end of the part before it and the start of the part after it.
fn setting_in(run: &[Window]) -> Option<(usize, usize)> {
    let mut best: Option<((usize, usize), i64)> = None;
    for end in MIN_ADJACENT..run.len().saturating_sub(MIN_ADJACENT) {
        let before = &run[end.saturating_sub(ADJACENT)..end];
        let Some(trip_ns) = trip_of(before) else {
            continue;
        };
        let last_ns = before.last().map_or(0, |window| window.first_ns);
        let later = run[end..].iter();
        let on_their_way = later
            .take_while(|window| window.first_ns.wrapping_sub(last_ns) <= trip_ns + trip_ns / 4)
            .count();
        let from = end + on_their_way;
        let after = &run[from..(from + ADJACENT).min(run.len())];
        if after.len() < MIN_ADJACENT {
            break;
        }
        match step_between(before, after) {
            Some(step_ns) if best.is_none_or(|(_, most_ns)| step_ns.abs() > most_ns) => {
                best = Some(((end, from), step_ns.abs()));
            }
            None if best.is_some() => break,
            _ => {}
        }
    }
    best.map(|(cut, _)| cut)
}

/// Return the round trip of the quickest packets.
fn trip_of(windows: &[Window]) -> Option<i64> {
    let upper = windows.iter().filter_map(|w| w.upper).map(|p| p.1).min()?;
    let lower = windows.iter().filter_map(|w| w.lower).map(|p| p.1).max()?;
    Some(upper.saturating_sub(lower))
}

/// Return the clock step between two periods on which both directions agree; `None` if they do not.
fn step_between(before: &[Window], after: &[Window]) -> Option<i64> {
    let upper = |windows: &[Window]| windows.iter().filter_map(|w| w.upper).map(|p| p.1).min();
    let lower = |windows: &[Window]| windows.iter().filter_map(|w| w.lower).map(|p| p.1).max();
    let (upper_before, upper_after) = (upper(before)?, upper(after)?);
    let (lower_before, lower_after) = (lower(before)?, lower(after)?);
    let (there_ns, back_ns) = (upper_after - upper_before, lower_after - lower_before);
    let step_ns = there_ns / 2 + back_ns / 2;
    let is_agreed = there_ns.saturating_sub(back_ns).saturating_abs() <= step_ns.abs() / 4;
    if step_ns.abs() < MIN_STEP_NS || !is_agreed {
        return None;
    }
    // Nearly all bounds before the step are at one level, and nearly all after it at the other.
    let is_reported = |windows: &[Window], own: [i64; 2], other: [i64; 2]| {
        let points = windows
            .iter()
            .flat_map(|w| [w.upper.map(|p| (0, p.1)), w.lower.map(|p| (1, p.1))])
            .flatten();
        let (mut near, mut all) = (0, 0);
        for (direction, apart_ns) in points {
            let off = |level: i64| apart_ns.saturating_sub(level).saturating_abs();
            all += 1;
            near += usize::from(off(own[direction]) < off(other[direction]));
        }
        near * 20 >= all * 19
    };
    let levels = [[upper_before, lower_before], [upper_after, lower_after]];
    (is_reported(before, levels[0], levels[1]) && is_reported(after, levels[1], levels[0]))
        .then_some(step_ns)
}

/// Return the tolerated contradiction between bounds. If many short periods contradict themselves, a capture's times
/// disagree by direction, as with a multi-queue network card, and no clock was set.
pub fn slack_of(windows: &[Window]) -> f64 {
    let mut beyond_ns: Vec<i64> = Vec::new();
    for near in windows.windows(NEIGHBOURS) {
        let upper = near
            .iter()
            .filter_map(|window| window.upper)
            .map(|bound| bound.1)
            .min();
        let lower = near
            .iter()
            .filter_map(|window| window.lower)
            .map(|bound| bound.1)
            .max();
        if let (Some(upper), Some(lower)) = (upper, lower) {
            beyond_ns.push(lower.saturating_sub(upper));
        }
    }
    let is_contradictory = |beyond_ns: &&i64| (1..=MAX_DISAGREEMENT_NS).contains(*beyond_ns);
    let disagreed = beyond_ns.iter().filter(is_contradictory).count();
    if disagreed < 2 || disagreed * CONTRADICTORY_SHARE < beyond_ns.len() {
        return SLACK_NS;
    }
    // Rarely, the bounds farthest apart differ by more than any adjacent ones.
    let most_ns = beyond_ns
        .iter()
        .filter(is_contradictory)
        .max()
        .copied()
        .unwrap_or(0);
    SLACK_NS + (2 * most_ns).min(MAX_DISAGREEMENT_NS) as f64
}
