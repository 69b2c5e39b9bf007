//! Exact duplicates made by the capture itself: one packet seen twice at mirror ports, bridges or several interfaces.
//!
//! A packet is a duplicate when another with the same IP identification and the same TCP header was seen within 1 ms.
//! A host never sends the same identification twice so soon; without one (IPv6, or zero) only data can be judged, since
//! two duplicate ACKs may look alike.

use crate::wire::{Segment, FIN, NO_IP_ID, SYN};

/// How far back a duplicate is looked for.
pub const RECENT: usize = 64;
/// How soon a duplicate follows.
pub const WITHIN_NS: i64 = 1_000_000;

fn is_same(one: &Segment, other: &Segment) -> bool {
    one.ip_id == other.ip_id
        && one.seq == other.seq
        && one.ack == other.ack
        && one.payload_len == other.payload_len
        && one.flags == other.flags
        && one.window == other.window
        && one.checksum == other.checksum
        && one.options.timestamps == other.options.timestamps
        && (one.src_port, one.dst_port) == (other.src_port, other.dst_port)
        && (one.src, one.dst) == (other.src, other.dst)
}

/// Whether a segment was seen already, among the segments before it, newest first.
#[cold]
pub fn is_duplicate<'a>(segment: &Segment, before: impl Iterator<Item = &'a Segment>) -> bool {
    let has_id = segment.ip_id != NO_IP_ID && segment.ip_id != 0;
    if !has_id && segment.payload_len == 0 && segment.flags & (SYN | FIN) == 0 {
        return false;
    }
    before
        .take(RECENT)
        .take_while(|earlier| segment.time_ns.saturating_sub(earlier.time_ns) <= WITHIN_NS)
        .any(|earlier| is_same(segment, earlier) && segment.time_ns >= earlier.time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ACK;

    fn segment(time_ns: i64, ip_id: u32, payload_len: u32) -> Segment {
        Segment {
            time_ns,
            ip_id,
            payload_len,
            flags: ACK,
            seq: 7,
            ack: 9,
            ..Segment::EMPTY
        }
    }

    #[test]
    fn same_identification_within_a_millisecond() {
        let before = [segment(10, 5, 0), segment(0, 77, 0)];
        assert!(is_duplicate(&segment(900_000, 77, 0), before.iter()));
        assert!(
            !is_duplicate(&segment(1_000_001, 77, 0), before.iter()),
            "too late"
        );
        assert!(
            !is_duplicate(&segment(20, 78, 0), before.iter()),
            "another identification"
        );
        let other_way = Segment {
            src_port: 1,
            ..segment(20, 77, 0)
        };
        assert!(
            !is_duplicate(&other_way, before.iter()),
            "another connection"
        );
    }

    #[test]
    fn without_identification_only_data_is_judged() {
        let before = [segment(0, NO_IP_ID, 100), segment(0, NO_IP_ID, 0)];
        assert!(!is_duplicate(&segment(5, NO_IP_ID, 0), before.iter()));
        assert!(is_duplicate(&segment(5, NO_IP_ID, 100), before.iter()));
    }
}
