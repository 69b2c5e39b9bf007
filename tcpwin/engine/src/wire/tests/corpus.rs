//! Replays the fuzzer's corpus: each file must still have the outcome it is named after.

use std::fs;
use std::path::Path;

use crate::capture::Packet;
use crate::wire::{Outcome, Segment, SegmentParser};

/// Return the outcomes of a file: a link type (two bytes, big-endian), then length-prefixed packets (15-bit lengths;
/// the high bit means that the frame was 1,000 bytes longer). The fuzz target uses the same format.
fn replay(input: &[u8]) -> Vec<Outcome> {
    let Some((link_type, mut rest)) = input.split_first_chunk::<2>() else {
        return Vec::new();
    };
    let mut parser = SegmentParser::new();
    let mut outcomes = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<2>() {
        let header = u16::from_be_bytes(*header);
        let (captured, next) = after.split_at(usize::from(header & 0x7FFF).min(after.len()));
        let packet = Packet {
            frame: outcomes.len() as u64 + 1,
            time_ns: None,
            captured,
            original_len: captured.len() as u32 + if header & 0x8000 != 0 { 1000 } else { 0 },
            link_type: u32::from(u16::from_be_bytes(*link_type)),
        };
        outcomes.push(parser.parse(&packet, 0, &mut Segment::EMPTY.clone()));
        rest = next;
    }
    outcomes
}

#[test]
fn each_file_has_the_outcome_in_its_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/segment");
    let mut files = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is part of the sources") {
        let path = entry.expect("a folder that can be listed").path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let last = replay(&fs::read(&path).expect("a file that can be read")).pop();
        let expected = match name.split('-').next() {
            Some("segment") => Some(Outcome::Segment),
            Some("not") => Some(Outcome::NotTcp),
            Some("cut") => Some(Outcome::HeaderCut),
            Some("malformed") => Some(Outcome::Malformed),
            Some("quoted") => Some(Outcome::Quoted),
            Some("pending") => Some(Outcome::FragmentPending),
            _ => panic!("{name} begins with no outcome"),
        };
        assert_eq!(last, expected, "{name}");
        files += 1;
    }
    assert!((30..=60).contains(&files), "{files} files");
}
