//! TCP: follows every connection of a capture, segment by segment.
//!
//! In: segments in capture order. Out: an annotation per segment, and the connections with the measurements of each
//! direction. Never reads files or formats output.

pub mod budget;
pub mod connection;
pub mod path;
pub mod recovery;
pub mod timing;
pub mod tracker;
pub mod window;
