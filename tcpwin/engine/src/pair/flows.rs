//! Connections of a capture by four-tuple, and the search for the same connection in the other capture.
//!
//! Addresses and ports may be translated on the path. Sequence and acknowledgment number are preserved, and together
//! they are 64 bits unique to a connection. If a firewall rewrites these, timestamps or IP IDs with lengths remain, of
//! which several must match. Until a mate is found, a connection's newest packets are stored.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::keys::{words, Seed};
use super::packet::Sighting;
use super::waiting::{ByKey, Ready, NONE};
use crate::sequence::Seq;
use crate::wire::{Segment, ACK, RST, SYN};

/// Maximum packets stored for a connection without a mate, and for how long.
const MAX_BUFFERED: usize = 2_048;
const BUFFERED_NS: i64 = 8_000_000_000;
/// A connection's first packets are all looked up; of its later ones, only those whose hash ends in zero bits.
const LOOKED_UP: u64 = 16;
const SAMPLE_MASK: u64 = 7;
const MAX_KEYS: usize = 1_024;
/// With this many indistinguishable packets, a few wrong pairs do not affect the median.
const MANY: usize = 8;
/// A SYN may follow the packets of its connection in the file by at most this time and this much data.
const DISORDER_NS: i64 = 1_000_000_000;
const DISORDER_BYTES: u32 = 65_536;
/// Number of weaker matches that identify a connection.
pub const VOTES: u8 = 3;

/// Address and port.
pub type Endpoint = ([u8; 16], u16);

/// A connection of one capture.
#[derive(Debug)]
pub struct Flow {
    /// The sender of the first packet, or the receiver if that is a SYN-ACK: the client comes first where it is known.
    pub ends: [Endpoint; 2],
    /// Number of the pair, or [`NONE`].
    pub pair: u32,
    /// This end's first sequence number, to detect a reused four-tuple; the other end's is not needed.
    syn_seq: Option<u32>,
    /// Sequence number of the first packet of each direction.
    first_seqs: [Option<u32>; 2],
    pub packets: [u64; 2],
    pub bytes: [u64; 2],
    /// Unique payload of each direction, including gaps between its first and last byte.
    pub carried: [u64; 2],
    highest: [Option<Seq>; 2],
    pub first_ns: i64,
    pub last_ns: i64,
    pub first_frame: u64,
    /// Whether each end's SYN was seen.
    pub has_syn: [bool; 2],
    /// Without a mate: the newest packets with their direction.
    pub buffered: VecDeque<(u8, Sighting)>,
    /// Packets of each direction that have been dropped from `buffered`.
    pub dropped: [u64; 2],
    keys: VecDeque<u64>,
    pub candidate: Option<MateCandidate>,
    /// Whether a connection of the other capture has a first match with this one.
    pub is_candidate: bool,
}

/// Matches with a connection of the other capture.
#[derive(Clone, Copy, Debug)]
pub struct MateCandidate {
    pub mate: u32,
    /// Whether direction 0 here is direction 1 there.
    pub is_flipped: bool,
    /// By this capture's direction: the other capture's sequence numbers minus this one's.
    pub shifts: [u32; 2],
    pub votes: u8,
    /// Whether one of the matches is a SYN.
    pub has_syn: bool,
    /// By this capture's direction: the other capture's time minus this one's for a common packet.
    pub apart_ns: [Option<i64>; 2],
    /// Whether that packet is certainly the same one, not a copy or a similar ACK.
    pub is_one: [bool; 2],
    /// This capture's TTL minus the other's for such a packet.
    pub hops: [Option<i16>; 2],
    /// Packets since a decision became possible.
    pub patience: u16,
}

/// The occurrence of a key.
#[derive(Clone, Copy, Debug)]
struct Place {
    flow: u32,
    direction: u8,
    seq: u32,
    ack: u32,
    time_ns: i64,
    ttl: u8,
    /// Distinguishes the packet from its copies and from ACKs with the same number.
    fingerprint: u16,
}

