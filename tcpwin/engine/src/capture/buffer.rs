//! A window over a byte stream that moves forward: the readers look at what is buffered and ask for more.
//! Grows only as data arrives, never by what a length field claims. A read error ends the stream and is kept.

use std::io::{self, Read};

use super::decompress::input::is_damage;
use super::error::{Fault, WarningKind};
use super::packet::LinkType;

/// A record that claims more than this is damage whatever the snaplen: libpcap's limit for a pcapng block.
pub(super) const MAX_RECORD_BYTES: u32 = 16 * 1024 * 1024;
/// Fits the second-level cache, so that the copy from the page cache is still there when it is parsed.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

/// A packet's place in the buffer, valid until the next refill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Where its header, or its block, begins.
    pub begin: usize,
    pub start: usize,
    pub captured_len: u32,
    pub original_len: u32,
    pub link_type: LinkType,
    pub time_ns: Option<i64>,
}

/// A packet whose bytes are at hand: what a [`Record`] points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub time_ns: i64,
    pub captured: &'a [u8],
    pub original_len: u32,
    pub link_type: LinkType,
}

pub(super) struct ByteBuffer {
    data: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `data[0]` in the uncompressed stream.
    base: u64,
    source: Box<dyn Read + Send>,
    ended: bool,
    error: Option<io::Error>,
}

impl ByteBuffer {
    pub fn new(source: Box<dyn Read + Send>, capacity: usize) -> Self {
        Self {
            data: vec![0; capacity.max(64)],
            start: 0,
            end: 0,
            base: 0,
            source,
            ended: false,
            error: None,
        }
    }

    /// The bytes that are buffered and not consumed.
    #[inline(always)]
    pub fn window(&self) -> &[u8] {
        self.data.get(self.start..self.end).unwrap_or_default()
    }

    /// Index of the window's first byte, for a [`Record`].
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.start
    }

    #[inline(always)]
    pub fn slice(&self, start: usize, len: usize) -> &[u8] {
        self.data.get(start..start + len).unwrap_or_default()
    }

    /// Move past `len` bytes of the window.
    #[inline(always)]
    pub fn consume(&mut self, len: usize) {
        self.start = (self.start + len).min(self.end);
    }

    /// Offset of the window's first byte in the uncompressed stream.
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Offset in the uncompressed stream of what is at this index, as of a [`Record`].
    #[inline(always)]
    pub fn offset_of(&self, index: usize) -> u64 {
        self.base + index as u64
    }

    /// Go on at `offset`. False where that is not buffered: the source must be moved there then.
    pub fn go_to(&mut self, offset: u64) -> bool {
        (self.ended, self.error) = (false, None);
        let place = offset.checked_sub(self.base).map(|place| place as usize);
        if let Some(place) = place.filter(|place| *place < self.end) {
            self.start = place;
            return true;
        }
        (self.base, self.start, self.end) = (offset, 0, 0);
        false
    }

    /// Uncompressed bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.base + self.end as u64
    }

    /// Give up the rest of the stream; records already handed out stay valid.
    pub fn stop(&mut self) {
        self.start = self.end;
        self.ended = true;
        self.error = None;
    }

    /// Buffer the `len` bytes that something begins with. `Ok(false)` is a clean end: nothing is left.
    #[cold]
    pub fn begin(&mut self, len: usize, what: &str) -> Result<bool, Fault> {
        if !self.fill_to(len) && self.error.is_none() && self.start == self.end {
            return Ok(false);
        }
        let offset = self.offset();
        self.require(len, what, offset).map(|()| true)
    }

    /// Buffer `len` bytes of something that began at `offset`, where a cut is reported.
    #[cold]
    pub fn require(&mut self, len: usize, what: &str, offset: u64) -> Result<(), Fault> {
        if self.fill_to(len) {
            return Ok(());
        }
        let missing = (len - (self.end - self.start)) as u64;
        Err(self.end_fault(missing, what, offset))
    }

    /// Move past `len` bytes, buffered or not, of something that began at `offset`.
    pub fn skip(&mut self, len: u64, what: &str, offset: u64) -> Result<(), Fault> {
        let mut left = len;
        loop {
            let buffered = (self.end - self.start) as u64;
            if buffered >= left {
                self.consume(left as usize);
                return Ok(());
            }
            left -= buffered;
            self.start = self.end;
            if !self.fill_to(1) {
                return Err(self.end_fault(left, what, offset));
            }
        }
    }

    #[cold]
    fn fill_to(&mut self, len: usize) -> bool {
        if self.end - self.start >= len {
            return true;
        }
        self.data.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < len {
            if self.ended {
                return false;
            }
            if self.end == self.data.len() {
                let grown = self.data.len().saturating_mul(2).min(len).max(self.end + 1);
                self.data.resize(grown, 0);
            }
            let space = self.data.get_mut(self.end..).unwrap_or_default();
            let room = space.len();
            match self.source.read(space) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n.min(room),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
        true
    }

    /// Why the stream ended while `missing` more bytes were due.
    fn end_fault(&mut self, missing: u64, what: &str, offset: u64) -> Fault {
        let end = self.bytes_read();
        let (kind, byte_offset, message) = match self.error.take() {
            None => (
                WarningKind::Truncated,
                offset,
                format!(
                    "the file ends inside {what}, {missing} bytes short; all before it was read"
                ),
            ),
            Some(error) if is_damage(&error) => (
                WarningKind::CompressionDamaged,
                end,
                format!("{error}; the {end} uncompressed bytes before were read"),
            ),
            Some(error) => (
                WarningKind::ReadFailed,
                end,
                format!("reading failed: {error}; the {end} bytes before were read"),
            ),
        };
        Fault {
            kind,
            byte_offset,
            message,
        }
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.data.capacity()
    }
}
