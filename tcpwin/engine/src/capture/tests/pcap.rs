//! pcap files: byte orders, resolutions, versions, record headers, link types.

use super::crafted::*;
use super::*;
use crate::capture::{ByteOrder, CaptureErrorKind, FileFormat};

#[test]
fn a_handwritten_record() {
    #[rustfmt::skip]
    let file = [
        0xd4, 0xc3, 0xb2, 0xa1,  2, 0, 4, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0x60, 0, 0, 0,  1, 0, 0, 0,
        // 2023-11-14 22:13:20.000256, 4 bytes of 1500.
        0x00, 0xf1, 0x53, 0x65,  0x00, 0x01, 0, 0,  4, 0, 0, 0,  0xdc, 0x05, 0, 0,  0xde, 0xad, 0xbe, 0xef,
    ];
    let (packets, facts) = read(&file);
    let expected = Got {
        frame: 1,
        time_ns: Some(1_700_000_000_000_256_000),
        captured: vec![0xde, 0xad, 0xbe, 0xef],
        original_len: 1500,
        link_type: 1,
    };
    assert_eq!(packets, [expected]);
    assert_eq!(facts.format, FileFormat::Pcap);
    assert_eq!(facts.byte_order, ByteOrder::Little);
    assert_eq!(facts.interfaces[0].snaplen, 96);
    assert_eq!(facts.interfaces[0].ticks_per_second, 1_000_000);
    assert_eq!((facts.packets, facts.packets_snapped), (1, 1));
    assert_eq!((facts.bytes, facts.bytes_on_disk), (44, 44));
    assert!(facts.warnings.is_empty());
}

#[test]
fn both_orders_and_both_resolutions() {
    for (order, byte_order) in [(Little, ByteOrder::Little), (Big, ByteOrder::Big)] {
        for (magic, expected_ns) in [(MICROSECONDS, 7_000_123_000), (NANOSECONDS, 7_000_000_123)] {
            let file = [
                pcap_header(order, magic, 65_535, 101),
                record(order, (7, 123), 3, b"abc"),
            ]
            .concat();
            let (packets, facts) = read(&file);
            assert_eq!(packets.len(), 1);
            assert_eq!(packets[0].time_ns, Some(expected_ns));
            assert_eq!(packets[0].captured, b"abc");
            assert_eq!(packets[0].link_type, 101);
            assert_eq!(facts.byte_order, byte_order);
        }
    }
}

#[test]
fn modified_records_have_24_byte_headers() {
    let mut file = pcap_header(Big, MODIFIED, 65_535, 1);
    for n in 1..=2 {
        file.extend(record_claiming(Big, (n, 0), (2, 2), &[0xff; 8]));
        file.extend(b"ok");
    }
    let (packets, facts) = read(&file);
    assert_eq!(packets.len(), 2);
    assert_eq!(packets[1].captured, b"ok");
    assert_eq!(packets[1].time_ns, Some(2_000_000_000));
    assert_eq!(facts.format, FileFormat::PcapModified);
}

#[test]
fn link_type_is_read_without_fcs_length_and_reserved_bits() {
    // FCS length 4 in the top four bits, the P bit that announces it, and a reserved bit.
    let file = pcap_header(
        Little,
        MICROSECONDS,
        65_535,
        0x4000_0000 | 0x0400_0000 | 0x0001_0000 | 113,
    );
    let (_, facts) = read(&file);
    assert_eq!(facts.interfaces[0].link_type, 113);
}

#[test]
fn a_bare_header_is_a_capture_without_packets() {
    let (packets, facts) = read(&plain_header());
    assert!(packets.is_empty());
    assert!(facts.warnings.is_empty());
    assert_eq!((facts.first_time_ns, facts.last_time_ns), (None, None));
}

#[test]
fn the_largest_time_fits() {
    let file = [
        pcap_header(Little, NANOSECONDS, 65_535, 1),
        record(Little, (u32::MAX, 999_999_999), 0, b""),
    ]
    .concat();
    let (packets, _) = read(&file);
    // 2^32 seconds minus a nanosecond.
    assert_eq!(packets[0].time_ns, Some(4_294_967_295_999_999_999));
}

#[test]
fn a_fraction_above_a_second_is_added_and_reported_once() {
    let file = [
        plain_header(),
        record(Little, (1, 999_999), 1, b"a"),
        record(Little, (1, 1_000_000), 1, b"b"),
        record(Little, (1, u32::MAX), 1, b"c"),
    ]
    .concat();
    let (packets, facts) = read(&file);
    let times: Vec<_> = packets.iter().map(|p| p.time_ns).collect();
    // u32::MAX microseconds are 4,294.967295 s.
    let expected = [1_999_999_000, 2_000_000_000, 4_295_967_295_000];
    assert_eq!(times, expected.map(Some));
    assert_eq!(warning_kinds(&facts), [WarningKind::TimeOutOfRange]);
    assert_eq!(facts.warnings[0].byte_offset, 24 + 17);
}

