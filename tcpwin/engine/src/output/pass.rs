//! One pass: packets → segments → tracker, in batches, with a sink for those who want every segment.

use std::collections::HashSet;

use crate::capture::{CaptureFacts, MergedReader, Packet, Selection, Wanted};
use crate::connection::state::Connection;
use crate::event::CAPTURE_DUPLICATE;
use crate::output::index::write::{Frames, NoIndex};
use crate::recovery::copies::{is_telling, RoutedCopies};
use crate::recovery::duplicate::{find_copy, Copied, RECENT};
use crate::tracker::{Annotation, Place, Tracker};
use crate::wire::{Outcome, ParseCounters, Segment, SegmentParser};

/// Segments taken at a time, so that the cache misses of their look-ups overlap.
const BATCH: usize = 32;
/// Segments held: enough to look back over, whole batches.
const RING: usize = RECENT + BATCH;
/// Below this the connections fit the caches, and looking ahead costs more than it saves.
const PREFETCH_FROM: u32 = 1_000;
/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 17;

/// Takes every segment in order, after the tracker did.
pub trait Sink {
    /// False lets the pass leave out what only a sink needs.
    const WANTS_SEGMENTS: bool = true;

    /// Whether the budgets of a connection are to keep their log.
    fn wants_budget(&self, _connection: u32) -> bool {
        false
    }

    /// Return false to stop the pass.
    fn take(&mut self, segment: &Segment, annotation: &Annotation, connection: &Connection)
        -> bool;
}

/// For passes that want the connections only.
pub struct NoSink;

impl Sink for NoSink {
    const WANTS_SEGMENTS: bool = false;

    #[inline(always)]
    fn take(&mut self, _: &Segment, _: &Annotation, _: &Connection) -> bool {
        true
    }
}

/// All that one pass found.
pub struct Findings {
    pub tracker: Tracker,
    pub facts: Vec<CaptureFacts>,
    pub counters: ParseCounters,
    /// Packets that were not selected.
    pub left_out: u64,
    /// The progress function or the sink asked to stop before the end.
    pub was_stopped: bool,
    /// Of some connections only: there are no facts, and no counts of packets.
    pub is_partial: bool,
}

impl Findings {
    /// Whether a later reading, of these connections at least, read what this one did, as far as both tell.
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

/// Read to the end. `report` is called now and then with the bytes read so far; false stops the pass.
pub fn run<S: Sink>(
    input: MergedReader,
    sink: &mut S,
    report: impl FnMut(u64) -> bool,
) -> Findings {
    run_with(input, Tracker::new(), sink, &mut NoIndex, report)
}

/// The same with a tracker that knows something already, and with somebody who wants to know of every frame.
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
    let mut segmenter = Segmenter {
        selection: input.take_selection(),
        ..Segmenter::default()
    };
    // The batches before this one stay readable behind it, for the search for duplicates.
    let mut ring = vec![Segment::EMPTY; RING];
    let mut marks = [0u32; RING];
    let mut routed = RoutedCopies::default();
    let mut taken = 0usize;
    let mut was_stopped = false;
    let mut at_end = false;
    while !at_end && !was_stopped {
        let first = taken % RING;
        let Some(batch) = ring.get_mut(first..first + BATCH) else {
            break;
        };
        frames.settle();
        let count = segmenter.fill(&mut input, batch, frames, &mut report);
        was_stopped = segmenter.was_stopped;
        at_end = count < BATCH;
        let batch = ring.get(first..first + count).unwrap_or_default();
        let mut tags = [0u32; BATCH];
        for (tag, segment) in tags.iter_mut().zip(batch) {
            *tag = tracker.tag(segment);
        }
        let mut places = [Place::UNKNOWN; BATCH];
        let moves = tracker.moves();
        for (place, tag) in places.iter_mut().zip(tags) {
            *place = tracker.place(tag);
        }
        if tracker.connections.len() > PREFETCH_FROM {
            tracker.look_ahead(&places);
        }
        for (position, ((segment, tag), place)) in batch.iter().zip(tags).zip(places).enumerate() {
            // No SYN is ordinary: where all segments are tracked it is asked below.
            let mut is_copied_syn =
                S::WANTS_SEGMENTS && is_telling(segment) && routed.note_syn(segment, tag);
            if S::WANTS_SEGMENTS && !tracker.wants(tag) {
                if let Some(place) = marks.get_mut(first + position) {
                    *place = 0;
                }
                continue;
            }
            let mark = mark(segment, tag);
            let done =
                match tracker.track_ordinary(segment, place_or_now(&tracker, moves, place, tag)) {
                    Ok(done) => done,
                    Err(found) => {
                        if !S::WANTS_SEGMENTS && is_telling(segment) {
                            is_copied_syn = routed.note_syn(segment, tag);
                        }
                        tracker.track(segment, tag, found, || {
                            let newest = first + position;
                            let count = (taken + position).min(RECENT);
                            let before = (1..=count)
                                .filter_map(|back| ring.get((newest + RING - back) % RING));
                            let found = if may_hold(&marks, mark) {
                                find_copy(segment, before)
                            } else {
                                Copied::Not
                            };
                            if is_copied_syn {
                                true
                            } else if found == Copied::Routed || routed.has_any() {
                                routed.judge(segment, tag, found)
                            } else {
                                found != Copied::Not
                            }
                        })
                    }
                };
            if routed.has_any() && done.events & CAPTURE_DUPLICATE == 0 {
                routed.note(segment, tag);
            }
            if let Some(place) = marks.get_mut(first + position) {
                *place = mark;
            }
            if F::IS_WANTED {
                let root = tracker.root(done.connection);
                let is_duplicate = done.events & CAPTURE_DUPLICATE != 0;
                frames.segment(segment.frame, root.unwrap_or(u32::MAX), is_duplicate);
            }
            if S::WANTS_SEGMENTS {
                let number = tracker.number(done.connection);
                if number.is_some_and(|number| sink.wants_budget(number)) {
                    tracker.follow_budgets(done.connection);
                }
                if let Some((annotation, connection)) = tracker.annotate(segment, &done) {
                    if !sink.take(segment, &annotation, connection) {
                        was_stopped = true;
                        break;
                    }
                }
            }
        }
        // A short batch leaves a gap that is never read: it is the last one.
        taken += BATCH;
    }
    let last_ns = input.last_time_ns();
    let selection = segmenter.selection.as_deref();
    tracker.finish(selection.map_or(last_ns, |selection| selection.last_time_ns(last_ns)));
    if !was_stopped {
        frames.finish(&input, &tracker);
    }
    Findings {
        tracker,
        facts: input.into_facts(),
        counters: segmenter.parser.counters(),
        left_out: selection.map_or(0, Selection::left_out),
        was_stopped,
        is_partial: false,
    }
}

