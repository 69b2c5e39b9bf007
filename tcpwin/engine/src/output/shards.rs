//! A pass on several threads: one reads, the others each track the connections of a range of tags.
//!
//! A tracker's state for a connection depends only on the segments of its four-tuple and their positions in the
//! capture. Several trackers therefore produce the same results as one, and their connections are sorted at the end.

use std::panic::resume_unwind;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::thread::{scope, Builder, ScopedJoinHandle};

use crate::capture::MergedReader;
use crate::output::index::write::NoIndex;
use crate::output::lane::{find_copied_syns, BatchInfo, Lane, BATCH};
use crate::output::pass::{run_with, Findings, NoSink};
use crate::output::segmenter::Segmenter;
use crate::tcp::connection::table::Tags;
use crate::tcp::recovery::copies::SynCopies;
use crate::tcp::tracker::Tracker;
use crate::wire::Segment;

/// With more trackers than this, the reader is the bottleneck.
const MAX_TRACKERS: usize = 6;
/// Batches per message.
const LOAD: usize = 16;
/// Queue length per tracker, so that the reader does not block while one connection dominates.
const WAITING: usize = 8;

/// A message of segments for a tracker.
struct Load {
    segments: Vec<Segment>,
    ordinals: Vec<u64>,
    tags: Vec<u32>,
    /// Indices of SYNs that are copies of others.
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
    /// The end, with the time of the capture's last packet.
    End(Option<i64>),
}

/// The queue to a tracker on another thread.
struct Worker {
    load: Load,
    work: SyncSender<Work>,
    emptied: Receiver<Load>,
}

impl Worker {
    /// Send the collected segments. If the tracker has failed, its error is reported on join.
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

/// Read to the end like [`run_with`] for a sink that needs no segments, using info `threads` threads. The results do
/// not depend on their number. A tracker with special settings runs alone.
pub fn run_sharded(
    mut input: MergedReader,
    tracker: Tracker,
    threads: usize,
    mut report: impl FnMut(u64) -> bool,
) -> Findings {
    if threads < 2 || !tracker.is_plain() {
        return run_with(input, tracker, &mut NoSink, &mut NoIndex, report);
    }
    // One extra, because the reader sometimes blocks and connections are never distributed evenly.
    let trackers = threads.saturating_add(1).min(MAX_TRACKERS);
    let tags = Tags::new();
    scope(|threads| {
        let mut workers = Vec::with_capacity(trackers);
        let mut handles = Vec::with_capacity(trackers);
        for _ in 0..trackers {
            let (work, queued) = sync_channel(WAITING);
            let (empty, emptied) = channel();
            let work_on = move || track(tags, &queued, &empty);
            // If the system denies more threads, the existing ones share the work.
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

/// Read all segments and distribute them.
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
            // Use the tag's high bits, which have the least influence on its position in a table.
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

/// Track the received segments until the end.
fn track(tags: Tags, queued: &Receiver<Work>, empty: &Sender<Load>) -> Tracker {
    let mut tracker = Tracker::of_some(tags);
    tracker.let_rounds_go();
    let mut lane = Lane::new(tracker);
    let mut info = BatchInfo::NOTHING;
    loop {
        match queued.recv() {
            Ok(Work::Segments(load)) => {
                take(&mut lane, &mut info, &load);
                // The reader has exited once everything has been read.
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

fn take(lane: &mut Lane, info: &mut BatchInfo, load: &Load) {
    let mut copied = load.copied_syns.iter().copied().peekable();
    let batches = load
        .segments
        .chunks(BATCH)
        .zip(load.ordinals.chunks(BATCH))
        .zip(load.tags.chunks(BATCH));
    for (nth, ((segments, ordinals), tags)) in batches.enumerate() {
        let count = segments.len();
        if let Some(room) = lane.next_batch().get_mut(..count) {
            room.copy_from_slice(segments);
        }
        for (place, ordinal) in info.ordinals.iter_mut().zip(ordinals) {
            *place = *ordinal;
        }
        for (place, tag) in info.tags.iter_mut().zip(tags) {
            *place = *tag;
        }
        info.copied_syns = 0;
        let end = (nth + 1) * BATCH;
        while let Some(place) = copied.next_if(|place| *place < end) {
            info.copied_syns |= 1 << (place % BATCH);
        }
        lane.take(count, info, &mut NoSink, &mut NoIndex);
    }
}
