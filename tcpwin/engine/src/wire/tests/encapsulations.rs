//! Properties of all encapsulations: the segment, whole and cut, and frames without one.

use proptest::prelude::*;

use super::build::*;
use super::cases::{all, with_control, SNAP_IPV4};
use crate::capture::{LinkType, Packet};
use crate::wire::{capture_flag, Outcome, Segment, SegmentParser, Unread};

#[test]
fn each_encapsulation_gives_the_inner_segment() {
    for case in all() {
        let (outcome, segment) = parse(case.link_type, &case.bytes);
        assert_eq!(outcome, Outcome::Segment, "{}", case.name);
        assert_eq!(segment, case.segment, "{}", case.name);
    }
}

#[test]
fn case_names_are_unique() {
    let mut names: Vec<_> = all().iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
}

/// Cut by the snapshot length at every byte: a segment requires the complete fixed TCP header.
#[test]
fn a_cut_packet_has_a_segment_if_the_fixed_header_is_complete() {
    for case in all() {
        let payload_len = 5;
        let header_end = case.bytes.len() - payload_len;
        for captured_len in 0..case.bytes.len() {
            let packet = Packet {
                captured: &case.bytes[..captured_len],
                original_len: case.bytes.len() as u32,
                ..packet(case.link_type, &[])
            };
            let (outcome, segment) = parse_packet(&packet);
            if captured_len < header_end {
                // A cut aggregate or sample only shows that no TCP header was found.
                assert!(
                    matches!(outcome, Outcome::HeaderCut | Outcome::NotTcp),
                    "{} cut to {captured_len}: {outcome:?}",
                    case.name
                );
            } else {
                let expected = Segment {
                    capture_flags: case.segment.capture_flags | capture_flag::SNAPPED,
                    ..case.segment
                };
                assert_eq!(
                    (outcome, segment),
                    (Outcome::Segment, expected),
                    "{} cut to {captured_len}",
                    case.name
                );
            }
        }
    }
}

/// The same bytes missing on the wire: never a segment, because the TCP header is incomplete.
#[test]
fn a_packet_too_short_on_the_wire_has_no_segment() {
    for case in all() {
        for len in 0..case.bytes.len() - 5 {
            let (outcome, _) = parse(case.link_type, &case.bytes[..len]);
            assert_ne!(outcome, Outcome::Segment, "{} of {len} bytes", case.name);
            assert_ne!(outcome, Outcome::HeaderCut, "{} of {len} bytes", case.name);
        }
    }
}

#[test]
fn unknown_link_types_are_listed_and_counted_within_bounds() {
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    for link_type in [147, 148, 149, 147].into_iter().chain(1000..1020) {
        let outcome = parser.parse(&packet(link_type, &INNER_V4), 0, &mut segment);
        assert_eq!(outcome, Outcome::UnknownLink(link_type));
    }
    let counters = parser.counters();
    assert_eq!(counters.unknown_link, 24);
    assert_eq!(counters.unknown_link_types.len(), 8);
    assert_eq!(
        counters.unknown_link_types[..3],
        [(147, 2), (148, 1), (149, 1)]
    );
}

#[test]
fn other_protocols_are_not_tcp() {
    let cases: [(&str, LinkType, Vec<u8>); 15] = [
        ("ARP", ETHERNET, ethernet(0x0806, &[0; 28])),
        (
            "spanning tree",
            ETHERNET,
            ethernet(38, &[0x42, 0x42, 0x03, 0, 0, 0]),
        ),
        ("UDP", RAW_IP, ipv4(17, &udp(53, 53, &INNER_V4))),
        ("ICMP echo", RAW_IP, ipv4(1, &[8, 0, 0, 0, 0, 0, 0, 0])),
        ("SCTP", RAW_IP, ipv4(132, &[0; 12])),
        (
            "VXLAN without its flag",
            RAW_IP,
            ipv4(
                17,
                &udp(
                    50_000,
                    4789,
                    &join(&[&[0; 8], &ethernet(0x0800, &INNER_V4)]),
                ),
            ),
        ),
        (
            "GTP echo",
            RAW_IP,
            ipv4(
                17,
                &udp(
                    2152,
                    2152,
                    &join(&[&[0x30, 1, 0, 45, 0, 0, 0, 1], &INNER_V4]),
                ),
            ),
        ),
        (
            "L2TP control",
            RAW_IP,
            ipv4(
                17,
                &udp(1701, 1701, &[0xc8, 0x02, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]),
            ),
        ),
        (
            "protected 802.11",
            105,
            join(&[&with_control(0x08, 0x41), &SNAP_IPV4, &INNER_V4]),
        ),
        (
            "802.11 null data",
            105,
            join(&[&with_control(0x48, 0x01), &SNAP_IPV4, &INNER_V4]),
        ),
        (
            "802.11 beacon",
            105,
            join(&[&with_control(0x80, 0x00), &SNAP_IPV4, &INNER_V4]),
        ),
        (
            "802.11 ACK",
            105,
            with_control(0xd4, 0x00)
                .get(..10)
                .unwrap_or_default()
                .to_vec(),
        ),
        (
            "later fragment of multilink PPP",
            9,
            join(&[
                &[0xff, 0x03, 0x00, 0x3d, 0x40, 0, 0, 9, 0x00, 0x21],
                &INNER_V4,
            ]),
        ),
        (
            "CAPWAP keep-alive",
            RAW_IP,
            ipv4(17, &udp(5247, 5247, &[0, 0x10, 0x02, 0x08, 0, 0, 0, 0])),
        ),
        (
            "PPP control",
            9,
            vec![0xff, 0x03, 0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0],
        ),
    ];
    for (name, link_type, bytes) in cases {
        assert_eq!(parse(link_type, &bytes).0, Outcome::NotTcp, "{name}");
    }
}

