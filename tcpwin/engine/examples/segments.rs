//! Prints the headers of every TCP segment of a capture, tab-separated, with a header row; the counters go to stderr.

use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::process::ExitCode;

use _engine::capture::CaptureReader;
use _engine::wire::{Outcome, Segment, SegmentParser};

const COLUMNS: &str =
    "frame\tseq\tack\tlen\tflags\twindow\tsport\tdport\tsrc\tdst\tip_id\tttl\ttsval\ttsecr\t\
                       mss\tws\tsack\tcapture_flags";

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: segments CAPTURE");
        return ExitCode::from(2);
    };
    let mut reader = match CaptureReader::open(path) {
        Ok(reader) => reader,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match print(&mut reader, BufWriter::new(io::stdout().lock())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(reader: &mut CaptureReader, mut out: impl Write) -> io::Result<()> {
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    let mut time_ns = 0;
    writeln!(out, "{COLUMNS}")?;
    while let Some(packet) = reader.next_packet() {
        let outcome = parser.parse(&packet, time_ns, &mut segment);
        time_ns = packet.time_ns.unwrap_or(time_ns);
        if outcome == Outcome::Segment {
            print_segment(&segment, &mut out)?;
        }
    }
    eprintln!("{:?}", parser.counters());
    out.flush()
}

fn print_segment(s: &Segment, out: &mut impl Write) -> io::Result<()> {
    let (value, echo) = s.options.timestamps.unzip();
    let sack = &s.options.sack[..usize::from(s.options.sack_count)];
    let sack: Vec<String> = sack
        .iter()
        .map(|(left, right)| format!("{left}-{right}"))
        .collect();
    write!(
        out,
        "{}\t{}\t{}\t{}\t{:#05x}\t{}",
        s.frame, s.seq, s.ack, s.payload_len, s.flags, s.window
    )?;
    write!(
        out,
        "\t{}\t{}\t{}\t{}",
        s.src_port,
        s.dst_port,
        address(s.src),
        address(s.dst)
    )?;
    write!(
        out,
        "\t{}\t{}\t{}\t{}",
        s.ip_id,
        s.ttl,
        show(value),
        show(echo)
    )?;
    write!(
        out,
        "\t{}\t{}",
        show(s.options.mss),
        show(s.options.window_scale)
    )?;
    writeln!(out, "\t{}\t{:#04x}", sack.join(","), s.capture_flags)
}

fn address(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}

fn show<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
