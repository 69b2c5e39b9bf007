//! A capture made at two points: determine the point at which each packet was captured.
//!
//! A packet that passed both points appears twice, differing only in its TTL and, with NAT, its addresses. The first
//! pass finds the copies and their properties at each point; the second assigns each packet. A higher TTL is nearer to
//! the sender; if copies do not differ, the first one is.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::keys::{words, Seed};
use super::packet::{Side, Sighting};
use super::waiting::{ByKey, Ready};
use crate::wire::Segment;

/// Packets among which a copy is searched.
const MAX_RECENT: usize = 1 << 15;
/// Copies made at one point follow each other sooner: by a mirror port, or a host that sends to itself.
const MIN_APART_NS: i64 = 20_000;
/// Later, it is another packet: no path delays one for so long, and SYNs are retransmitted after a second (RFC 6298
/// §2.1).
const MAX_APART_NS: i64 = 900_000_000;
const MIN_COPIES: u64 = 10;
/// Minimum share of packets that appear twice; others passed only one point, or were lost.
const DOUBLED_SHARE: f64 = 0.3;

/// Evidence about packets of one direction of a connection with the same TTL.
#[derive(Clone, Copy, Debug)]
struct Class {
    ttl: u8,
    copies: u32,
    /// Copies that show it is nearer to the sender, minus those that show it is farther.
    nearer: i32,
}

/// The first sighting of a packet.
#[derive(Clone, Copy, Debug)]
struct First {
    direction: u64,
    ttl: u8,
    time_ns: i64,
    /// Whether it has an IP ID, which no retransmission repeats, so that the two points' clocks may differ by any
    /// amount.
    has_id: bool,
}

/// The newest packets by their invariant fields.
#[derive(Default)]
struct Recent {
    by_key: ByKey<First>,
    order: VecDeque<u64>,
}

impl Recent {
    /// Return the first sighting of a packet that is a copy; otherwise store it as the first.
    fn take(&mut self, key: u64, packet: First) -> Option<First> {
        if let Some(first) = self.by_key.get(&key) {
            let apart_ns = packet.time_ns.saturating_sub(first.time_ns);
            let differs = (first.direction, first.ttl) != (packet.direction, packet.ttl);
            let is_copy = if differs {
                packet.has_id || apart_ns <= MAX_APART_NS
            } else {
                (MIN_APART_NS..=MAX_APART_NS).contains(&apart_ns)
            };
            if is_copy {
                return self.by_key.remove(&key);
            }
        }
        if self.by_key.insert(key, packet).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_RECENT {
            if let Some(oldest) = self.order.pop_front() {
                self.by_key.remove(&oldest);
            }
        }
        None
    }
}

/// The two points, as learned in a first pass.
pub struct Points {
    seed: Seed,
    directions: HashMap<u64, Vec<Class>, BuildHasherDefault<Ready>>,
    recent: Recent,
    segments: u64,
    copies: u64,
    hosts: HashMap<[u8; 16], Side>,
}

impl Default for Points {
    fn default() -> Self {
        Self::new()
    }
}

impl Points {
    pub fn new() -> Self {
        Self {
            seed: Seed::random(),
            directions: HashMap::default(),
            recent: Recent::default(),
            segments: 0,
            copies: 0,
            hosts: HashMap::default(),
        }
    }

    /// Process a packet of the first pass.
    pub fn learn(&mut self, segment: &Segment) {
        self.segments += 1;
        let packet = self.seen(segment);
        let Some(key) = self.key(segment) else {
            return;
        };
        let Some(first) = self.recent.take(key, packet) else {
            return;
        };
        self.copies += 1;
        let is_first_near = first.ttl >= packet.ttl;
        self.vote(first, if is_first_near { 1 } else { -1 });
        self.vote(packet, if is_first_near { -1 } else { 1 });
    }

    /// Return true if enough packets appear twice, and start the second pass.
    pub fn are_two(&mut self) -> bool {
        self.recent = Recent::default();
        let doubled = 2.0 * self.copies as f64;
        self.copies >= MIN_COPIES && doubled >= DOUBLED_SHARE * self.segments as f64
    }

    /// Return the point at which a packet of the second pass was captured.
    pub fn place(&mut self, segment: &Segment) -> Side {
        let near = self.near_of(segment);
        let packet = self.seen(segment);
        let copy = self
            .key(segment)
            .and_then(|key| self.recent.take(key, packet));
        let classes = self
            .directions
            .get(&packet.direction)
            .map_or(&[][..], Vec::as_slice);
        let nearest = classes
            .iter()
            .min_by_key(|class| class.ttl.abs_diff(packet.ttl));
        let is_near = match nearest {
            // It was the first of two as often as the second: only the order decides.
            Some(class) if class.nearer.unsigned_abs() * 2 < class.copies => copy.is_none(),
            Some(class) => class.nearer > 0,
            None => true,
        };
        if is_near {
            near
        } else {
            near.other()
        }
    }

