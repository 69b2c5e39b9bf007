//! IP fragments: which frame yields the segment, and when none does.

use super::build::*;
use crate::capture::Packet;
use crate::wire::{capture_flag, Options, Outcome, ParseCounters, Segment, SegmentParser};

/// A TCP header with a window scale option and 68 bytes of payload: 92 bytes in all.
fn datagram() -> Vec<u8> {
    let mut bytes = join(&[&inner_tcp()[..20], &[3, 3, 7, 1], &[b'x'; 68]]);
    bytes[12] = 0x60;
    bytes
}

fn expected() -> Segment {
    Segment {
        src: crate::wire::fast::mapped([192, 0, 2, 1]),
        dst: crate::wire::fast::mapped([192, 0, 2, 2]),
        payload_len: 68,
        ip_id: 9,
        ttl: 33,
        capture_flags: capture_flag::FRAGMENTED,
        options: Options {
            window_scale: Some(7),
            ..Options::default()
        },
        ..inner_v4_segment()
    }
}

/// Bytes [start, end) of a TCP datagram with identification 9; more-fragments is clear if they reach its end.
fn piece(bytes: &[u8], start: usize, end: usize) -> Vec<u8> {
    ipv4_fragment(6, 9, start as u16, end < bytes.len(), &bytes[start..end])
}

struct Run {
    parser: SegmentParser,
    segment: Segment,
}

impl Run {
    fn new() -> Self {
        Run {
            parser: SegmentParser::new(),
            segment: Segment::EMPTY,
        }
    }

    fn at(&mut self, seconds: i64, bytes: &[u8]) -> Outcome {
        let time_ns = Some(TIME_NS + seconds * 1_000_000_000);
        self.parser.parse(
            &Packet {
                time_ns,
                ..packet(RAW_IP, bytes)
            },
            0,
            &mut self.segment,
        )
    }

    fn now(&mut self, bytes: &[u8]) -> Outcome {
        self.at(0, bytes)
    }

    fn counters(&self) -> ParseCounters {
        self.parser.counters()
    }
}

#[test]
fn the_completing_frame_is_the_segment_in_any_order() {
    let d = datagram();
    let pieces = [piece(&d, 0, 24), piece(&d, 24, 64), piece(&d, 64, 92)];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut run = Run::new();
        assert_eq!(run.now(&pieces[order[0]]), Outcome::FragmentPending);
        assert_eq!(run.now(&pieces[order[1]]), Outcome::FragmentPending);
        assert_eq!(run.now(&pieces[order[2]]), Outcome::Segment, "{order:?}");
        assert_eq!(run.segment, expected(), "{order:?}");
        assert_eq!(run.counters().datagrams_incomplete, 0);
    }
}

#[test]
fn a_header_split_over_tiny_fragments_is_reassembled() {
    let d = datagram();
    let mut run = Run::new();
    for start in (0..88).step_by(8) {
        assert_eq!(
            run.now(&piece(&d, start, start + 8)),
            Outcome::FragmentPending
        );
    }
    assert_eq!(run.now(&piece(&d, 88, 92)), Outcome::Segment);
    assert_eq!(run.segment, expected());
}

#[test]
fn repeated_fragments_change_nothing() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(run.now(&piece(&d, 0, 64)), Outcome::FragmentPending);
    assert_eq!(run.now(&piece(&d, 0, 64)), Outcome::FragmentPending);
    assert_eq!(run.now(&piece(&d, 64, 92)), Outcome::Segment);
    // A copy of the last one opens a new datagram, which stays incomplete.
    assert_eq!(run.now(&piece(&d, 64, 92)), Outcome::FragmentPending);
    assert_eq!(run.counters().segments, 1);
    assert_eq!(run.counters().datagrams_incomplete, 1);
}

#[test]
fn the_first_of_overlapping_fragments_wins() {
    let d = datagram();
    let mut forged = d.clone();
    forged[8..12].copy_from_slice(&[0xff; 4]);
    forged[16..18].copy_from_slice(&[0xff; 2]);
    let mut run = Run::new();
    assert_eq!(run.now(&piece(&d, 0, 16)), Outcome::FragmentPending);
    assert_eq!(run.now(&piece(&forged, 8, 32)), Outcome::FragmentPending);
    assert_eq!(run.now(&piece(&d, 32, 92)), Outcome::Segment);
    // Bytes 8 to 12, the acknowledgment, arrived first from the honest fragment; 16 and 17, the checksum, from the
    // other.
    assert_eq!(
        run.segment,
        Segment {
            checksum: 0xffff,
            ..expected()
        }
    );
}

#[test]
fn a_gap_keeps_the_datagram_open() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(run.now(&piece(&d, 0, 24)), Outcome::FragmentPending);
    assert_eq!(run.now(&piece(&d, 32, 92)), Outcome::FragmentPending);
    assert_eq!(run.counters().segments, 0);
    assert_eq!(run.counters().datagrams_incomplete, 1);
}

#[test]
fn identification_and_protocol_distinguish_datagrams() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(run.now(&piece(&d, 0, 64)), Outcome::FragmentPending);
    assert_eq!(
        run.now(&ipv4_fragment(6, 10, 64, false, &d[64..])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv4_fragment(47, 9, 64, false, &d[64..])),
        Outcome::FragmentPending
    );
    assert_eq!(run.now(&piece(&d, 64, 92)), Outcome::Segment);
}

