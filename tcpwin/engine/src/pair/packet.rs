//! A TCP packet as seen by one of the two captures: the fields needed to recognize it in the other, and to judge it.

use super::keys::{words, Seed};
use crate::sequence::Seq;
use crate::wire::{capture_flag, Options, Segment, ACK, FIN, NO_IP_ID, RST, SYN};

/// One of the two captures.
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

/// A packet. Sequence numbers are capture A's once its connection is paired.
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
    /// Whether the TCP header was captured completely.
    pub has_all_options: bool,
    /// Set if the packet has options other than timestamps.
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

    /// Return the length in sequence space: payload, SYN and FIN (RFC 9293 §3.3.1).
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

    /// Return the IP ID if it distinguishes packets: Linux sends 0 in packets that belong to no socket.
    #[inline]
    pub fn id(&self) -> Option<u32> {
        (self.ip_id != 0 && self.ip_id != NO_IP_ID).then_some(self.ip_id)
    }

    /// Return true if two sightings of an ACK without an ID may be the same, judging by fields that change with every
    /// ACK.
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

    /// Return true for a bare ACK without an IP ID: only its contents distinguish it from other ACKs with the same
    /// number.
    #[inline]
    pub fn is_bare_ack(&self) -> bool {
        self.has(ACK) && self.sequence_len() == 0 && self.id().is_none()
    }

    /// Hash of such an ACK's contents.
    pub fn said(&self, seed: &Seed) -> u64 {
        let start = words(self.ack, self.window.into());
        self.sack_blocks().iter().fold(start, |sum, block| {
            seed.hash(sum, words(block.0, block.1), 6)
        })
    }

    fn sack_blocks(&self) -> &[(u32, u32)] {
        self.options.as_deref().map_or(&[], Options::sack_blocks)
    }

    /// Return the flag bits that no router has a reason to change.
    #[inline]
    pub fn kind(&self) -> u16 {
        self.flags & (SYN | FIN | RST | ACK)
    }

    /// Shift the sequence number, and the numbers that refer to the other end's data.
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

    /// Return true if two ranges of sequence space overlap.
    #[inline]
    pub fn overlaps(&self, other: &Sighting) -> bool {
        self.start().is_before(other.end()) && other.start().is_before(self.end())
    }
}
