//! Tracks every connection of the given captures, merged by time, like `tcpwin analyze` without output: the cost of a
//! pass, on several threads with `--threads N`. Prints the number of connections and segments.

use std::process::ExitCode;

use _engine::capture::MergedReader;
use _engine::output::shards::run_sharded;
use _engine::tcp::tracker::Tracker;

fn main() -> ExitCode {
    let mut paths: Vec<_> = std::env::args_os().skip(1).collect();
    let mut threads = Some(1);
    if paths.first().is_some_and(|first| first == "--threads") {
        threads = (paths.get(1)).and_then(|number| number.to_str()?.parse().ok());
        paths.drain(..paths.len().min(2));
    }
    let (Some(threads), false) = (threads, paths.is_empty()) else {
        eprintln!("usage: track [--threads N] CAPTURE...");
        return ExitCode::from(2);
    };
    let input = match MergedReader::open(&paths) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let findings = run_sharded(input, Tracker::new(), threads, |_| true);
    let connections = findings.tracker.connections.len();
    println!(
        "{connections} connections, {} segments",
        findings.counters.segments
    );
    ExitCode::SUCCESS
}
