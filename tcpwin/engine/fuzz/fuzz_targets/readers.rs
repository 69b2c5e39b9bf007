//! File bytes → packets. Any outcome is acceptable, but packets and facts must keep their bounds, a slow pipe must
//! yield the same packets, a capture merged with itself every packet twice, and the invariants must hold.
#![no_main]

use std::io::{self, Cursor, Read};

use _engine::capture::{CaptureReader, MergedReader};
use _engine::output::invariants::check_capture;
use libfuzzer_sys::fuzz_target;

fn open(input: &[u8]) -> Option<CaptureReader> {
    CaptureReader::from_reader(Box::new(Cursor::new(input.to_vec())), "input").ok()
}

/// Returns one byte per call.
struct Trickle(Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let one = out.len().min(1);
        self.0.read(&mut out[..one])
    }
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

    let slow = Box::new(Trickle(Cursor::new(input.to_vec())));
    let mut reader = CaptureReader::from_reader(slow, "slow").expect("opened above");
    while reader.next_packet().is_some() {}
    assert_eq!(reader.facts().packets, packets);
    assert_eq!(reader.facts().last_time_ns, facts.last_time_ns);

    let twice = [open(input), open(input)].into_iter().flatten().collect();
    let mut merged = MergedReader::from_readers(twice);
    let mut merged_packets = 0;
    while merged.next_packet().is_some() {
        merged_packets += 1;
    }
    assert_eq!(merged_packets, 2 * packets);

    let found = open(input).map_or(vec![], |reader| check_capture(MergedReader::from(reader)));
    assert!(found.is_empty(), "{found:?}");
});
