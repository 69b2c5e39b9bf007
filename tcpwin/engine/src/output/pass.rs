//! One pass: packets → segments → tracker, in batches, with a sink for consumers of every segment.

use std::collections::HashSet;

use crate::capture::{CaptureFacts, MergedReader};
use crate::output::index::write::{Frames, NoIndex};
use crate::output::lane::{find_copied_syns, BatchInfo, Lane, BATCH};
use crate::output::segmenter::Segmenter;
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::copies::SynCopies;
use crate::tcp::tracker::{Annotation, Tracker};
use crate::wire::{ParseCounters, Segment};

/// Receives every segment in order, after the tracker.
pub trait Sink {
    /// If false, the pass skips work that only a sink needs.
    const WANTS_SEGMENTS: bool = true;

    /// Return true if the connection's budgets should record a log.
    fn wants_budget(&self, _connection: u32) -> bool {
        false
    }

    /// Process a segment. Return false to stop the pass.
    fn take(&mut self, segment: &Segment, annotation: &Annotation, connection: &Connection)
        -> bool;
}

/// For passes that need only the connections.
pub struct NoSink;

impl Sink for NoSink {
    const WANTS_SEGMENTS: bool = false;

    #[inline(always)]
    fn take(&mut self, _: &Segment, _: &Annotation, _: &Connection) -> bool {
        true
    }
}

/// The results of a pass.
pub struct Findings {
    pub tracker: Tracker,
    pub facts: Vec<CaptureFacts>,
    pub counters: ParseCounters,
    /// Packets that were not selected.
    pub left_out: u64,
    /// Whether the progress function or the sink requested a stop before the end.
    pub was_stopped: bool,
    /// Whether it contains only some of the connections, without facts and packet counts.
    pub is_partial: bool,
}

impl Findings {
    /// Return true if a later pass over at least these connections read the same packets, as far as both results show.
    pub fn reads_as(&self, other: &Findings, numbers: &HashSet<u32>) -> bool {
        let files = |findings: &Findings| {
            let facts = findings.facts.iter();
            facts
                .map(|facts| (facts.packets, facts.bytes, facts.last_time_ns))
                .collect::<Vec<_>>()
        };
        let extent = |connection: &Connection| {
            let [first, second] = &connection.directions;
            let counts = (first.segments, second.segments);
            (connection.first_frame, connection.end_ns, counts)
        };
        let same = (0..)
            .zip(other.tracker.connections.iter())
            .filter(|(index, connection)| {
                let number = other.tracker.number(*index);
                let number = number.filter(|number| numbers.contains(number));
                let before = number.and_then(|number| self.tracker.by_number(number));
                before.is_some_and(|before| extent(before) == extent(connection))
            });
        let is_same_file =
            files(self) == files(other) && self.counters.segments == other.counters.segments;
        (is_same_file || self.is_partial || other.is_partial) && same.count() == numbers.len()
    }
}

/// Read to the end. `report` is called periodically with the bytes read so far; returning false stops the pass.
pub fn run<S: Sink>(
    input: MergedReader,
    sink: &mut S,
    report: impl FnMut(u64) -> bool,
) -> Findings {
    run_with(input, Tracker::new(), sink, &mut NoIndex, report)
}

/// Like `run`, with a prepared tracker and a receiver for every frame.
pub fn run_with<S: Sink, F: Frames>(
    mut input: MergedReader,
    mut tracker: Tracker,
    sink: &mut S,
    frames: &mut F,
    mut report: impl FnMut(u64) -> bool,
) -> Findings {
    if F::IS_WANTED {
        tracker.keep_roots();
    }
    if !S::WANTS_SEGMENTS {
        tracker.let_rounds_go();
    }
    let mut segmenter = Segmenter::of(&mut input);
    let mut syns = SynCopies::default();
    let mut lane = Lane::new(tracker);
    let mut about = BatchInfo::NOTHING;
    let mut ordinal = 0;
    let mut was_stopped = false;
    let mut at_end = false;
    while !at_end && !was_stopped {
        frames.settle();
        let count = segmenter.fill(&mut input, lane.next_batch(), frames, &mut report);
        at_end = count < BATCH;
        for place in &mut about.ordinals {
            *place = ordinal;
            ordinal += 1;
        }
        let batch = lane.filled(count);
        about.tags = [0; BATCH];
        for (tag, segment) in about.tags.iter_mut().zip(batch) {
            *tag = lane.tracker.tag(segment);
        }
        about.copied_syns = find_copied_syns(&mut syns, batch, &about.tags);
        was_stopped = !lane.take(count, &about, sink, frames) || segmenter.was_stopped;
    }
    let mut tracker = lane.tracker;
    tracker.finish(segmenter.last_time_ns(&input));
    if !was_stopped {
        frames.finish(&input, &tracker);
    }
    Findings {
        tracker,
        counters: segmenter.counters(),
        left_out: segmenter.left_out(),
        facts: input.into_facts(),
        was_stopped,
        is_partial: false,
    }
}
