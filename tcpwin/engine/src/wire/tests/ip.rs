//! Lengths, extension headers and quotations.

use super::build::*;
use crate::capture::Packet;
use crate::wire::fast::mapped;
use crate::wire::{capture_flag, Outcome, Segment};

fn with_total_len(total_len: u16) -> [u8; 45] {
    let mut packet = INNER_V4;
    packet[2..4].copy_from_slice(&total_len.to_be_bytes());
    packet
}

#[test]
fn ethernet_padding_is_not_payload() {
    // A 41-byte datagram and five bytes of padding to Ethernet's 60.
    let frame = ethernet(0x0800, &join(&[&with_total_len(41)[..41], &[0xee; 5]]));
    assert_eq!(segment_of(ETHERNET, &frame).payload_len, 1);
    let frame = ethernet(0x86dd, &join(&[&INNER_V6, &[0xee; 9]]));
    assert_eq!(segment_of(ETHERNET, &frame).payload_len, 5);
}

#[test]
fn a_total_length_of_zero_means_the_frame_length() {
    let frame = ethernet(0x0800, &with_total_len(0));
    let packet = Packet {
        original_len: 14 + 20 + 20 + 40_000,
        ..packet(ETHERNET, &frame)
    };
    let (outcome, segment) = parse_packet(&packet);
    assert_eq!(outcome, Outcome::Segment);
    assert_eq!(segment.payload_len, 40_000);
    assert_eq!(
        segment.capture_flags,
        capture_flag::LENGTH_FROM_FRAME | capture_flag::SNAPPED
    );
}

#[test]
fn an_ipv6_payload_length_of_zero_means_the_frame_length() {
    let mut inner = INNER_V6;
    inner[4..6].copy_from_slice(&[0, 0]);
    let segment = segment_of(ETHERNET, &ethernet(0x86dd, &inner));
    assert_eq!(segment.payload_len, 5);
    assert_eq!(segment.capture_flags, capture_flag::LENGTH_FROM_FRAME);
}

/// tshark 4.0 agrees on all three: a length field shortens a packet, and without proof does not extend it past the frame.
#[test]
fn a_total_length_beyond_the_frame_is_bounded_by_the_frame() {
    let frame = ethernet(0x0800, &with_total_len(1000));
    assert_eq!(segment_of(ETHERNET, &frame).payload_len, 5);
    let packet = Packet {
        original_len: 500,
        ..packet(ETHERNET, &frame)
    };
    // 500 − 14 − 20 − 20.
    assert_eq!(parse_packet(&packet).1.payload_len, 446);
    let mut inner = INNER_V6;
    inner[4..6].copy_from_slice(&[3, 0xe7]);
    assert_eq!(
        segment_of(ETHERNET, &ethernet(0x86dd, &inner)).payload_len,
        5
    );
}

#[test]
fn a_payload_larger_than_any_window_is_malformed() {
    let frame = ethernet(0x0800, &with_total_len(0));
    let longest = Packet {
        original_len: 54 + (1 << 30),
        ..packet(ETHERNET, &frame)
    };
    assert_eq!(parse_packet(&longest).1.payload_len, 1 << 30);
    let longer = Packet {
        original_len: 54 + (1 << 30) + 1,
        ..packet(ETHERNET, &frame)
    };
    assert_eq!(parse_packet(&longer).0, Outcome::Malformed);
}

#[test]
fn contradictory_ipv4_headers_are_malformed() {
    let mut short_header = INNER_V4;
    short_header[0] = 0x44;
    let mut other_version = INNER_V4;
    other_version[0] = 0x55;
    for bytes in [
        short_header,
        other_version,
        with_total_len(19),
        with_total_len(39),
    ] {
        assert_eq!(parse(228, &bytes).0, Outcome::Malformed);
    }
}