/// A successful lookup: the packet here and the one there.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub mate: u32,
    pub is_flipped: bool,
    pub shifts: [u32; 2],
    pub is_sure: bool,
    pub is_syn: bool,
    /// Whether it is the same packet, by IP ID or timestamp.
    pub is_one: bool,
    pub direction: u8,
    pub apart_ns: i64,
    pub hops: i16,
}

/// The connections of one capture.
pub struct Flows {
    pub flows: Vec<Flow>,
    by_tuple: HashMap<u64, u32, BuildHasherDefault<Ready>>,
    index: ByKey<Place>,
    seed: Seed,
    last: (u64, u32),
}

impl Flows {
    /// Create an empty table. The tables of both captures must share a seed.
    pub fn new(seed: Seed) -> Self {
        Self {
            flows: Vec::new(),
            by_tuple: HashMap::default(),
            index: ByKey::default(),
            seed,
            last: (0, NONE),
        }
    }

    /// Return the connection of a segment, adding it if it is new, and the segment's direction in it.
    #[inline]
    pub fn find(&mut self, segment: &Segment) -> (u32, u8) {
        let from: Endpoint = (segment.src, segment.src_port);
        let to: Endpoint = (segment.dst, segment.dst_port);
        let key = self.tuple_key(&from, &to);
        let known = if self.last.0 == key && self.last.1 != NONE {
            self.last.1
        } else {
            self.by_tuple.get(&key).copied().unwrap_or(NONE)
        };
        if let Some(flow) = self.flows.get(known as usize) {
            let direction = if flow.ends[0] == from && flow.ends[1] == to {
                Some(0)
            } else {
                (flow.ends[1] == from && flow.ends[0] == to).then_some(1)
            };
            if let Some(direction) = direction.filter(|at| !flow.is_reused_by(segment, *at)) {
                self.last = (key, known);
                return (known, direction);
            }
        }
        self.begin(key, segment, from, to)
    }

    /// Return the pair of a segment's connection and its direction in this capture; `None` if it is new or has no mate.
    #[inline]
    pub fn known(&mut self, segment: &Segment) -> Option<(u32, u8)> {
        let from: Endpoint = (segment.src, segment.src_port);
        let to: Endpoint = (segment.dst, segment.dst_port);
        let key = self.tuple_key(&from, &to);
        let number = *self.by_tuple.get(&key)?;
        let flow = self.flows.get(number as usize)?;
        let direction = u8::from(flow.ends[0] != from);
        if flow.pair == NONE || flow.is_reused_by(segment, direction) {
            return None;
        }
        Some((flow.pair, direction))
    }

    #[cold]
    fn begin(&mut self, key: u64, segment: &Segment, from: Endpoint, to: Endpoint) -> (u32, u8) {
        let is_answer = segment.flags & (SYN | ACK) == SYN | ACK;
        let direction = u8::from(is_answer);
        let number = self.flows.len() as u32;
        let mut first_seqs = [None; 2];
        first_seqs[usize::from(direction)] = Some(segment.seq);
        first_seqs[usize::from(1 - direction)] = (segment.flags & ACK != 0).then_some(segment.ack);
        self.flows.push(Flow {
            ends: if is_answer { [to, from] } else { [from, to] },
            pair: NONE,
            syn_seq: (segment.flags & (SYN | ACK) == SYN).then_some(segment.seq),
            first_seqs,
            packets: [0; 2],
            bytes: [0; 2],
            carried: [0; 2],
            highest: [None; 2],
            first_ns: segment.time_ns,
            last_ns: segment.time_ns,
            first_frame: segment.frame,
            has_syn: [false; 2],
            buffered: VecDeque::new(),
            dropped: [0; 2],
            keys: VecDeque::new(),
            candidate: None,
            is_candidate: false,
        });
        self.by_tuple.insert(key, number);
        self.last = (key, number);
        (number, direction)
    }

    #[inline]
    fn tuple_key(&self, from: &Endpoint, to: &Endpoint) -> u64 {
        let one = |end: &Endpoint| {
            let (high, low) = end.0.split_at(8);
            let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
            self.seed.hash(word(high), word(low), u64::from(end.1))
        };
        // Symmetric in both directions.
        let (a, b) = (one(from), one(to));
        a.wrapping_add(b) ^ a.wrapping_mul(b)
    }

