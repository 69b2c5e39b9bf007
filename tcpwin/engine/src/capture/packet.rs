//! What the readers hand on: one captured packet, borrowed from the reader's buffer.

/// A pcap LINKTYPE value, as written in the file (<https://www.tcpdump.org/linktypes.html>).
pub type LinkType = u32;

/// One packet as the file holds it. Borrowed until the next call of the reader.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// 1-based over all packets of the input, in reading order.
    pub frame: u64,
    /// Nanoseconds since the Unix epoch; `None` in a Simple Packet Block, which carries no time.
    pub time_ns: Option<i64>,
    /// The bytes that were captured.
    pub captured: &'a [u8],
    /// Bytes on the wire, as the capture states them (never less than `captured.len()`).
    pub original_len: u32,
    pub link_type: LinkType,
}
