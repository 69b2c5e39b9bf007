//! Cuts, wrong lengths, failing reads and random bytes: packets before the damage, one warning, bounded memory.

use proptest::prelude::*;

use super::crafted::*;
use super::*;
use crate::capture::buffer::BUFFER_BYTES;

#[test]
fn any_cut_yields_a_prefix_and_at_most_one_warning() {
    for file in [small_pcap(), small_pcapng()] {
        let (expected, _) = read(&file);
        for cut in 28..file.len() {
            let (packets, facts) = read(&file[..cut]);
            assert_eq!(packets[..], expected[..packets.len()], "{cut}");
            assert!(facts.warnings.len() <= 1, "{cut}: {:?}", facts.warnings);
            assert!(warning_kinds(&facts)
                .iter()
                .all(|&k| k == WarningKind::Truncated));
        }
        let warned = |cut: usize| !read(&file[..cut]).1.warnings.is_empty();
        assert!(warned(file.len() - 1));
        assert!(!warned(file.len()));
    }
}

#[test]
fn a_cut_is_reported_at_the_start_of_its_record() {
    let file = small_pcap();
    // 24 + 21 + 16 bytes; the cut is in the third record's header, then in its data.
    for cut in [61 + 1, 61 + 15, 61 + 16, 61 + 24] {
        let (packets, facts) = read(&file[..cut]);
        assert_eq!(packets.len(), 2, "{cut}");
        assert_eq!(facts.warnings[0].byte_offset, 61, "{cut}");
        assert_eq!(facts.warnings[0].file, "crafted");
    }
    let text = read(&file[..61 + 20]).1.warnings[0].to_string();
    assert_eq!(
        text,
        "crafted: the file ends inside a packet, 5 bytes short; everything before it was read (at byte 61)"
    );
}

#[test]
fn a_block_cut_in_its_trailing_length_is_reported_at_its_start() {
    let file = [section(Little), block(Little, 0x99, b"body")].concat();
    for cut in 28 + 12..28 + 16 {
        let (_, facts) = read(&file[..cut]);
        assert_eq!(warning_kinds(&facts), [WarningKind::Truncated], "{cut}");
        assert_eq!(facts.warnings[0].byte_offset, 28, "{cut}");
    }
}

#[test]
fn an_impossibly_long_record_stops_reading() {
    // 262,144 is the limit if the snaplen is lower.
    for (claimed, damaged) in [(262_145, true), (262_144, false), (u32::MAX, true)] {
        let file = [
            plain_header(),
            record(Little, (1, 0), 1, b"a"),
            record_claiming(Little, (2, 0), (claimed, claimed), b""),
        ]
        .concat();
        let (packets, facts) = read(&file);
        assert_eq!(packets.len(), 1);
        let expected = if damaged {
            WarningKind::Damaged
        } else {
            WarningKind::Truncated
        };
        assert_eq!(warning_kinds(&facts), [expected], "{claimed}");
        assert_eq!(facts.warnings[0].byte_offset, 24 + 17);
    }
}

#[test]
fn a_long_record_is_read_if_the_snaplen_allows_it_and_it_is_complete() {
    let data = noise(1_000_000, 1);
    let file = [
        pcap_header(Little, MICROSECONDS, 0x7fff_ffff, 1),
        record(Little, (1, 0), 1_000_000, &data),
        record(Little, (2, 0), 2, b"ok"),
        record_claiming(Little, (3, 0), (16 << 20, 16 << 20), b"not there"),
    ]
    .concat();
    let mut reader = open(&file).expect("can be opened");
    let packets = drain(&mut reader);
    assert_eq!(packets.len(), 2);
    assert!(packets[0].captured == data);
    assert_eq!(warning_kinds(reader.facts()), [WarningKind::Truncated]);
    assert!(reader.buffer_capacity() <= 2 * file.len() + BUFFER_BYTES);
}

