//! One pass by several threads: one reads, and the others track the connections, each those of some tags.
//!
//! What a tracker keeps of a connection depends on the segments of its four-tuple alone, and on where they stand among
//! the others: so several trackers find what one would have found, and their connections are put in order at the end.

use std::panic::resume_unwind;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::thread::{scope, Builder, ScopedJoinHandle};

use crate::capture::MergedReader;
use crate::output::index::write::NoIndex;
use crate::output::lane::{find_copied_syns, About, Lane, BATCH};
use crate::output::pass::{run_with, Findings, NoSink};
use crate::output::segmenter::Segmenter;
use crate::tcp::connection::table::Tags;
use crate::tcp::recovery::copies::SynCopies;
use crate::tcp::tracker::Tracker;
use crate::wire::Segment;

/// Trackers beyond which the one that reads is the slowest.
const MOST_TRACKERS: usize = 6;
/// Batches handed on at a time.
const LOAD: usize = 16;
/// Loads that may wait for a tracker, so that the one that reads does not wait where one connection sends for a while.
const WAITING: usize = 8;

/// Segments on their way to a tracker.
struct Load {
    segments: Vec<Segment>,
    ordinals: Vec<u64>,
    tags: Vec<u32>,
    /// Places of SYNs that are copies of others.
    copied_syns: Vec<usize>,
}

impl Load {
    fn new() -> Self {
        let room = LOAD * BATCH;
        Load {
            segments: Vec::with_capacity(room),
            ordinals: Vec::with_capacity(room),
            tags: Vec::with_capacity(room),
            copied_syns: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.segments.clear();
        self.ordinals.clear();
        self.tags.clear();
        self.copied_syns.clear();
    }

    #[inline(always)]
    fn push(&mut self, segment: &Segment, ordinal: u64, tag: u32, is_copied_syn: bool) {
        if is_copied_syn {
            self.copied_syns.push(self.segments.len());
        }
        self.segments.push(*segment);
        self.ordinals.push(ordinal);
        self.tags.push(tag);
    }

    fn is_full(&self) -> bool {
        self.segments.len() >= LOAD * BATCH
    }
}

enum Work {
    Segments(Load),
    /// There are no more; the time of the capture's last packet.
    End(Option<i64>),
}

/// The way to one tracker.
struct Worker {
    load: Load,
    work: SyncSender<Work>,
    emptied: Receiver<Load>,
}

impl Worker {
    /// Hand over what was gathered. A tracker that is gone says why when it is joined.
    fn send(&mut self) {
        let mut next = self.emptied.try_recv().unwrap_or_else(|_| Load::new());
        next.clear();
        let load = std::mem::replace(&mut self.load, next);
        let _ = self.work.send(Work::Segments(load));
    }

