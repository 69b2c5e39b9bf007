//! TCP: follows every connection of a capture, segment by segment.
//!
//! Comes in: segments in capture order. Goes out: an annotation per segment, and the connections with the measurements
//! of each direction. It never reads files and never formats output.

pub mod budget;
pub mod connection;
pub mod path;
pub mod recovery;
pub mod timing;
pub mod tracker;
pub mod window;
