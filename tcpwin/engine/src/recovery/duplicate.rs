//! Exact duplicates made by the capture itself: one packet seen twice at mirror ports, bridges or several interfaces.
//!
//! A packet is a duplicate when another with the same IP identification and the same TCP header was seen within 1 ms.
//! A host never sends the same identification twice so soon; without one (IPv6, or zero) only data can be judged, since
//! two duplicate ACKs may look alike.

use crate::wire::{Segment, FIN, NO_IP_ID, SYN};

const RECENT: usize = 128;
const WITHIN_NS: i64 = 1_000_000;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Identity {
    connection: u32,
    ip_id: u32,
    seq: u32,
    ack: u32,
    payload_len: u32,
    flags_and_window: u32,
    tsval: u32,
    checksum: u16,
    side: u8,
}

/// The last packets over all connections, newest last.
pub struct RecentPackets {
    ring: [(Identity, i64); RECENT],
    next: usize,
}

impl RecentPackets {
    pub fn new() -> Self {
        RecentPackets { ring: [(Identity::default(), i64::MIN); RECENT], next: 0 }
    }

    #[inline]
    fn identity(connection: u32, side: usize, segment: &Segment) -> Identity {
        Identity {
            connection,
            ip_id: segment.ip_id,
            seq: segment.seq,
            ack: segment.ack,
            payload_len: segment.payload_len,
            flags_and_window: u32::from(segment.flags) << 16 | u32::from(segment.window),
            tsval: segment.options.timestamps.map_or(0, |(value, _)| value),
            checksum: segment.checksum,
            side: side as u8,
        }
    }

    #[inline]
    pub fn push(&mut self, connection: u32, side: usize, segment: &Segment) {
        self.ring[self.next] = (Self::identity(connection, side, segment), segment.time_ns);
        self.next = (self.next + 1) % RECENT;
    }

    /// Whether the segment was seen already; to be asked before it is pushed.
    #[cold]
    pub fn holds(&self, connection: u32, side: usize, segment: &Segment) -> bool {
        let has_id = segment.ip_id != NO_IP_ID && segment.ip_id != 0;
        if !has_id && segment.payload_len == 0 && segment.flags & (SYN | FIN) == 0 {
            return false;
        }
        let wanted = Self::identity(connection, side, segment);
        for back in 1..=RECENT {
            let (identity, time_ns) = &self.ring[(self.next + RECENT - back) % RECENT];
            if *time_ns == i64::MIN || segment.time_ns.saturating_sub(*time_ns) > WITHIN_NS {
                return false;
            }
            if *identity == wanted && segment.time_ns >= *time_ns {
                return true;
            }
        }
        false
    }
}

impl Default for RecentPackets {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ACK;

    fn segment(time_ns: i64, ip_id: u32, payload_len: u32) -> Segment {
        Segment { time_ns, ip_id, payload_len, flags: ACK, seq: 7, ack: 9, ..Segment::EMPTY }
    }

    #[test]
    fn same_identification_within_a_millisecond() {
        let mut recent = RecentPackets::new();
        recent.push(0, 0, &segment(0, 77, 0));
        recent.push(1, 0, &segment(10, 5, 0));
        assert!(recent.holds(0, 0, &segment(900_000, 77, 0)));
        assert!(!recent.holds(0, 0, &segment(1_000_001, 77, 0)), "too late");
        assert!(!recent.holds(0, 0, &segment(20, 78, 0)), "another identification");
        assert!(!recent.holds(0, 1, &segment(20, 77, 0)), "the other direction");
    }

    #[test]
    fn without_identification_only_data_is_judged() {
        let mut recent = RecentPackets::new();
        for payload_len in [0, 100] {
            recent.push(0, 0, &segment(0, NO_IP_ID, payload_len));
        }
        assert!(!recent.holds(0, 0, &segment(5, NO_IP_ID, 0)));
        assert!(recent.holds(0, 0, &segment(5, NO_IP_ID, 100)));
    }
}
