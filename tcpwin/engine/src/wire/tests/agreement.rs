//! The fast path and the layered walk give the same answer; random bytes give some answer.

use proptest::prelude::*;

use super::build::*;
use crate::capture::Packet;
use crate::wire::fast;
use crate::wire::{Options, Outcome, Segment, SegmentParser};

/// Options of a TCP header, well-formed or not.
fn option_bytes() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![0]),
        Just(vec![4, 2]),
        any::<[u8; 2]>().prop_map(|v| vec![2, 4, v[0], v[1]]),
        any::<u8>().prop_map(|v| vec![3, 3, v]),
        any::<[u8; 8]>().prop_map(|v| [&[5, 10][..], &v].concat()),
        any::<[u8; 8]>().prop_map(|v| [&[8, 10][..], &v].concat()),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop::collection::vec(option, 0..8).prop_map(|options| {
        let mut bytes = options.concat();
        bytes.resize(bytes.len().min(40).next_multiple_of(4), 1);
        bytes
    })
}

/// An ordinary frame: random addresses, numbers and payload length, without options, with timestamps or with any; padded
/// or cut.
fn ordinary_frame() -> impl Strategy<Value = (Vec<u8>, u32)> {
    let fields = prop::collection::vec(any::<u8>(), 66);
    let usual = any::<bool>();
    let others = prop::option::of(option_bytes());
    (fields, usual, others, 0u16..3000, 0usize..50, 0u32..20).prop_map(
        |(mut frame, timestamps, others, payload_len, captured_payload, padding)| {
            let timestamps = timestamps && others.is_none();
            let options_len = others
                .as_ref()
                .map_or(if timestamps { 12 } else { 0 }, Vec::len);
            let header_len = 20 + options_len as u16;
            frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
            frame[16..18].copy_from_slice(&(20 + header_len + payload_len).to_be_bytes());
            // Don't-fragment may be set, nothing else.
            frame[20] &= 0x40;
            frame[21] = 0;
            frame[23] = 6;
            frame[46] = (header_len as u8 / 4) << 4;
            if timestamps {
                frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
            } else {
                frame.truncate(54);
                frame.extend(others.unwrap_or_default());
            }
            let payload_bytes = captured_payload.min(usize::from(payload_len));
            frame.resize(frame.len() + payload_bytes, 0);
            let wire_len = 14 + 20 + u32::from(header_len) + u32::from(payload_len) + padding;
            (frame, wire_len)
        },
    )
}

/// Residue of an earlier packet in the segment to be filled.
fn left_over() -> Segment {
    let options = Options {
        timestamps: Some((7, 7)),
        window_scale: Some(7),
        mss: Some(7),
        sack_permitted: true,
        fast_open: true,
        multipath: 4,
        sack_count: 4,
        sack: [(7, 7); 4],
    };
    Segment {
        frame: 7,
        time_ns: -7,
        src: [7; 16],
        dst: [7; 16],
        src_port: 7,
        dst_port: 7,
        seq: 7,
        ack: 7,
        payload_len: 7,
        ip_id: 7,
        flags: 0x0FFF,
        window: 7,
        checksum: 7,
        ip_version: 6,
        ttl: 7,
        traffic_class: 7,
        capture_flags: 0xFF,
        options,
    }
}

fn layered(packet: &Packet<'_>) -> (Outcome, Segment) {
    let mut segment = Segment::EMPTY;
    let outcome = SegmentParser::new().parse_layers(packet, 0, &mut segment);
    (outcome, segment)
}

proptest! {
    #[test]
    fn both_paths_agree_on_ordinary_packets((frame, original_len) in ordinary_frame()) {
        let packet = Packet { original_len, ..packet(ETHERNET, &frame) };
        let mut quick = left_over();
        prop_assert!(fast::parse(&packet, 0, &mut quick));
        prop_assert_eq!(layered(&packet), (Outcome::Segment, quick));
    }

    /// With a byte changed and the frame cut, the layered walk agrees with the fast path where that applies, and
    /// `parse` returns the walk's result.
    #[test]
    fn both_paths_agree_on_almost_ordinary_packets(
        (mut frame, original_len) in ordinary_frame(),
        at in 12usize..66,
        value in any::<u8>(),
        cut in 0usize..80,
    ) {
        let at = at.min(frame.len() - 1);
        frame[at] = value;
        frame.truncate(frame.len().saturating_sub(cut / 2));
        let packet = Packet { original_len: original_len.max(frame.len() as u32), ..packet(ETHERNET, &frame) };
        let (outcome, walked) = layered(&packet);
        let mut quick = left_over();
        if fast::parse(&packet, 0, &mut quick) {
            prop_assert_eq!((outcome, walked), (Outcome::Segment, quick));
        }
        prop_assert_eq!(parse_packet(&packet), (outcome, walked));
    }

    #[test]
    fn random_bytes_of_any_link_type_never_panic(
        link_type in prop_oneof![0u32..300, any::<u32>()],
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        extra in prop_oneof![Just(0u32), any::<u32>()],
    ) {
        let original_len = (bytes.len() as u32).saturating_add(extra);
        let (outcome, segment) = parse_packet(&Packet { original_len, ..packet(link_type, &bytes) });
        if outcome == Outcome::Segment {
            prop_assert!(segment.payload_len <= 1 << 30);
        }
    }
}

#[test]
fn the_fast_path_declines_what_is_not_ordinary() {
    let ordinary = ethernet(0x0800, &INNER_V4);
    // VLAN type, IPv6 type, IHL 6, the reserved bit, more fragments, offset, UDP, data offset 4, a reserved flag, AE, a
    // total length beyond the frame.
    let changes: [(usize, u8); 11] = [
        (12, 0x81),
        (13, 0xdd),
        (14, 0x46),
        (20, 0x80),
        (20, 0x20),
        (21, 1),
        (23, 17),
        (46, 0x40),
        (46, 0x52),
        (46, 0x51),
        (17, 46),
    ];
    let mut segment = Segment::EMPTY;
    assert!(fast::parse(&packet(ETHERNET, &ordinary), 0, &mut segment));
    assert_eq!(segment, inner_v4_segment());
    for (at, value) in changes {
        let mut frame = ordinary.clone();
        frame[at] = value;
        let mut segment = Segment::EMPTY;
        assert!(
            !fast::parse(&packet(ETHERNET, &frame), 0, &mut segment),
            "byte {at}"
        );
    }
}
