//! Second pass over some connections' packets: the sink receives the same as in a pass over the whole capture.

use std::collections::HashSet;

use super::read::PacketIndex;
use super::unfit::Unfit;
use crate::output::pass::{Findings, Sink};
use crate::tcp::tracker::Tracker;
use crate::tcp::window::scale::GivenShifts;
use crate::wire::{Outcome, ParseCounters, Segment, SegmentParser};

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 14;

/// Read the packets of these connections, and of others with their four-tuples, by the index. `report` is called
/// periodically; returning false stops the pass.
///
/// The findings contain neither facts nor packet counts of the capture. Their tracker contains only these connections,
/// numbered as in the whole capture. If the index is unfit, discard what the sink received.
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
        // Its request to stop is ignored until the end: there are few packets.
        sink.take(segment, &annotation, connection);
    }
}
