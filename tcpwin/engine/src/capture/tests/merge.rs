//! Several captures in time order.

use std::fs;
use std::path::PathBuf;

use super::crafted::*;
use super::*;

fn capture(seconds: &[u32], name: &str) -> Vec<u8> {
    let mut bytes = plain_header();
    for &second in seconds {
        bytes.extend(record(Little, (second, 0), 10, name.as_bytes()));
    }
    bytes
}

/// Returns the name and second of each packet, and checks its frame number.
fn order(packets: &[Got]) -> Vec<(String, i64)> {
    for (at, packet) in packets.iter().enumerate() {
        assert_eq!(packet.frame, at as u64 + 1);
    }
    packets
        .iter()
        .map(|p| {
            let name = String::from_utf8_lossy(&p.captured).into_owned();
            (name, p.time_ns.unwrap_or(-1) / 1_000_000_000)
        })
        .collect()
}

fn merged(files: &[Vec<u8>]) -> MergedReader {
    MergedReader::from_readers(
        files
            .iter()
            .map(|f| open(f).expect("can be opened"))
            .collect(),
    )
}

fn expected(packets: &[(&str, i64)]) -> Vec<(String, i64)> {
    packets.iter().map(|&(n, s)| (n.to_owned(), s)).collect()
}

/// A temporary directory, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tcpwin-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn overlapping_captures_interleave_by_time() {
    let mut reader = merged(&[
        capture(&[1, 4, 5, 9], "a"),
        capture(&[2, 3, 6], "b"),
        capture(&[7], "c"),
    ]);
    let packets = drain_merged(&mut reader);
    let names = [
        ("a", 1),
        ("b", 2),
        ("b", 3),
        ("a", 4),
        ("a", 5),
        ("b", 6),
        ("c", 7),
        ("a", 9),
    ];
    assert_eq!(order(&packets), expected(&names));
    let counts: Vec<_> = reader.into_facts().iter().map(|f| f.packets).collect();
    assert_eq!(counts, [4, 3, 1]);
}

#[test]
fn ties_go_to_the_file_named_first() {
    let mut reader = merged(&[capture(&[2, 2], "b"), capture(&[1, 2, 2], "a")]);
    let packets = drain_merged(&mut reader);
    let names = [("a", 1), ("b", 2), ("b", 2), ("a", 2), ("a", 2)];
    assert_eq!(order(&packets), expected(&names));
}

#[test]
fn rotated_files_in_any_order_are_read_in_time_order() {
    let folder = Folder::new("rotation");
    let paths = [
        folder.write("3.pcap", &capture(&[5, 6], "three")),
        folder.write("1.pcap", &capture(&[1, 2], "one")),
        folder.write("0.pcap", &capture(&[], "none")),
        folder.write("2.pcap", &capture(&[3, 4], "two")),
    ];
    let mut reader = MergedReader::open(&paths).expect("can be opened");
    let packets = drain_merged(&mut reader);
    let names = [
        ("one", 1),
        ("one", 2),
        ("two", 3),
        ("two", 4),
        ("three", 5),
        ("three", 6),
    ];
    assert_eq!(order(&packets), expected(&names));
    let sizes: u64 = paths
        .iter()
        .map(|p| fs::metadata(p).expect("there").len())
        .sum();
    assert_eq!(reader.bytes_read(), sizes);
    let counts: Vec<_> = reader.facts().iter().map(|f| f.packets).collect();
    assert_eq!(counts, [2, 2, 0, 2]);
}

#[test]
fn a_single_file_is_read_in_file_order() {
    let folder = Folder::new("single");
    // Its packets are not in time order, and must stay that way.
    let path = folder.write("only.pcap", &capture(&[3, 1, 2], "x"));
    let mut reader = MergedReader::open(&[path]).expect("can be opened");
    let packets = drain_merged(&mut reader);
    assert_eq!(order(&packets), expected(&[("x", 3), ("x", 1), ("x", 2)]));
}

#[test]
fn a_bad_file_among_good_ones_is_an_error_that_names_it() {
    let folder = Folder::new("bad");
    let good = folder.write("good.pcap", &capture(&[1], "x"));
    let bad = folder.write("bad.pcap", b"hello");
    let error = MergedReader::open(&[good, bad])
        .err()
        .expect("not readable");
    assert!(error.file.ends_with("bad.pcap"), "{error}");
}

#[test]
fn a_damaged_file_does_not_stop_the_others() {
    let damaged = capture(&[1, 3, 5], "d");
    let cut = &damaged[..damaged.len() - 1];
    let mut reader = merged(&[cut.to_vec(), capture(&[2, 4, 6], "w")]);
    let packets = drain_merged(&mut reader);
    let names = [("d", 1), ("w", 2), ("d", 3), ("w", 4), ("w", 6)];
    assert_eq!(order(&packets), expected(&names));
    let warned: Vec<_> = reader.facts().iter().map(|f| f.warnings.len()).collect();
    assert_eq!(warned, [1, 0]);
}

#[test]
fn a_file_removed_before_it_is_read_is_a_warning() {
    let folder = Folder::new("removed");
    let first = folder.write("1.pcap", &capture(&[1], "a"));
    let second = folder.write("2.pcap", &capture(&[2], "b"));
    let mut reader = MergedReader::open(&[first, second.clone()]).expect("can be opened");
    fs::remove_file(second).expect("was there");
    assert_eq!(order(&drain_merged(&mut reader)), expected(&[("a", 1)]));
    assert_eq!(warning_kinds(reader.facts()[1]), [WarningKind::ReadFailed]);
}

#[test]
fn packets_without_a_time_follow_the_previous_one() {
    let timeless = [
        section(Little),
        interface(Little, 1, 0, b""),
        packet(Little, 0, 2_000_000, 1, b"t"),
        simple_packet(Little, 1, b"s"),
        packet(Little, 0, 4_000_000, 1, b"u"),
    ]
    .concat();
    let mut reader = merged(&[capture(&[1, 3], "x"), timeless]);
    let packets = drain_merged(&mut reader);
    let names = [("x", 1), ("t", 2), ("s", 0), ("x", 3), ("u", 4)];
    assert_eq!(order(&packets), expected(&names));
    assert_eq!(packets[2].time_ns, None);
}

#[test]
fn skipped_packets_keep_their_numbers() {
    let skipping = [
        section(Little),
        interface(Little, 1, 0, b""),
        packet(Little, 0, 1_000_000, 1, b"a"),
        packet(Little, 5, 1_500_000, 1, b"?"),
        packet(Little, 0, 3_000_000, 1, b"b"),
    ]
    .concat();
    let mut reader = merged(&[skipping, capture(&[2], "x")]);
    let frames: Vec<_> = drain_merged(&mut reader).iter().map(|p| p.frame).collect();
    assert_eq!(frames, [1, 2, 4]);
}

#[test]
fn no_files_yield_no_packets() {
    let mut reader = MergedReader::open::<PathBuf>(&[]).expect("nothing to open");
    assert!(reader.next_packet().is_none());
    assert!(reader.facts().is_empty());
}
