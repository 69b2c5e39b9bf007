//! File bytes → packets. Any outcome will do; packets and facts must keep their bounds, and a capture merged with
//! itself must give each packet twice.
#![no_main]

use std::io::Cursor;

use _engine::capture::{CaptureReader, MergedReader};
use libfuzzer_sys::fuzz_target;

fn open(input: &[u8]) -> Option<CaptureReader> {
    CaptureReader::from_reader(Box::new(Cursor::new(input.to_vec())), "input").ok()
}

fuzz_target!(|input: &[u8]| {
    let Some(mut reader) = open(input) else {
        return;
    };
    let (mut packets, mut frame) = (0u64, 0);
    while let Some(packet) = reader.next_packet() {
        assert!(packet.captured.len() <= packet.original_len as usize);
        assert!(packet.frame > frame);
        frame = packet.frame;
        packets += 1;
    }
    assert!(reader.next_packet().is_none());
    let facts = reader.into_facts();
    assert_eq!(facts.packets, packets);
    assert!(facts.packets_snapped <= packets && facts.time_backwards <= packets);
    assert!(facts.first_time_ns <= facts.last_time_ns);
    assert!(facts.bytes_on_disk <= input.len() as u64);
    for warning in &facts.warnings {
        assert!(warning.byte_offset <= facts.bytes);
    }

    let twice = [open(input), open(input)].into_iter().flatten().collect();
    let mut merged = MergedReader::from_readers(twice);
    let mut merged_packets = 0;
    while merged.next_packet().is_some() {
        merged_packets += 1;
    }
    assert_eq!(merged_packets, 2 * packets);
});
