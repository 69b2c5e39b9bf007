//! A forward-moving window over a byte stream: readers use what is buffered and ask for more. The buffer grows only as
//! data arrives, never by the value of a length field. A read error ends the stream and is stored.

use std::io::{self, Read};

use super::decompress::input::is_damage;
use super::error::{Fault, WarningKind};
use super::packet::LinkType;

/// A record that claims more than this is damaged, whatever the snaplen: libpcap's limit for a pcapng block.
pub(super) const MAX_RECORD_BYTES: u32 = 16 * 1024 * 1024;
/// Fits the L2 cache, so that data copied from the page cache is still there when it is parsed.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

/// A packet's position in the buffer, valid until the next refill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Start of its record header or block.
    pub begin: usize,
    pub start: usize,
    pub captured_len: u32,
    pub original_len: u32,
    pub link_type: LinkType,
    pub time_ns: Option<i64>,
}

/// A buffered packet: the bytes that a [`Record`] points to.
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

    /// Return the bytes that are buffered but not yet consumed.
    #[inline(always)]
    pub fn window(&self) -> &[u8] {
        self.data.get(self.start..self.end).unwrap_or_default()
    }

    /// Return the index of the window's first byte, as used by a [`Record`].
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.start
    }

    #[inline(always)]
    pub fn slice(&self, start: usize, len: usize) -> &[u8] {
        self.data.get(start..start + len).unwrap_or_default()
    }

    /// Advance past `len` bytes of the window.
    #[inline(always)]
    pub fn consume(&mut self, len: usize) {
        self.start = (self.start + len).min(self.end);
    }

    /// Return the offset of the window's first byte in the uncompressed stream.
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Return the offset in the uncompressed stream of a buffer index, such as a [`Record`]'s.
    #[inline(always)]
    pub fn offset_of(&self, index: usize) -> u64 {
        self.base + index as u64
    }

    /// Seek to `offset` within the buffer. Return false if it is not buffered; the source must then be moved there.
    pub fn seek_buffered(&mut self, offset: u64) -> bool {
        (self.ended, self.error) = (false, None);
        let place = offset.checked_sub(self.base).map(|place| place as usize);
        if let Some(place) = place.filter(|place| *place < self.end) {
            self.start = place;
            return true;
        }
        (self.base, self.start, self.end) = (offset, 0, 0);
        false
    }

    /// Return the number of uncompressed bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.base + self.end as u64
    }

    /// Discard the rest of the stream; records already returned stay valid.
    pub fn stop(&mut self) {
        self.start = self.end;
        self.ended = true;
        self.error = None;
    }

    /// Buffer the first `len` bytes of an item. `Ok(false)` is a clean end: no bytes are left.
    #[cold]
    pub fn begin(&mut self, len: usize, what: &str) -> Result<bool, Fault> {
        if !self.fill_to(len) && self.error.is_none() && self.start == self.end {
            return Ok(false);
        }
        let offset = self.offset();
        self.require(len, what, offset).map(|()| true)
    }

    /// Buffer `len` bytes of an item that starts at `offset`; a fault names that offset.
    #[cold]
    pub fn require(&mut self, len: usize, what: &str, offset: u64) -> Result<(), Fault> {
        if self.fill_to(len) {
            return Ok(());
        }
        let missing = (len - (self.end - self.start)) as u64;
        Err(self.end_fault(missing, what, offset))
    }

    /// Skip `len` bytes, buffered or not, of an item that starts at `offset`.
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

    /// Describe why the stream ended while `missing` more bytes were expected.
    fn end_fault(&mut self, missing: u64, what: &str, offset: u64) -> Fault {
        let end = self.bytes_read();
        let (kind, byte_offset, message) = match self.error.take() {
            None => (
                WarningKind::Truncated,
                offset,
                format!(
                    "the file ends inside {what}, {missing} bytes short; everything before it was read"
                ),
            ),
            Some(error) if is_damage(&error) => (
                WarningKind::CompressionDamaged,
                end,
                format!("{error}; the first {end} uncompressed bytes were read"),
            ),
            Some(error) => (
                WarningKind::ReadFailed,
                end,
                format!("reading failed: {error}; the first {end} bytes were read"),
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
