//! Small packets as bytes, and the segments they must parse to.

use crate::capture::{LinkType, Packet};
use crate::wire::fast::mapped;
use crate::wire::{Options, Outcome, Segment, SegmentParser, NO_IP_ID};

pub const ETHERNET: LinkType = 1;
pub const RAW_IP: LinkType = 101;
pub const TIME_NS: i64 = 1_700_000_000_000_000_000;

/// 10.0.0.1:1234 → 10.0.0.2:80, PSH ACK, seq 1000, ack 2000, window 501, five bytes of payload.
#[rustfmt::skip]
pub const INNER_V4: [u8; 45] = [
    0x45, 0x00, 0x00, 0x2d, 0x00, 0x07, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, 10, 0, 0, 1, 10, 0, 0, 2,
    0x04, 0xd2, 0x00, 0x50, 0x00, 0x00, 0x03, 0xe8, 0x00, 0x00, 0x07, 0xd0, 0x50, 0x18, 0x01, 0xf5, 0xbe, 0xef, 0, 0,
    b'h', b'e', b'l', b'l', b'o',
];

/// The same segment over IPv6, 2001:db8::1 → 2001:db8::2.
#[rustfmt::skip]
pub const INNER_V6: [u8; 65] = [
    0x60, 0x00, 0x00, 0x00, 0x00, 0x19, 0x06, 0x40,
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
    0x04, 0xd2, 0x00, 0x50, 0x00, 0x00, 0x03, 0xe8, 0x00, 0x00, 0x07, 0xd0, 0x50, 0x18, 0x01, 0xf5, 0xbe, 0xef, 0, 0,
    b'h', b'e', b'l', b'l', b'o',
];

/// The TCP header and payload of [`INNER_V4`].
pub fn inner_tcp() -> &'static [u8] {
    &INNER_V4[20..]
}

pub fn inner_v4_segment() -> Segment {
    Segment {
        frame: 1,
        time_ns: TIME_NS,
        src: mapped([10, 0, 0, 1]),
        dst: mapped([10, 0, 0, 2]),
        src_port: 1234,
        dst_port: 80,
        seq: 1000,
        ack: 2000,
        payload_len: 5,
        ip_id: 7,
        flags: 0x018,
        window: 501,
        checksum: 0xbeef,
        ip_version: 4,
        ttl: 64,
        traffic_class: 0,
        capture_flags: 0,
        options: Options::default(),
    }
}

pub fn inner_v6_segment() -> Segment {
    Segment {
        src: v6_address(1),
        dst: v6_address(2),
        ip_id: NO_IP_ID,
        ip_version: 6,
        ..inner_v4_segment()
    }
}

pub fn v6_address(last: u8) -> [u8; 16] {
    [
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last,
    ]
}

pub fn packet(link_type: LinkType, captured: &[u8]) -> Packet<'_> {
    Packet {
        frame: 1,
        time_ns: Some(TIME_NS),
        captured,
        original_len: captured.len() as u32,
        link_type,
    }
}

/// Parse a packet with a new parser; return the segment if there is one.
pub fn parse_packet(packet: &Packet<'_>) -> (Outcome, Segment) {
    let mut segment = Segment::EMPTY;
    let outcome = SegmentParser::new().parse(packet, 0, &mut segment);
    (outcome, segment)
}

pub fn parse(link_type: LinkType, captured: &[u8]) -> (Outcome, Segment) {
    parse_packet(&packet(link_type, captured))
}

/// Return the segment of a packet, which must contain one.
pub fn segment_of(link_type: LinkType, captured: &[u8]) -> Segment {
    let (outcome, segment) = parse(link_type, captured);
    assert_eq!(outcome, Outcome::Segment);
    segment
}

pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    join(&[&ADDRESSES, &ethertype.to_be_bytes(), payload])
}

/// IPv4 from 192.0.2.1 to 192.0.2.2, identification 0x1111, time to live 33.
pub fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_fragment(protocol, 0x1111, 0, false, payload)
}

pub fn ipv4_fragment(protocol: u8, id: u16, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let total_len = (20 + payload.len()) as u16;
    let fragmentation = (offset / 8) | if more { 0x2000 } else { 0 };
    join(&[
        &[0x45, 0],
        &total_len.to_be_bytes(),
        &id.to_be_bytes(),
        &fragmentation.to_be_bytes(),
        &[33, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2],
        payload,
    ])
}

/// IPv6 from 2001:db8::1 to 2001:db8::2, hop limit 64.
pub fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let payload_len = (payload.len() as u16).to_be_bytes();
    join(&[
        &[0x60, 0, 0, 0],
        &payload_len,
        &[next_header, 64],
        &v6_address(1),
        &v6_address(2),
        payload,
    ])
}

pub fn ipv6_fragment(next_header: u8, id: u32, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let fragmentation = offset | u16::from(more);
    let header = join(&[
        &[next_header, 0],
        &fragmentation.to_be_bytes(),
        &id.to_be_bytes(),
        payload,
    ]);
    ipv6(44, &header)
}

pub fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    join(&[
        &source.to_be_bytes(),
        &destination.to_be_bytes(),
        &len.to_be_bytes(),
        &[0, 0],
        payload,
    ])
}
