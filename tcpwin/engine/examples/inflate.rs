//! The minimum cost of reading a gzip file: inflate it with the engine's library and discard the bytes.
//! Usage: `cargo run --release --no-default-features --example inflate -- FILE.gz`

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

const BUFFER_BYTES: usize = 1 << 18;

fn inflate(path: &Path) -> io::Result<u64> {
    let file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let mut inflated = flate2::bufread::MultiGzDecoder::new(file);
    let mut buffer = vec![0u8; BUFFER_BYTES];
    let mut bytes = 0u64;
    loop {
        match inflated.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: inflate FILE.gz");
        return ExitCode::from(2);
    };
    match inflate(Path::new(&path)) {
        Ok(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("inflate: {}: {error}", Path::new(&path).display());
            ExitCode::FAILURE
        }
    }
}
