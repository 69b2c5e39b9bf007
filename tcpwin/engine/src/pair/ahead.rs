//! A capture read some segments ahead: reorders records that are slightly out of time order, and searches for packets
//! that the other capture has and this one has not shown yet.

use std::collections::VecDeque;

use super::keys::{words, Seed};
use super::packet::Sighting;
use super::waiting::ByKey;
use crate::capture::{CaptureFacts, MergedReader};
use crate::wire::{Outcome as Parsed, Segment, SegmentParser};

/// Distance over which slightly disordered records are sorted. A clock that was set back is left alone.
const PLACES: usize = 64;
/// Records examined around one that is earlier than its predecessor: if neither side jumps back, the clock was set.
const LOOK: usize = 32;
const DISORDER_NS: i64 = 1_000_000_000;
/// A clock set back by less cannot be distinguished from disorder.
const MIN_SET_NS: i64 = 1_000_000;
/// Segments indexed for a search, which limits the clock step that can be bridged.
const MAX_SEARCHED: usize = 1 << 16;
/// Segments read per step beyond those already queued.
const READ_AT_ONCE: usize = 256;

pub struct Ahead {
    input: MergedReader,
    parser: SegmentParser,
    last_ns: i64,
    is_over: bool,
    queue: VecDeque<Segment>,
    /// Number of queue entries that are in order; those after them are read ahead to sort these.
    settled: usize,
    /// Nothing moves before this position, because a clock was set there.
    barrier: u64,
    /// Number of segments removed from the queue so far.
    removed: u64,
    /// During a search: the position of each segment, counted from the first of all, by its invariant fields.
    index: ByKey<u64>,
    indexed: u64,
}

/// Return the key that both sightings of a packet share if nothing is rewritten.
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
            removed: 0,
            index: ByKey::default(),
            indexed: 0,
        };
        ahead.fill(PLACES);
        ahead
    }

    /// Return the next segment without removing it.
    #[inline]
    pub fn first(&self) -> Option<&Segment> {
        self.queue.front()
    }

    #[inline]
    pub fn take(&mut self) -> Option<Segment> {
        let segment = self.queue.pop_front()?;
        self.removed += 1;
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

    /// Return how many segments must be taken to reach the one with a key, if it is near.
    pub fn distance(&mut self, seed: &Seed, key: u64) -> Option<u64> {
        loop {
            self.index_all(seed);
            if let Some(place) = self.index.get(&key).copied() {
                if place >= self.removed {
                    return Some(place - self.removed + 1);
                }
                self.index.remove(&key);
            }
            if self.is_over || self.queue.len() >= MAX_SEARCHED {
                return None;
            }
            self.fill(self.queue.len() + READ_AT_ONCE);
        }
    }

    fn index_all(&mut self, seed: &Seed) {
        while self.settled < self.queue.len() {
            self.settle();
        }
        if self.index.len() > 2 * MAX_SEARCHED {
            let removed = self.removed;
            self.index.retain(|_, place| *place >= removed);
        }
        let from = self.indexed.max(self.removed);
        for at in from..self.removed + self.queue.len() as u64 {
            if let Some(segment) = self.queue.get((at - self.removed) as usize) {
                let key = search_key(seed, &Sighting::of(segment));
                self.index.entry(key).or_insert(at);
            }
        }
        self.indexed = self.removed + self.queue.len() as u64;
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

    /// Move the first unsorted segment before the later ones among the preceding records.
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
            self.barrier = self.removed + at as u64;
            return;
        }
        let time_ns = self.queue[at].time_ns;
        // Indexed segments must keep their position.
        let first_free = self.indexed.max(self.barrier).saturating_sub(self.removed) as usize;
        let last_movable = at.saturating_sub(PLACES - 1).max(first_free);
        while at > last_movable && self.queue[at - 1].time_ns > time_ns {
            self.queue.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Return true if the clock was set before a record that is earlier than its predecessor: times then continue from
    /// there. A single late record, or an early one before it, comes with a jump back.
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
        back_ns > MIN_SET_NS && !jumps(at.saturating_sub(LOOK), at) && !jumps(at, end)
    }
}
