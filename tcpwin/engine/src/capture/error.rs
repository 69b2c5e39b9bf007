//! Errors of reading a capture: `CaptureError` if no packet can be read, `Warning` if some can.
//! Both name the file and the byte offset in the uncompressed stream.

use std::fmt;
use std::io;

/// Why a capture cannot be read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureErrorKind {
    /// The operating system refused to open or read the file.
    Unreadable(io::ErrorKind),
    /// An empty file, or a compressed stream that contains no bytes.
    Empty,
    /// Not in a supported capture format.
    NotACapture,
    /// The file ends inside the file header.
    HeaderCut,
    /// A capture file of an unsupported version or with an invalid header.
    BadHeader,
    /// The compressed stream is damaged before the first packet.
    BadCompression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    pub kind: CaptureErrorKind,
    pub message: String,
    pub file: String,
    /// Offset in the uncompressed stream.
    pub byte_offset: u64,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)?;
        match self.kind {
            CaptureErrorKind::Unreadable(_) | CaptureErrorKind::Empty => Ok(()),
            _ => write!(f, " (at byte {})", self.byte_offset),
        }
    }
}

impl std::error::Error for CaptureError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// The file ends inside a record or block; everything before it was read.
    Truncated,
    /// An invalid record or block; reading stopped there.
    Damaged,
    /// The compressed stream is damaged or cut; everything that could be decompressed before that point was read.
    CompressionDamaged,
    /// The operating system failed to read the rest of the file.
    ReadFailed,
    /// Packets were skipped because their pcapng section does not describe their interface.
    UndefinedInterface,
    /// Options of a pcapng block run past its end; the remaining ones were ignored.
    OptionOverrun,
    /// A fraction of a second of one second or more, which was added anyway, or a pcapng time outside the range of
    /// 64-bit nanoseconds, which was clamped.
    TimeOutOfRange,
    /// pcapng blocks whose stated length omits their padding; they were read anyway.
    UnpaddedBlockLength,
}

impl WarningKind {
    /// Return a stable identifier for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Damaged => "damaged",
            Self::CompressionDamaged => "compression_damaged",
            Self::ReadFailed => "read_failed",
            Self::UndefinedInterface => "undefined_interface",
            Self::OptionOverrun => "option_overrun",
            Self::TimeOutOfRange => "time_out_of_range",
            Self::UnpaddedBlockLength => "unpadded_block_length",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub kind: WarningKind,
    pub message: String,
    pub file: String,
    /// Offset in the uncompressed stream.
    pub byte_offset: u64,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (at byte {})",
            self.file, self.message, self.byte_offset
        )
    }
}

/// Why a parser cannot continue, before the file's name is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub kind: WarningKind,
    pub byte_offset: u64,
    pub message: String,
}

impl Fault {
    pub fn damaged(byte_offset: u64, message: String) -> Self {
        Self {
            kind: WarningKind::Damaged,
            byte_offset,
            message,
        }
    }

    /// Convert a fault in the file header to an error.
    pub fn into_error(self, file: &str) -> CaptureError {
        CaptureError {
            kind: match self.kind {
                WarningKind::Truncated => CaptureErrorKind::HeaderCut,
                WarningKind::CompressionDamaged => CaptureErrorKind::BadCompression,
                WarningKind::ReadFailed => CaptureErrorKind::Unreadable(io::ErrorKind::Other),
                _ => CaptureErrorKind::BadHeader,
            },
            message: self.message,
            file: file.to_owned(),
            byte_offset: self.byte_offset,
        }
    }
}
