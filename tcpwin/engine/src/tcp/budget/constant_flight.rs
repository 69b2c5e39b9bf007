//! Flights of constant size. No congestion window stays constant, so the send buffer or the receive window limits them.
//!
//! In: all rounds of a direction. Out: runs of rounds, for `reassignment`.

use std::ops::Range;

use crate::tables::budget_item::SenderState;
use crate::tcp::path::history::Record;

/// Minimum length of a run: over as many rounds, a congestion window would have grown by several segments.
const FLAT_ROUNDS: usize = 16;
const FLAT_SEGMENTS: u32 = 3;
const FLAT_PART: u32 = 16;
const FLAT_LEAST_SEGMENTS: u32 = 8;
/// A congestion window grows by half a segment per round at least, so the mean flights of two halves of a run differ by
/// a quarter of a segment for each of its rounds. Half of that is too little to be a congestion window.
const DRIFT_ROUNDS: usize = 8;
/// The same in segments after a loss: CUBIC grows ever more slowly up to the size of its window then.
const DRIFT_AFTER_LOSS: usize = 2;
/// Number of rounds at the start of a run in which the flight may still have grown to its size.
const SETTLING_ROUNDS: usize = 2;
/// Minimum length of a run of even flights: they differ by less than two segments, or by this part.
const EVEN_ROUNDS: usize = 8;
const EVEN_SEGMENTS: u32 = 2;
const EVEN_PART: u32 = 256;
/// At least one round in this many must reach the cap, and at least one in this many of those must lie in each half of
/// the run.
const CAPPED_PART: usize = 3;
/// Share of its window that CUBIC keeps after a loss (RFC 9438 §4.6).
const CUT: f64 = 0.7;

/// Return runs of rounds whose flight stayed constant or kept returning to one size. A congestion window would have
/// grown by at least half a segment per round (RFC 9438 §4.3, RFC 5681 §3.1). CUBIC's window, however, stays near the
/// size of the last loss (fast convergence, RFC 9438 §4.7), and keeps at least `CUT` of it.
pub fn constant_runs(records: &[Record], mss: u32) -> Vec<Range<usize>> {
    let most_bytes = flat_most_bytes(records);
    let mut runs = Vec::new();
    let mut from = 0;
    while from < records.len() {
        let band = |most: u32| mss.saturating_mul(FLAT_SEGMENTS).max(most / FLAT_PART);
        let run = length_within(&records[from..], &most_bytes[from..], band);
        if run >= EVEN_ROUNDS {
            let whole = from..from + run;
            let is_lossless = most_bytes[whole.end - 1] == u32::MAX;
            let mut found = held(whole.clone(), FLAT_ROUNDS, is_lossless, records, mss);
            if is_lossless {
                found = found.or_else(|| even_run(whole, records, &most_bytes, mss));
            }
            runs.extend(found);
        }
        from += run.max(1);
    }
    runs.extend(capped_runs(records, &most_bytes, mss));
    if runs.is_empty() {
        return runs;
    }
    let lossless = most_bytes.partition_point(|most| *most == u32::MAX);
    let each = runs.into_iter();
    each.map(|run| extended(run, &records[..lossless], mss))
        .collect()
}

/// Return the run with the rounds next to it whose flight was nearly as large: another limit of theirs would have gained
/// no more than the rest.
fn extended(run: Range<usize>, lossless: &[Record], mss: u32) -> Range<usize> {
    let Some(rounds) = lossless.get(run.clone()) else {
        return run;
    };
    let cap = rounds
        .iter()
        .fold(0, |most, record| record.peak_bytes.max(most));
    let sizes = cap - cap / FLAT_PART..cap.saturating_add(mss);
    let is_near = |record: &&Record| is_free(record) && sizes.contains(&record.peak_bytes);
    let earlier = lossless[..run.start].iter().rev().take_while(is_near);
    let later = lossless[run.end..].iter().take_while(is_near);
    run.start - earlier.count()..run.end + later.count()
}

/// Return the number of rounds from the first whose flights differ by at most `band`, a function of the largest.
fn length_within(records: &[Record], most_bytes: &[u32], band: impl Fn(u32) -> u32) -> usize {
    let (mut least, mut most) = (u32::MAX, 0);
    (records.iter().zip(most_bytes))
        .take_while(|(record, most_bytes)| {
            (least, most) = (least.min(record.peak_bytes), most.max(record.peak_bytes));
            is_free(record) && may_be_held(record, **most_bytes) && most - least <= band(most)
        })
        .count()
}

/// Return a run of rounds, without those in which its flight was still growing, if it is long enough, and its flight is
/// large enough not to be constant by chance, and does not drift.
fn held(
    run: Range<usize>,
    least_rounds: usize,
    is_lossless: bool,
    records: &[Record],
    mss: u32,
) -> Option<Range<usize>> {
    if run.len() < least_rounds
        || records[run.start].peak_bytes < mss.saturating_mul(FLAT_LEAST_SEGMENTS)
    {
        return None;
    }
    let last = run.end - least_rounds;
    let is_still = |start: &usize| {
        let rounds = &records[*start..run.end];
        let most_segments = if is_lossless {
            rounds.len() / DRIFT_ROUNDS
        } else {
            DRIFT_AFTER_LOSS
        };
        drift_bytes(rounds) <= i64::from(mss) * most_segments as i64
    };
    let start = (run.start..=last.min(run.start + SETTLING_ROUNDS)).find(is_still)?;
    Some(start..run.end)
}

