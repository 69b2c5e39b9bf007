//! gzip, zstd and lz4: whole, concatenated, nested, cut and damaged.

use std::io::Write;

use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::crafted::*;
use super::*;
use crate::capture::{CaptureErrorKind, Compression};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 3).expect("to memory")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent)
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

type Encoder = fn(&[u8]) -> Vec<u8>;

const ENCODERS: [(Compression, Encoder); 3] = [
    (Compression::Gzip, gzip),
    (Compression::Zstd, zstd),
    (Compression::Lz4, lz4),
];

#[test]
fn whole_files() {
    for plain in [small_pcap(), small_pcapng(), noisy_pcap()] {
        let (expected, _) = read(&plain);
        for (compression, encode) in ENCODERS {
            let file = encode(&plain);
            let (packets, facts) = read(&file);
            assert!(packets == expected, "{compression:?}");
            assert_eq!(facts.compression, [compression]);
            assert!(facts.warnings.is_empty(), "{:?}", facts.warnings);
            assert_eq!(facts.bytes, plain.len() as u64);
            assert_eq!(facts.bytes_on_disk, file.len() as u64, "{compression:?}");
        }
    }
}

#[test]
fn a_handwritten_stored_gzip_member() {
    // RFC 1952 §2.3 around RFC 1951 §3.2.4: one final stored block of 24 bytes, then CRC32 and length.
    let header = plain_header();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    file.extend([1, 24, 0, !24, 0xff]);
    file.extend(&header);
    let mut crc = flate2::Crc::new();
    crc.update(&header);
    file.extend(crc.sum().to_le_bytes());
    file.extend(24u32.to_le_bytes());
    let (packets, facts) = read(&file);
    assert!(packets.is_empty());
    assert_eq!(facts.compression, [Compression::Gzip]);
    assert!(facts.warnings.is_empty());
}

#[test]
fn members_and_frames_can_be_concatenated() {
    let plain = noisy_pcap();
    let (expected, _) = read(&plain);
    let (first, second) = plain.split_at(123_457);
    for (compression, encode) in ENCODERS {
        let file = [encode(first), encode(b""), encode(second)].concat();
        let (packets, facts) = read(&file);
        assert!(packets == expected, "{compression:?}");
        assert!(facts.warnings.is_empty(), "{:?}", facts.warnings);
    }
}

#[test]
fn skippable_frames_are_skipped() {
    let mut skippable = vec![0x5a, 0x2a, 0x4d, 0x18, 5, 0, 0, 0];
    skippable.extend(b"12345");
    let (expected, _) = read(&small_pcap());
    let zstd_first = [skippable.clone(), zstd(&small_pcap()), skippable.clone()].concat();
    let lz4_last = [lz4(&small_pcap()), skippable.clone()].concat();
    for file in [zstd_first, lz4_last] {
        let (packets, facts) = read(&file);
        assert_eq!(packets, expected);
        assert!(facts.warnings.is_empty(), "{:?}", facts.warnings);
        // Frame headers may arrive in pieces.
        let slow = Box::new(Trickle(Cursor::new(file)));
        let mut reader = CaptureReader::from_reader(slow, "slow").expect("can be opened");
        assert_eq!(drain(&mut reader), expected);
        assert!(reader.facts().warnings.is_empty());
    }
}

#[test]
fn zeros_after_a_gzip_member_are_padding_and_other_bytes_are_not() {
    let (expected, _) = read(&small_pcap());
    let padded = [gzip(&small_pcap()), vec![0; 512]].concat();
    let (packets, facts) = read(&padded);
    assert_eq!(packets, expected);
    assert!(facts.warnings.is_empty());

    let garbage = [gzip(&small_pcap()), b"garbage".to_vec()].concat();
    let (packets, facts) = read(&garbage);
    assert_eq!(packets, expected);
    assert_eq!(warning_kinds(&facts), [WarningKind::CompressionDamaged]);
}

#[test]
fn compression_can_be_nested_once() {
    let (expected, _) = read(&small_pcap());
    let (packets, facts) = read(&zstd(&gzip(&small_pcap())));
    assert_eq!(packets, expected);
    assert_eq!(facts.compression, [Compression::Zstd, Compression::Gzip]);

    let error = open(&gzip(&lz4(&gzip(&small_pcap()))))
        .err()
        .expect("not readable");
    assert_eq!(error.kind, CaptureErrorKind::BadCompression);
}

#[test]
fn any_cut_keeps_the_data_before_it() {
    let plain = noisy_pcap();
    let (expected, _) = read(&plain);
    for (compression, encode) in ENCODERS {
        let file = encode(&plain);
        // 100 packets are about a tenth; no block of any format is longer than 128 KiB.
        for cut in (2_000..file.len())
            .step_by(59_999)
            .chain(file.len() - 12..file.len())
        {
            let (packets, facts) = match open(&file[..cut]) {
                Ok(mut reader) => (drain(&mut reader), reader.into_facts()),
                Err(error) => {
                    assert_eq!(
                        error.kind,
                        CaptureErrorKind::BadCompression,
                        "{compression:?} {cut}"
                    );
                    assert!(cut <= 132_000, "{compression:?} {cut}");
                    continue;
                }
            };
            assert!(
                packets[..] == expected[..packets.len()],
                "{compression:?} {cut}"
            );
            assert!(
                packets.len() + 131 >= cut * 1000 / file.len(),
                "{compression:?} {cut}"
            );
            assert_eq!(
                warning_kinds(&facts),
                [WarningKind::CompressionDamaged],
                "{compression:?} {cut}"
            );
        }
    }
}

