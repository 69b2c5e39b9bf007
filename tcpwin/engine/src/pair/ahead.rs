//! One capture, read some segments ahead: put in the order of its times where records stand a little out of order, and
//! searched where the other capture has a packet that this one has not shown yet.

use std::collections::VecDeque;

use super::keys::{words, Seed};
use super::packet::Sighting;
use super::waiting::ByKey;
use crate::capture::{CaptureFacts, MergedReader};
use crate::wire::{Outcome as Parsed, Segment, SegmentParser};

/// Records are put in order over so many places, where they are out of it by so little. A clock that is set back is not.
const PLACES: usize = 64;
/// Records before and after one that is earlier than the one before it: if neither jump back, a clock was set.
const LOOK: usize = 32;
const DISORDER_NS: i64 = 1_000_000_000;
/// A clock that is set back by less is not told from disorder.
const LEAST_SET_NS: i64 = 1_000_000;
/// Segments that are searched: a clock may be set by as much as these take.
const MOST_SEARCHED: usize = 1 << 16;
/// The next of them are read so many at a time.
const READ_AT_ONCE: usize = 256;

pub struct Ahead {
    input: MergedReader,
    parser: SegmentParser,
    last_ns: i64,
    is_over: bool,
    queue: VecDeque<Segment>,
    /// So many of the queue are in order; those behind are looked at to put these so.
    settled: usize,
    /// Nothing goes before this place: a clock was set there.
    barrier: u64,
    /// Segments taken out of the queue so far.
    taken: u64,
    /// While searched: the place of each segment by what it keeps on its way, counted from the first of all.
    index: ByKey<u64>,
    indexed: u64,
}

/// What two sightings of one packet have in common where nothing is rewritten.
pub fn search_key(seed: &Seed, packet: &Sighting) -> u64 {
    let numbers = words(packet.seq, packet.ack);
    seed.hash(numbers, words(packet.tsval, packet.ip_id), 5)
}

impl Ahead {
    pub fn new(input: MergedReader) -> Self {
        let mut ahead = Self {
            input,
            parser: SegmentParser::new(),
            last_ns: 0,
            is_over: false,
            queue: VecDeque::new(),
            settled: 0,
            barrier: 0,
            taken: 0,
            index: ByKey::default(),
            indexed: 0,
        };
        ahead.fill(PLACES);
        ahead
    }

    /// The next segment.
    #[inline]
    pub fn first(&self) -> Option<&Segment> {
        self.queue.front()
    }

    #[inline]
    pub fn take(&mut self) -> Option<Segment> {
        let segment = self.queue.pop_front()?;
        self.taken += 1;
        self.settled = self.settled.saturating_sub(1);
        if self.settled < PLACES {
            self.fill(PLACES);
        }
        Some(segment)
    }

    pub fn bytes_read(&self) -> u64 {
        self.input.bytes_read()
    }

    pub fn into_facts(self) -> Vec<CaptureFacts> {
        self.input.into_facts()
    }

    /// How many segments must be taken until the one of a key was, if it is not far.
    pub fn distance(&mut self, seed: &Seed, key: u64) -> Option<u64> {
        loop {
            self.index_all(seed);
            if let Some(place) = self.index.get(&key).copied() {
                if place >= self.taken {
                    return Some(place - self.taken + 1);
                }
                self.index.remove(&key);
            }
            if self.is_over || self.queue.len() >= MOST_SEARCHED {
                return None;
            }
            self.fill(self.queue.len() + READ_AT_ONCE);
        }
    }

    fn index_all(&mut self, seed: &Seed) {
        while self.settled < self.queue.len() {
            self.settle();
        }
        if self.index.len() > 2 * MOST_SEARCHED {
            let taken = self.taken;
            self.index.retain(|_, place| *place >= taken);
        }
        let from = self.indexed.max(self.taken);
        for at in from..self.taken + self.queue.len() as u64 {
            if let Some(segment) = self.queue.get((at - self.taken) as usize) {
                let key = search_key(seed, &Sighting::of(segment));
                self.index.entry(key).or_insert(at);
            }
        }
        self.indexed = self.taken + self.queue.len() as u64;
    }

    fn fill(&mut self, wanted: usize) {
        while self.settled < wanted && !self.is_over {
            let Some(packet) = self.input.next_packet() else {
                self.is_over = true;
                while self.settled < self.queue.len() {
                    self.settle();
                }
                return;
            };
            let previous_ns = self.last_ns;
            self.last_ns = packet.time_ns.unwrap_or(previous_ns);
            let mut segment = Segment::EMPTY;
            if self.parser.parse(&packet, previous_ns, &mut segment) == Parsed::Segment {
                self.queue.push_back(segment);
                if self.queue.len() > self.settled + LOOK {
                    self.settle();
                }
            }
        }
    }

    /// Move the first segment that is not in order before those of the last places that are later.
    #[inline]
    fn settle(&mut self) {
        let at = self.settled;
        self.settled += 1;
        if at > 0 && self.queue[at - 1].time_ns > self.queue[at].time_ns {
            self.put_in_order(at);
        }
    }

    #[cold]
    fn put_in_order(&mut self, mut at: usize) {
        if self.is_set_at(at) {
            self.barrier = self.taken + at as u64;
            return;
        }
        let time_ns = self.queue[at].time_ns;
        // What was searched has its place.
        let first_free = self.indexed.max(self.barrier).saturating_sub(self.taken) as usize;
        let last_movable = at.saturating_sub(PLACES - 1).max(first_free);
        while at > last_movable && self.queue[at - 1].time_ns > time_ns {
            self.queue.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Whether a clock was set before a record that is earlier than the one before it: then times go on from there. A
    /// record that stands too late, or one before it that stands too early, comes with a jump the other way.
    fn is_set_at(&self, at: usize) -> bool {
        let back_ns = self.queue[at - 1]
            .time_ns
            .saturating_sub(self.queue[at].time_ns);
        if back_ns > DISORDER_NS {
            return true;
        }
        let jumps = |from: usize, to: usize| {
            (from + 1..to).any(|next| {
                let ahead_ns = self.queue[next]
                    .time_ns
                    .saturating_sub(self.queue[next - 1].time_ns);
                ahead_ns > back_ns / 2
            })
        };
        let end = (at + LOOK).min(self.queue.len());
        back_ns > LEAST_SET_NS && !jumps(at.saturating_sub(LOOK), at) && !jumps(at, end)
    }
}
