//! Index of a capture's packets by connection: a file written during an analysis, so that a connection can be read
//! again without the rest of the capture.
//!
//! Each frame has an entry, stored in blocks: the connection's root (the first connection with its four-tuple, because
//! whether a SYN starts a new connection depends on the previous one) and the offset of its record. The trailer holds
//! each connection's root and a checksum over the root's entries, which detects damage and a changed capture. Numbers
//! are little-endian.
//!
//! Supported for a single plain file, pcap or pcapng with one section, in which every packet has a time. Compressed and
//! merged captures have no index and are always read completely.

mod entry;
mod read;
mod reread;
mod trailer;
mod unfit;
pub mod write;

pub use read::PacketIndex;
pub use reread::reread;
pub use unfit::Unfit;
pub use write::{Frames, IndexWriter, NoIndex};