    fn vote(&mut self, seen: First, nearer: i32) {
        let classes = self.directions.entry(seen.direction).or_default();
        let known = classes.iter().position(|class| class.ttl == seen.ttl);
        let at = known.unwrap_or_else(|| {
            classes.push(Class {
                ttl: seen.ttl,
                copies: 0,
                nearer: 0,
            });
            classes.len() - 1
        });
        if let Some(class) = classes.get_mut(at) {
            class.copies += 1;
            class.nearer += nearer;
        }
    }

    /// Return the point nearer to the sender: the first host is at the first point, its peers at the other.
    fn near_of(&mut self, segment: &Segment) -> Side {
        let (from, to) = (
            self.hosts.get(&segment.src).copied(),
            self.hosts.get(&segment.dst).copied(),
        );
        let near = from.unwrap_or_else(|| to.map_or(Side::A, Side::other));
        self.hosts.entry(segment.src).or_insert(near);
        self.hosts.entry(segment.dst).or_insert(near.other());
        near
    }

    fn seen(&self, segment: &Segment) -> First {
        let half = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let end = |address: &[u8; 16], port: u16| {
            let (high, low) = address.split_at(8);
            self.seed.hash(half(high), half(low), u64::from(port))
        };
        let from = end(&segment.src, segment.src_port);
        let to = end(&segment.dst, segment.dst_port);
        First {
            direction: self.seed.hash(from, to, 6),
            ttl: segment.ttl,
            time_ns: segment.time_ns,
            has_id: Sighting::of(segment).id().is_some(),
        }
    }

    /// Return the key shared by both copies of a packet; `None` if it cannot be distinguished from others.
    fn key(&self, segment: &Segment) -> Option<u64> {
        let packet = Sighting::of(segment);
        if packet.id().is_none() && !packet.has_timestamps {
            return None;
        }
        let numbers = words(packet.seq, packet.ack);
        let stamps = words(packet.tsval, packet.ip_id);
        let rest = words(packet.payload_len, packet.kind().into());
        Some(self.seed.hash(numbers, stamps, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ACK;

    fn segment(from: u8, to: u8, ttl: u8, ip_id: u32, time_ms: i64) -> Segment {
        let mut segment = Segment::EMPTY;
        (segment.src[15], segment.dst[15]) = (from, to);
        (segment.src_port, segment.dst_port) = (u16::from(from), u16::from(to));
        (segment.ttl, segment.ip_id, segment.flags) = (ttl, ip_id, ACK);
        (segment.seq, segment.payload_len) = (ip_id * 100, 100);
        segment.time_ns = time_ms * 1_000_000;
        segment
    }

    fn places(packets: &[Segment]) -> Option<Vec<Side>> {
        let mut points = Points::new();
        packets.iter().for_each(|packet| points.learn(packet));
        let are_two = points.are_two();
        are_two.then(|| packets.iter().map(|packet| points.place(packet)).collect())
    }

    /// Forty packets in each direction; those from host 2 are captured by a clock that is a second behind.
    fn both(router: u8, behind_ms: i64) -> (Vec<Segment>, Vec<Side>) {
        let mut all = Vec::new();
        for id in 1..=40u32 {
            let at = i64::from(id) * 50;
            all.push((segment(1, 2, 64, id, at), Side::A));
            all.push((segment(1, 2, 64 - router, id, at + 10 - behind_ms), Side::B));
            all.push((segment(2, 1, 64, 500 + id, at + 20 - behind_ms), Side::B));
            all.push((segment(2, 1, 64 - router, 500 + id, at + 30), Side::A));
        }
        all.sort_by_key(|(packet, _)| packet.time_ns);
        all.into_iter().unzip()
    }

    #[test]
    fn copies_with_different_ttls_come_from_two_points() {
        for behind_ms in [0, 200, -200] {
            let (packets, truth) = both(1, behind_ms);
            // The point of the first host seen comes first.
            assert_eq!(places(&packets), Some(truth), "{behind_ms}");
        }
    }

    #[test]
    fn without_a_router_in_between_the_first_copy_is_nearer() {
        let (packets, truth) = both(0, 0);
        assert_eq!(places(&packets), Some(truth));
    }

    #[test]
    fn a_capture_of_one_point_is_not_split() {
        let (packets, truth) = both(1, 0);
        let one: Vec<Segment> = packets
            .iter()
            .zip(&truth)
            .filter(|(_, side)| **side == Side::A)
            .map(|(packet, _)| *packet)
            .collect();
        assert_eq!(places(&one), None);
    }

    #[test]
    fn immediate_copies_of_a_mirror_port_are_one_point() {
        let (packets, _) = both(1, 0);
        let twice: Vec<Segment> = packets
            .iter()
            .filter(|packet| packet.ttl == 64)
            .flat_map(|packet| [*packet, *packet])
            .collect();
        assert_eq!(places(&twice), None);
    }
}
