//! Duplicates made by the capture itself: one packet seen twice at mirror ports, bridges, several interfaces, or on both
//! sides of a router.
//!
//! A packet is a duplicate if another with the same IP ID and the same TCP header was seen within 1 ms, or within 50 ms
//! with a different TTL, since a router decrements it. A host never repeats an IP ID so soon. Without a usable IP ID
//! (IPv6, zero, or constant), only data can be judged if the TTL is the same, because two duplicate ACKs may look
//! alike.

use crate::wire::{Segment, FIN, NO_IP_ID, SYN};

/// Number of earlier segments searched for a duplicate.
pub const RECENT: usize = 64;
/// Maximum delay of a duplicate.
pub const WITHIN_NS: i64 = 1_000_000;
/// Maximum delay of a router.
pub const ROUTED_WITHIN_NS: i64 = 50_000_000;

/// How the capture came to contain a segment twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    Not,
    /// By a mirror, a bridge or another interface.
    Mirrored,
    /// Before a router and behind it.
    Routed,
}

fn is_same(one: &Segment, other: &Segment) -> bool {
    one.ip_id == other.ip_id
        && one.seq == other.seq
        && one.ack == other.ack
        && one.payload_len == other.payload_len
        && one.flags == other.flags
        && one.window == other.window
        && one.checksum == other.checksum
        && one.options.timestamps == other.options.timestamps
        && is_same_way(one, other)
}

fn is_same_way(one: &Segment, other: &Segment) -> bool {
    (one.src_port, one.dst_port) == (other.src_port, other.dst_port)
        && (one.src, one.dst) == (other.src, other.dst)
}

/// Return true if the IP identification is unique among the sender's segments.
fn has_unique_id<'a>(segment: &Segment, mut before: impl Iterator<Item = &'a Segment>) -> bool {
    let is_another = |earlier: &Segment| {
        earlier.ip_id == segment.ip_id
            && is_same_way(earlier, segment)
            && (earlier.seq, earlier.ack, earlier.payload_len)
                != (segment.seq, segment.ack, segment.payload_len)
    };
    segment.ip_id != NO_IP_ID && segment.ip_id != 0 && !before.any(is_another)
}

/// Search the segments before it, newest first, for a copy of a segment.
#[cold]
pub fn find_copy<'a>(
    segment: &Segment,
    before: impl Iterator<Item = &'a Segment> + Clone,
) -> Copied {
    let may_look_alike = segment.payload_len == 0 && segment.flags & (SYN | FIN) == 0;
    let copied = before.clone().take(RECENT).find_map(|earlier| {
        let elapsed_ns = segment.time_ns.checked_sub(earlier.time_ns)?;
        if elapsed_ns < 0 || !is_same(segment, earlier) {
            return None;
        }
        if segment.ttl != earlier.ttl && elapsed_ns <= ROUTED_WITHIN_NS {
            return Some(Copied::Routed);
        }
        (elapsed_ns <= WITHIN_NS).then_some(Copied::Mirrored)
    });
    match copied {
        Some(Copied::Mirrored) if may_look_alike && !has_unique_id(segment, before) => Copied::Not,
        copied => copied.unwrap_or(Copied::Not),
    }
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
        let found = |segment: &Segment| find_copy(segment, before.iter());
        assert_eq!(found(&segment(900_000, 77, 0)), Copied::Mirrored);
        assert_eq!(found(&segment(1_000_001, 77, 0)), Copied::Not, "too late");
        assert_eq!(
            found(&segment(20, 78, 0)),
            Copied::Not,
            "another identification"
        );
        let other_way = Segment {
            src_port: 1,
            ..segment(20, 77, 0)
        };
        assert_eq!(found(&other_way), Copied::Not, "another connection");
    }

    #[test]
    fn behind_a_router_within_fifty_milliseconds() {
        for ip_id in [77, 0, NO_IP_ID] {
            let before = [Segment {
                ttl: 64,
                ..segment(0, ip_id, 0)
            }];
            let behind = |time_ns, ttl| {
                let copy = Segment {
                    ttl,
                    ..segment(time_ns, ip_id, 0)
                };
                find_copy(&copy, before.iter())
            };
            assert_eq!(behind(50_000_000, 63), Copied::Routed);
            assert_eq!(behind(50_000_001, 63), Copied::Not, "too late");
            assert_eq!(behind(2_000_000, 64), Copied::Not, "no router");
        }
    }

    /// A host that sends a constant IP ID: its duplicate ACKs look alike.
    #[test]
    fn a_constant_identification_shows_nothing() {
        let other = Segment {
            seq: 1,
            ..segment(0, 77, 0)
        };
        let before = [segment(5, 77, 0), other];
        assert_eq!(find_copy(&segment(10, 77, 0), before.iter()), Copied::Not);
    }

    #[test]
    fn without_identification_only_data_is_judged() {
        let before = [segment(0, NO_IP_ID, 100), segment(0, NO_IP_ID, 0)];
        let found = |segment: &Segment| find_copy(segment, before.iter());
        assert_eq!(found(&segment(5, NO_IP_ID, 0)), Copied::Not);
        assert_eq!(found(&segment(5, NO_IP_ID, 100)), Copied::Mirrored);
    }
}
