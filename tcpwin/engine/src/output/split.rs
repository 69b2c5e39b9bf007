//! Split a capture of two points into one file per point. Frame numbers are preserved: packets of the other point are
//! replaced by placeholders that readers number but skip.

use std::io::{self, Write};

use super::headers::{header_len, BlockWriter};
use crate::capture::{CaptureFacts, MergedReader};
use crate::pair::{Points, Side};
use crate::wire::{Outcome, Segment, SegmentParser};

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 14;

/// Read a capture and learn what distinguishes its two points; `None` if it has a single point. `report` is called
/// periodically with the bytes read so far; returning false ends the read.
pub fn learn(mut input: MergedReader, mut report: impl FnMut(u64) -> bool) -> Option<Points> {
    let mut points = Points::new();
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    let (mut last_ns, mut count) = (0, 0u64);
    while let Some(packet) = input.next_packet() {
        let previous_ns = last_ns;
        last_ns = packet.time_ns.unwrap_or(previous_ns);
        if parser.parse(&packet, previous_ns, &mut segment) == Outcome::Segment {
            points.learn(&segment);
        }
        count += 1;
        if count % REPORT_EVERY == 0 && !report(input.bytes_read()) {
            return None;
        }
    }
    points.are_two().then_some(points)
}

/// Read the same capture again and write the packets of each point to a separate file. Return their counts, and the
/// facts of the capture, which the files do not contain.
pub fn split(
    mut input: MergedReader,
    mut points: Points,
    outs: [&mut (dyn Write + Send); 2],
    mut report: impl FnMut(u64) -> bool,
) -> io::Result<([u64; 2], Vec<CaptureFacts>)> {
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    let [a, b] = outs;
    let mut writers = [BlockWriter::begin(a)?, BlockWriter::begin(b)?];
    let mut counts = [0; 2];
    let (mut last_ns, mut next_frame) = (0, 1);
    while let Some(packet) = input.next_packet() {
        let previous_ns = last_ns;
        last_ns = packet.time_ns.unwrap_or(previous_ns);
        while next_frame < packet.frame {
            for writer in &mut writers {
                writer.skipped()?;
            }
            next_frame += 1;
        }
        next_frame += 1;
        let is_segment = parser.parse(&packet, previous_ns, &mut segment) == Outcome::Segment;
        let side = is_segment.then(|| points.place(&segment));
        for each in Side::BOTH {
            let writer = &mut writers[each.index()];
            if side == Some(each) {
                writer.packet(&packet, last_ns, header_len(&packet))?;
                counts[each.index()] += 1;
            } else {
                writer.skipped()?;
            }
        }
        if next_frame % REPORT_EVERY == 0 && !report(input.bytes_read()) {
            break;
        }
    }
    for writer in writers {
        writer.finish()?;
    }
    Ok((counts, input.into_facts()))
}
