//! A pass on several threads: one reads, the others each track the connections of a range of tags.
//!
//! A tracker's state for a connection depends only on the segments of its four-tuple and their positions in the
//! capture. Several trackers therefore produce the same results as one, and their connections are sorted at the end.

use std::panic::resume_unwind;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
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
const WAITING: usize = 12;

/// A message of segments, which all trackers share: each takes those of its connections.
struct Load {
    segments: Vec<Segment>,
    count: usize,
    /// Number of the capture's segments before the first.
    ordinal: u64,
    tags: Vec<u32>,
    /// Number of the tracker of each segment.
    shards: Vec<u8>,
    /// For each batch, the bit mask of SYNs that are copies of others.
    copied_syns: [u32; LOAD],
}

impl Load {
    fn new() -> Self {
        let room = LOAD * BATCH;
        Load {
            segments: vec![Segment::EMPTY; room],
            count: 0,
            ordinal: 0,
            tags: vec![0; room],
            shards: vec![0; room],
            copied_syns: [0; LOAD],
        }
    }
}

enum Work {
    Segments(Arc<Load>),
    /// The end, with the time of the capture's last packet.
    End(Option<i64>),
}

/// Read to the end like [`run_with`], on `threads` threads and without a sink. The results do not depend on the number
/// of threads. A tracker with special settings runs alone.
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
        let (empty, emptied) = channel();
        for shard in 0..trackers as u8 {
            let (work, queued) = sync_channel(WAITING);
            let empty = empty.clone();
            let work_on = move || track(shard, tags, &queued, &empty);
            // If the system denies more threads, the existing ones share the work.
            let Ok(handle) = Builder::new().spawn_scoped(threads, work_on) else {
                break;
            };
            handles.push(handle);
            workers.push(work);
        }
        if workers.is_empty() {
            return run_with(input, tracker, &mut NoSink, &mut NoIndex, report);
        }
        let mut segmenter = Segmenter::of(&mut input);
        let dealt = Dealt {
            workers: &workers,
            emptied,
        };
        dealt.deal(&mut input, &mut segmenter, tags, &mut report);
        let last_ns = segmenter.last_time_ns(&input);
        for worker in workers {
            // If the tracker has failed, its error is reported on join.
            let _ = worker.send(Work::End(last_ns));
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

/// The queues to the trackers, and the loads that all of them have tracked.
struct Dealt<'a> {
    workers: &'a [SyncSender<Work>],
    emptied: Receiver<Load>,
}

impl Dealt<'_> {
    /// Read all segments and share them.
    fn deal(
        &self,
        input: &mut MergedReader,
        segmenter: &mut Segmenter,
        tags: Tags,
        report: &mut impl FnMut(u64) -> bool,
    ) {
        let mut syns = SynCopies::default();
        let mut ordinal = 0;
        let shards = self.workers.len() as u64;
        let mut is_over = false;
        while !is_over {
            let mut load = self.emptied.try_recv().unwrap_or_else(|_| Load::new());
            (load.count, load.ordinal) = (0, ordinal);
            let batches = load.segments.chunks_mut(BATCH);
            let places = load
                .tags
                .chunks_mut(BATCH)
                .zip(load.shards.chunks_mut(BATCH));
            for ((batch, (batch_tags, batch_shards)), copied) in
                batches.zip(places).zip(&mut load.copied_syns)
            {
                let count = segmenter.fill(input, batch, &mut NoIndex, report);
                let segments = batch.get(..count).unwrap_or_default();
                for ((tag, shard), segment) in batch_tags.iter_mut().zip(batch_shards).zip(segments)
                {
                    *tag = tags.tag(segment);
                    // Use the tag's high bits, which have the least influence on its position in a table.
                    *shard = ((u64::from(*tag) * shards) >> 32) as u8;
                }
                *copied = find_copied_syns(&mut syns, segments, batch_tags);
                load.count += count;
                is_over = count < BATCH || segmenter.was_stopped;
                if is_over {
                    break;
                }
            }
            ordinal += load.count as u64;
            let load = Arc::new(load);
            for worker in self.workers {
                let _ = worker.send(Work::Segments(load.clone()));
            }
        }
    }
}

/// Track the received segments of a shard until the end.
fn track(shard: u8, tags: Tags, queued: &Receiver<Work>, empty: &Sender<Load>) -> Tracker {
    let mut tracker = Tracker::of_some(tags);
    tracker.let_rounds_go();
    let mut lane = Lane::new(tracker);
    let mut next = Next {
        shard,
        info: BatchInfo::NOTHING,
        count: 0,
    };
    loop {
        match queued.recv() {
            Ok(Work::Segments(load)) => {
                next.take(&mut lane, &load);
                if let Some(load) = Arc::into_inner(load) {
                    // The reader has exited once everything has been read.
                    let _ = empty.send(load);
                }
            }
            Ok(Work::End(last_ns)) => {
                next.track(&mut lane);
                lane.tracker.finish(last_ns);
                break;
            }
            Err(_) => break,
        }
    }
    lane.tracker
}

/// A shard's next batch, which may come from several loads.
struct Next {
    shard: u8,
    info: BatchInfo,
    count: usize,
}

impl Next {
    fn take(&mut self, lane: &mut Lane, load: &Load) {
        let shards = load.shards.get(..load.count).unwrap_or_default();
        for (place, shard) in shards.iter().enumerate() {
            if *shard != self.shard {
                continue;
            }
            let (Some(segment), Some(tag)) = (load.segments.get(place), load.tags.get(place))
            else {
                return;
            };
            let nth = self.count % BATCH;
            if let Some(room) = lane.next_batch().get_mut(nth) {
                *room = *segment;
            }
            self.info.tags[nth] = *tag;
            self.info.ordinals[nth] = load.ordinal + place as u64;
            let is_copied = load.copied_syns[place / BATCH % LOAD] >> (place % BATCH) & 1;
            self.info.copied_syns |= is_copied << nth;
            self.count += 1;
            if self.count == BATCH {
                self.track(lane);
            }
        }
    }

    fn track(&mut self, lane: &mut Lane) {
        lane.take(self.count, &self.info, &mut NoSink, &mut NoIndex);
        (self.count, self.info.copied_syns) = (0, 0);
    }
}