#[test]
fn a_read_that_fails_ends_the_packets_with_a_warning() {
    struct Failing(Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            match self.0.read(out)? {
                0 => Err(io::Error::other("the disk is gone")),
                n => Ok(n),
            }
        }
    }
    let source = Failing(Cursor::new(small_pcap()));
    let mut reader =
        CaptureReader::from_reader(Box::new(source), "failing").expect("can be opened");
    assert_eq!(drain(&mut reader).len(), 3);
    let warnings = &reader.facts().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].kind, WarningKind::ReadFailed);
    assert!(warnings[0].message.contains("the disk is gone"));
    assert_eq!(warnings[0].byte_offset, small_pcap().len() as u64);
}

#[test]
fn a_slow_pipe_and_a_small_buffer_yield_the_same_packets() {
    for file in [small_pcap(), small_pcapng(), noisy_pcap()] {
        let (expected, _) = read(&file);
        let slow = Box::new(Trickle(Cursor::new(file.clone())));
        let mut reader = CaptureReader::from_reader(slow, "slow").expect("can be opened");
        assert!(drain(&mut reader) == expected);

        let source = Box::new(Cursor::new(file));
        let mut reader =
            CaptureReader::from_reader_with(source, "small", 64).expect("can be opened");
        assert!(drain(&mut reader) == expected);
        assert!(reader.buffer_capacity() <= 4096);
    }
}

#[test]
fn the_number_of_warnings_is_bounded() {
    let mut facts = CaptureFacts::new("crafted".into(), Vec::new());
    for offset in 0..130 {
        facts.warn(crate::capture::error::Fault::damaged(offset, String::new()));
    }
    assert_eq!((facts.warnings.len(), facts.warnings_omitted), (100, 30));
}

/// Invariants for arbitrary bytes.
pub(super) fn check_invariants(bytes: &[u8]) {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut reader) = CaptureReader::from_reader_with(source, "random", 64) else {
        return;
    };
    let plain = reader.facts().compression.is_empty();
    let (mut packets, mut captured_bytes, mut frame) = (0, 0, 0);
    while let Some(packet) = reader.next_packet() {
        assert!(packet.captured.len() <= packet.original_len as usize);
        assert!(packet.frame > frame);
        frame = packet.frame;
        packets += 1;
        captured_bytes += packet.captured.len();
    }
    assert!(reader.next_packet().is_none());
    let capacity = reader.buffer_capacity();
    let facts = reader.into_facts();
    assert_eq!(facts.packets, packets);
    let source = Box::new(Cursor::new(bytes.to_vec()));
    if let Ok(mut by_runs) = CaptureReader::from_reader_with(source, "random", 64) {
        assert_eq!(drain_by_runs(&mut by_runs).len() as u64, packets);
        assert_eq!(by_runs.into_facts(), facts);
    }
    assert!(facts.first_time_ns <= facts.last_time_ns);
    if plain {
        assert!(captured_bytes <= bytes.len());
        assert!(
            capacity <= 64 + 2 * bytes.len(),
            "{capacity} for {}",
            bytes.len()
        );
    }
}

proptest! {
    #[test]
    fn random_bytes_after_a_magic(
        start in prop::sample::select(vec![
            plain_header(),
            pcap_header(Big, MODIFIED, u32::MAX, 1),
            section(Little),
            [section(Big), interface(Big, 1, 0, b"")].concat(),
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        check_invariants(&[start, rest].concat());
    }

    #[test]
    fn changed_bytes(
        file in prop::sample::select(vec![small_pcap(), small_pcapng()]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = file;
        for (index, value) in changes {
            let at = index.index(file.len());
            file[at] = value;
        }
        check_invariants(&file);
        check_invariants(&file[..cut.index(file.len())]);
    }

    #[test]
    fn random_words_as_blocks(words in prop::collection::vec(
        prop_oneof![0u32..48, Just(0x0a0d_0d0a), Just(0x1a2b_3c4d), any::<u32>()], 0..80,
    )) {
        let mut file = [section(Little), interface(Little, 1, 0, b"")].concat();
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        check_invariants(&file);
    }
}