#[test]
fn ipv4_options_are_skipped() {
    let mut packet = join(&[
        &INNER_V4[..20],
        &[0x94, 0x04, 0, 0, 1, 1, 1, 0],
        inner_tcp(),
    ]);
    packet[0] = 0x47;
    packet[3] = 53;
    assert_eq!(segment_of(RAW_IP, &packet), inner_v4_segment());
}

#[test]
fn ipv6_extension_headers_are_skipped_and_not_payload() {
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let destination = [43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // A routing header with no segments left, then authentication of (4 + 2) × 4 bytes.
    let routing = [51, 0, 0, 0, 0, 0, 0, 0];
    let authentication = join(&[&[44, 4, 0, 0], &[0; 20]]);
    // RFC 6946: an atomic fragment.
    let fragment = [135, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef];
    let mobility = [6, 0, 0, 0, 0, 0, 0, 0];
    let payload = join(&[
        &hop_by_hop,
        &destination,
        &routing,
        &authentication,
        &fragment,
        &mobility,
        inner_tcp(),
    ]);
    let expected = Segment {
        ip_id: 0xdead_beef,
        ..inner_v6_segment()
    };
    assert_eq!(segment_of(RAW_IP, &ipv6(0, &payload)), expected);
}

#[test]
fn extension_headers_are_not_parsed_in_ipv4() {
    let payload = join(&[&[6, 0, 1, 4, 0, 0, 0, 0], inner_tcp()]);
    assert_eq!(parse(RAW_IP, &ipv4(60, &payload)).0, Outcome::NotTcp);
}

#[test]
fn a_jumbograms_length_is_in_its_option() {
    // RFC 2675 §2: the length counts all after the IPv6 header, 8 + 20 + 70,000.
    let option = join(&[&[6, 0, 0xc2, 4], &70_028u32.to_be_bytes()]);
    let mut bytes = ipv6(0, &join(&[&option, inner_tcp()]));
    bytes[4..6].copy_from_slice(&[0, 0]);
    let packet = Packet {
        original_len: 40 + 70_028,
        ..packet(229, &bytes)
    };
    let (outcome, segment) = parse_packet(&packet);
    assert_eq!(outcome, Outcome::Segment);
    assert_eq!(segment.payload_len, 70_000);
    assert_eq!(segment.capture_flags, capture_flag::SNAPPED);
}

#[test]
fn the_destination_of_a_routed_packet_is_its_last_address() {
    let far = [0xfd; 16];
    let near = [0xfe; 16];
    // Type 0: the last in the list. Type 4: the first, because the list is reversed. Type 2: the home address.
    let source_route = join(&[&[6, 4, 0, 1, 0, 0, 0, 0], &near, &far, inner_tcp()]);
    let segment_list = join(&[&[6, 4, 4, 1, 1, 0, 0, 0], &far, &near, inner_tcp()]);
    let home = join(&[&[6, 2, 2, 1, 0, 0, 0, 0], &far, inner_tcp()]);
    for payload in [source_route, segment_list, home] {
        assert_eq!(segment_of(229, &ipv6(43, &payload)).dst, far);
        let mut arrived = payload.clone();
        arrived[3] = 0;
        assert_eq!(segment_of(229, &ipv6(43, &arrived)).dst, v6_address(2));
    }
}

#[test]
fn the_outer_length_bounds_the_inner_one() {
    // The inner packet claims 45 bytes but the tunnel holds 43: two payload bytes do not exist.
    let packet = ipv4(4, &INNER_V4[..43]);
    assert_eq!(segment_of(RAW_IP, &packet).payload_len, 3);
}

#[test]
fn a_packet_without_a_time_has_the_previous_packets() {
    for link_type in [RAW_IP, ETHERNET] {
        let bytes = if link_type == ETHERNET {
            ethernet(0x0800, &INNER_V4)
        } else {
            INNER_V4.to_vec()
        };
        let packet = Packet {
            time_ns: None,
            ..packet(link_type, &bytes)
        };
        let mut segment = Segment::EMPTY;
        let outcome = crate::wire::SegmentParser::new().parse(&packet, 77, &mut segment);
        assert_eq!((outcome, segment.time_ns), (Outcome::Segment, 77));
    }
}

#[test]
fn tcp_inside_an_icmp_error_is_quoted() {
    // Destination unreachable with RFC 792's minimum: the IP header and eight bytes.
    let unreachable = join(&[&[3, 1, 0, 0, 0, 0, 0, 0], &INNER_V4[..28]]);
    assert_eq!(parse(RAW_IP, &ipv4(1, &unreachable)).0, Outcome::Quoted);
    let time_exceeded = join(&[&[3, 0, 0, 0, 0, 0, 0, 0], &INNER_V6]);
    assert_eq!(parse(RAW_IP, &ipv6(58, &time_exceeded)).0, Outcome::Quoted);
    let seven_bytes = join(&[&[11, 0, 0, 0, 0, 0, 0, 0], &INNER_V4[..27]]);
    assert_eq!(parse(RAW_IP, &ipv4(1, &seven_bytes)).0, Outcome::NotTcp);
    let udp_quoted = join(&[&[3, 3, 0, 0, 0, 0, 0, 0], &ipv4(17, &udp(1, 2, &[0; 8]))]);
    assert_eq!(parse(RAW_IP, &ipv4(1, &udp_quoted)).0, Outcome::NotTcp);
    // An echo request may carry anything.
    let echo = join(&[&[8, 0, 0, 0, 0, 0, 0, 0], &INNER_V4]);
    assert_eq!(parse(RAW_IP, &ipv4(1, &echo)).0, Outcome::NotTcp);
}

#[test]
fn a_quoted_fragment_opens_no_datagram() {
    let first = ipv4_fragment(6, 9, 0, true, &inner_tcp()[..16]);
    let later = ipv4_fragment(6, 9, 16, true, &inner_tcp()[..16]);
    let error = |quoted: &[u8]| ipv4(1, &join(&[&[11, 1, 0, 0, 0, 0, 0, 0], quoted]));
    let mut parser = crate::wire::SegmentParser::new();
    let mut segment = Segment::EMPTY;
    assert_eq!(
        parser.parse(&packet(RAW_IP, &error(&first)), 0, &mut segment),
        Outcome::Quoted
    );
    assert_eq!(
        parser.parse(&packet(RAW_IP, &error(&later)), 0, &mut segment),
        Outcome::NotTcp
    );
    assert_eq!(parser.counters().datagrams_incomplete, 0);
}

#[test]
fn each_outcome_is_counted() {
    let mut parser = crate::wire::SegmentParser::new();
    let mut segment = Segment::EMPTY;
    let fast = ethernet(0x0800, &INNER_V4);
    let cut = Packet {
        original_len: 59,
        ..packet(ETHERNET, &fast[..50])
    };
    let quoted = ipv4(1, &join(&[&[3, 1, 0, 0, 0, 0, 0, 0], &INNER_V4]));
    let fragment = ipv4_fragment(6, 1, 0, true, &inner_tcp()[..16]);
    let bad = [0x44; 40];
    for packet in [
        packet(ETHERNET, &fast),
        packet(RAW_IP, &INNER_V6),
        cut,
        packet(RAW_IP, &quoted),
        packet(RAW_IP, &fragment),
        packet(228, &bad),
        packet(9999, &fast),
        packet(RAW_IP, &ipv4(17, &udp(1, 2, &[]))),
    ] {
        let _ = parser.parse(&packet, 0, &mut segment);
    }
    let counters = parser.counters();
    assert_eq!(
        (
            counters.segments,
            counters.header_cut,
            counters.quoted,
            counters.fragments_pending
        ),
        (2, 1, 1, 1)
    );
    assert_eq!(
        (counters.malformed, counters.unknown_link, counters.not_tcp),
        (1, 1, 1)
    );
    assert_eq!(counters.datagrams_incomplete, 1);
    assert_eq!(mapped([10, 0, 0, 1])[10..], [0xff, 0xff, 10, 0, 0, 1]);
}
