//! File context needed to parse single records of a capture.

/// Context of a plain file whose records can be parsed from their offsets alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Landmarks {
    /// Offsets of the interface description blocks, in order; empty for pcap files.
    pub interfaces: Vec<u64>,
}
