//! The readers' output: one captured packet, borrowed from the reader's buffer.

/// A pcap LINKTYPE value, as written in the file (<https://www.tcpdump.org/linktypes.html>).
pub type LinkType = u32;

/// A packet as stored in the file. Borrowed until the reader's next call.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// 1-based over all packets of the input, in reading order.
    pub frame: u64,
    /// Nanoseconds since the Unix epoch; `None` in a Simple Packet Block, which carries no time.
    pub time_ns: Option<i64>,
    /// The captured bytes.
    pub captured: &'a [u8],
    /// Length on the wire as recorded in the capture (at least `captured.len()`).
    pub original_len: u32,
    pub link_type: LinkType,
}
