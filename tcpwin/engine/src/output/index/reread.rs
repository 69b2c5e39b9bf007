//! A second reading, of some connections' own packets: what a pass over the whole capture tells of them, and nothing else.

use std::collections::HashSet;

use super::read::PacketIndex;
use super::unfit::Unfit;
use crate::output::pass::{Findings, Sink};
use crate::tcp::tracker::Tracker;
use crate::tcp::window::scale::GivenShifts;
use crate::wire::{Outcome, ParseCounters, Segment, SegmentParser};

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 14;

/// Read the packets of these connections, and of others with their four-tuples, by the index. `report` is called now and
/// then; false stops the reading.
///
/// The findings have no facts of the capture and no counts of its packets; their tracker knows these connections only,
/// by the numbers that they have in the whole capture. What the sink took is to be forgotten where the index is unfit.
pub fn reread<S: Sink>(
    index: &PacketIndex,
    numbers: &HashSet<u32>,
    shifts: GivenShifts,
    sink: &mut S,
    mut report: impl FnMut() -> bool,
) -> Result<Findings, Unfit> {
    let relatives = index.relatives(numbers.iter().copied()).ok_or(Unfit)?;
    let mut tracker = Tracker::of(relatives.clone(), index.journal_until(), shifts);
    let mut records = index.records()?;
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    let (mut read, mut was_stopped) = (0, false);
    index.entries(&relatives, |entry, is_wanted| {
        if read % REPORT_EVERY == 0 && !was_stopped {
            was_stopped = !report();
        }
        read += 1;
        if was_stopped {
            return Ok(());
        }
        let packet = records.read(entry.offset, entry.frame)?.ok_or(Unfit)?;
        let time_ns = packet.time_ns.ok_or(Unfit)?;
        let outcome = parser.parse(&packet, time_ns, &mut segment);
        if !is_wanted {
            return Ok(());
        }
        if outcome != Outcome::Segment {
            return Err(Unfit);
        }
        take(&mut tracker, &segment, entry.is_duplicate, sink);
        Ok(())
    })?;
    tracker.finish(index.last_time_ns());
    if !was_stopped && tracker.connections.len() as usize != relatives.len() {
        return Err(Unfit);
    }
    Ok(Findings {
        tracker,
        facts: Vec::new(),
        counters: ParseCounters::default(),
        was_stopped,
        left_out: 0,
        is_partial: true,
    })
}

fn take<S: Sink>(tracker: &mut Tracker, segment: &Segment, is_duplicate: bool, sink: &mut S) {
    let tag = tracker.tag(segment);
    let slot = tracker.slot(tag);
    let done = match tracker.track_ordinary(segment, slot) {
        Ok(done) => done,
        Err(found) => tracker.track(segment, tag, found, || is_duplicate),
    };
    if !S::WANTS_SEGMENTS {
        return;
    }
    let number = tracker.number(done.connection);
    if number.is_some_and(|number| sink.wants_budget(number)) {
        tracker.follow_budgets(done.connection);
    }
    if let Some((annotation, connection)) = tracker.annotate(segment, &done) {
        // A sink that wants no more is not asked again before the end: there are few packets.
        sink.take(segment, &annotation, connection);
    }
}