    /// Store a packet of a connection without a mate, and drop expired ones.
    pub fn keep(&mut self, number: u32, direction: u8, packet: Sighting) {
        let flow = &mut self.flows[number as usize];
        let now_ns = packet.time_ns;
        flow.buffered.push_back((direction, packet));
        while let Some((direction, oldest)) = flow.buffered.front() {
            let is_old = now_ns.saturating_sub(oldest.time_ns) > BUFFERED_NS;
            let is_wanted = flow.is_candidate || flow.candidate.is_some() || !is_old;
            if is_wanted && flow.buffered.len() <= MAX_BUFFERED {
                break;
            }
            flow.dropped[usize::from(*direction)] += 1;
            flow.buffered.pop_front();
        }
    }

    /// Drop expired packets of connections without a mate.
    pub fn sweep(&mut self, now_ns: i64) {
        let Self { flows, index, .. } = self;
        let may_go = |flow: &&mut Flow| {
            !flow.buffered.is_empty() && !flow.is_candidate && flow.candidate.is_none()
        };
        for flow in flows.iter_mut().filter(may_go) {
            while let Some((direction, oldest)) = flow.buffered.front() {
                if now_ns.saturating_sub(oldest.time_ns) <= BUFFERED_NS {
                    break;
                }
                flow.dropped[usize::from(*direction)] += 1;
                flow.buffered.pop_front();
            }
            if flow.buffered.is_empty() {
                for key in flow.keys.drain(..) {
                    index.remove(&key);
                }
                flow.buffered.shrink_to_fit();
            }
        }
    }

    /// Make a packet findable from the other capture.
    pub fn announce(&mut self, number: u32, direction: u8, packet: &Sighting) {
        let keys = self.keys_of(number, direction, packet);
        let place = Place {
            flow: number,
            direction,
            seq: packet.seq,
            ack: packet.ack,
            time_ns: packet.time_ns,
            ttl: packet.ttl,
            fingerprint: self.fingerprint_of(packet),
        };
        let flow = &mut self.flows[number as usize];
        for key in keys.into_iter().flatten() {
            self.index.insert(key, place);
            flow.keys.push_back(key);
            if flow.keys.len() > MAX_KEYS {
                if let Some(oldest) = flow.keys.pop_front() {
                    self.index.remove(&oldest);
                }
            }
        }
    }

    /// Return the connection of the other capture that has this packet, if any.
    pub fn look_up(
        &self,
        number: u32,
        direction: u8,
        packet: &Sighting,
        other: &Flows,
    ) -> Option<Hit> {
        let keys = self.keys_of(number, direction, packet);
        for (rank, key) in keys.into_iter().enumerate() {
            let Some(place) = key.and_then(|key| other.index.get(&key)) else {
                continue;
            };
            // A SYN does not contain the other end's numbers.
            let is_sure = rank == 0 && packet.has(ACK);
            if other.flows[place.flow as usize].pair != NONE {
                continue;
            }
            let mut shifts = [0; 2];
            if rank > 0 {
                let here = usize::from(direction);
                shifts[here] = place.seq.wrapping_sub(packet.seq);
                shifts[1 - here] = place.ack.wrapping_sub(packet.ack);
            }
            return Some(Hit {
                mate: place.flow,
                is_flipped: place.direction != direction,
                shifts,
                is_sure,
                is_syn: !packet.has(ACK),
                is_one: has_fingerprint(packet) && place.fingerprint == self.fingerprint_of(packet),
                direction,
                apart_ns: place.time_ns.wrapping_sub(packet.time_ns),
                hops: i16::from(packet.ttl) - i16::from(place.ttl),
            });
        }
        None
    }

    /// Hash of IP ID and timestamp.
    fn fingerprint_of(&self, packet: &Sighting) -> u16 {
        let fields = words(packet.tsval, packet.id().unwrap_or(0));
        self.seed.hash(fields, 0, 5) as u16
    }