#[test]
fn an_old_datagram_expires() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(run.at(0, &piece(&d, 0, 64)), Outcome::FragmentPending);
    assert_eq!(run.at(30, &piece(&d, 64, 92)), Outcome::Segment);
    assert_eq!(run.at(40, &piece(&d, 0, 64)), Outcome::FragmentPending);
    assert_eq!(run.at(71, &piece(&d, 64, 92)), Outcome::FragmentPending);
    assert_eq!(run.counters().datagrams_incomplete, 2);
}

#[test]
fn the_table_is_bounded_and_drops_the_oldest() {
    let d = datagram();
    let mut run = Run::new();
    for id in 0..1025 {
        assert_eq!(
            run.now(&ipv4_fragment(6, id, 0, true, &d[..64])),
            Outcome::FragmentPending
        );
    }
    assert_eq!(
        run.now(&ipv4_fragment(6, 0, 64, false, &d[64..])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv4_fragment(6, 1024, 64, false, &d[64..])),
        Outcome::Segment
    );
    // 0 was evicted by 1024, 1 by the second piece of 0; 1024 was completed.
    assert_eq!(run.counters().datagrams_incomplete, 1025);
}

#[test]
fn completed_datagrams_leave_no_entries_behind_an_open_one() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(run.now(&piece(&d, 0, 64)), Outcome::FragmentPending);
    for id in 100..10_100 {
        assert_eq!(
            run.now(&ipv4_fragment(6, id, 0, true, &d[..64])),
            Outcome::FragmentPending
        );
        assert_eq!(
            run.now(&ipv4_fragment(6, id, 64, false, &d[64..])),
            Outcome::Segment
        );
    }
    assert_eq!(run.now(&piece(&d, 64, 92)), Outcome::Segment);
}

#[test]
fn fragments_past_the_end_or_the_maximum_length_are_ignored() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(
        run.now(&ipv4_fragment(6, 9, 64, false, &d[64..])),
        Outcome::FragmentPending
    );
    // Bytes after the known end, an earlier end, and an end beyond 65,535.
    assert_eq!(
        run.now(&ipv4_fragment(6, 9, 96, true, &[0; 8])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv4_fragment(6, 9, 32, false, &[0; 8])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv4_fragment(6, 9, 65_528, false, &[0; 100])),
        Outcome::FragmentPending
    );
    assert_eq!(run.now(&piece(&d, 0, 64)), Outcome::Segment);
    assert_eq!(run.segment, expected());
}

#[test]
fn ipv6_fragments_yield_the_datagrams_segment() {
    let d = datagram();
    let mut run = Run::new();
    assert_eq!(
        run.now(&ipv6_fragment(6, 0xabcd_ef01, 40, false, &d[40..])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv6_fragment(6, 0xabcd_ef01, 0, true, &d[..40])),
        Outcome::Segment
    );
    let expected = Segment {
        src: v6_address(1),
        dst: v6_address(2),
        ip_id: 0xabcd_ef01,
        ip_version: 6,
        ttl: 64,
        ..expected()
    };
    assert_eq!(run.segment, expected);
}

#[test]
fn extension_headers_after_the_fragment_header_are_not_payload() {
    let d = join(&[&[6, 0, 1, 4, 0, 0, 0, 0], &datagram()]);
    let mut run = Run::new();
    assert_eq!(
        run.now(&ipv6_fragment(60, 1, 0, true, &d[..40])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv6_fragment(60, 1, 40, false, &d[40..])),
        Outcome::Segment
    );
    assert_eq!(run.segment.payload_len, 68);
}

#[test]
fn a_fragmented_tunnel_gives_the_inner_segment() {
    let vxlan = join(&[&[0x08, 0, 0, 0, 0, 0, 9, 0], &ethernet(0x0800, &INNER_V4)]);
    let d = udp(50_000, 4789, &vxlan);
    let mut run = Run::new();
    assert_eq!(
        run.now(&ipv4_fragment(17, 9, 0, true, &d[..40])),
        Outcome::FragmentPending
    );
    assert_eq!(
        run.now(&ipv4_fragment(17, 9, 40, false, &d[40..])),
        Outcome::Segment
    );
    assert_eq!(
        run.segment,
        Segment {
            capture_flags: capture_flag::FRAGMENTED,
            ..inner_v4_segment()
        }
    );
}

#[test]
fn cut_fragments_add_up_to_the_wire_length() {
    let d = datagram();
    let mut run = Run::new();
    let first = piece(&d, 0, 64);
    let last = piece(&d, 64, 92);
    let cut = |bytes, original_len| Packet {
        original_len,
        ..packet(RAW_IP, bytes)
    };
    let outcome = run
        .parser
        .parse(&cut(&first[..44], 84), 0, &mut run.segment);
    assert_eq!(outcome, Outcome::FragmentPending);
    let outcome = run.parser.parse(&cut(&last[..20], 48), 0, &mut run.segment);
    assert_eq!(outcome, Outcome::Segment);
    let flags = capture_flag::FRAGMENTED | capture_flag::SNAPPED;
    assert_eq!(
        run.segment,
        Segment {
            capture_flags: flags,
            ..expected()
        }
    );
}

#[test]
fn fragments_of_other_protocols_are_not_stored() {
    let mut run = Run::new();
    assert_eq!(
        run.now(&ipv4_fragment(1, 9, 0, true, &[8; 64])),
        Outcome::NotTcp
    );
    assert_eq!(
        run.now(&ipv4_fragment(50, 9, 0, true, &[8; 64])),
        Outcome::NotTcp
    );
    assert_eq!(
        run.now(&ipv4_fragment(17, 9, 0, true, &[8; 64])),
        Outcome::FragmentPending
    );
    // Only datagrams known to be TCP count as lost segments.
    assert_eq!(run.counters().datagrams_incomplete, 0);
}
