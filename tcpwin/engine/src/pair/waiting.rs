//! Packets that one capture has shown and the other has not shown yet.
//!
//! Each is found by a hash of its invariant fields. It is linked in the order of its direction at its point, and in the
//! order of all packets of its capture, so that the oldest can be given up. No other packet data is stored.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::packet::{Side, Sighting};

/// No entry.
pub const NONE: u32 = u32::MAX;

/// A packet that waits for its other sighting.
#[derive(Debug)]
pub struct Waiting {
    pub packet: Sighting,
    pub side: Side,
    /// Number of the direction: twice the connection's number, plus one for the second direction.
    pub direction: u32,
    pub mark: Mark,
    key: u64,
    same_links: Links,
    way_links: Links,
    side_links: Links,
    /// Incremented whenever the slot is reused.
    age: u32,
    is_free: bool,
}

/// Knowledge about a packet that the other capture has not shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// The epoch in which it left.
    pub epoch: u32,
    /// Time covered by the other capture when the packet was stored.
    pub other_run_ns: i64,
    /// Whether it acknowledges more than earlier packets of its direction in the same capture.
    pub has_new_ack: bool,
    /// Whether a packet that left later has arrived.
    pub is_overtaken: bool,
    /// Delay of the newest packet that arrived before this one was overtaken: far minus near time, number of packets
    /// paired by then, and epoch.
    pub apart_before: Option<(i64, u64, u32)>,
    /// Whether it contains bytes that were sent before.
    pub is_resend: bool,
    /// Whether some of its bytes were retransmitted.
    pub is_copied: bool,
    /// Whether a later copy of it has arrived.
    pub is_replaced: bool,
    /// Whether all previous copies were shown to be lost.
    pub others_were_lost: bool,
    /// Whether the receiver reported some of its bytes missing after it should have arrived.
    pub has_hole: bool,
    /// Whether the receiver has reported all of its bytes since it was overtaken.
    pub is_reported: bool,
    /// Whether a DSACK reported its bytes.
    pub has_dsack: bool,
    /// Whether its bytes were acknowledged when no other packet can have delivered them.
    pub has_arrived: bool,
    /// For a retransmission: the newest previous copy that had not arrived when it left.
    pub copy_before: Option<(u32, u32)>,
    /// Frame of that copy, if it has been given up since.
    pub lost_before: u64,
    /// Whether that copy may have arrived while the far capture was not running.
    pub copy_is_outside: bool,
    /// For a retransmission: whether the receiver had its bytes, or lacked its first byte, when it left.
    pub was_covered: bool,
    pub was_lacking: bool,
    /// Whether the previous copy had arrived by then, and an ACK that has left since did not report it.
    pub copy_was_refused: bool,
    /// For a retransmission: whether ACKs of its bytes were lost before it left.
    pub ack_was_lost: bool,
    /// Whether the cause was determined with its first part.
    pub is_judged: bool,
    /// Its position in the sender's IP ID sequence, if the near capture lacks it.
    pub id_place: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

const UNLINKED: Links = Links {
    before: NONE,
    after: NONE,
};

/// First and last entry of a list.
#[derive(Clone, Copy, Debug)]
pub struct List {
    pub first: u32,
    pub last: u32,
}

impl List {
    pub const EMPTY: List = List {
        first: NONE,
        last: NONE,
    };
}

/// Pass-through hasher: keys are already hashes.
#[derive(Default)]
pub struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

pub type ByKey<T> = HashMap<u64, T, BuildHasherDefault<Ready>>;

/// All waiting packets.
pub struct PendingSlots {
    entries: Vec<Waiting>,
    free: Vec<u32>,
    by_key: ByKey<List>,
    sides: [List; 2],
    most: usize,
}

