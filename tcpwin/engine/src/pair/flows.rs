//! Connections of one capture by their four-tuple, and the search for the same connection in the other capture.
//!
//! Addresses and ports may be translated on the way. What is not: sequence and acknowledgment number together are 64
//! bits that no other connection has; where a firewall rewrites these, timestamps or IP ids with lengths remain, of
//! which several must agree. Until a mate is found the newest packets are kept.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::keys::{words, Seed};
use super::packet::Sighting;
use super::waiting::{ByKey, Ready, NONE};
use crate::sequence::Seq;
use crate::wire::{Segment, ACK, RST, SYN};

/// Packets of a connection without a mate that are kept, and for how long.
const MOST_KEPT: usize = 2_048;
const KEPT_NS: i64 = 8_000_000_000;
/// The first packets of a connection are all looked up; of later ones those whose hash ends in zeros.
const LOOKED_UP: u64 = 16;
const SAMPLE_MASK: u64 = 7;
const MOST_KEYS: usize = 1_024;
/// So many packets that nothing tells apart are in their middle of one and the same.
const MANY: usize = 8;
/// A SYN stands in a file after what it opened by no more than this, and that is no farther in its data.
const DISORDER_NS: i64 = 1_000_000_000;
const DISORDER_BYTES: u32 = 65_536;
/// So many weaker agreements are one connection.
pub const VOTES: u8 = 3;

/// Address and port.
pub type Endpoint = ([u8; 16], u16);

/// A connection of one capture.
#[derive(Debug)]
pub struct Flow {
    /// The sender of its first packet; of a SYN-ACK the receiver: first the client, where that is seen.
    pub ends: [Endpoint; 2],
    /// Number of the pair, or [`NONE`].
    pub pair: u32,
    /// The other end's first sequence number is of no use here; this end's tells a reused four-tuple.
    syn_seq: Option<u32>,
    /// Sequence number of each direction, as the first packet says.
    first_seqs: [Option<u32>; 2],
    pub packets: [u64; 2],
    pub bytes: [u64; 2],
    /// Payload of each direction without copies, with what stands between the first and the last of it.
    pub carried: [u64; 2],
    highest: [Option<Seq>; 2],
    pub first_ns: i64,
    pub last_ns: i64,
    pub first_frame: u64,
    /// Whether each end's SYN was seen.
    pub has_syn: [bool; 2],
    /// Without a mate: the newest packets with their direction.
    pub kept: VecDeque<(u8, Sighting)>,
    /// Packets of each direction that were kept no longer.
    pub let_go: [u64; 2],
    keys: VecDeque<u64>,
    pub courtship: Option<Courtship>,
    /// One of the other capture has begun to agree with it.
    pub is_courted: bool,
}

/// Agreements with one connection of the other capture.
#[derive(Clone, Copy, Debug)]
pub struct Courtship {
    pub mate: u32,
    /// Direction 0 here is direction 1 there.
    pub is_flipped: bool,
    /// By this capture's direction: the other capture's sequence numbers less this one's.
    pub shifts: [u32; 2],
    pub votes: u8,
    /// One of the agreements is of a SYN.
    pub has_syn: bool,
    /// By this capture's direction: the other capture's time less this one's, of a packet that both have.
    pub apart_ns: [Option<i64>; 2],
    /// That packet is one and the same, not a copy of it or an ACK like it.
    pub is_one: [bool; 2],
    /// This capture's time to live less the other's, of such a packet.
    pub hops: [Option<i16>; 2],
    /// Packets since it could have been judged.
    pub patience: u16,
}

/// Where a key was seen.
#[derive(Clone, Copy, Debug)]
struct Place {
    flow: u32,
    direction: u8,
    seq: u32,
    ack: u32,
    time_ns: i64,
    ttl: u8,
    /// What tells the packet from its copies, and from ACKs of the same number.
    fingerprint: u16,
}