/// Return the first run of at least [`EVEN_ROUNDS`] even flights in a range before the first loss: after a loss, so few
/// rounds may be those of a window that has not begun to grow again.
fn even_run(
    range: Range<usize>,
    records: &[Record],
    most_bytes: &[u32],
    mss: u32,
) -> Option<Range<usize>> {
    let least_bytes = mss.saturating_mul(EVEN_SEGMENTS).saturating_sub(1);
    let mut from = range.start;
    while from + EVEN_ROUNDS <= range.end {
        let rest = from..range.end;
        let band = |most: u32| least_bytes.max(most / EVEN_PART);
        let run = length_within(&records[rest.clone()], &most_bytes[rest], band);
        let found = held(from..from + run, EVEN_ROUNDS, true, records, mss);
        if found.is_some() {
            return found;
        }
        from += run.max(1);
    }
    None
}

/// Return whether nothing was lost and neither the window nor the application limited the sender.
fn is_free(record: &Record) -> bool {
    let is_calm = record.losses == 0 && record.recovery_ns == 0;
    let is_of_flights = matches!(
        record.item,
        SenderState::Congestion
            | SenderState::SendBuffer
            | SenderState::Path
            | SenderState::AfterLoss
    );
    is_calm && is_of_flights
}

/// Return whether the flight may be limited. After a loss, it must not have regained its size yet (RFC 9438 §4.4).
fn may_be_held(record: &Record, most_bytes: u32) -> bool {
    record.item != SenderState::AfterLoss || record.peak_bytes < most_bytes
}

/// Return runs of rounds without loss in which the largest flight recurs to within a segment: a pacing sender fills its
/// buffer only occasionally, but never exceeds it.
fn capped_runs(records: &[Record], most_bytes: &[u32], mss: u32) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut from = 0;
    while from < records.len() {
        let rest = records[from..].iter().zip(&most_bytes[from..]);
        let run = rest
            .take_while(|(record, most_bytes)| {
                is_free(record) && !record.is_idle() && may_be_held(record, **most_bytes)
            })
            .count();
        runs.extend(
            capped(&records[from..from + run], mss)
                .map(|capped| from + capped.start..from + capped.end),
        );
        from += run.max(1);
    }
    runs
}

fn capped(rounds: &[Record], mss: u32) -> Option<Range<usize>> {
    let mut peaks: Vec<u32> = rounds.iter().map(|record| record.peak_bytes).collect();
    peaks.sort_unstable();
    let often = |peak: &u32| {
        let below = peaks.partition_point(|each| *each < *peak);
        peaks.partition_point(|each| *each < peak.saturating_add(mss)) - below
    };
    let cap = *peaks.iter().max_by_key(|peak| often(peak))?;
    let is_at = |record: &Record| record.peak_bytes.wrapping_sub(cap) < mss;
    let first = rounds.iter().position(is_at)?;
    let last = rounds.iter().rposition(is_at)?;
    let run = &rounds[first..=last];
    let at: Vec<usize> = (0..run.len()).filter(|place| is_at(&run[*place])).collect();
    let late = at.iter().filter(|place| **place * 2 >= run.len()).count();
    let is_spread = late * CAPPED_PART >= at.len() && (at.len() - late) * CAPPED_PART >= at.len();
    let is_cap =
        (run.iter()).all(|record| record.peak_bytes < cap.saturating_add(mss + cap / FLAT_PART));
    let is_often = at.len() >= FLAT_ROUNDS && at.len() * CAPPED_PART >= run.len();
    let is_large = cap >= mss.saturating_mul(FLAT_LEAST_SEGMENTS);
    (is_often && is_spread && is_cap && is_large).then_some(first..last + 1)
}

/// Return for each round the flight above which a congestion window may stay constant, given the last loss.
fn flat_most_bytes(records: &[Record]) -> Vec<u32> {
    let (mut most_bytes, mut before_bytes) = (u32::MAX, 0);
    let each = records.iter().map(|record| {
        if record.losses > 0 {
            let struck_bytes = record.peak_bytes.max(before_bytes);
            most_bytes = (f64::from(struck_bytes) * CUT) as u32;
        }
        before_bytes = record.peak_bytes;
        most_bytes
    });
    each.collect()
}

/// Return the mean flight of the second half of the rounds minus that of the first half.
fn drift_bytes(rounds: &[Record]) -> i64 {
    let (first, second) = rounds.split_at(rounds.len() / 2);
    let mean = |half: &[Record]| {
        let sum: i64 = half.iter().map(|record| i64::from(record.peak_bytes)).sum();
        sum / (half.len() as i64).max(1)
    };
    mean(second) - mean(first)
}
