//! Walks captures, merged by time, and prints their packets, captured bytes and facts: `walk FILE...`.

use std::io::{self, Write};
use std::process::ExitCode;

use _engine::capture::MergedReader;

fn main() -> ExitCode {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    if paths.is_empty() {
        eprintln!("usage: walk FILE...");
        return ExitCode::from(2);
    }
    let mut reader = match MergedReader::open(&paths) {
        Ok(reader) => reader,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let (mut packets, mut captured_bytes, mut original_bytes) = (0u64, 0u64, 0u64);
    while let Some(packet) = reader.next_packet() {
        packets += 1;
        captured_bytes += packet.captured.len() as u64;
        original_bytes += u64::from(packet.original_len);
    }
    let mut out = io::stdout().lock();
    let mut written = writeln!(
        out,
        "{packets} packets, {captured_bytes} bytes captured of {original_bytes}"
    );
    for facts in reader.facts() {
        written = written.and_then(|()| writeln!(out, "{facts:#?}"));
    }
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