#[test]
fn damage_in_the_middle_keeps_the_data_before_it() {
    let plain = noisy_pcap();
    let (expected, _) = read(&plain);
    for (compression, encode) in ENCODERS {
        // The second frame's header is destroyed.
        let first = encode(&plain[..500_000]);
        let mut second = encode(&plain[500_000..]);
        second[..7].fill(0xee);
        let (packets, facts) = read(&[first, second].concat());
        // (500,000 - 24) / 1,016 whole records.
        assert_eq!(packets.len(), 492, "{compression:?}");
        assert!(packets[..] == expected[..492]);
        assert_eq!(warning_kinds(&facts), [WarningKind::CompressionDamaged]);
        assert_eq!(facts.warnings[0].byte_offset, 500_000, "{compression:?}");
    }
}

#[test]
fn data_inflated_before_a_bad_deflate_block_is_kept() {
    // Two stored blocks (RFC 1951 §3.2.4), then one of the reserved type 3.
    let plain = small_pcap();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    for half in [&plain[..40], &plain[40..]] {
        let len = half.len() as u16;
        file.push(0);
        file.extend(len.to_le_bytes());
        file.extend((!len).to_le_bytes());
        file.extend(half);
    }
    file.push(0b111);
    file.extend([0; 64]);
    let (packets, facts) = read(&file);
    assert_eq!(packets, read(&plain).0);
    assert_eq!(warning_kinds(&facts), [WarningKind::CompressionDamaged]);
    assert!(facts.warnings[0].message.contains("gzip stream is damaged"));
}

#[test]
fn a_zstd_block_before_a_bad_block_header_is_kept() {
    // RFC 8878 §3.1.1.2: a raw block that is not the last, then one of the reserved type 3.
    let plain = small_pcap();
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 10 << 3];
    for half in [&plain[..50], &plain[50..]] {
        let block_header = (half.len() as u32) << 3;
        file.extend(&block_header.to_le_bytes()[..3]);
        file.extend(half);
    }
    file.extend([3 << 1, 0, 0, 0, 0, 0]);
    let (packets, facts) = read(&file);
    assert_eq!(packets, read(&plain).0);
    assert_eq!(warning_kinds(&facts), [WarningKind::CompressionDamaged]);
    assert_eq!(facts.warnings[0].byte_offset, plain.len() as u64);
}

#[test]
fn a_wrong_checksum_loses_no_packets() {
    let mut wrong_gzip = gzip(&small_pcap());
    let crc_at = wrong_gzip.len() - 8;
    wrong_gzip[crc_at] ^= 1;
    // RFC 8878 §3.1.1: with a checksum (descriptor 0x04), window of 1 MiB, and one last raw block.
    let plain = small_pcap();
    let mut wrong_zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0x04, 10 << 3];
    let block_header = (plain.len() as u32) << 3 | 1;
    wrong_zstd.extend(&block_header.to_le_bytes()[..3]);
    wrong_zstd.extend(&plain);
    wrong_zstd.extend([0xee; 4]);
    let mut wrong_lz4 = lz4(&small_pcap());
    let last = wrong_lz4.len() - 1;
    wrong_lz4[last] ^= 1;
    for file in [wrong_gzip, wrong_zstd, wrong_lz4] {
        let (packets, facts) = read(&file);
        assert_eq!(packets.len(), 3);
        assert_eq!(warning_kinds(&facts), [WarningKind::CompressionDamaged]);
    }
}

#[test]
fn a_stream_without_content_is_an_empty_file() {
    for (compression, encode) in ENCODERS {
        let error = open(&encode(b"")).err().expect("not readable");
        assert_eq!(error.kind, CaptureErrorKind::Empty, "{compression:?}");
        assert!(error.to_string().contains(compression.as_str()), "{error}");
    }
}

#[test]
fn foreign_content_is_identified() {
    let error = open(&gzip(b"a plain text of some length"))
        .err()
        .expect("not readable");
    assert_eq!(error.kind, CaptureErrorKind::NotACapture);
    assert!(error.to_string().contains("a text file"), "{error}");
}

#[test]
fn a_zstd_window_over_128_mib_is_refused() {
    // RFC 8878 §3.1.1.1: no single segment, no content size; window descriptor exponent 18 is 2^28 bytes.
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 18 << 3];
    // A last, raw block of 24 bytes.
    file.extend([24 << 3 | 1, 0, 0]);
    file.extend(plain_header());
    let error = open(&file).err().expect("not readable");
    assert_eq!(error.kind, CaptureErrorKind::BadCompression);
    // Exponent 17 is 2^27 bytes, the supported maximum.
    file[5] = 17 << 3;
    assert!(open(&file).is_ok());
}

#[test]
fn one_byte_at_a_time() {
    let (expected, _) = read(&small_pcapng());
    for (compression, encode) in ENCODERS {
        let slow = Trickle(Cursor::new(encode(&small_pcapng())));
        let mut reader = CaptureReader::from_reader(Box::new(slow), "slow").expect("can be opened");
        assert_eq!(drain(&mut reader), expected, "{compression:?}");
        assert!(reader.facts().warnings.is_empty());
    }
}
