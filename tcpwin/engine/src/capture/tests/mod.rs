//! Readers against crafted bytes. Expected values are derived from the formats' specifications.

mod compression;
mod corpus;
mod crafted;
mod damage;
mod merge;
mod pcap;
mod pcapng;

use std::io::{self, Cursor, Read};

use super::{CaptureError, CaptureFacts, CaptureReader, MergedReader, Packet, WarningKind};

/// A packet that outlives its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Got {
    frame: u64,
    time_ns: Option<i64>,
    captured: Vec<u8>,
    original_len: u32,
    link_type: u32,
}

impl From<Packet<'_>> for Got {
    fn from(packet: Packet<'_>) -> Self {
        Self {
            frame: packet.frame,
            time_ns: packet.time_ns,
            captured: packet.captured.to_vec(),
            original_len: packet.original_len,
            link_type: packet.link_type,
        }
    }
}

fn open(bytes: &[u8]) -> Result<CaptureReader, CaptureError> {
    CaptureReader::from_reader(Box::new(Cursor::new(bytes.to_vec())), "crafted")
}

fn drain(reader: &mut CaptureReader) -> Vec<Got> {
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push(Got::from(packet));
    }
    packets
}

/// Like `drain`, in runs of at most three.
fn drain_by_runs(reader: &mut CaptureReader) -> Vec<Got> {
    let mut packets = Vec::new();
    loop {
        let mut room = 3;
        reader.take_run(|packet, _| {
            packets.push(Got::from(packet));
            room -= 1;
            room > 0
        });
        match reader.next_packet() {
            Some(packet) => packets.push(Got::from(packet)),
            None => return packets,
        }
    }
}

/// Return all packets and facts of a readable capture, checking that single reads and runs agree.
fn read(bytes: &[u8]) -> (Vec<Got>, CaptureFacts) {
    let mut reader = open(bytes).expect("can be opened");
    let packets = drain(&mut reader);
    assert!(reader.next_packet().is_none(), "the end stays the end");
    let facts = reader.into_facts();
    let mut reader = open(bytes).expect("can be opened");
    assert_eq!(drain_by_runs(&mut reader), packets);
    assert_eq!(reader.into_facts(), facts);
    (packets, facts)
}

fn drain_merged(reader: &mut MergedReader) -> Vec<Got> {
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push(Got::from(packet));
    }
    packets
}

fn warning_kinds(facts: &CaptureFacts) -> Vec<WarningKind> {
    facts.warnings.iter().map(|w| w.kind).collect()
}

/// Returns one byte per call, as a slow pipe may.
struct Trickle(Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let one = out.len().min(1);
        self.0.read(&mut out[..one])
    }
}
