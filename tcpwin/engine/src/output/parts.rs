//! Frames with fragments of some connections' segments: all IP fragments of a datagram except the last, at which the
//! segment is known.

use std::collections::HashMap;

use crate::capture::MergedReader;
use crate::tcp::connection::state::{Connection, Endpoint};
use crate::wire::{Outcome, Segment, SegmentParser};

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 17;

/// Return all frames of the fragments of these connections' segments, in order. `report` is called periodically with
/// the bytes read so far; returning false ends the read.
pub fn frames_of_parts<'c>(
    mut input: MergedReader,
    connections: impl Iterator<Item = &'c Connection>,
    mut report: impl FnMut(u64) -> bool,
) -> Vec<u64> {
    let mut wanted: HashMap<[Ends; 2], Vec<&Connection>> = HashMap::new();
    for connection in connections {
        let pair = sorted(connection.endpoints.map(ends));
        wanted.entry(pair).or_default().push(connection);
    }
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    let mut frames = Vec::new();
    let (mut last_ns, mut count) = (0, 0u64);
    while let Some(packet) = input.next_packet() {
        let added_before = parser.fragments_added();
        let outcome = parser.parse(&packet, last_ns, &mut segment);
        last_ns = packet.time_ns.unwrap_or(last_ns);
        if outcome == Outcome::Segment && parser.fragments_added() != added_before {
            let pair = [
                (segment.src, segment.src_port),
                (segment.dst, segment.dst_port),
            ];
            // Other connections may have had the same four-tuple before or after.
            let known = wanted.get(&sorted(pair)).into_iter().flatten();
            if known.into_iter().any(|known| contains(known, &segment)) {
                let parts = parser.completed_frames().iter();
                frames.extend(parts.filter(|frame| **frame != segment.frame));
            }
        }
        count += 1;
        if count % REPORT_EVERY == 0 && !report(input.bytes_read()) {
            break;
        }
    }
    frames.sort_unstable();
    frames.dedup();
    frames
}

/// Return true if a segment falls within the life of a connection.
fn contains(connection: &Connection, segment: &Segment) -> bool {
    segment.frame >= connection.first_frame && segment.time_ns <= connection.end_ns
}

type Ends = ([u8; 16], u16);

fn ends(endpoint: Endpoint) -> Ends {
    (endpoint.address, endpoint.port)
}

fn sorted(mut pair: [Ends; 2]) -> [Ends; 2] {
    pair.sort_unstable();
    pair
}
