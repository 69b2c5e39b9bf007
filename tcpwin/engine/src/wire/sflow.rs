//! sFlow version 5 (sflow.org/sflow_version_5.txt): headers of sampled packets; the first TCP header is used.

use super::outcome::Outcome;
use super::segment::capture_flag;
use super::view::{Layer, View};
use super::walk::Walk;

const VERSION: u32 = 5;
const MAX_SAMPLES: u32 = 32;
const MAX_RECORDS: u32 = 32;

const FLOW_SAMPLE: u32 = 1;
const EXPANDED_FLOW_SAMPLE: u32 = 3;
const RAW_PACKET_HEADER: u32 = 1;

#[cold]
#[inline(never)]
pub(super) fn descend(walk: &mut Walk<'_>, view: View<'_>) -> Outcome {
    walk.frame_flags |= capture_flag::SAMPLED;
    match each_sample(walk, view) {
        Ok(()) => Outcome::NotTcp,
        Err(outcome) => outcome,
    }
}

fn each_sample(walk: &mut Walk<'_>, view: View<'_>) -> Result<(), Outcome> {
    if view.be32(0)? != VERSION {
        return Ok(());
    }
    let agent_len = match view.be32(4)? {
        1 => 4,
        2 => 16,
        _ => return Ok(()),
    };
    let mut rest = view.skip(8 + agent_len)?;
    let samples = rest.be32(12)?;
    rest = rest.skip(16)?;
    for _ in 0..samples.min(MAX_SAMPLES) {
        let (kind, body, next) = record(rest)?;
        rest = next;
        match kind {
            FLOW_SAMPLE => each_record(walk, body, 28)?,
            EXPANDED_FLOW_SAMPLE => each_record(walk, body, 40)?,
            _ => {}
        }
    }
    Ok(())
}

/// Walk the records of a flow sample; their count is the word at `count_at`.
fn each_record(walk: &mut Walk<'_>, sample: View<'_>, count_at: usize) -> Result<(), Outcome> {
    let records = sample.be32(count_at)?;
    let mut rest = sample.skip(count_at + 4)?;
    for _ in 0..records.min(MAX_RECORDS) {
        let (kind, body, next) = record(rest)?;
        rest = next;
        if kind != RAW_PACKET_HEADER {
            continue;
        }
        let (protocol, frame_len, header_len) = (body.be32(0)?, body.be32(4)?, body.be32(12)?);
        let header = body.skip(16)?.limit(to_len(header_len));
        let frame = View::new(header.bytes, to_len(frame_len));
        let layer = match protocol {
            1 => Layer::Ethernet,
            7 => Layer::Ppp,
            11 => Layer::Ipv4,
            12 => Layer::Ipv6,
            13 => Layer::Mpls,
            _ => continue,
        };
        let outcome = walk.descend(layer, frame);
        if outcome == Outcome::Segment {
            return Err(outcome);
        }
    }
    Ok(())
}

/// Parse a tagged structure into its tag, its body, and the rest.
fn record(view: View<'_>) -> Result<(u32, View<'_>, View<'_>), Outcome> {
    let (kind, len) = (view.be32(0)?, to_len(view.be32(4)?));
    let body = view.skip(8)?;
    Ok((
        kind,
        body.limit(len),
        body.skip(len).unwrap_or(View::new(&[], 0)),
    ))
}

fn to_len(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
