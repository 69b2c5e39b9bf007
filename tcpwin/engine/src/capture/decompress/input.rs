//! Input of the decoders: a stream that can be peeked for its magic number, and the error for a damaged stream.

use std::fmt;
use std::io::{self, BufReader, Read};

/// Bytes peeked to identify a stream.
const HEAD_BYTES: usize = 16;

pub(super) type Stream = Box<dyn Read + Send>;

/// The error of a damaged compressed stream, as opposed to one that could not be read.
#[derive(Debug)]
struct DamagedStream(String);

impl fmt::Display for DamagedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DamagedStream {}

pub(super) fn damaged(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, DamagedStream(message))
}

pub fn is_damage(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<DamagedStream>())
}

/// A stream whose first bytes were peeked and are returned by the next reads.
pub(super) struct Peeked {
    head: [u8; HEAD_BYTES],
    head_len: usize,
    returned: usize,
    error: Option<io::Error>,
    inner: Stream,
}

impl Peeked {
    pub(super) fn read(mut inner: Stream) -> io::Result<Self> {
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
            returned: 0,
            error,
            inner,
        })
    }

    pub(super) fn head(&self) -> &[u8] {
        self.head.get(..self.head_len).unwrap_or_default()
    }
}

impl Read for Peeked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let rest = self
            .head
            .get(self.returned..self.head_len)
            .unwrap_or_default();
        if !rest.is_empty() {
            let n = copy_prefix(rest, out);
            self.returned += n;
            return Ok(n);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.inner.read(out),
        }
    }
}

pub(super) fn copy_prefix(from: &[u8], to: &mut [u8]) -> usize {
    let n = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..n), to.get_mut(..n)) {
        to.copy_from_slice(from);
    }
    n
}

pub(super) type Input = BufReader<Peeked>;