    fn end(mut self, last_ns: Option<i64>) {
        self.send();
        let _ = self.work.send(Work::End(last_ns));
    }
}

/// Read to the end as [`run_with`] does for a sink that wants no segments, so that about `threads` are at work. What is
/// found is the same for any number of them. One tracker that was asked for more than to track all does it alone.
pub fn run_sharded(
    mut input: MergedReader,
    tracker: Tracker,
    threads: usize,
    mut report: impl FnMut(u64) -> bool,
) -> Findings {
    if threads < 2 || !tracker.is_plain() {
        return run_with(input, tracker, &mut NoSink, &mut NoIndex, report);
    }
    // One more than is at work: the one that reads waits now and then, and connections are never shared out evenly.
    let trackers = threads.saturating_add(1).min(MOST_TRACKERS);
    let tags = Tags::new();
    scope(|threads| {
        let mut workers = Vec::with_capacity(trackers);
        let mut handles = Vec::with_capacity(trackers);
        for _ in 0..trackers {
            let (work, todo) = sync_channel(WAITING);
            let (empty, emptied) = channel();
            let work_on = move || track(tags, &todo, &empty);
            // A system that gives no more threads, or no room for them, leaves the work to those that there are.
            let Ok(handle) = Builder::new().spawn_scoped(threads, work_on) else {
                break;
            };
            handles.push(handle);
            workers.push(Worker {
                load: Load::new(),
                work,
                emptied,
            });
        }
        if workers.is_empty() {
            return run_with(input, tracker, &mut NoSink, &mut NoIndex, report);
        }
        let mut segmenter = Segmenter::of(&mut input);
        deal(&mut input, &mut segmenter, tags, &mut workers, &mut report);
        let last_ns = segmenter.last_time_ns(&input);
        for worker in workers {
            worker.end(last_ns);
        }
        Findings {
            tracker: Tracker::joined(handles.into_iter().map(outcome).collect()),
            counters: segmenter.counters(),
            left_out: segmenter.left_out(),
            was_stopped: segmenter.was_stopped,
            facts: input.into_facts(),
            is_partial: false,
        }
    })
}

fn outcome(thread: ScopedJoinHandle<'_, Tracker>) -> Tracker {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Read all segments and deal them out.
fn deal(
    input: &mut MergedReader,
    segmenter: &mut Segmenter,
    tags: Tags,
    workers: &mut [Worker],
    report: &mut impl FnMut(u64) -> bool,
) {
    let mut syns = SynCopies::default();
    let mut batch = [Segment::EMPTY; BATCH];
    let mut batch_tags = [0; BATCH];
    let mut ordinal = 0;
    let shards = workers.len() as u64;
    loop {
        let count = segmenter.fill(input, &mut batch, &mut NoIndex, report);
        let segments = batch.get(..count).unwrap_or_default();
        for (tag, segment) in batch_tags.iter_mut().zip(segments) {
            *tag = tags.tag(segment);
        }
        let copied_syns = find_copied_syns(&mut syns, segments, &batch_tags);
        for (position, (segment, tag)) in segments.iter().zip(batch_tags).enumerate() {
            // By the bits that say least of a place in a table.
            let shard = (u64::from(tag) * shards) >> 32;
            if let Some(worker) = workers.get_mut(shard as usize) {
                worker
                    .load
                    .push(segment, ordinal, tag, copied_syns >> position & 1 == 1);
                if worker.load.is_full() {
                    worker.send();
                }
            }
            ordinal += 1;
        }
        if count < BATCH || segmenter.was_stopped {
            break;
        }
    }
}

/// Track what comes, until the end.
fn track(tags: Tags, todo: &Receiver<Work>, empty: &Sender<Load>) -> Tracker {
    let mut tracker = Tracker::of_some(tags);
    tracker.let_rounds_go();
    let mut lane = Lane::new(tracker);
    let mut about = About::NOTHING;
    loop {
        match todo.recv() {
            Ok(Work::Segments(load)) => {
                take(&mut lane, &mut about, &load);
                // Nobody is there any more once all was read.
                let _ = empty.send(load);
            }
            Ok(Work::End(last_ns)) => {
                lane.tracker.finish(last_ns);
                break;
            }
            Err(_) => break,
        }
    }
    lane.tracker
}

fn take(lane: &mut Lane, about: &mut About, load: &Load) {
    let mut copied = load.copied_syns.iter().copied().peekable();
    let batches = load
        .segments
        .chunks(BATCH)
        .zip(load.ordinals.chunks(BATCH))
        .zip(load.tags.chunks(BATCH));
    for (nth, ((segments, ordinals), tags)) in batches.enumerate() {
        let count = segments.len();
        if let Some(room) = lane.room().get_mut(..count) {
            room.copy_from_slice(segments);
        }
        for (place, ordinal) in about.ordinals.iter_mut().zip(ordinals) {
            *place = *ordinal;
        }
        for (place, tag) in about.tags.iter_mut().zip(tags) {
            *place = *tag;
        }
        about.copied_syns = 0;
        let end = (nth + 1) * BATCH;
        while let Some(place) = copied.next_if(|place| *place < end) {
            about.copied_syns |= 1 << (place % BATCH);
        }
        lane.take(count, about, &mut NoSink, &mut NoIndex);
    }
}
