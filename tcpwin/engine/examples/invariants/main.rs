//! Checks the invariants on captures, or on damaged captures made from them, and prints a line for each violation.
//! Usage: `cargo run --release --no-default-features --example invariants -- [--mutated N] [--first SEED] [--keep
//! FOLDER] CAPTURE...`

mod mutate;

use std::path::PathBuf;
use std::process::ExitCode;

use _engine::capture::MergedReader;
use _engine::output::invariants::check_capture;

const USAGE: &str = "usage: never [--mutated N] [--first SEED] [--keep FOLDER] CAPTURE...";

#[derive(Default)]
struct Request {
    paths: Vec<String>,
    /// Number of damaged captures, first seed, and folder for captures that violate an invariant.
    mutated: Option<u64>,
    first: u64,
    keep: Option<PathBuf>,
}

fn request() -> Option<Request> {
    let mut request = Request::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--mutated" => request.mutated = Some(arguments.next()?.parse().ok()?),
            "--first" => request.first = arguments.next()?.parse().ok()?,
            "--keep" => request.keep = Some(arguments.next()?.into()),
            _ => request.paths.push(argument),
        }
    }
    (!request.paths.is_empty()).then_some(request)
}

fn main() -> ExitCode {
    let Some(request) = request() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let broken = match request.mutated {
        Some(count) => check_mutated(&request, count),
        None => check_files(&request.paths),
    };
    eprintln!("{broken} captures violate an invariant");
    ExitCode::from(u8::from(broken > 0))
}

fn check_files(paths: &[String]) -> u64 {
    let mut broken = 0;
    for path in paths {
        match MergedReader::open(&[path]) {
            Ok(input) => {
                let found = check_capture(input);
                broken += u64::from(!found.is_empty());
                for violation in found {
                    println!("{path}: {violation}");
                }
            }
            Err(error) => eprintln!("{error}"),
        }
    }
    broken
}

fn check_mutated(request: &Request, count: u64) -> u64 {
    let bases: Vec<_> = request
        .paths
        .iter()
        .filter_map(|path| mutate::Base::read(path))
        .collect();
    let mut broken = 0;
    for seed in request.first..request.first + count {
        let (bytes, name) = mutate::mutated(&bases, seed);
        let found = mutate::open(bytes.clone()).map_or(vec![], check_capture);
        broken += u64::from(!found.is_empty());
        for violation in &found {
            println!("{name}#{seed}: {violation}");
        }
        if let Some(folder) = request.keep.as_ref().filter(|_| !found.is_empty()) {
            if let Err(error) = std::fs::write(folder.join(format!("{seed}.pcap")), &bytes) {
                eprintln!("{error}");
            }
        }
    }
    broken
}
