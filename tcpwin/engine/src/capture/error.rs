//! What can be wrong with a capture: `CaptureError` when no packet can be had at all, `Warning` when some could.
//! Both say what, in which file and at which byte of the uncompressed stream.

use std::fmt;
use std::io;

/// Why a capture cannot be read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureErrorKind {
    /// The operating system refused to open or read the file.
    Unreadable(io::ErrorKind),
    /// No byte, or a compressed stream of no byte.
    Empty,
    /// The content is not a capture of a format that is read here.
    NotACapture,
    /// The file ends inside its own header.
    HeaderCut,
    /// A capture, but of a version or with a header that cannot be right.
    BadHeader,
    /// The compressed stream is damaged before the first packet.
    BadCompression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    pub kind: CaptureErrorKind,
    pub message: String,
    pub file: String,
    /// In the uncompressed stream.
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
    /// The file ends inside a record or block; all before it was read.
    Truncated,
    /// A record or block that cannot be right; reading stopped there.
    Damaged,
    /// The compressed stream is damaged or cut; all that could be inflated before it was read.
    CompressionDamaged,
    /// The operating system failed to read on.
    ReadFailed,
    /// Packets of an interface that the pcapng section does not describe were skipped.
    UndefinedInterface,
    /// Options of a pcapng block run past its end; the rest of them was ignored.
    OptionOverrun,
    /// A fraction of a second that is not below one second, which was added all the same, or a pcapng time beyond what
    /// 64 bits of nanoseconds hold, which was clamped.
    TimeOutOfRange,
    /// pcapng blocks whose stated length leaves out their padding; they were read.
    UnpaddedBlockLength,
}

impl WarningKind {
    /// A stable word for columns and JSON.
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
    /// In the uncompressed stream.
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

/// Why a parser cannot go on, before the file's name is known.
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

    /// The same fault when it lies in the file's header.
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