    /// Return the lookup keys of a packet, most reliable first.
    fn keys_of(&self, number: u32, direction: u8, packet: &Sighting) -> [Option<u64>; 2] {
        let flow = &self.flows[number as usize];
        if packet.has(RST) {
            return [None; 2];
        }
        let hash = |kind: u64, a, b| self.seed.hash(a, b, kind);
        if !packet.has(ACK) {
            // A single 32-bit number is not unique among a million connections.
            let numbers = words(packet.seq, packet.tsval);
            let port = u64::from(flow.ends[usize::from(1 - direction)].1);
            return [packet.has(SYN).then(|| hash(1, numbers, port)), None];
        }
        let numbers = words(packet.seq, packet.ack);
        let is_early = flow.packets.iter().sum::<u64>() <= LOOKED_UP;
        // Sample the same packets in both captures and in every run, by a hash of the key's contents.
        let key_of_chosen = |kind: u64, a, b| {
            let is_chosen = is_early || Seed::fixed().hash(a, b, kind) & SAMPLE_MASK == 0;
            is_chosen.then(|| hash(kind, a, b))
        };
        let sure = key_of_chosen(2, numbers, u64::from(packet.has(SYN)));
        let rest = words(packet.payload_len, packet.flags.into());
        let weak = if packet.tsecr != 0 {
            let id = u64::from(packet.id().unwrap_or(0)) << 48;
            key_of_chosen(3, words(packet.tsval, packet.tsecr), rest ^ id)
        } else {
            packet.id().and_then(|id| {
                let place = u64::from(direction);
                let rest = rest ^ u64::from(id) << 48;
                let is_chosen = is_early || Seed::fixed().hash(place, rest, 4) & SAMPLE_MASK == 0;
                let tuple = self.tuple_key(&flow.ends[0], &flow.ends[1]);
                is_chosen.then(|| hash(4, tuple ^ place, rest))
            })
        };
        [sure, weak]
    }

    /// Compare the stored packets of a connection and its mate: packets that match in all fields are the same. Return
    /// the median time difference for each of this capture's directions.
    pub fn compare_buffered(
        &self,
        number: u32,
        other: &Flows,
        known: &MateCandidate,
    ) -> [Option<i64>; 2] {
        let mine = &self.flows[number as usize].buffered;
        let theirs = &other.flows[known.mate as usize].buffered;
        let identity = |direction: u8, packet: &Sighting| {
            let fields = words(packet.payload_len, packet.kind().into());
            let stamps = words(packet.tsval, packet.ip_id);
            let place = fields << 1 | u64::from(direction);
            self.seed.hash(words(packet.seq, packet.ack), stamps, place)
        };
        // Skip packets that occur twice in a capture: the assignment would be a guess.
        let mut times: ByKey<Option<i64>> = ByKey::default();
        for (direction, packet) in theirs {
            let key = identity(direction ^ u8::from(known.is_flipped), packet);
            let time = times.entry(key).or_insert(Some(packet.time_ns));
            *time = time.filter(|time_ns| *time_ns == packet.time_ns);
        }
        // If nothing distinguishes ACKs of the same number, some pairs may be wrong, but the median of many is not.
        let mut apart: [[Vec<i64>; 2]; 2] = Default::default();
        for (direction, packet) in mine {
            let at = usize::from(*direction);
            let mut by_theirs = packet.clone();
            by_theirs.renumber(known.shifts[at], known.shifts[1 - at]);
            if let Some(Some(time_ns)) = times.get(&identity(*direction, &by_theirs)) {
                let is_told = has_fingerprint(packet) || packet.sequence_len() > 0;
                apart[at][usize::from(!is_told)].push(time_ns.wrapping_sub(packet.time_ns));
            }
        }
        apart.map(|[distinct, ambiguous]| {
            let mut apart = if distinct.is_empty() && ambiguous.len() >= MANY {
                ambiguous
            } else {
                distinct
            };
            apart.sort_unstable();
            apart.get(apart.len() / 2).copied()
        })
    }

    /// Drop the data needed only to find a mate; return the stored packets.
    pub fn settle(&mut self, number: u32, pair: u32) -> VecDeque<(u8, Sighting)> {
        let flow = &mut self.flows[number as usize];
        flow.pair = pair;
        flow.candidate = None;
        for key in std::mem::take(&mut flow.keys) {
            self.index.remove(&key);
        }
        std::mem::take(&mut flow.buffered)
    }
}

