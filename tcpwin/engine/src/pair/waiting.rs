//! Packets that one capture showed and the other has not shown yet.
//!
//! Each is found by a hash of what the way does not change, stands in the order of its way at its point, and in the
//! order of all packets of its capture, so that the oldest can be given up. Nothing else is kept of packets.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::packet::{Side, Sighting};

/// Of those that wait on one way, so many of the newest are looked at for one packet: more are no flight, but a capture
/// that lacks the rest.
pub const MOST_LOOKED_AT: usize = 4_096;

/// No entry.
pub const NONE: u32 = u32::MAX;

/// A packet that waits for its other sighting.
#[derive(Debug)]
pub struct Waiting {
    pub packet: Sighting,
    pub side: Side,
    /// The way's number: the connection's times two, and one for the second direction.
    pub direction: u32,
    pub mark: Mark,
    key: u64,
    same_links: Links,
    way_links: Links,
    side_links: Links,
    /// Counts up whenever the place is reused.
    age: u32,
    is_free: bool,
}

/// What is known of a packet that the other capture lacks so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// The epoch in which it left.
    pub epoch: u32,
    /// How long the other capture had been read for as it was taken.
    pub other_run_ns: i64,
    /// It acknowledges more than its way's packets before it in the same capture.
    pub has_new_ack: bool,
    /// One that left later has arrived.
    pub is_overtaken: bool,
    /// How long the newest packet had taken that came before it was overtaken, as far less near time, the packets
    /// paired by then, and its epoch.
    pub apart_before: Option<(i64, u64, u32)>,
    /// Carries bytes that were sent before.
    pub is_resend: bool,
    /// Bytes of it were sent again.
    pub is_copied: bool,
    /// A later copy of it has come.
    pub is_replaced: bool,
    /// All copies sent before were shown to be lost.
    pub others_were_lost: bool,
    /// The receiver said that it lacked bytes of it after it should have come.
    pub has_hole: bool,
    /// A duplicate SACK told of its bytes.
    pub has_dsack: bool,
    /// Its bytes were acknowledged when nothing else can have brought them.
    pub has_come: bool,
    /// Of one that is sent again: the newest copy before that had not come when it left.
    pub copy_before: Option<(u32, u32)>,
    /// That copy was given up meanwhile: its frame.
    pub lost_before: u64,
    /// That copy may have come while the far capture was not running.
    pub copy_is_outside: bool,
    /// Of one that is sent again: the receiver had its bytes as it left, and lacked its first byte.
    pub was_covered: bool,
    pub was_lacking: bool,
    /// The copy before had come by then, and an ACK that left since did not tell of it.
    pub copy_was_refused: bool,
    /// Of one that is sent again: ACKs of its bytes were lost before it left.
    pub ack_was_lost: bool,
    /// Why it was sent again was told with its first part.
    pub is_judged: bool,
    /// Its place in the sender's count of IP ids, where the near capture lacks it.
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

/// First and last of a list.
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

/// Keys are hashes already.
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

/// All packets that wait.
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

    /// The entry and its age, by which a later look finds whether it is still the same.
    pub fn handle(&self, at: u32) -> (u32, u32) {
        (at, self.get(at).age)
    }

    pub fn is_there(&self, (at, age): (u32, u32)) -> bool {
        let entry = self.get(at);
        !entry.is_free && entry.age == age
    }

    /// The first of those with a key.
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

    /// The oldest packet of a capture.
    #[inline]
    pub fn oldest(&self, side: Side) -> u32 {
        self.sides[side.index()].first
    }

    /// Most packets that ever waited together.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Add a packet as the newest of its way.
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

    /// Take a packet out.
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
    fn packets_of_one_key_come_in_their_order_whichever_leaves() {
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
    fn a_place_that_is_used_again_is_another_packet() {
        let (mut pending, mut list) = (PendingSlots::new(), List::EMPTY);
        let at = pending.add(1, 0, Side::A, packet(1), Mark::default(), &mut list);
        let handle = pending.handle(at);
        pending.remove(at, &mut list);
        assert!(!pending.is_there(handle));
        let again = pending.add(2, 0, Side::B, packet(2), Mark::default(), &mut list);
        assert_eq!(again, at);
        assert!(!pending.is_there(handle) && pending.is_there(pending.handle(again)));
        assert_eq!(pending.find(1), NONE);
        assert_eq!(
            (pending.oldest(Side::A), pending.oldest(Side::B)),
            (NONE, again)
        );
        assert_eq!(pending.most(), 1);
    }
}
