//! Feeds a tracker with segments in order: all of a capture's, or those of a shard of its connections.

use crate::event::CAPTURE_DUPLICATE;
use crate::output::index::write::Frames;
use crate::output::pass::Sink;
use crate::tcp::recovery::copies::{may_be_routed, RoutedCopies, SynCopies};
use crate::tcp::recovery::duplicate::{find_copy, Copied, RECENT};
use crate::tcp::tracker::{Slot, Tracker};
use crate::wire::Segment;

/// Segments processed together, so that the cache misses of their lookups overlap.
pub const BATCH: usize = 32;
/// Segments retained: the look-back distance plus one batch.
const RING: usize = RECENT + BATCH;
/// With fewer connections the tables fit the caches, and prefetching costs more than it saves.
const PREFETCH_FROM: u32 = 1_000;

/// Per-batch data that accompanies the segments.
#[derive(Clone, Copy)]
pub struct BatchInfo {
    /// Number of the capture's segments before each one.
    pub ordinals: [u64; BATCH],
    pub tags: [u32; BATCH],
    /// Bit mask of SYNs that are copies of another.
    pub copied_syns: u32,
}

impl BatchInfo {
    pub const NOTHING: BatchInfo = BatchInfo {
        ordinals: [0; BATCH],
        tags: [0; BATCH],
        copied_syns: 0,
    };
}

/// Return the bit mask of copied SYNs in a batch. Must be called for all of the capture's batches, in order.
#[inline(always)]
pub fn find_copied_syns(syns: &mut SynCopies, batch: &[Segment], tags: &[u32]) -> u32 {
    let mut copied = 0;
    for (position, (segment, tag)) in batch.iter().zip(tags).enumerate() {
        if may_be_routed(segment) && syns.note(segment, *tag) {
            copied |= 1 << (position % BATCH);
        }
    }
    copied
}

pub struct Lane {
    pub tracker: Tracker,
    routed: RoutedCopies,
    /// Earlier batches stay available after the newest one, for the duplicate search.
    ring: Vec<Segment>,
    ordinals: [u64; RING],
    marks: [u32; RING],
    count_taken: usize,
}

impl Lane {
    pub fn new(tracker: Tracker) -> Self {
        Lane {
            tracker,
            routed: RoutedCopies::default(),
            ring: vec![Segment::EMPTY; RING],
            ordinals: [0; RING],
            marks: [0; RING],
            count_taken: 0,
        }
    }

    /// Return the buffer for the next batch.
    #[inline]
    pub fn next_batch(&mut self) -> &mut [Segment] {
        let first = self.count_taken % RING;
        self.ring.get_mut(first..first + BATCH).unwrap_or_default()
    }

    /// Return the filled part of the next batch.
    #[inline]
    pub fn filled(&self, count: usize) -> &[Segment] {
        let first = self.count_taken % RING;
        self.ring.get(first..first + count).unwrap_or_default()
    }

    /// Track the segments written to [`Lane::next_batch`]; only the last batch may be short. Return false if the sink
    /// wants no more.
    #[inline]
    pub fn take<S: Sink, F: Frames>(
        &mut self,
        count: usize,
        info: &BatchInfo,
        sink: &mut S,
        frames: &mut F,
    ) -> bool {
        let Lane {
            tracker,
            routed,
            ring,
            ordinals,
            marks,
            count_taken,
        } = self;
        let first = *count_taken % RING;
        let batch = ring.get(first..first + count).unwrap_or_default();
        if let Some(next) = ordinals.get_mut(first..first + BATCH) {
            next.copy_from_slice(&info.ordinals);
        }
        let tags = info.tags;
        let mut slots = [Slot::UNKNOWN; BATCH];
        let moves = tracker.moves();
        for (slot, tag) in slots.iter_mut().zip(tags) {
            *slot = tracker.slot(tag);
        }
        if tracker.connections.len() > PREFETCH_FROM {
            tracker.look_ahead(&slots);
        }
        for (position, ((segment, tag), slot)) in batch.iter().zip(tags).zip(slots).enumerate() {
            let newest = first + position;
            let is_copied_syn = info.copied_syns >> position & 1 == 1;
            if is_copied_syn {
                routed.begin(tag);
            }
            if S::WANTS_SEGMENTS && !tracker.wants(tag) {
                if let Some(slot) = marks.get_mut(newest) {
                    *slot = 0;
                }
                continue;
            }
            let mark = mark(segment, tag);
            let slot = slot_or_now(tracker, moves, slot, tag);
            let done = match tracker.track_ordinary(segment, slot) {
                Ok(done) => done,
                Err(found) => tracker.track(segment, tag, found, || {
                    let ordinal = ordinals.get(newest).copied().unwrap_or_default();
                    let is_recent = |slot: &usize| {
                        (ordinals.get(*slot)).is_some_and(|it| ordinal - it <= RECENT as u64)
                    };
                    let before = (1..=RECENT.min(*count_taken + position))
                        .map(|back| (newest + RING - back) % RING)
                        .take_while(is_recent)
                        .filter_map(|slot| ring.get(slot));
                    let found = if may_hold(marks, mark) {
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
                }),
            };
            if routed.has_any() && done.events & CAPTURE_DUPLICATE == 0 {
                routed.note(segment, tag);
            }
            if let Some(slot) = marks.get_mut(newest) {
                *slot = mark;
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
                        return false;
                    }
                }
            }
        }
        // A short batch leaves a gap that is never read, as it is the last one.
        *count_taken += BATCH;
        true
    }
}

/// Return the place found for a segment, or look it up again if places have moved since.
#[inline(always)]
fn slot_or_now(tracker: &Tracker, moves: u32, slot: Slot, tag: u32) -> Slot {
    if tracker.moves() == moves {
        slot
    } else {
        tracker.slot(tag)
    }
}

/// Return a value that is equal for segments that may be duplicates of each other.
#[inline(always)]
fn mark(segment: &Segment, tag: u32) -> u32 {
    tag ^ segment.seq.wrapping_add(segment.ip_id)
}

/// Return true if a mark is among those of the retained segments: this reads a few cache lines instead of the segments.
#[inline(never)]
fn may_hold(marks: &[u32; RING], mark: u32) -> bool {
    marks
        .iter()
        .fold(false, |found, known| found | (*known == mark))
}
