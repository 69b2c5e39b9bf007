//! Compressed streams, found by their first bytes: gzip (RFC 1952), zstd (RFC 8878), lz4 frames, members and frames
//! concatenated, one kind inside another at most once. Streaming, memory bounded; all before a damage is handed on.

mod gzip;
mod lz4;
mod zstd;

use std::fmt;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use self::gzip::Gzip;
use self::lz4::Lz4;
use self::zstd::Zstd;
use super::facts::Compression;

/// Layers of compression that are undone: a compressed file inside a compressed file.
const MAX_LAYERS: usize = 2;
/// Bytes looked at to tell what a stream is.
const HEAD_BYTES: usize = 16;
const INPUT_BYTES: usize = 64 * 1024;

type Stream = Box<dyn Read + Send>;

/// A stream that is no valid compressed stream, as opposed to one that could not be read.
#[derive(Debug)]
struct DamagedStream(String);

impl fmt::Display for DamagedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DamagedStream {}

fn damaged(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, DamagedStream(message))
}

pub(super) fn is_damage(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<DamagedStream>())
}

/// Undo the compression of `reader`, if any. `bytes_on_disk` counts what is read from `reader` itself.
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
        let headed = Headed::read(stream)?;
        let Some(layer) = detect(headed.head()) else {
            return Ok((Box::new(headed), layers));
        };
        if layers.len() == MAX_LAYERS {
            return Err(damaged(format!(
                "compressed more than {MAX_LAYERS} times over; decompress the file first"
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
        // RFC 8878 §3.1.1, and §3.1.2: a skippable frame, which pzstd writes first.
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

/// A stream whose first bytes were looked at and are handed out again.
struct Headed {
    head: [u8; HEAD_BYTES],
    head_len: usize,
    given: usize,
    error: Option<io::Error>,
    inner: Stream,
}

impl Headed {
    fn read(mut inner: Stream) -> io::Result<Self> {
        let mut head = [0; HEAD_BYTES];
        let mut head_len = 0;
        let mut error = None;
        while let Some(space) = head.get_mut(head_len..).filter(|space| !space.is_empty()) {
            match inner.read(space) {
                Ok(0) => break,
                Ok(n) => head_len += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if head_len == 0 => return Err(e),
                Err(e) => {
                    error = Some(e);
                    break;
                }
            }
        }
        Ok(Self {
            head,
            head_len: head_len.min(HEAD_BYTES),
            given: 0,
            error,
            inner,
        })
    }

    fn head(&self) -> &[u8] {
        self.head.get(..self.head_len).unwrap_or_default()
    }
}

impl Read for Headed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let rest = self.head.get(self.given..self.head_len).unwrap_or_default();
        if !rest.is_empty() {
            let n = copy_prefix(rest, out);
            self.given += n;
            return Ok(n);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.inner.read(out),
        }
    }
}

fn copy_prefix(from: &[u8], to: &mut [u8]) -> usize {
    let n = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..n), to.get_mut(..n)) {
        to.copy_from_slice(from);
    }
    n
}

type Input = BufReader<Headed>;
