//! One TCP packet as one of the two captures has it: what is needed to know it again at the other, and to judge it.

use super::keys::{words, Seed};
use crate::sequence::Seq;
use crate::wire::{capture_flag, Options, Segment, ACK, FIN, NO_IP_ID, RST, SYN};

/// Which of the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    #[inline]
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// A packet. Sequence numbers are those of capture A, once its connection is paired.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub time_ns: i64,
    pub frame: u64,
    pub seq: u32,
    pub ack: u32,
    pub payload_len: u32,
    pub ip_id: u32,
    /// TSval and TSecr; zero without the option.
    pub tsval: u32,
    pub tsecr: u32,
    pub flags: u16,
    pub window: u16,
    pub ttl: u8,
    pub traffic_class: u8,
    pub has_timestamps: bool,
    /// The capture has the TCP header to its end.
    pub has_all_options: bool,
    /// Of a packet with more options than timestamps.
    pub options: Option<Box<Options>>,
}

impl Sighting {
    pub fn of(segment: &Segment) -> Self {
        let (tsval, tsecr) = segment.options.timestamps.unwrap_or_default();
        let more = segment.options.has_more_than_timestamps();
        Self {
            time_ns: segment.time_ns,
            frame: segment.frame,
            seq: segment.seq,
            ack: if segment.flags & ACK == 0 {
                0
            } else {
                segment.ack
            },
            payload_len: segment.payload_len,
            ip_id: segment.ip_id,
            tsval,
            tsecr,
            flags: segment.flags,
            window: segment.window,
            ttl: segment.ttl,
            traffic_class: segment.traffic_class,
            has_timestamps: segment.options.timestamps.is_some(),
            has_all_options: segment.capture_flags & capture_flag::OPTIONS_CUT == 0,
            options: more.then(|| Box::new(segment.options)),
        }
    }

    /// Sequence space: payload, SYN and FIN (RFC 9293 §3.3.1).
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        self.payload_len + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }

    #[inline]
    pub fn start(&self) -> Seq {
        Seq(self.seq)
    }

    #[inline]
    pub fn end(&self) -> Seq {
        Seq(self.seq) + self.sequence_len()
    }

    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// The IP identification, where it tells packets apart: Linux sends 0 in some that no socket owns.
    #[inline]
    pub fn id(&self) -> Option<u32> {
        (self.ip_id != 0 && self.ip_id != NO_IP_ID).then_some(self.ip_id)
    }

    /// Whether two sightings of an ACK without an id are of the same one, as far as fields that each ACK sets anew say.
    pub fn says_the_same(&self, other: &Sighting) -> bool {
        self.window == other.window && self.has_same_sack(other)
    }

    #[inline]
    pub fn has_same_sack(&self, other: &Sighting) -> bool {
        self.sack_blocks() == other.sack_blocks()
    }

    #[inline]
    pub fn has_sack(&self) -> bool {
        !self.sack_blocks().is_empty()
    }

    /// Whether it is an ACK that only what it says tells from others of its number: without data and without an IP id.
    #[inline]
    pub fn is_bare_ack(&self) -> bool {
        self.has(ACK) && self.sequence_len() == 0 && self.id().is_none()
    }

    /// A hash of what such an ACK says.
    pub fn said(&self, seed: &Seed) -> u64 {
        let start = words(self.ack, self.window.into());
        self.sack_blocks().iter().fold(start, |sum, block| {
            seed.hash(sum, words(block.0, block.1), 6)
        })
    }

    fn sack_blocks(&self) -> &[(u32, u32)] {
        self.options.as_deref().map_or(&[], Options::sack_blocks)
    }

    /// The bits of the flags that no router on the way has a reason to change.
    #[inline]
    pub fn kind(&self) -> u16 {
        self.flags & (SYN | FIN | RST | ACK)
    }

    /// Add to the sequence number, and to those that the other end's data have.
    pub fn renumber(&mut self, own: u32, back: u32) {
        if own | back == 0 {
            return;
        }
        self.seq = self.seq.wrapping_add(own);
        if self.has(ACK) {
            self.ack = self.ack.wrapping_add(back);
        }
        if let Some(options) = &mut self.options {
            for block in &mut options.sack {
                *block = (block.0.wrapping_add(back), block.1.wrapping_add(back));
            }
        }
    }

    /// Whether two ranges of sequence space have a byte in common.
    #[inline]
    pub fn overlaps(&self, other: &Sighting) -> bool {
        self.start().is_before(other.end()) && other.start().is_before(self.end())
    }
}
