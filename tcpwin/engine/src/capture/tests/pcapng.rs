//! pcapng files: sections, interfaces, the three kinds of packet blocks, statistics, and blocks with wrong lengths.

use super::crafted::*;
use super::*;
use crate::capture::{ByteOrder, CaptureErrorKind, FileFormat};

#[test]
fn a_handwritten_packet() {
    #[rustfmt::skip]
    let file = [
        0x0a, 0x0d, 0x0d, 0x0a,  28, 0, 0, 0,  0x4d, 0x3c, 0x2b, 0x1a,  1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff,  0xff, 0xff, 0xff, 0xff,  28, 0, 0, 0,
        1, 0, 0, 0,  20, 0, 0, 0,  113, 0, 0, 0,  0, 0, 4, 0,  20, 0, 0, 0,
        6, 0, 0, 0,  36, 0, 0, 0,  0, 0, 0, 0,
        // 0x00060a24_181e4000 microseconds are 1,700,000,000 s.
        0x24, 0x0a, 0x06, 0x00,  0x00, 0x40, 0x1e, 0x18,
        3, 0, 0, 0,  0xdc, 0x05, 0, 0,  0xaa, 0xbb, 0xcc, 0,  36, 0, 0, 0,
    ];
    let (packets, facts) = read(&file);
    let expected = Got {
        frame: 1,
        time_ns: Some(1_700_000_000_000_000_000),
        captured: vec![0xaa, 0xbb, 0xcc],
        original_len: 1500,
        link_type: 113,
    };
    assert_eq!(packets, [expected]);
    assert_eq!(facts.format, FileFormat::Pcapng);
    assert_eq!(facts.byte_order, ByteOrder::Little);
    assert_eq!(facts.interfaces[0].snaplen, 0x4_0000);
    assert_eq!(facts.ticks_per_second(), Some(1_000_000));
    assert_eq!(facts.packets_snapped, 1);
    assert!(facts.warnings.is_empty());
}

#[test]
fn resolution_offset_and_names_of_each_interface() {
    for order in [Little, Big] {
        let nanoseconds = [
            option(order, 2, b"eth0"),
            option(order, 9, &[9]),
            option(order, 12, b"Linux 6.1"),
            option(order, 14, &order.u64(1_000)),
            option(order, 0, b""),
        ]
        .concat();
        // 2^-10 s, and an offset of -1 s.
        let binary = [
            option(order, 9, &[0x8a]),
            option(order, 14, &order.u64(u64::MAX)),
        ]
        .concat();
        let file = [
            section(order),
            interface(order, 1, 96, &nanoseconds),
            interface(order, 276, 0, &binary),
            packet(order, 0, (3 << 32) + 5, 4, b"wire"),
            packet(order, 1, 2_560, 6, b"cooked"),
        ]
        .concat();
        let (packets, facts) = read(&file);
        // 3 * 2^32 + 5 nanoseconds after 1,000 s.
        assert_eq!(packets[0].time_ns, Some(1_000_000_000_000 + 12_884_901_893));
        assert_eq!(packets[0].link_type, 1);
        // 2,560 / 1,024 is 2.5 s, less 1 s.
        assert_eq!(packets[1].time_ns, Some(1_500_000_000));
        assert_eq!(packets[1].link_type, 276);
        assert_eq!(packets[1].captured, b"cooked");
        let [first, second] = &facts.interfaces[..] else {
            panic!("two interfaces");
        };
        assert_eq!(first.name.as_deref(), Some("eth0"));
        assert_eq!(first.os.as_deref(), Some("Linux 6.1"));
        assert_eq!(first.ticks_per_second, 1_000_000_000);
        assert_eq!(
            (second.name.as_deref(), second.ticks_per_second),
            (None, 1024)
        );
    }
}