impl Flow {
    /// Return true for a new SYN on the same four-tuple with a different sequence number.
    #[inline]
    fn is_reused_by(&self, segment: &Segment, direction: u8) -> bool {
        if segment.flags & (SYN | ACK | RST) != SYN {
            return false;
        }
        match self.syn_seq {
            Some(seq) => seq != segment.seq,
            // A simultaneous open needs no further check; a connection that began before the capture has ended.
            None => {
                self.packets != [0; 2] && !self.has_syn[0] && !self.is_opened_by(segment, direction)
            }
        }
    }

    /// Return true if a SYN belongs to this connection although other packets precede it: captures from several receive
    /// queues can contain an answer before its SYN.
    #[cold]
    fn is_opened_by(&self, segment: &Segment, direction: u8) -> bool {
        let since_ns = segment.time_ns.wrapping_sub(self.first_ns);
        let ahead =
            self.first_seqs[usize::from(direction)].map(|seq| seq.wrapping_sub(segment.seq));
        since_ns.saturating_abs() <= DISORDER_NS
            && ahead.is_some_and(|ahead| (1..=DISORDER_BYTES).contains(&ahead))
    }

    pub fn count(&mut self, direction: u8, packet: &Sighting) {
        let at = usize::from(direction);
        self.packets[at] += 1;
        self.bytes[at] += u64::from(packet.payload_len);
        if packet.payload_len > 0 {
            let start = packet.start() + u32::from(packet.has(SYN));
            let end = start + packet.payload_len;
            let from = self.highest[at].unwrap_or(start);
            if from.is_before(end) {
                self.carried[at] += from.to(end) as u64;
                self.highest[at] = Some(end);
            }
        }
        self.last_ns = packet.time_ns;
        self.has_syn[at] |= packet.has(SYN);
        if packet.kind() & (SYN | ACK) == SYN {
            self.syn_seq.get_or_insert(packet.seq);
        }
    }
}

impl MateCandidate {
    pub fn of(hit: &Hit) -> Self {
        let mut candidate = Self {
            mate: hit.mate,
            is_flipped: hit.is_flipped,
            shifts: hit.shifts,
            votes: 0,
            has_syn: false,
            apart_ns: [None; 2],
            is_one: [false; 2],
            hops: [None; 2],
            patience: 0,
        };
        candidate.agree(hit);
        candidate
    }

    /// Add a match; return false if it contradicts the earlier ones.
    pub fn agree(&mut self, hit: &Hit) -> bool {
        if (hit.mate, hit.is_flipped, hit.shifts) != (self.mate, self.is_flipped, self.shifts) {
            return false;
        }
        self.votes = self
            .votes
            .saturating_add(if hit.is_sure { VOTES } else { 1 });
        self.has_syn |= hit.is_syn;
        let at = usize::from(hit.direction);
        if hit.is_one || !self.is_one[at] {
            self.apart_ns[at] = Some(hit.apart_ns);
            self.is_one[at] = hit.is_one;
        }
        self.hops[at] = Some(hit.hops);
        true
    }

    /// Adopt the results of the mate's own lookups.
    pub fn adopt(&mut self, theirs: &MateCandidate) {
        for direction in 0..2 {
            let there = if self.is_flipped {
                1 - direction
            } else {
                direction
            };
            let is_better = theirs.is_one[there] && !self.is_one[direction];
            if is_better || self.apart_ns[direction].is_none() {
                self.apart_ns[direction] = theirs.apart_ns[there].map(i64::wrapping_neg);
                self.is_one[direction] = theirs.is_one[there];
            }
            let hops = theirs.hops[there].map(|hops| -hops);
            self.hops[direction] = self.hops[direction].or(hops);
        }
    }
}

/// Return true if a packet is distinguishable: duplicate ACKs may share a timestamp.
fn has_fingerprint(packet: &Sighting) -> bool {
    packet.id().is_some() || packet.has_timestamps && packet.sequence_len() > 0
}
