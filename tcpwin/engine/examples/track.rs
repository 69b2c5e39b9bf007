//! Track every connection of the captures named, merged by time, as `tcpwin analyze` does but for all output: what one
//! pass costs. Prints how many connections and segments there were.

use std::process::ExitCode;

use _engine::capture::MergedReader;
use _engine::output::pass::{run, NoSink};

fn main() -> ExitCode {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    if paths.is_empty() {
        eprintln!("usage: track CAPTURE...");
        return ExitCode::from(2);
    }
    let input = match MergedReader::open(&paths) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let findings = run(input, &mut NoSink, |_| true);
    let connections = findings.tracker.connections.len();
    println!(
        "{connections} connections, {} segments",
        findings.counters.segments
    );
    ExitCode::SUCCESS
}
