//! Headers → segment. Input: a link type (two bytes, big-endian), then length-prefixed packets (15-bit lengths; the
//! high bit means that the frame was 1,000 bytes longer), a millisecond apart. Any outcome is acceptable, but segments
//! must keep their bounds and the invariants must hold.
#![no_main]

use std::io::Cursor;

use _engine::capture::{CaptureReader, MergedReader, Packet};
use _engine::output::invariants::check_capture;
use _engine::wire::{Outcome, Segment, SegmentParser};
use libfuzzer_sys::fuzz_target;

/// A pcap file with nanosecond timestamps.
struct File(Vec<u8>);

impl File {
    fn new(link_type: u32) -> Self {
        let mut file = File(Vec::new());
        file.put(&[0xA1B2_3C4D, 2 | 4 << 16, 0, 0, 1 << 18, link_type]);
        file
    }

    fn put(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn add(&mut self, packet: &Packet<'_>) {
        let (ms, length) = (packet.frame as u32, packet.captured.len() as u32);
        self.put(&[
            ms / 1000,
            ms % 1000 * 1_000_000,
            length,
            packet.original_len,
        ]);
        self.0.extend_from_slice(packet.captured);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((link_type, mut rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let link_type = u32::from(u16::from_be_bytes(*link_type));
    let mut file = File::new(link_type);
    let mut parser = SegmentParser::new();
    let mut frame = 0;
    while let Some((header, after)) = rest.split_first_chunk::<2>() {
        let header = u16::from_be_bytes(*header);
        let (captured, next) = after.split_at(usize::from(header & 0x7FFF).min(after.len()));
        frame += 1;
        let packet = Packet {
            frame,
            time_ns: None,
            captured,
            original_len: captured.len() as u32 + if header & 0x8000 != 0 { 1000 } else { 0 },
            link_type,
        };
        file.add(&packet);
        let mut segment = Segment::EMPTY;
        if parser.parse(&packet, 0, &mut segment) == Outcome::Segment {
            assert_eq!(segment.frame, frame);
            assert!(matches!(segment.ip_version, 4 | 6));
            assert!(segment.payload_len <= 1 << 30);
            assert!(segment.options.sack_count <= 4);
        }
        rest = next;
    }
    let counters = parser.counters();
    let counted = counters.segments
        + counters.not_tcp
        + counters.fragments_pending
        + counters.quoted
        + counters.header_cut
        + counters.malformed
        + counters.unknown_link;
    assert_eq!(counted, frame);

    let reader = CaptureReader::from_reader(Box::new(Cursor::new(file.0)), "input");
    let found = reader.map_or(vec![], |reader| check_capture(MergedReader::from(reader)));
    assert!(found.is_empty(), "{found:?}");
});