/// The way from packets to segments.
#[derive(Default)]
struct Segmenter {
    parser: SegmentParser,
    selection: Option<Box<Selection>>,
    packets: u64,
    next_report: u64,
    /// The progress function asked to stop.
    was_stopped: bool,
    /// Nothing more is selected.
    is_over: bool,
    /// Time of the packet before.
    last_ns: i64,
}

impl Segmenter {
    /// Fill the batch with the next segments and return how many there were: fewer only at the end, or when `report`,
    /// which is asked now and then even where no packet holds a segment, says to stop.
    #[inline(never)]
    fn fill<F: Frames>(
        &mut self,
        input: &mut MergedReader,
        batch: &mut [Segment],
        frames: &mut F,
        report: &mut impl FnMut(u64) -> bool,
    ) -> usize {
        let mut count = 0;
        while count < batch.len() && !self.is_over {
            if self.packets >= self.next_report {
                self.next_report = self.packets + REPORT_EVERY;
                if !report(input.bytes_read()) {
                    self.was_stopped = true;
                    break;
                }
            }
            input.take_run(|packet, offset| {
                let Some(out) = batch.get_mut(count) else {
                    return false;
                };
                count += usize::from(self.read(&packet, offset, frames, out));
                count < batch.len() && self.packets < self.next_report && !self.is_over
            });
            if self.is_over {
                break;
            }
            let Some(out) = batch.get_mut(count) else {
                break;
            };
            let Some((packet, offset)) = input.next_packet_at() else {
                break;
            };
            count += usize::from(self.read(&packet, offset, frames, out));
        }
        count
    }

    #[inline(always)]
    fn read<F: Frames>(
        &mut self,
        packet: &Packet<'_>,
        offset: u64,
        frames: &mut F,
        out: &mut Segment,
    ) -> bool {
        self.packets += 1;
        if let Some(selection) = &mut self.selection {
            let wanted = selection.wants(packet);
            self.is_over = wanted == Wanted::Over;
            if wanted != Wanted::Yes {
                return false;
            }
        }
        let fragments = self.parser.fragments_taken();
        let outcome = self.parser.parse(packet, self.last_ns, out);
        if F::IS_WANTED {
            let is_fragment = self.parser.fragments_taken() != fragments;
            frames.frame(packet.frame, offset, is_fragment, packet.time_ns.is_some());
        }
        self.last_ns = packet.time_ns.unwrap_or(self.last_ns);
        outcome == Outcome::Segment
    }
}

/// The place found for a segment, or what it is now where places changed since.
#[inline(always)]
fn place_or_now(tracker: &Tracker, moves: u32, place: Place, tag: u32) -> Place {
    if tracker.moves() == moves {
        place
    } else {
        tracker.place(tag)
    }
}

/// Equal for segments that may be duplicates of each other.
#[inline(always)]
fn mark(segment: &Segment, tag: u32) -> u32 {
    tag ^ segment.seq.wrapping_add(segment.ip_id)
}

/// Whether a mark is among those of the segments held: a look at a few cache lines in place of theirs.
#[inline(never)]
fn may_hold(marks: &[u32; RING], mark: u32) -> bool {
    marks
        .iter()
        .fold(false, |found, known| found | (*known == mark))
}
