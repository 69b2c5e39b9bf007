//! Finds copies captured behind a router, which may follow hundreds of segments later.
//!
//! A copied SYN, or an early copy, shows which connections have copies. Only the newest segments of these are kept.

use std::collections::HashMap;

use crate::tcp::recovery::duplicate::{Copied, ROUTED_WITHIN_NS};
use crate::wire::{Segment, SYN};

/// Number of SYNs kept: as many as a busy capture has in 50 ms.
const SYNS: usize = 1024;

/// Fields that a segment and its copy share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    tag: u32,
    ports: (u16, u16),
    ip_id: u32,
    seq: u32,
    ack: u32,
    payload_len: u32,
    flags: u16,
    window: u16,
    checksum: u16,
    timestamps: Option<(u32, u32)>,
}

impl Key {
    fn new(segment: &Segment, tag: u32) -> Self {
        Key {
            tag,
            ports: (segment.src_port, segment.dst_port),
            ip_id: segment.ip_id,
            seq: segment.seq,
            ack: segment.ack,
            payload_len: segment.payload_len,
            flags: segment.flags,
            window: segment.window,
            checksum: segment.checksum,
            timestamps: segment.options.timestamps,
        }
    }
}

/// Time and interface of a segment's last sighting.
#[derive(Clone, Copy, Debug)]
struct Place {
    time_ns: i64,
    ttl: u8,
}

impl Place {
    fn of(segment: &Segment) -> Self {
        Place {
            time_ns: segment.time_ns,
            ttl: segment.ttl,
        }
    }

    fn is_before_router(&self, copy: &Segment) -> bool {
        let elapsed_ns = copy.time_ns.saturating_sub(self.time_ns);
        (0..=ROUTED_WITHIN_NS).contains(&elapsed_ns) && self.ttl != copy.ttl
    }
}

/// The newest SYNs of a capture: their copies show which connections were captured on both sides of a router.
#[derive(Default)]
pub struct SynCopies {
    /// Indexed by their sequence numbers.
    syns: Vec<Option<(Key, Place)>>,
}

impl SynCopies {
    /// Note a SYN before it is tracked. Return true if it is a copy.
    #[cold]
    pub fn note(&mut self, segment: &Segment, tag: u32) -> bool {
        if self.syns.is_empty() {
            self.syns.resize(SYNS, None);
        }
        let key = Key::new(segment, tag);
        let Some(place) = self.syns.get_mut((segment.seq ^ tag) as usize % SYNS) else {
            return false;
        };
        match place {
            Some((known, before)) if *known == key && before.is_before_router(segment) => true,
            place => {
                *place = Some((key, Place::of(segment)));
                false
            }
        }
    }
}

/// The newest segments of one connection: of the last 50 ms, and of the 50 ms before.
#[derive(Default)]
struct Newest {
    newest: HashMap<Key, Place>,
    older: HashMap<Key, Place>,
    since_ns: i64,
}

/// Segments of connections that were captured on both sides of a router.
#[derive(Default)]
pub struct RoutedCopies {
    by_tag: HashMap<u32, Newest>,
}

impl RoutedCopies {
    /// Note that the connection with this tag has copies.
    #[cold]
    pub fn begin(&mut self, tag: u32) {
        self.by_tag.entry(tag).or_default();
    }

    #[inline(always)]
    pub fn has_any(&self) -> bool {
        !self.by_tag.is_empty()
    }

    /// Return true if a segment with this tag is a copy; `found`: the result of comparing it with the last segments.
    #[cold]
    pub fn judge(&mut self, segment: &Segment, tag: u32, found: Copied) -> bool {
        if found == Copied::Routed {
            self.begin(tag);
        }
        if found != Copied::Not {
            return true;
        }
        let key = Key::new(segment, tag);
        let before = self
            .by_tag
            .get(&tag)
            .and_then(|kept| kept.newest.get(&key).or_else(|| kept.older.get(&key)));
        before.is_some_and(|before| before.is_before_router(segment))
    }

    /// Keep a segment that is not a copy.
    #[cold]
    pub fn note(&mut self, segment: &Segment, tag: u32) {
        let Some(kept) = self.by_tag.get_mut(&tag) else {
            return;
        };
        let elapsed_ns = segment.time_ns.saturating_sub(kept.since_ns);
        if !(0..=ROUTED_WITHIN_NS).contains(&elapsed_ns) {
            kept.older = std::mem::take(&mut kept.newest);
            kept.since_ns = segment.time_ns;
        }
        kept.newest
            .insert(Key::new(segment, tag), Place::of(segment));
    }
}

/// Return true if a segment alone may reveal a router.
#[inline(always)]
pub fn may_be_routed(segment: &Segment) -> bool {
    segment.flags & SYN != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ACK;

    fn segment(time_ns: i64, seq: u32, flags: u16, ttl: u8) -> Segment {
        Segment {
            time_ns,
            seq,
            flags,
            ttl,
            ..Segment::EMPTY
        }
    }

    #[test]
    fn a_copied_syn_lets_later_copies_be_found_by_time() {
        let mut syns = SynCopies::default();
        let mut copies = RoutedCopies::default();
        assert!(!syns.note(&segment(0, 1, SYN, 64), 9));
        assert!(syns.note(&segment(5_000_000, 1, SYN, 63), 9));
        copies.begin(9);
        assert!(copies.has_any());
        for seq in 0..1000 {
            copies.note(&segment(10_000_000, seq, ACK, 64), 9);
        }
        let mut judge = |copy: &Segment| copies.judge(copy, 9, Copied::Not);
        assert!(judge(&segment(60_000_000, 3, ACK, 63)));
        assert!(!judge(&segment(60_000_001, 3, ACK, 63)), "too late");
        assert!(!judge(&segment(11_000_000, 3, ACK, 64)), "sent again");
        assert!(!judge(&segment(11_000_000, 5_000, ACK, 63)), "another");
    }

    #[test]
    fn a_retransmitted_syn_is_not_a_copy() {
        let mut syns = SynCopies::default();
        for (time_ns, ttl) in [(0, 64), (5_000_000, 64), (1_005_000_000, 63)] {
            assert!(!syns.note(&segment(time_ns, 1, SYN, ttl), 9));
        }
    }

    #[test]
    fn old_segments_are_forgotten() {
        let mut copies = RoutedCopies::default();
        copies.judge(&segment(0, 1, SYN, 63), 9, Copied::Routed);
        for step in 0..100 {
            copies.note(&segment(step * 30_000_000, step as u32, ACK, 64), 9);
        }
        let kept = copies.by_tag.get(&9).expect("kept");
        assert!(kept.newest.len() + kept.older.len() <= 4);
    }
}