#[test]
fn undecoded_protocols_are_listed_and_counted_within_bounds() {
    let encrypted = [&[0x0c, 0, 0, 0, 0, 1, 0x08, 0x00], &INNER_V4[..]].concat();
    let cases: [(&str, LinkType, Vec<u8>, Unread); 4] = [
        (
            "precision time",
            ETHERNET,
            ethernet(0x88f7, &[0; 44]),
            Unread::EtherType(0x88f7),
        ),
        (
            "encrypted MACsec",
            ETHERNET,
            ethernet(0x88e5, &encrypted),
            Unread::EtherType(0x88e5),
        ),
        (
            "behind a VLAN tag",
            ETHERNET,
            ethernet(0x8100, &[0, 5, 0x88, 0x4b, 0, 0]),
            Unread::EtherType(0x884b),
        ),
        (
            "compressed PPP",
            9,
            vec![0xff, 0x03, 0x00, 0xfd, 1, 2, 3],
            Unread::Ppp(0x00fd),
        ),
    ];
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    for (name, link_type, bytes, kind) in &cases {
        let outcome = parser.parse(&packet(*link_type, bytes), 0, &mut segment);
        assert_eq!(outcome, Outcome::Unread(*kind), "{name}");
    }
    for ethertype in (0xA000..0xA00A).chain([0x88f7]) {
        let bytes = ethernet(ethertype, &[0; 46]);
        let _ = parser.parse(&packet(ETHERNET, &bytes), 0, &mut segment);
    }
    let counters = parser.counters();
    assert_eq!((counters.not_tcp, counters.unread), (15, 15));
    assert_eq!(counters.unread_kinds.len(), 8);
    assert_eq!(
        counters.unread_kinds[0],
        (Unread::EtherType(0x88f7), 2),
        "repeated kinds continue to be counted"
    );
}

/// A tunnel's first fragment contains the headers; the segment's length is taken from its IP header.
#[test]
fn the_first_fragment_of_a_tunnel_gives_the_whole_segment() {
    let mut inner = INNER_V4.to_vec();
    inner[2..4].copy_from_slice(&1040u16.to_be_bytes());
    let capwap = join(&[
        &[0, 0x10, 0x02, 0x80, 0, 1, 0, 0],
        &ethernet(0x0800, &inner),
    ]);
    let first = segment_of(RAW_IP, &ipv4(17, &udp(5247, 5247, &capwap)));
    assert_eq!(first.payload_len, 1000);
    let multilink = join(&[&[0xff, 0x03, 0x00, 0x3d, 0x80, 0, 0, 1, 0x00, 0x21], &inner]);
    assert_eq!(segment_of(9, &multilink).payload_len, 1000);
    let later = join(&[&[0, 0x10, 0x02, 0xc0, 0, 1, 0, 0x28], &inner]);
    let later = ipv4(17, &udp(5247, 5247, &later));
    assert_eq!(parse(RAW_IP, &later).0, Outcome::NotTcp);
}

/// Deeper than any real stack, with well-formed layers: the walk stops in bounded time and stack.
#[test]
fn deep_nesting_terminates() {
    let mut vlans = ethernet(0x8100, &[]);
    for _ in 0..10_000 {
        vlans.extend([0, 1, 0x81, 0x00]);
    }
    assert_eq!(parse(ETHERNET, &vlans).0, Outcome::NotTcp);

    let mut tunnels = INNER_V4.to_vec();
    for _ in 0..200 {
        tunnels = ipv4(4, &tunnels);
    }
    assert_eq!(parse(RAW_IP, &tunnels).0, Outcome::NotTcp);

    let taps = [16, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0].repeat(1000);
    assert_eq!(parse(258, &taps).0, Outcome::NotTcp);
}

proptest! {
    /// A sequence of packets with a few changed bytes: any outcome, but no panic.
    #[test]
    fn damaged_encapsulations_never_panic(
        picks in prop::collection::vec(
            (0usize..1000, prop::collection::vec((0usize..200, any::<u8>()), 0..5), 0u32..2000),
            1..6,
        ),
    ) {
        let cases = all();
        let mut parser = SegmentParser::new();
        for (pick, changes, extra) in picks {
            let case = &cases[pick % cases.len()];
            let mut bytes = case.bytes.clone();
            for (at, value) in changes {
                let len = bytes.len();
                bytes[at % len] = value;
            }
            let packet = Packet { original_len: bytes.len() as u32 + extra, ..packet(case.link_type, &bytes) };
            let mut segment = Segment::EMPTY;
            if parser.parse(&packet, 0, &mut segment) == Outcome::Segment {
                prop_assert!(segment.payload_len <= 1 << 30);
                prop_assert!(segment.options.sack_count <= 4);
                prop_assert!(matches!(segment.ip_version, 4 | 6));
            }
        }
    }
}
