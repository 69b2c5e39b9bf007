//! Generates deterministic, seeded captures of many TCP connections for the benchmark.
//! Usage: `cargo run --release --no-default-features --example generate -- --shape A A.pcap`

mod endpoint;
mod model;
mod output;
mod random;
mod tiny;

use std::path::PathBuf;
use std::process::ExitCode;

use output::{Format, Writer};

const USAGE: &str = "usage: generate --shape A|B|C|D|E [--packets N] [--connections N] [--seed N] \
[--snaplen N] [--format pcap|pcapng] OUT

  A  1 M packets, headers only, 200 connections     D  1 M connections of 1 to 11 packets, 40 % lone SYNs
  B  10 M packets, headers only, 2,000 connections  E  as A, in pcapng
  C  2 M packets, whole, 200 connections            a snaplen of 0 keeps whole packets";

const HEADERS_SNAPLEN: usize = 96;
/// Slightly fewer than the client addresses in 10.0.0.0/8.
const MAX_CONNECTIONS: u32 = 16_000_000;

struct Request {
    tiny: bool,
    packets: u64,
    connections: u32,
    seed: u64,
    snaplen: usize,
    format: Format,
    out: PathBuf,
}

fn shape(name: &str) -> Option<Request> {
    let mixed = |packets, connections, seed, snaplen, format| Request {
        tiny: false,
        packets,
        connections,
        seed,
        snaplen,
        format,
        out: PathBuf::new(),
    };
    Some(match name {
        "A" => mixed(1_000_000, 200, 1, HEADERS_SNAPLEN, Format::Pcap),
        "B" => mixed(10_000_000, 2_000, 2, HEADERS_SNAPLEN, Format::Pcap),
        "C" => mixed(2_000_000, 200, 3, 0, Format::Pcap),
        "D" => Request {
            tiny: true,
            ..mixed(u64::MAX, 1_000_000, 4, HEADERS_SNAPLEN, Format::Pcap)
        },
        "E" => mixed(1_000_000, 200, 1, HEADERS_SNAPLEN, Format::Pcapng),
        _ => return None,
    })
}

fn parse(arguments: &[String]) -> Option<Request> {
    let [flag, name, rest @ ..] = arguments else {
        return None;
    };
    let mut request = if flag == "--shape" {
        shape(name)?
    } else {
        return None;
    };
    let mut rest = rest;
    while let [option, value, tail @ ..] = rest {
        match option.as_str() {
            "--packets" => request.packets = value.parse().ok()?,
            "--connections" => {
                request.connections = value.parse().ok().filter(|n| *n <= MAX_CONNECTIONS)?
            }
            "--seed" => request.seed = value.parse().ok()?,
            "--snaplen" => request.snaplen = value.parse().ok().filter(|n| *n <= 262_144)?,
            "--format" if value == "pcap" => request.format = Format::Pcap,
            "--format" if value == "pcapng" => request.format = Format::Pcapng,
            _ => return None,
        }
        rest = tail;
    }
    match rest {
        [out] if !out.starts_with('-') => request.out = out.into(),
        _ => return None,
    }
    Some(request)
}

fn generate(request: &Request) -> std::io::Result<()> {
    let mut writer = Writer::create(
        &request.out,
        request.format,
        request.snaplen,
        request.packets,
    )?;
    if request.tiny {
        let lone_syns = tiny::run(&mut writer, request.connections, request.seed)?;
        eprint!("lone_syns={lone_syns} ");
    } else {
        let happened = model::run(
            &mut writer,
            request.packets,
            request.connections,
            request.seed,
        )?;
        eprint!(
            "lost={} reordered={} timeouts={} fast_retransmits={} stalls={} zero_windows={} ",
            happened.lost,
            happened.reordered,
            happened.timeouts,
            happened.fast_retransmits,
            happened.stalls,
            happened.zero_windows
        );
    }
    writer.flush()?;
    let seconds = writer.span_ns() / 1_000_000_000;
    eprintln!(
        "packets={} wire_bytes={} seconds={seconds}",
        writer.packets, writer.wire_bytes
    );
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(request) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match generate(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate: {}: {error}", request.out.display());
            ExitCode::FAILURE
        }
    }
}
