//! Where the packets of each connection stand in a capture: a file written beside an analysis, so that a connection is
//! read again without the rest of the capture.
//!
//! An entry for each frame, in blocks: the connection's root (the first connection of its four-tuple, since whether a
//! SYN begins another depends on the one before) and where its record begins. At the end, for each connection its root,
//! and a seal over its root's entries: what is damaged or of another capture is not taken for what it is not. Numbers are
//! little-endian.
//!
//! It works for one plain file, pcap or pcapng of one section, in which every packet has a time. Of any other there is
//! no index: compressed and merged captures are read as a whole.

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
