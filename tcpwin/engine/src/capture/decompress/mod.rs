//! Compressed streams, detected by magic number: gzip (RFC 1952), zstd (RFC 8878) and lz4 frames, concatenated or
//! nested once. Streaming and bounded in memory; data before a damaged part is returned before the error.

pub(super) mod ahead;
mod gzip;
pub(super) mod input;
mod lz4;
mod zstd;

use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use self::gzip::Gzip;
use self::input::{damaged, Peeked, Stream};
use self::lz4::Lz4;
use self::zstd::Zstd;
use super::facts::Compression;

/// Layers of compression that are removed: a compressed file inside a compressed file.
const MAX_LAYERS: usize = 2;
const INPUT_BYTES: usize = 64 * 1024;

/// Decompress `reader` if it is compressed. `bytes_on_disk` counts the bytes read from `reader` itself.
pub(super) fn decompress(
    reader: Stream,
    bytes_on_disk: Arc<AtomicU64>,
) -> io::Result<(Stream, Vec<Compression>)> {
    let mut stream: Stream = Box::new(Counted {
        inner: reader,
        bytes: bytes_on_disk,
    });
    let mut layers = Vec::new();
    loop {
        let headed = Peeked::read(stream)?;
        let Some(layer) = detect(headed.head()) else {
            return Ok((Box::new(headed), layers));
        };
        if layers.len() == MAX_LAYERS {
            return Err(damaged(format!(
                "compressed more than {MAX_LAYERS} times; decompress the file first"
            )));
        }
        layers.push(layer);
        let input = BufReader::with_capacity(INPUT_BYTES, headed);
        stream = match layer {
            Compression::Gzip => Box::new(Gzip::new(input)),
            Compression::Zstd => Box::new(Zstd::new(input)?),
            Compression::Lz4 => Box::new(Lz4::new(input)),
        };
    }
}

fn detect(head: &[u8]) -> Option<Compression> {
    match head {
        // RFC 1952 §2.3.1: ID1, ID2, and CM = 8, the only method.
        [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
        // RFC 8878 §3.1.1, and §3.1.2: pzstd starts its files with a skippable frame.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Some(Compression::Zstd)
        }
        // LZ4 Frame Format Description: magic number 0x184D2204; legacy frames 0x184C2102.
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(Compression::Lz4),
        _ if head.starts_with(&lz4::LEGACY_MAGIC) => Some(Compression::Lz4),
        _ => None,
    }
}

struct Counted {
    inner: Stream,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
