//! Compressed streams, found by their first bytes: gzip (RFC 1952), zstd (RFC 8878), lz4 frames, members and frames
//! concatenated, one kind inside another at most once. Streaming, memory bounded; all before a damage is handed on.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};
use lz4_flex::frame::FrameDecoder;
use zstd::stream::raw::{DParameter, Decoder as ZstdContext, InBuffer, Operation, OutBuffer};

use super::facts::Compression;

/// Layers of compression that are undone: a compressed file inside a compressed file.
const MAX_LAYERS: usize = 2;
/// Bytes looked at to tell what a stream is.
const HEAD_BYTES: usize = 16;
const INPUT_BYTES: usize = 64 * 1024;
/// Largest zstd window that is followed: 128 MiB, the limit of `zstd -d` without `--long`.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

const LZ4_LEGACY_MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

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
        _ if head.starts_with(&LZ4_LEGACY_MAGIC) => Some(Compression::Lz4),
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

/// gzip members one after the other. Header and checksum of each are the inflater's work.
struct Gzip {
    input: Input,
    /// `None` between members and after the end.
    member: Option<Decompress>,
    members: u64,
    consumed: u64,
    /// Met in the call before, after good bytes.
    pending: Option<io::Error>,
    failed: bool,
}

impl Gzip {
    fn new(input: Input) -> Self {
        Self {
            input,
            member: None,
            members: 0,
            consumed: 0,
            pending: None,
            failed: false,
        }
    }

    fn fail(&mut self, what: &str) -> io::Error {
        self.failed = true;
        damaged(format!(
            "the gzip stream {what} at compressed byte {}",
            self.consumed
        ))
    }
}

impl Read for Gzip {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if self.failed || out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.input.fill_buf()?;
            let Some(&first) = input.first() else {
                return if self.member.is_none() {
                    Ok(0)
                } else {
                    Err(self.fail("ends"))
                };
            };
            if self.member.is_none() {
                // As gzip(1): zeros that pad the file to a tape block are no member.
                if self.members > 0 && first == 0 {
                    let zeros = input.iter().take_while(|&&b| b == 0).count();
                    self.input.consume(zeros);
                    self.consumed += zeros as u64;
                    continue;
                }
                self.member = Some(Decompress::new_gzip(15));
                self.members += 1;
            }
            let Some(member) = self.member.as_mut() else {
                return Ok(0);
            };
            let (in_before, out_before) = (member.total_in(), member.total_out());
            let status = member.decompress(input, out, FlushDecompress::None);
            let taken = member.total_in() - in_before;
            let produced = (member.total_out() - out_before) as usize;
            let stuck = taken == 0 && produced == 0;
            self.input.consume(taken as usize);
            self.consumed += taken;
            match status {
                Ok(Status::StreamEnd) => self.member = None,
                Ok(_) if stuck => return Err(self.fail("is damaged")),
                Ok(_) => {}
                // What came out before the damage is good.
                Err(_) if produced > 0 => self.pending = Some(self.fail("is damaged")),
                Err(_) => return Err(self.fail("is damaged")),
            }
            if produced > 0 {
                return Ok(produced);
            }
        }
    }
}

/// zstd frames one after the other, skippable ones skipped.
struct Zstd {
    input: Input,
    context: ZstdContext<'static>,
    /// Input the decoder asks for. Fed no more than this it does one block a call, so an error costs only its own block.
    hint: usize,
    in_frame: bool,
    consumed: u64,
    failed: bool,
}

impl Zstd {
    /// Bytes of the smallest frame header (RFC 8878 §3.1.1).
    const FIRST_HINT: usize = 5;

    fn new(input: Input) -> io::Result<Self> {
        let mut context = ZstdContext::new()?;
        context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
        Ok(Self {
            input,
            context,
            hint: Self::FIRST_HINT,
            in_frame: false,
            consumed: 0,
            failed: false,
        })
    }