#[test]
fn a_captured_length_above_the_original_raises_the_original() {
    let file = [plain_header(), record(Little, (1, 0), 2, b"five!")].concat();
    let (packets, facts) = read(&file);
    assert_eq!(packets[0].captured, b"five!");
    assert_eq!(packets[0].original_len, 5);
    assert_eq!(facts.packets_snapped, 0);
}

#[test]
fn lengths_of_old_versions_are_swapped() {
    // Original 9 first, captured 3 second.
    for version in [(2, 0), (2, 2), (543, 0)] {
        let file = [
            pcap_header_of_version(Little, MICROSECONDS, version, 65_535, 1),
            record_claiming(Little, (1, 0), (9, 3), b"abc"),
        ]
        .concat();
        let (packets, _) = read(&file);
        assert_eq!((packets[0].captured.len(), packets[0].original_len), (3, 9));
    }
    // 2.3 was written both ways.
    for lengths in [(9, 3), (3, 9)] {
        let file = [
            pcap_header_of_version(Little, MICROSECONDS, (2, 3), 65_535, 1),
            record_claiming(Little, (1, 0), lengths, b"abc"),
        ]
        .concat();
        let (packets, _) = read(&file);
        assert_eq!((packets[0].captured.len(), packets[0].original_len), (3, 9));
    }
}

#[test]
fn unknown_versions_are_errors() {
    for version in [(1, 4), (2, 5), (3, 0), (543, 1)] {
        let file = pcap_header_of_version(Big, MICROSECONDS, version, 65_535, 1);
        let error = open(&file).err().expect("not readable");
        assert_eq!(error.kind, CaptureErrorKind::BadHeader);
        assert_eq!(error.byte_offset, 4);
        let named = format!("version {}.{}", version.0, version.1);
        assert!(error.to_string().contains(&named), "{error}");
    }
}

#[test]
fn a_header_cut_short_is_an_error() {
    let header = plain_header();
    for len in 4..24 {
        let error = open(&header[..len]).err().expect("not readable");
        assert_eq!(error.kind, CaptureErrorKind::HeaderCut, "{len}");
    }
}

#[test]
fn times_and_backward_steps_are_counted() {
    let file = [
        plain_header(),
        record(Little, (5, 0), 1, b"a"),
        record(Little, (4, 0), 1, b"b"),
        record(Little, (4, 0), 1, b"c"),
        record(Little, (9, 0), 1, b"d"),
        record(Little, (8, 0), 1, b"e"),
    ]
    .concat();
    let (_, facts) = read(&file);
    assert_eq!(facts.time_backwards, 2);
    assert_eq!(facts.first_time_ns, Some(4_000_000_000));
    assert_eq!(facts.last_time_ns, Some(9_000_000_000));
}

#[test]
fn frame_numbers_can_continue() {
    let mut reader = open(&small_pcap()).expect("can be opened");
    reader.set_next_frame(41);
    let frames: Vec<_> = drain(&mut reader).iter().map(|p| p.frame).collect();
    assert_eq!(frames, [41, 42, 43]);
}

#[test]
fn foreign_files_are_identified() {
    let cases: [(&[u8], &str); 5] = [
        (
            b"snoop\0\0\0\0\0\0\x02\0\0\0\x04",
            "looks like a snoop capture",
        ),
        (b"GMBU\0\x02rest", "Microsoft Network Monitor 2"),
        (b"timestamp,bytes\n1,2\n", "looks like a text file"),
        (b"\x01\x02\x03\x04\x05", "starts with the bytes 01 02 03 04"),
        (b"\xd4", "starts with the bytes d4"),
    ];
    for (bytes, expected) in cases {
        let error = open(bytes).err().expect("not readable");
        assert_eq!(error.kind, CaptureErrorKind::NotACapture);
        assert!(error.to_string().starts_with("crafted: "), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn no_bytes_are_an_empty_file() {
    let error = open(b"").err().expect("not readable");
    assert_eq!(error.kind, CaptureErrorKind::Empty);
    assert_eq!(error.to_string(), "crafted: empty file");
}

#[test]
fn a_missing_file_and_a_directory_are_unreadable() {
    let missing = CaptureReader::open("no/such/capture.pcap")
        .err()
        .expect("not readable");
    assert_eq!(
        missing.kind,
        CaptureErrorKind::Unreadable(io::ErrorKind::NotFound)
    );
    let directory = CaptureReader::open(env!("CARGO_MANIFEST_DIR"))
        .err()
        .expect("not readable");
    assert!(matches!(directory.kind, CaptureErrorKind::Unreadable(_)));
}
