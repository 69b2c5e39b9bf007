//! The TCP header and its options.

use super::build::*;
use crate::capture::Packet;
use crate::wire::{capture_flag, Options, Outcome, Segment};

/// The inner packet with `options` (a multiple of four bytes) in its TCP header, over Ethernet.
fn with_options(options: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let mut packet = join(&[&INNER_V4[..40], options, &INNER_V4[40..]]);
    packet[3] += options.len() as u8;
    packet[32] = ((5 + options.len() / 4) as u8) << 4;
    ethernet(0x0800, &packet)
}

fn options_of(options: &[u8]) -> (Options, u8) {
    let segment = segment_of(ETHERNET, &with_options(options));
    assert_eq!(segment.payload_len, 5);
    (segment.options, segment.capture_flags)
}

#[test]
fn the_options_of_a_syn() {
    // MSS 1460, SACK permitted, timestamps 1 and 0, NOP, window scale 7, in Linux's order.
    let bytes = [
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    let expected = Options {
        mss: Some(1460),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        window_scale: Some(7),
        ..Options::default()
    };
    assert_eq!(options_of(&bytes), (expected, 0));
}

#[test]
fn timestamps_alone() {
    let bytes = [1, 1, 8, 10, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67];
    let expected = Options {
        timestamps: Some((0x89ab_cdef, 0x0123_4567)),
        ..Options::default()
    };
    assert_eq!(options_of(&bytes), (expected, 0));
}

#[test]
fn sack_blocks_in_header_order() {
    let one = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let expected = Options {
        sack_count: 1,
        sack: [(1, 2), (0, 0), (0, 0), (0, 0)],
        ..Options::default()
    };
    assert_eq!(options_of(&one), (expected, 0));
    let mut four = vec![1, 1, 5, 34];
    for edge in 1..=8u32 {
        four.extend(edge.to_be_bytes());
    }
    let expected = Options {
        sack_count: 4,
        sack: [(1, 2), (3, 4), (5, 6), (7, 8)],
        ..Options::default()
    };
    assert_eq!(options_of(&four), (expected, 0));
}

#[test]
fn sack_with_no_or_partial_blocks_is_bad() {
    for bytes in [
        [5, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [5, 11, 0, 0, 0, 1, 0, 0, 0, 2, 9, 1],
    ] {
        assert_eq!(
            options_of(&bytes),
            (Options::default(), capture_flag::OPTIONS_BAD)
        );
    }
}

#[test]
fn fast_open_in_both_forms_and_multipath() {
    assert!(options_of(&[34, 2, 1, 1]).0.fast_open);
    assert!(options_of(&[254, 4, 0xf9, 0x89]).0.fast_open);
    assert!(!options_of(&[254, 4, 0xf9, 0x88]).0.fast_open);
    let multipath = options_of(&[30, 4, 0, 1]);
    assert_eq!((multipath.0.multipath, multipath.1), (1 << 0, 0));
    let of_all = options_of(&[30, 4, 0x10, 1, 30, 3, 0x80, 30, 2, 1, 1, 1]).0;
    assert_eq!(of_all.multipath, 1 << 1 | 1 << 8 | 1 << 15);
}

#[test]
fn options_after_the_end_marker_are_ignored() {
    assert_eq!(
        options_of(&[0, 3, 3, 7, 2, 4, 5, 0xb4]),
        (Options::default(), 0)
    );
}

/// Linux, tcp_parse_options: a known kind with a wrong length is ignored, and parsing continues.
#[test]
fn an_option_of_the_wrong_length_is_ignored() {
    let expected = Options {
        window_scale: Some(7),
        ..Options::default()
    };
    assert_eq!(
        options_of(&[2, 5, 5, 0xb4, 1, 3, 3, 7]),
        (expected, capture_flag::OPTIONS_BAD)
    );
}

#[test]
fn options_before_a_broken_length_are_kept() {
    let mss = Options {
        mss: Some(1460),
        ..Options::default()
    };
    // Lengths 0 and 1 are impossible; one of 9 exceeds the header; a kind in the last byte has no length.
    for tail in [[3, 0, 7, 0], [3, 1, 7, 0], [3, 9, 7, 0], [1, 1, 1, 3]] {
        let bytes = join(&[&[2, 4, 5, 0xb4], &tail]);
        assert_eq!(
            options_of(&bytes),
            (mss, capture_flag::OPTIONS_BAD),
            "{tail:?}"
        );
    }
}

#[test]
fn the_last_option_of_a_kind_wins() {
    assert_eq!(options_of(&[2, 4, 5, 0xb4, 2, 4, 1, 1]).0.mss, Some(257));
}

/// A snapshot length inside the options: options before the cut are kept and the cut is flagged, but nothing is bad.
#[test]
fn cut_options_grow_with_the_captured_length() {
    let bytes = [
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    let frame = with_options(&bytes);
    let fixed = 14 + 20 + 20;
    for captured in 0..=bytes.len() {
        let packet = Packet {
            original_len: frame.len() as u32,
            ..packet(ETHERNET, &frame[..fixed + captured])
        };
        let (outcome, segment) = parse_packet(&packet);
        let expected = Options {
            mss: (captured >= 4).then_some(1460),
            sack_permitted: captured >= 6,
            timestamps: (captured >= 16).then_some((1, 0)),
            window_scale: (captured >= 20).then_some(7),
            ..Options::default()
        };
        let cut = if captured < 20 {
            capture_flag::OPTIONS_CUT
        } else {
            0
        };
        assert_eq!(outcome, Outcome::Segment);
        assert_eq!(
            (segment.options, segment.payload_len),
            (expected, 5),
            "{captured} bytes"
        );
        assert_eq!(
            segment.capture_flags,
            capture_flag::SNAPPED | cut,
            "{captured} bytes"
        );
    }
}

#[test]
fn all_twelve_flag_bits_are_kept() {
    let mut frame = ethernet(0x0800, &INNER_V4);
    frame[46] = 0x5f;
    frame[47] = 0xff;
    assert_eq!(segment_of(ETHERNET, &frame).flags, 0x0fff);
}

#[test]
fn a_data_offset_below_five_is_malformed() {
    for offset in 0..5 {
        let mut frame = ethernet(0x0800, &INNER_V4);
        frame[46] = offset << 4;
        assert_eq!(parse(ETHERNET, &frame).0, Outcome::Malformed);
    }
}

/// tshark shows such a segment without a length; receivers drop it.
#[test]
fn a_header_longer_than_its_datagram_is_kept_without_payload() {
    let mut frame = ethernet(0x0800, &INNER_V4);
    frame[46] = 0xa0;
    let expected = Segment {
        payload_len: 0,
        capture_flags: capture_flag::OPTIONS_BAD,
        ..inner_v4_segment()
    };
    // Its five bytes of options start with 'h' and a length of 'e'.
    assert_eq!(
        segment_of(ETHERNET, &frame),
        Segment {
            flags: 0x018,
            ..expected
        }
    );
}
