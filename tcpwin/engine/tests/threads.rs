//! Several threads produce the same results as one: on bundled captures, on damaged ones, and with full journals.

#[path = "../examples/invariants/mutate.rs"]
mod mutate;

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use _engine::capture::{CaptureReader, MergedReader};
use _engine::output::pass::Findings;
use _engine::output::shards::run_sharded;
use _engine::tcp::tracker::Tracker;

const MUTATED: u64 = 1_000;
/// Total entries of all journals: see `tracker/journal.rs`.
const MOST_JOURNALED: usize = 1 << 18;

fn bundled() -> Vec<PathBuf> {
    let captures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut found = Vec::new();
    for folder in ["broken", "lab", "wild"] {
        let entries = fs::read_dir(captures.join(folder)).expect("a folder of captures");
        found.extend(entries.map(|entry| entry.expect("a capture").path()));
    }
    found.sort();
    found
}

fn read(input: MergedReader, threads: usize) -> Findings {
    run_sharded(input, Tracker::new(), threads, |_| true)
}

fn open(capture: &[u8]) -> MergedReader {
    let input = Box::new(Cursor::new(capture.to_vec()));
    MergedReader::from(CaptureReader::from_reader(input, "input").expect("a capture"))
}

fn totals(findings: &Findings) -> String {
    format!(
        "{:?} {:?} {} {} {} {:?}",
        findings.facts,
        findings.counters,
        findings.left_out,
        findings.tracker.duplicates,
        findings.tracker.options_cut,
        findings.tracker.journal_until(),
    )
}

/// The complete record of each connection.
fn records(findings: &Findings) -> Vec<String> {
    let connections = findings.tracker.connections.iter();
    connections.map(|each| format!("{each:?}")).collect()
}

fn assert_same(one: &Findings, several: &Findings, name: &str) {
    assert_eq!(totals(one), totals(several), "{name}");
    let (before, after) = (records(one), records(several));
    assert_eq!(before.len(), after.len(), "{name}");
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(before, after, "{name}, connection {number}");
    }
}

#[test]
fn bundled_captures() {
    let (mut count, mut most) = (0, 0);
    for path in bundled() {
        let open = || MergedReader::open(&[&path]);
        let Ok(input) = open() else {
            continue;
        };
        let one = read(input, 1);
        most = most.max(one.tracker.connections.len());
        count += 1;
        for threads in [2, 5] {
            let several = read(open().expect("opened before"), threads);
            assert_same(&one, &several, &path.display().to_string());
        }
    }
    assert!(count > 30, "{count} captures were read");
    assert!(most > 50, "no capture has more than {most} connections");
}

#[test]
fn damaged_captures() {
    let paths = bundled();
    let bases: Vec<_> = paths
        .iter()
        .filter_map(|path| mutate::Base::read(path.to_str()?))
        .collect();
    let mut count = 0;
    for seed in 0..MUTATED {
        let (bytes, name) = mutate::mutated(&bases, seed);
        if let (Some(input), Some(again)) = (mutate::open(bytes.clone()), mutate::open(bytes)) {
            count += 1;
            let threads = 2 + seed as usize % 4;
            assert_same(&read(input, 1), &read(again, threads), name);
        }
    }
    assert!(count > MUTATED / 2, "{count} captures were read");
}

#[test]
fn more_events_than_journals_hold() {
    let capture = resent_segments();
    let recorded = |findings: &Findings| {
        let connections = findings.tracker.connections.iter();
        connections.map(|each| each.journal()).collect::<Vec<_>>()
    };
    let one = read(open(&capture), 1);
    let before = recorded(&one);
    assert_eq!(before.iter().map(Vec::len).sum::<usize>(), MOST_JOURNALED);
    let several = read(open(&capture), 5);
    assert_eq!(totals(&one), totals(&several));
    assert!(before == recorded(&several));
}

/// A copy is recognized only within a number of the capture's segments, including those of other connections.
#[test]
fn copies_among_others() {
    let mut found = Vec::new();
    for between in 60..68 {
        let mut packets: Vec<_> = (0..between).map(|other| (other, 100 + other)).collect();
        packets.insert(0, (900, 7));
        packets.push((900, 7));
        let times = (0..).map(|number| number * 10);
        let packets = packets.into_iter().zip(times);
        let capture = capture(packets.map(|((connection, id), us)| (us, connection, id)));
        let one = read(open(&capture), 1);
        found.push(one.tracker.duplicates);
        for threads in [2, 5] {
            assert_same(&one, &read(open(&capture), threads), &between.to_string());
        }
    }
    assert_eq!(found, [1, 1, 1, 1, 0, 0, 0, 0]);
}

/// Connections that alternately resend the same byte.
fn resent_segments() -> Vec<u8> {
    const CONNECTIONS: u32 = 5_000;
    const TIMES: u32 = 54;
    let numbers = 0..CONNECTIONS * TIMES;
    capture(numbers.map(|number| (number * 100, number % CONNECTIONS, number)))
}

/// Packets at these times in microseconds, each with the first byte of one of several connections and an IP ID.
fn capture(packets: impl Iterator<Item = (u32, u32, u32)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for (us, connection, id) in packets {
        for word in [us / 1_000_000, us % 1_000_000, 41, 41] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0, 0, 41]);
        bytes.extend((id as u16).to_be_bytes());
        bytes.extend([0, 0, 64, 6, 0, 0, 10, 0]);
        bytes.extend((connection as u16).to_be_bytes());
        bytes.extend([10, 1, 0, 1, 0x9c, 0x40, 0, 80]);
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0, 0]);
    }
    bytes
}