/// One look-up that hit: what the packet here and the one there say together.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub mate: u32,
    pub is_flipped: bool,
    pub shifts: [u32; 2],
    pub is_sure: bool,
    pub is_syn: bool,
    /// The same packet, by its IP id or timestamp.
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
    /// Both captures' tables must share one seed.
    pub fn new(seed: Seed) -> Self {
        Self {
            flows: Vec::new(),
            by_tuple: HashMap::default(),
            index: ByKey::default(),
            seed,
            last: (0, NONE),
        }
    }

    /// The connection of a segment, made where it is new, and the segment's direction in it.
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

    /// The pair of a segment's connection, and its direction in this capture; `None` where it is new or has no mate.
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
            kept: VecDeque::new(),
            let_go: [0; 2],
            keys: VecDeque::new(),
            courtship: None,
            is_courted: false,
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
        // The same for both directions.
        let (a, b) = (one(from), one(to));
        a.wrapping_add(b) ^ a.wrapping_mul(b)
    }

    /// Keep a packet of a connection without a mate, and forget what is too old.
    pub fn keep(&mut self, number: u32, direction: u8, packet: Sighting) {
        let flow = &mut self.flows[number as usize];
        let now_ns = packet.time_ns;
        flow.kept.push_back((direction, packet));
        while let Some((direction, oldest)) = flow.kept.front() {
            let is_old = now_ns.saturating_sub(oldest.time_ns) > KEPT_NS;
            let is_wanted = flow.is_courted || flow.courtship.is_some() || !is_old;
            if is_wanted && flow.kept.len() <= MOST_KEPT {
                break;
            }
            flow.let_go[usize::from(*direction)] += 1;
            flow.kept.pop_front();
        }
    }

    /// Forget what connections without a mate kept for too long.
    pub fn sweep(&mut self, now_ns: i64) {
        let Self { flows, index, .. } = self;
        let may_go = |flow: &&mut Flow| {
            !flow.kept.is_empty() && !flow.is_courted && flow.courtship.is_none()
        };
        for flow in flows.iter_mut().filter(may_go) {
            while let Some((direction, oldest)) = flow.kept.front() {
                if now_ns.saturating_sub(oldest.time_ns) <= KEPT_NS {
                    break;
                }
                flow.let_go[usize::from(*direction)] += 1;
                flow.kept.pop_front();
            }
            if flow.kept.is_empty() {
                for key in flow.keys.drain(..) {
                    index.remove(&key);
                }
                flow.kept.shrink_to_fit();
            }
        }
    }

    /// Make a packet findable for the other capture.
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
            if flow.keys.len() > MOST_KEYS {
                if let Some(oldest) = flow.keys.pop_front() {
                    self.index.remove(&oldest);
                }
            }
        }
    }

    /// The connection of the other capture that has this packet too, if one has.
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
            // A SYN says nothing of the other end's numbers.
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

    /// Of IP id and timestamp.
    fn fingerprint_of(&self, packet: &Sighting) -> u16 {
        let fields = words(packet.tsval, packet.id().unwrap_or(0));
        self.seed.hash(fields, 0, 5) as u16
    }

    /// Keys by which a packet is looked up, the surest first.
    fn keys_of(&self, number: u32, direction: u8, packet: &Sighting) -> [Option<u64>; 2] {
        let flow = &self.flows[number as usize];
        if packet.has(RST) {
            return [None; 2];
        }
        let hash = |kind: u64, a, b| self.seed.hash(a, b, kind);
        if !packet.has(ACK) {
            // One number of 32 bits alone is too little among a million connections.
            let numbers = words(packet.seq, packet.tsval);
            let port = u64::from(flow.ends[usize::from(1 - direction)].1);
            return [packet.has(SYN).then(|| hash(1, numbers, port)), None];
        }
        let numbers = words(packet.seq, packet.ack);
        let is_early = flow.packets.iter().sum::<u64>() <= LOOKED_UP;
        // The same packets in both captures and in every run, by what the key itself is of.
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

    /// What the packets that were kept of a connection and of its mate say: those that agree in every field are one and
    /// the same. By this capture's direction, the middle one of the differences of the times.
    pub fn compare_kept(&self, number: u32, other: &Flows, known: &Courtship) -> [Option<i64>; 2] {
        let mine = &self.flows[number as usize].kept;
        let theirs = &other.flows[known.mate as usize].kept;
        let identity = |direction: u8, packet: &Sighting| {
            let fields = words(packet.payload_len, packet.kind().into());
            let stamps = words(packet.tsval, packet.ip_id);
            let place = fields << 1 | u64::from(direction);
            self.seed.hash(words(packet.seq, packet.ack), stamps, place)
        };
        // Those of which one capture has a second are no use: which is which would be a guess.
        let mut times: ByKey<Option<i64>> = ByKey::default();
        for (direction, packet) in theirs {
            let key = identity(direction ^ u8::from(known.is_flipped), packet);
            let time = times.entry(key).or_insert(Some(packet.time_ns));
            *time = time.filter(|time_ns| *time_ns == packet.time_ns);
        }
        // Without anything that tells ACKs of one number apart, some may be of two: of many, the middle one is not.
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
        apart.map(|[told, untold]| {
            let mut apart = if told.is_empty() && untold.len() >= MANY {
                untold
            } else {
                told
            };
            apart.sort_unstable();
            apart.get(apart.len() / 2).copied()
        })
    }

    /// Forget what only the search for a mate needs; return the packets kept.
    pub fn settle(&mut self, number: u32, pair: u32) -> VecDeque<(u8, Sighting)> {
        let flow = &mut self.flows[number as usize];
        flow.pair = pair;
        flow.courtship = None;
        for key in std::mem::take(&mut flow.keys) {
            self.index.remove(&key);
        }
        std::mem::take(&mut flow.kept)
    }
}

impl Flow {
    /// A new SYN on the same four-tuple, with another sequence number.
    #[inline]
    fn is_reused_by(&self, segment: &Segment, direction: u8) -> bool {
        if segment.flags & (SYN | ACK | RST) != SYN {
            return false;
        }
        match self.syn_seq {
            Some(seq) => seq != segment.seq,
            // Of a simultaneous open no more is asked; one that began before the capture has ended.
            None => {
                self.packets != [0; 2] && !self.has_syn[0] && !self.is_opened_by(segment, direction)
            }
        }
    }

    /// Whether a SYN is of this connection and stands after other packets of it: captures of several receive queues
    /// have an answer before its question.
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

impl Courtship {
    pub fn of(hit: &Hit) -> Self {
        let mut courtship = Self {
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
        courtship.agree(hit);
        courtship
    }

    /// Take one more agreement; false where it speaks of another connection.
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

    /// Take what the mate's own look-ups say.
    pub fn adopt(&mut self, theirs: &Courtship) {
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

/// Whether a packet has what tells it apart: duplicate ACKs may share a timestamp.
fn has_fingerprint(packet: &Sighting) -> bool {
    packet.id().is_some() || packet.has_timestamps && packet.sequence_len() > 0
}
