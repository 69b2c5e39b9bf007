//! What single records of a capture file stand on.

/// What records refer to, of a plain file whose records mean the same wherever they are read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Landmarks {
    /// Offsets of the blocks that describe the interfaces, in order; none in pcap files.
    pub interfaces: Vec<u64>,
}