impl PendingSlots {
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_key: ByKey::default(),
            sides: [List::EMPTY; 2],
            most: 0,
        }
    }

    #[inline]
    pub fn get(&self, at: u32) -> &Waiting {
        &self.entries[at as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Waiting {
        &mut self.entries[at as usize]
    }

    /// Return the entry and its age, which show later whether it is still the same packet.
    pub fn handle(&self, at: u32) -> (u32, u32) {
        (at, self.get(at).age)
    }

    pub fn contains(&self, (at, age): (u32, u32)) -> bool {
        let entry = self.get(at);
        !entry.is_free && entry.age == age
    }

    /// Return the first entry with a key.
    #[inline]
    pub fn find(&self, key: u64) -> u32 {
        self.by_key.get(&key).map_or(NONE, |list| list.first)
    }

    #[inline]
    pub fn next_same(&self, at: u32) -> u32 {
        self.get(at).same_links.after
    }

    #[inline]
    pub fn next_in_direction(&self, at: u32) -> u32 {
        self.get(at).way_links.after
    }

    #[inline]
    pub fn previous_in_direction(&self, at: u32) -> u32 {
        self.get(at).way_links.before
    }

    /// Return the oldest packet of a capture.
    #[inline]
    pub fn oldest(&self, side: Side) -> u32 {
        self.sides[side.index()].first
    }

    /// Return the peak number of waiting packets.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Add a packet as the newest of its direction.
    pub fn add(
        &mut self,
        key: u64,
        direction: u32,
        side: Side,
        packet: Sighting,
        mark: Mark,
        list: &mut List,
    ) -> u32 {
        let entry = Waiting {
            packet,
            side,
            direction,
            mark,
            key,
            same_links: UNLINKED,
            way_links: Links {
                before: list.last,
                after: NONE,
            },
            side_links: UNLINKED,
            age: 0,
            is_free: false,
        };
        let at = match self.free.pop() {
            Some(at) => {
                let place = &mut self.entries[at as usize];
                let age = place.age.wrapping_add(1);
                *place = Waiting { age, ..entry };
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        match list.last {
            NONE => list.first = at,
            last => self.get_mut(last).way_links.after = at,
        }
        list.last = at;
        let last = self.sides[side.index()].last;
        self.get_mut(at).side_links.before = last;
        match last {
            NONE => self.sides[side.index()].first = at,
            last => self.get_mut(last).side_links.after = at,
        }
        self.sides[side.index()].last = at;
        self.add_key(key, at);
        self.most = self.most.max(self.entries.len() - self.free.len());
        at
    }

    #[inline]
    fn add_key(&mut self, key: u64, at: u32) {
        let alone = List {
            first: at,
            last: at,
        };
        let list = self.by_key.entry(key).or_insert(alone);
        let last = list.last;
        if last != at {
            list.last = at;
            self.get_mut(last).same_links.after = at;
            self.get_mut(at).same_links.before = last;
        }
    }

    /// Remove a packet.
    pub fn remove(&mut self, at: u32, list: &mut List) -> (Sighting, Mark) {
        self.remove_key(at);
        let links = self.get(at).way_links;
        match links.before {
            NONE => list.first = links.after,
            before => self.get_mut(before).way_links.after = links.after,
        }
        match links.after {
            NONE => list.last = links.before,
            after => self.get_mut(after).way_links.before = links.before,
        }
        let (side, links) = (self.get(at).side.index(), self.get(at).side_links);
        match links.before {
            NONE => self.sides[side].first = links.after,
            before => self.get_mut(before).side_links.after = links.after,
        }
        match links.after {
            NONE => self.sides[side].last = links.before,
            after => self.get_mut(after).side_links.before = links.before,
        }
        self.free.push(at);
        let entry = self.get_mut(at);
        entry.is_free = true;
        entry.same_links = UNLINKED;
        let options = entry.packet.options.take();
        let packet = Sighting {
            options,
            ..entry.packet.clone()
        };
        (packet, entry.mark)
    }

    #[inline]
    fn remove_key(&mut self, at: u32) {
        let (key, links) = (self.get(at).key, self.get(at).same_links);
        if links.before == NONE && links.after == NONE {
            self.by_key.remove(&key);
            return;
        }
        match links.before {
            NONE => {}
            before => self.get_mut(before).same_links.after = links.after,
        }
        match links.after {
            NONE => {}
            after => self.get_mut(after).same_links.before = links.before,
        }
        if let Some(list) = self.by_key.get_mut(&key) {
            if list.first == at {
                list.first = links.after;
            }
            if list.last == at {
                list.last = links.before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Segment;

    fn packet(frame: u64) -> Sighting {
        let mut packet = Sighting::of(&Segment::EMPTY);
        packet.frame = frame;
        packet
    }

    fn frames(pending: &PendingSlots, key: u64) -> Vec<u64> {
        let mut at = pending.find(key);
        let mut found = Vec::new();
        while at != NONE {
            found.push(pending.get(at).packet.frame);
            at = pending.next_same(at);
        }
        found
    }

    #[test]
    fn packets_with_equal_keys_stay_in_order_after_removals() {
        for gone in 0..3 {
            let (mut pending, mut list) = (PendingSlots::new(), List::EMPTY);
            let at: Vec<u32> = (0..3)
                .map(|n| pending.add(7, 0, Side::A, packet(n), Mark::default(), &mut list))
                .collect();
            let (removed, _) = pending.remove(at[gone], &mut list);
            assert_eq!(removed.frame, gone as u64);
            let left: Vec<u64> = (0..3).filter(|n| *n != gone as u64).collect();
            assert_eq!(frames(&pending, 7), left);
            pending.add(7, 0, Side::A, packet(9), Mark::default(), &mut list);
            assert_eq!(frames(&pending, 7), [left[0], left[1], 9]);
        }
    }

    #[test]
    fn a_reused_slot_is_a_different_packet() {
        let (mut pending, mut list) = (PendingSlots::new(), List::EMPTY);
        let at = pending.add(1, 0, Side::A, packet(1), Mark::default(), &mut list);
        let handle = pending.handle(at);
        pending.remove(at, &mut list);
        assert!(!pending.contains(handle));
        let reused = pending.add(2, 0, Side::B, packet(2), Mark::default(), &mut list);
        assert_eq!(reused, at);
        assert!(!pending.contains(handle) && pending.contains(pending.handle(reused)));
        assert_eq!(pending.find(1), NONE);
        assert_eq!(
            (pending.oldest(Side::A), pending.oldest(Side::B)),
            (NONE, reused)
        );
        assert_eq!(pending.most(), 1);
    }
}
