//! File formats: bytes of a capture → packets. Knows nothing of TCP.

mod block;
mod buffer;
mod decompress;
mod endian;
mod error;
mod facts;
mod filter;
mod foreign;
mod growing;
mod landmarks;
mod merge;
mod options;
mod originals;
mod packet;
mod packet_ring;
mod pcap;
mod pcapng;
mod reader;
mod records;
mod rewrite;
mod selection;
mod time_scale;

pub use error::{CaptureError, CaptureErrorKind, Warning, WarningKind};
pub use facts::{ByteOrder, CaptureFacts, Compression, FileFormat, Interface};
pub use filter::{Program, Raw};
pub use growing::{grown, Layout};
pub use landmarks::Landmarks;
pub use merge::MergedReader;
pub use originals::{MetadataBlock, Original, Whole};
pub use packet::{LinkType, Packet};
pub use packet_ring::append_records;
pub use reader::CaptureReader;
pub use records::RecordReader;
pub use rewrite::{Extent, Rewriter};
pub use selection::{Compile, Moment, Pulse, Selection, Wanted};

#[cfg(test)]
mod tests;
