//! Concatenated lz4 frames (LZ4 Frame Format Description), including legacy ones; skippable frames are skipped.
//! Blocks before a damaged one are returned before the error.

use std::io::{self, Read};

use lz4_flex::frame::FrameDecoder;

use super::input::{copy_prefix, damaged, Input};

pub(super) const LEGACY_MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

pub(super) struct Lz4 {
    /// `None` after the end.
    frame: Option<FrameDecoder<Watched>>,
    /// Whether a frame has started and its end mark has not been read.
    in_frame: bool,
    /// Whether the current frame is in the legacy format, which has no end mark.
    legacy: bool,
}

/// Records whether the decoder read past the end of the file: it mistakes a cut between two blocks for an end mark.
struct Watched {
    input: Input,
    /// A frame's magic number, peeked and returned by the next reads.
    magic: [u8; 4],
    magic_left: usize,
    starved: bool,
    consumed: u64,
}

impl Watched {
    /// Peek up to four bytes; fewer than four at the end of the file.
    fn peek_magic(&mut self) -> io::Result<&[u8]> {
        let mut len = 0;
        while let Some(space) = self.magic.get_mut(len..).filter(|s| !s.is_empty()) {
            match self.input.read(space) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Stored at the end of the array, so that the unread bytes are always its last ones.
        self.magic.rotate_right(4 - len.min(4));
        self.magic_left = len;
        Ok(self.magic.get(4 - len.min(4)..).unwrap_or_default())
    }
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let magic = self.magic.len().checked_sub(self.magic_left);
        let magic = magic
            .and_then(|at| self.magic.get(at..))
            .unwrap_or_default();
        let n = if magic.is_empty() {
            self.input.read(out)?
        } else {
            let n = copy_prefix(magic, out);
            self.magic_left -= n;
            n
        };
        self.starved |= n == 0 && !out.is_empty();
        self.consumed += n as u64;
        Ok(n)
    }
}

impl Lz4 {
    pub(super) fn new(input: Input) -> Self {
        Self {
            frame: Some(FrameDecoder::new(Watched {
                input,
                magic: [0; 4],
                magic_left: 0,
                starved: false,
                consumed: 0,
            })),
            in_frame: false,
            legacy: false,
        }
    }

    /// Advance to the next frame. Return whether it is a legacy one, or `None` at the end of the file.
    fn next_frame(watched: &mut Watched) -> io::Result<Option<bool>> {
        loop {
            let (skippable, legacy) = match watched.peek_magic()? {
                [] => return Ok(None),
                // LZ4 Frame Format Description, Skippable Frames: magic 0x184D2A5X, then the size in 4 bytes.
                magic => (
                    matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]),
                    magic == LEGACY_MAGIC,
                ),
            };
            if !skippable {
                return Ok(Some(legacy));
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

    /// Locate the damage in the stream; an I/O error of the file itself is passed on unchanged.
    fn name_damage(watched: &Watched, error: io::Error) -> io::Error {
        let at = watched.consumed;
        let inner = error.get_ref();
        if inner.is_some_and(|inner| inner.is::<lz4_flex::frame::Error>()) {
            damaged(format!(
                "the lz4 stream is damaged before compressed byte {at} ({error})"
            ))
        } else if inner.is_none() && error.kind() == io::ErrorKind::UnexpectedEof {
            damaged(format!("the lz4 stream ends at compressed byte {at}"))
        } else {
            error
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
                // Use one decoder per frame: its buffers are sized by the block size of its first frame.
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
