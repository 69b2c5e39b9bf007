//! Headers → segment. Input: a link type (two bytes, big-endian), then packets, each after a length (fifteen bits; the
//! highest says that the frame was 1,000 bytes longer). Any outcome will do; a segment must keep its bounds.
#![no_main]

use _engine::capture::Packet;
use _engine::wire::{Outcome, Segment, SegmentParser};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((link_type, mut rest)) = input.split_first_chunk::<2>() else {
        return;
    };
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
            link_type: u32::from(u16::from_be_bytes(*link_type)),
        };
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
});