#[test]
fn times_after_2262_are_clamped_and_reported_once() {
    let file = [
        section(Little),
        interface(Little, 1, 0, b""),
        // 2^63 nanoseconds are 9,223,372,036,854,775.808 microseconds.
        packet(Little, 0, 9_223_372_036_854_775, 1, b"a"),
        packet(Little, 0, 9_223_372_036_854_776, 1, b"b"),
        packet(Little, 0, u64::MAX, 1, b"c"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    let times: Vec<_> = packets.iter().map(|p| p.time_ns).collect();
    let expected = [9_223_372_036_854_775_000, i64::MAX, i64::MAX];
    assert_eq!(times, expected.map(Some));
    assert_eq!(warning_kinds(&facts), [WarningKind::TimeOutOfRange]);
    assert_eq!(facts.warnings[0].byte_offset, 84);
}

#[test]
fn a_new_section_has_its_own_byte_order_and_interfaces() {
    let file = [
        section(Little),
        interface(Little, 1, 0, b""),
        packet(Little, 0, 1_000_000, 1, b"a"),
        section(Big),
        interface(Big, 101, 0, &option(Big, 9, &[3])),
        packet(Big, 0, 2_000, 1, b"b"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 2);
    assert_eq!((packets[0].link_type, packets[1].link_type), (1, 101));
    assert_eq!(packets[1].time_ns, Some(2_000_000_000));
    assert_eq!((packets[0].frame, packets[1].frame), (1, 2));
    assert_eq!(facts.byte_order, ByteOrder::Mixed);
    assert_eq!(facts.interfaces.len(), 2);
}

#[test]
fn simple_packets_have_no_time_and_end_at_the_snaplen() {
    let file = [
        section(Little),
        interface(Little, 1, 4, b""),
        simple_packet(Little, 3, b"abc"),
        simple_packet(Little, 1500, b"abcd"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    assert_eq!(
        (packets[0].captured.as_slice(), packets[0].original_len),
        (&b"abc"[..], 3)
    );
    assert_eq!(
        (packets[1].captured.as_slice(), packets[1].original_len),
        (&b"abcd"[..], 1500)
    );
    assert_eq!((packets[0].time_ns, packets[1].time_ns), (None, None));
    assert_eq!((facts.first_time_ns, facts.packets_snapped), (None, 1));
}

#[test]
fn a_simple_packet_without_snaplen_is_whole() {
    let file = [
        section(Big),
        interface(Big, 1, 0, b""),
        simple_packet(Big, 5, b"whole"),
    ]
    .concat();
    let (packets, _) = read(&file);
    assert_eq!(packets[0].captured, b"whole");
}

#[test]
fn the_obsolete_packet_block() {
    // Interface 1 and 77 drops share the first word.
    for (order, first_word) in [(Little, 77 << 16 | 1), (Big, 1 << 16 | 77)] {
        let body = packet_body(order, first_word, 5_000_000, (2, 9), b"ok");
        let file = [
            section(order),
            interface(order, 1, 0, b""),
            interface(order, 12, 0, b""),
            block(order, 2, &body),
        ]
        .concat();
        let (packets, _) = read(&file);
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].link_type, 12);
        assert_eq!(packets[0].time_ns, Some(5_000_000_000));
        assert_eq!(
            (packets[0].captured.as_slice(), packets[0].original_len),
            (&b"ok"[..], 9)
        );
    }
}

#[test]
fn other_blocks_and_packet_options_are_skipped() {
    let mut with_options = packet_body(Little, 0, 0, (4, 4), b"data");
    with_options.extend(option(Little, 1, b"a comment"));
    let file = [
        section(Little),
        block(Little, 4, &[0; 40]),
        interface(Little, 1, 0, b""),
        block(Little, 10, b"secrets"),
        block(Little, 0x0bad, &[0; 300_000]),
        block(Little, 6, &with_options),
        block(Little, 0xffff_fff0, b""),
    ]
    .concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].captured, b"data");
    assert!(facts.warnings.is_empty());
}

#[test]
fn the_last_statistics_of_an_interface_win() {
    let counts = |received: u64, drops: u64| {
        [
            option(Big, 4, &Big.u64(received)),
            option(Big, 5, &Big.u64(drops)),
        ]
        .concat()
    };
    let file = [
        section(Big),
        interface(Big, 1, 0, b""),
        interface(Big, 1, 0, b""),
        statistics(Big, 0, &counts(10, 1)),
        statistics(Big, 0, &counts(900, 30)),
        statistics(Big, 1, &option(Big, 5, &Big.u64(4))),
        statistics(Big, 7, &counts(1, 1)),
    ]
    .concat();
    let (_, facts) = read(&file);
    assert_eq!(
        (facts.interfaces[0].received, facts.interfaces[0].drops),
        (Some(900), Some(30))
    );
    assert_eq!(
        (facts.interfaces[1].received, facts.interfaces[1].drops),
        (None, Some(4))
    );
    assert_eq!(facts.drops(), Some(34));
    assert!(facts.warnings.is_empty());
}

#[test]
fn packets_of_an_undescribed_interface_are_skipped_but_numbered() {
    let file = [
        section(Little),
        interface(Little, 1, 0, b""),
        packet(Little, 0, 1, 1, b"a"),
        packet(Little, 1, 2, 1, b"?"),
        packet(Little, 9, 3, 1, b"?"),
        packet(Little, 0, 4, 1, b"b"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    let frames: Vec<_> = packets.iter().map(|p| p.frame).collect();
    assert_eq!(frames, [1, 4]);
    assert_eq!((facts.packets, facts.packets_skipped), (2, 2));
    assert_eq!(warning_kinds(&facts), [WarningKind::UndefinedInterface]);
    // After the section (28), the interface (20) and one packet (36).
    assert_eq!(facts.warnings[0].byte_offset, 84);
}

#[test]
fn options_before_an_overrun_are_kept() {
    let mut options = option(Little, 9, &[9]);
    options.extend([2, 0, 200, 0, b'e', b't', b'h', b'0']);
    let file = [
        section(Little),
        interface(Little, 1, 0, &options),
        packet(Little, 0, 55, 1, b"a"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets[0].time_ns, Some(55));
    assert_eq!(facts.interfaces[0].name, None);
    assert_eq!(warning_kinds(&facts), [WarningKind::OptionOverrun]);
    assert_eq!(facts.warnings[0].byte_offset, 28);
}

#[test]
fn impossible_lengths_stop_reading() {
    let good = [
        section(Little),
        interface(Little, 1, 0, b""),
        packet(Little, 0, 1, 1, b"a"),
    ]
    .concat();
    let body = packet_body(Little, 0, 2, (1, 1), b"b");
    let over = 16 * 1024 * 1024 + 4;
    let bad = [
        block_claiming(Little, 6, (0, 36), &body),
        block_claiming(Little, 6, (8, 36), &body),
        block_claiming(Little, 6, (28, 36), &body),
        // Not a multiple of 4, and not repeated after the padding.
        block_claiming(Little, 6, (35, 36), &body),
        block_claiming(Little, 6, (over, over), &body),
        block_claiming(Little, 0x99, (8, 8), b""),
        // A captured length past the block.
        block(Little, 6, &packet_body(Little, 0, 2, (5, 5), b"b")),
        block_claiming(Little, 0x99, (16, 20), b"body"),
        block_claiming(Little, 5, (24, 20), &[0; 12]),
    ];
    for block in bad {
        let file = [good.clone(), block.clone(), packet(Little, 0, 3, 1, b"c")].concat();
        let (packets, facts) = read(&file);
        assert_eq!(packets.len(), 1, "{block:?}");
        assert_eq!(warning_kinds(&facts), [WarningKind::Damaged], "{block:?}");
        assert_eq!(
            facts.warnings[0].byte_offset,
            good.len() as u64,
            "{block:?}"
        );
    }
}

#[test]
fn a_packet_whose_trailing_length_differs_is_the_last() {
    let body = packet_body(Little, 0, 2, (1, 1), b"b");
    let good = [section(Little), interface(Little, 1, 0, b"")].concat();
    let file = [
        good.clone(),
        block_claiming(Little, 6, (36, 40), &body),
        packet(Little, 0, 3, 1, b"c"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].captured, b"b");
    assert_eq!(warning_kinds(&facts), [WarningKind::Damaged]);
    assert_eq!(facts.warnings[0].byte_offset, 48);
}

#[test]
fn a_length_without_its_padding_is_read_when_repeated() {
    // 28 + 6 + 4 bytes are 38, and 40 with the padding.
    let unpadded = |data: &[u8]| {
        let body = packet_body(Little, 0, 2, (6, 6), data);
        block_claiming(Little, 6, (38, 38), &body)
    };
    let file = [
        section(Little),
        interface(Little, 1, 0, b""),
        unpadded(b"sixsix"),
        unpadded(b"SIXSIX"),
        packet(Little, 0, 3, 1, b"c"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 3);
    assert_eq!(packets[1].captured, b"SIXSIX");
    assert_eq!(warning_kinds(&facts), [WarningKind::UnpaddedBlockLength]);
    assert_eq!(facts.warnings[0].byte_offset, 48);
}

#[test]
fn versions() {
    for version in [(1, 0), (1, 2)] {
        let (packets, _) = read(&section_of_version(Big, version));
        assert!(packets.is_empty());
    }
    for version in [(0, 1), (1, 1), (2, 0), (256, 0)] {
        let error = open(&section_of_version(Little, version)).err();
        assert_eq!(
            error.expect("not readable").kind,
            CaptureErrorKind::BadHeader
        );
    }
    let file = [small_pcapng(), section_of_version(Little, (2, 0))].concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 3);
    assert_eq!(warning_kinds(&facts), [WarningKind::Damaged]);
}

#[test]
fn a_section_header_that_is_no_such_is_an_error() {
    let mut wrong_magic = section(Little);
    wrong_magic[8] ^= 0xff;
    let mut wrong_tail = section(Little);
    wrong_tail[24] = 32;
    for file in [wrong_magic, wrong_tail] {
        let error = open(&file).err().expect("not readable");
        assert_eq!(error.kind, CaptureErrorKind::BadHeader);
    }
    for len in 4..28 {
        let error = open(&section(Big)[..len]).err().expect("not readable");
        assert_eq!(error.kind, CaptureErrorKind::HeaderCut, "{len}");
    }
}

#[test]
fn a_text_mode_transfer_is_recognised() {
    // Each line feed became carriage return and line feed.
    let error = open(b"\x0d\x0a\x0d\x0d\x0d\x0a\x1c\0\0\0")
        .err()
        .expect("not readable");
    assert!(error.to_string().contains("text-mode transfer"), "{error}");
}

#[test]
fn interfaces_are_kept_to_a_bound_and_all_usable() {
    let mut file = section(Little);
    for _ in 0..5000 {
        file.extend(interface(Little, 1, 0, b""));
    }
    file.extend(packet(Little, 4999, 1, 1, b"a"));
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 1);
    assert_eq!(
        (facts.interfaces.len(), facts.interfaces_omitted),
        (4096, 904)
    );
}