    fn fail(&mut self, what: &str) -> io::Error {
        self.failed = true;
        damaged(format!(
            "the zstd stream {what} at compressed byte {}",
            self.consumed
        ))
    }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.failed || out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.input.fill_buf()?;
            let ended = input.is_empty();
            if ended && !self.in_frame {
                return Ok(0);
            }
            let mut source = InBuffer::around(input.get(..self.hint.max(1)).unwrap_or(input));
            let mut target = OutBuffer::around(&mut *out);
            let status = self.context.run(&mut source, &mut target);
            let (taken, produced) = (source.pos(), target.pos());
            self.input.consume(taken);
            self.consumed += taken as u64;
            match status {
                Ok(0) => {
                    self.in_frame = false;
                    self.hint = Self::FIRST_HINT;
                }
                Ok(hint) => {
                    self.in_frame = true;
                    self.hint = hint;
                }
                Err(error) => return Err(self.fail(&format!("is damaged ({error})"))),
            }
            if produced > 0 {
                return Ok(produced);
            }
            if ended {
                return Err(self.fail("ends"));
            }
            if taken == 0 {
                return Err(self.fail("is damaged"));
            }
        }
    }
}

/// lz4 frames one after the other, skippable ones skipped.
struct Lz4 {
    /// `None` after the end.
    frame: Option<FrameDecoder<Watched>>,
    /// A frame was begun and its end mark has not been seen.
    in_frame: bool,
    /// The frame is of the legacy format, which has no end mark.
    legacy: bool,
}

/// Notes whether the decoder asked for bytes that are not there: it takes a cut between two blocks for an end mark.
struct Watched {
    input: Input,
    starved: bool,
    consumed: u64,
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(out)?;
        self.starved |= n == 0 && !out.is_empty();
        self.consumed += n as u64;
        Ok(n)
    }
}

impl Lz4 {
    fn new(input: Input) -> Self {
        Self {
            frame: Some(FrameDecoder::new(Watched {
                input,
                starved: false,
                consumed: 0,
            })),
            in_frame: false,
            legacy: false,
        }
    }

    /// Stand at the start of the next frame: whether it is a legacy one, or `None` at the end of the file.
    fn next_frame(watched: &mut Watched) -> io::Result<Option<bool>> {
        loop {
            let head = watched.input.fill_buf()?;
            if head.is_empty() {
                return Ok(None);
            }
            // LZ4 Frame Format Description, Skippable Frames: magic 0x184D2A5X, then the size in 4 bytes.
            if !matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, _, _, _, _, ..]) {
                return Ok(Some(head.starts_with(&LZ4_LEGACY_MAGIC)));
            }
            let mut header = [0; 8];
            watched.read_exact(&mut header)?;
            let [_, _, _, _, size @ ..] = header;
            let size = u64::from(u32::from_le_bytes(size));
            let skipped = io::copy(&mut watched.by_ref().take(size), &mut io::sink())?;
            if skipped < size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn name_damage(watched: &Watched, error: io::Error) -> io::Error {
        let at = watched.consumed;
        match error.kind() {
            _ if is_damage(&error) || error.raw_os_error().is_some() => error,
            io::ErrorKind::UnexpectedEof => {
                damaged(format!("the lz4 stream ends at compressed byte {at}"))
            }
            _ => damaged(format!(
                "the lz4 stream is damaged before compressed byte {at} ({error})"
            )),
        }
    }
}

impl Read for Lz4 {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(mut frame) = self.frame.take() {
            if !self.in_frame {
                match Self::next_frame(frame.get_mut()) {
                    Ok(Some(legacy)) => (self.in_frame, self.legacy) = (true, legacy),
                    Ok(None) => return Ok(0),
                    Err(error) => return Err(Self::name_damage(frame.get_ref(), error)),
                }
            }
            match frame.read(out) {
                Ok(0) if frame.get_ref().starved && self.legacy => return Ok(0),
                Ok(0) if frame.get_ref().starved => {
                    let cut = io::ErrorKind::UnexpectedEof.into();
                    return Err(Self::name_damage(frame.get_ref(), cut));
                }
                // A decoder per frame: the decoder's buffers fit the block size of its first frame.
                Ok(0) => {
                    self.in_frame = false;
                    self.frame = Some(FrameDecoder::new(frame.into_inner()));
                }
                Ok(n) => {
                    self.frame = Some(frame);
                    return Ok(n);
                }
                Err(error) => return Err(Self::name_damage(frame.get_ref(), error)),
            }
        }
        Ok(0)
    }
}
