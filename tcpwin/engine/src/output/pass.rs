//! One pass: packets → segments → tracker, in batches, with a sink for those who want every segment.

use std::hint::black_box;

use crate::capture::{CaptureFacts, MergedReader};
use crate::connection::state::Connection;
use crate::recovery::duplicate::RECENT;
use crate::tracker::{Tracker, Verdict};
use crate::wire::{Outcome, ParseCounters, Segment, SegmentParser};

/// Segments taken at a time, so that the cache misses of their look-ups overlap.
const BATCH: usize = 32;
/// Segments held: enough to look back over, whole batches.
const RING: usize = RECENT + BATCH;
/// Below this the table and the connections fit the caches, and looking ahead costs more than it saves.
const PREFETCH_FROM: u32 = 4096;
/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 17;

/// Takes every segment in order, after the tracker did.
pub trait Sink {
    /// False lets the pass leave out what only a sink needs.
    const WANTS_SEGMENTS: bool = true;

    /// Return false to stop the pass.
    fn take(&mut self, segment: &Segment, verdict: &Verdict, connection: &Connection) -> bool;
}

/// For passes that want the connections only.
pub struct NoSink;

impl Sink for NoSink {
    const WANTS_SEGMENTS: bool = false;

    #[inline(always)]
    fn take(&mut self, _: &Segment, _: &Verdict, _: &Connection) -> bool {
        true
    }
}

/// All that one pass found.
pub struct Findings {
    pub tracker: Tracker,
    pub facts: Vec<CaptureFacts>,
    pub counters: ParseCounters,
    /// The progress function or the sink asked to stop before the end.
    pub was_stopped: bool,
}

/// Read to the end. `report` is called now and then with the bytes read so far; false stops the pass.
pub fn run<S: Sink>(mut input: MergedReader, sink: &mut S, mut report: impl FnMut(u64) -> bool) -> Findings {
    let mut parser = SegmentParser::new();
    let mut tracker = Tracker::new();
    // The batches before this one stay readable behind it, for the search for duplicates.
    let mut ring = vec![Segment::EMPTY; RING];
    let mut taken = 0usize;
    let mut tags = [0u32; BATCH];
    let mut last_ns = 0i64;
    let mut packets = 0u64;
    let mut next_report = REPORT_EVERY;
    let mut was_stopped = false;
    let mut at_end = false;
    while !at_end && !was_stopped {
        let mut count = 0;
        let first = taken % RING;
        let Some(batch) = ring.get_mut(first..first + BATCH) else { break };
        while count < BATCH {
            let Some(packet) = input.next_packet() else {
                at_end = true;
                break;
            };
            packets += 1;
            let is_segment = parser.parse(&packet, last_ns, &mut batch[count]) == Outcome::Segment;
            if let Some(time_ns) = packet.time_ns {
                last_ns = time_ns;
            }
            count += usize::from(is_segment);
        }
        let batch = &ring[first..first + count];
        for (tag, segment) in tags.iter_mut().zip(batch) {
            *tag = tracker.tag(segment);
        }
        if tracker.connections.len() > PREFETCH_FROM {
            let touched = tags[..count].iter().fold(0u32, |sum, tag| sum ^ tracker.touch(*tag));
            black_box(touched);
        }
        for (position, (segment, tag)) in batch.iter().zip(&tags).enumerate() {
            let before = || {
                let (ring, newest) = (&ring, first + position);
                let held = (taken + position).min(RECENT);
                (1..=held).map(move |back| &ring[(newest + RING - back) % RING])
            };
            let verdict = tracker.track(segment, *tag, before);
            if !S::WANTS_SEGMENTS {
                continue;
            }
            if let Some(connection) = tracker.connections.get(verdict.connection) {
                if !sink.take(segment, &verdict, connection) {
                    was_stopped = true;
                    break;
                }
            }
        }
        // A short batch leaves a gap that is never read: it is the last one.
        taken += BATCH;
        if packets >= next_report {
            next_report = packets + REPORT_EVERY;
            was_stopped |= !report(input.bytes_read());
        }
    }
    tracker.finish();
    let facts = input.into_facts();
    Findings { tracker, facts, counters: parser.counters(), was_stopped }
}
