//! The flow table maps a four-tuple to its newest connection. It uses open addressing over eight-byte slots; the keys
//! stay in the connections.
//!
//! Each capture gets a random hash seed, so that a hostile capture cannot cause collisions. The hash is symmetric in
//! the two endpoints, so that both directions of a connection share a slot.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::state::{address_halves, Endpoint};
use crate::wire::Segment;

const INITIAL_SLOTS: usize = 1024;

pub struct FlowTable {
    /// Low half: connection index plus one (0 if free). High half: the tag, which determines the position.
    slots: Vec<u64>,
    used: usize,
    tags: Tags,
}

/// Hashes four-tuples.
#[derive(Clone, Copy)]
pub struct Tags {
    seed: [u64; 4],
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Tags {
    pub fn new() -> Self {
        let random = RandomState::new();
        Tags {
            seed: [0u64, 1, 2, 3].map(|n| random.hash_one(n) | 1),
        }
    }

    #[inline]
    fn hash_endpoint(&self, address: &[u8; 16], port: u16) -> u64 {
        let [low, high] = address_halves(address);
        fold(
            low ^ self.seed[0],
            high ^ self.seed[1].wrapping_add(u64::from(port) << 17),
        )
    }

    /// Return the tag of a segment's four-tuple, the same for both directions.
    #[inline]
    pub fn tag(&self, segment: &Segment) -> u32 {
        self.join(
            self.hash_endpoint(&segment.src, segment.src_port),
            self.hash_endpoint(&segment.dst, segment.dst_port),
        )
    }

    /// Return the tag of a connection's segments.
    pub fn tag_of(&self, endpoints: &[Endpoint; 2]) -> u32 {
        let [one, other] = endpoints.map(|end| self.hash_endpoint(&end.address, end.port));
        self.join(one, other)
    }

    #[inline(always)]
    fn join(&self, one: u64, other: u64) -> u32 {
        (fold(one.wrapping_add(other) ^ self.seed[2], self.seed[3]) >> 16) as u32
    }
}

impl Default for Tags {
    fn default() -> Self {
        Self::new()
    }
}

impl FlowTable {
    pub fn new(tags: Tags) -> Self {
        FlowTable {
            slots: vec![0; INITIAL_SLOTS],
            used: 0,
            tags,
        }
    }

    pub fn tags(&self) -> Tags {
        self.tags
    }

    #[inline]
    pub fn tag(&self, segment: &Segment) -> u32 {
        self.tags.tag(segment)
    }

    pub fn tag_of(&self, endpoints: &[Endpoint; 2]) -> u32 {
        self.tags.tag_of(endpoints)
    }

    /// Return the first connection with this tag, which is nearly always the only one.
    #[inline(always)]
    pub fn first(&self, tag: u32) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut position = tag as usize & mask;
        loop {
            let slot = *self.slots.get(position)?;
            if (slot >> 32) as u32 == tag && slot != 0 {
                return Some((slot as u32).wrapping_sub(1));
            }
            if slot == 0 {
                return None;
            }
            position = (position + 1) & mask;
        }
    }

    /// Return the connection with this tag for which `is_same` is true.
    #[inline]
    pub fn find(&self, tag: u32, mut is_same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut position = tag as usize & mask;
        loop {
            let slot = self.slots[position];
            if slot == 0 {
                return None;
            }
            let index = (slot as u32).wrapping_sub(1);
            if (slot >> 32) as u32 == tag && is_same(index) {
                return Some(index);
            }
            position = (position + 1) & mask;
        }
    }

    pub fn insert(&mut self, tag: u32, index: u32) {
        if self.used * 3 >= self.slots.len() * 2 {
            self.grow();
        }
        Self::place(
            &mut self.slots,
            (u64::from(tag) << 32) | (u64::from(index) + 1),
        );
        self.used += 1;
    }

    /// Replace `old` by `new`, a later connection with the same four-tuple.
    pub fn replace(&mut self, tag: u32, old: u32, new: u32) {
        let mask = self.slots.len() - 1;
        let wanted = (u64::from(tag) << 32) | (u64::from(old) + 1);
        let mut position = tag as usize & mask;
        while self.slots[position] != 0 {
            if self.slots[position] == wanted {
                self.slots[position] = (u64::from(tag) << 32) | (u64::from(new) + 1);
                return;
            }
            position = (position + 1) & mask;
        }
    }

    fn place(slots: &mut [u64], slot: u64) {
        let mask = slots.len() - 1;
        let mut position = (slot >> 32) as usize & mask;
        while slots[position] != 0 {
            position = (position + 1) & mask;
        }
        slots[position] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = vec![0; self.slots.len() * 2];
        for slot in self.slots.iter().copied().filter(|slot| *slot != 0) {
            Self::place(&mut larger, slot);
        }
        self.slots = larger;
    }
}

impl Default for FlowTable {
    fn default() -> Self {
        Self::new(Tags::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32, reversed: bool) -> Segment {
        let mut segment = Segment::EMPTY;
        segment.src[12..].copy_from_slice(&number.to_be_bytes());
        segment.dst[15] = 1;
        (segment.src_port, segment.dst_port) = (40_000, 80);
        if reversed {
            (segment.src, segment.dst) = (segment.dst, segment.src);
            (segment.src_port, segment.dst_port) = (segment.dst_port, segment.src_port);
        }
        segment
    }

    #[test]
    fn both_directions_meet_and_growth_keeps_all() {
        let mut table = FlowTable::default();
        let count = 50_000u32;
        for number in 0..count {
            table.insert(table.tag(&segment(number, false)), number);
        }
        for number in 0..count {
            let tag = table.tag(&segment(number, true));
            assert_eq!(table.find(tag, |index| index == number), Some(number));
        }
        let tag = table.tag(&segment(7, false));
        table.replace(tag, 7, 99_999);
        assert_eq!(table.find(tag, |index| index == 99_999), Some(99_999));
        assert_eq!(table.find(tag, |index| index == 7), None);
    }

    #[test]
    fn ports_are_not_interchangeable_between_endpoints() {
        let table = FlowTable::default();
        let one = segment(9, false);
        let connection = super::super::state::Connection::new(&one, 0);
        assert_eq!(table.tag(&one), table.tag_of(&connection.endpoints));
        let mut other = one;
        (other.src_port, other.dst_port) = (other.dst_port, other.src_port);
        assert_ne!(table.tag(&one), table.tag(&other));
    }
}
