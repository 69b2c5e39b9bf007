//! Segments in order, each taken in by one tracker: all of a capture's, or those of some of its connections.

use crate::event::CAPTURE_DUPLICATE;
use crate::output::index::write::Frames;
use crate::output::pass::Sink;
use crate::tcp::recovery::copies::{is_telling, RoutedCopies, SynCopies};
use crate::tcp::recovery::duplicate::{find_copy, Copied, RECENT};
use crate::tcp::tracker::{Slot, Tracker};
use crate::wire::Segment;

/// Segments taken at a time, so that the cache misses of their look-ups overlap.
pub const BATCH: usize = 32;
/// Segments held: enough to look back over, whole batches.
const RING: usize = RECENT + BATCH;
/// Below this the connections fit the caches, and looking ahead costs more than it saves.
const PREFETCH_FROM: u32 = 1_000;

/// What is known of a batch beside its segments.
#[derive(Clone, Copy)]
pub struct About {
    /// How many segments the capture held before each.
    pub ordinals: [u64; BATCH],
    pub tags: [u32; BATCH],
    /// A bit for each SYN that is the copy of another.
    pub copied_syns: u32,
}

impl About {
    pub const NOTHING: About = About {
        ordinals: [0; BATCH],
        tags: [0; BATCH],
        copied_syns: 0,
    };
}

/// Which SYNs of a batch are copies of others. All of the capture's must be asked, in order.
#[inline(always)]
pub fn find_copied_syns(syns: &mut SynCopies, batch: &[Segment], tags: &[u32]) -> u32 {
    let mut copied = 0;
    for (position, (segment, tag)) in batch.iter().zip(tags).enumerate() {
        if is_telling(segment) && syns.note(segment, *tag) {
            copied |= 1 << (position % BATCH);
        }
    }
    copied
}

pub struct Lane {
    pub tracker: Tracker,
    routed: RoutedCopies,
    /// The batches before the newest stay readable behind it, for the search for duplicates.
    ring: Vec<Segment>,
    ordinals: [u64; RING],
    marks: [u32; RING],
    taken: usize,
}

impl Lane {
    pub fn new(tracker: Tracker) -> Self {
        Lane {
            tracker,
            routed: RoutedCopies::default(),
            ring: vec![Segment::EMPTY; RING],
            ordinals: [0; RING],
            marks: [0; RING],
            taken: 0,
        }
    }

    /// Where the next batch is to be put.
    #[inline]
    pub fn room(&mut self) -> &mut [Segment] {
        let first = self.taken % RING;
        self.ring.get_mut(first..first + BATCH).unwrap_or_default()
    }

    /// The next batch as far as it is filled.
    #[inline]
    pub fn filled(&self, count: usize) -> &[Segment] {
        let first = self.taken % RING;
        self.ring.get(first..first + count).unwrap_or_default()
    }

    /// Take in the segments that were put into the room; only the last batch may be a short one. False where the sink
    /// wants no more.
    #[inline]
    pub fn take<S: Sink, F: Frames>(
        &mut self,
        count: usize,
        about: &About,
        sink: &mut S,
        frames: &mut F,
    ) -> bool {
        let Lane {
            tracker,
            routed,
            ring,
            ordinals,
            marks,
            taken,
        } = self;
        let first = *taken % RING;
        let batch = ring.get(first..first + count).unwrap_or_default();
        if let Some(room) = ordinals.get_mut(first..first + BATCH) {
            room.copy_from_slice(&about.ordinals);
        }
        let tags = about.tags;
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
            let is_copied_syn = about.copied_syns >> position & 1 == 1;
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
                    let before = (1..=RECENT.min(*taken + position))
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
        // A short batch leaves a gap that is never read: it is the last one.
        *taken += BATCH;
        true
    }
}

/// The place found for a segment, or what it is now where places changed since.
#[inline(always)]
fn slot_or_now(tracker: &Tracker, moves: u32, slot: Slot, tag: u32) -> Slot {
    if tracker.moves() == moves {
        slot
    } else {
        tracker.slot(tag)
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
