//! A first estimate of the offset between the two clocks, made before the captures are read in step.
//!
//! Both captures are read from the start; packets with the same sequence and acknowledgment numbers (or, if a firewall
//! rewrites these, the same timestamps) are the same. Long captures are sampled by hash, so that the same packets are
//! chosen in both.

use super::keys::{words, Seed};
use super::packet::Sighting;
use super::waiting::ByKey;
use crate::capture::MergedReader;
use crate::wire::{Outcome as Parsed, Segment, SegmentParser, ACK, RST};

/// Segments of each capture read in the first step.
const FIRST_LOOK: u64 = 50_000;
const MAX_BUFFERED: usize = 1 << 20;
/// Common packets needed, earliest in A's file, whose median difference is the result: a clock may be set later.
const ENOUGH: usize = 101;

/// Times of packets by their invariant fields.
struct Sample {
    /// Each with its position in the capture, because a clock may run backwards.
    times: ByKey<(u64, i64)>,
    mask: u64,
    taken: u64,
}

/// The scan of one capture.
struct Scan {
    input: MergedReader,
    parser: SegmentParser,
    segment: Segment,
    last_ns: i64,
    sample: Sample,
    is_over: bool,
}

impl Scan {
    fn new(input: MergedReader) -> Self {
        Self {
            input,
            parser: SegmentParser::new(),
            segment: Segment::EMPTY,
            last_ns: 0,
            sample: Sample {
                times: ByKey::default(),
                mask: 0,
                taken: 0,
            },
            is_over: false,
        }
    }

    /// Read the next segments, and store those selected by the mask.
    fn read(&mut self, seed: &Seed, segments: u64) {
        let mut count = 0;
        while count < segments {
            let Some(packet) = self.input.next_packet() else {
                self.is_over = true;
                return;
            };
            let previous_ns = self.last_ns;
            self.last_ns = packet.time_ns.unwrap_or(previous_ns);
            if self.parser.parse(&packet, previous_ns, &mut self.segment) != Parsed::Segment {
                continue;
            }
            count += 1;
            self.sample.keep(seed, &Sighting::of(&self.segment));
        }
    }
}

impl Sample {
    fn keep(&mut self, seed: &Seed, packet: &Sighting) {
        if !packet.has(ACK) || packet.has(RST) {
            return;
        }
        let numbers = seed.hash(words(packet.seq, packet.ack), packet.tsval.into(), 1);
        self.keep_key(numbers, packet.time_ns);
        if packet.tsecr != 0 {
            let id = words(packet.ip_id, packet.payload_len);
            let stamps = seed.hash(words(packet.tsval, packet.tsecr), id, 2);
            self.keep_key(stamps, packet.time_ns);
        }
    }

    fn keep_key(&mut self, key: u64, time_ns: i64) {
        if key & self.mask != 0 {
            return;
        }
        self.taken += 1;
        self.times.entry(key).or_insert((self.taken, time_ns));
        if self.times.len() > MAX_BUFFERED {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.times.retain(|key, _| key & mask == 0);
        }
    }
}

/// Return B's clock minus A's, to within the path delay; `None` if the captures have no packet in common. `report` is
/// called periodically with the bytes read so far; returning false ends the read.
pub fn first_offset(inputs: [MergedReader; 2], mut report: impl FnMut(u64) -> bool) -> Option<i64> {
    let seed = Seed::random();
    let [mut a, mut b] = inputs.map(Scan::new);
    let mut segments = FIRST_LOOK;
    loop {
        for scan in [&mut a, &mut b] {
            scan.read(&seed, segments);
        }
        let go_on = report(a.input.bytes_read() + b.input.bytes_read());
        if let Some(apart_ns) = middle(&a.sample, &b.sample) {
            return Some(apart_ns);
        }
        if !go_on || a.is_over && b.is_over {
            return None;
        }
        segments *= 2;
    }
}

fn middle(a: &Sample, b: &Sample) -> Option<i64> {
    let both = a.times.iter().filter_map(|(key, (place, a_ns))| {
        let (_, b_ns) = b.times.get(key)?;
        Some((*place, b_ns.wrapping_sub(*a_ns)))
    });
    let mut common: Vec<(u64, i64)> = both.collect();
    common.sort_unstable();
    common.truncate(ENOUGH);
    let mut apart: Vec<i64> = common.into_iter().map(|point| point.1).collect();
    apart.sort_unstable();
    apart.get(apart.len() / 2).copied()
}
