//! What a frame may turn out to be.

use crate::capture::LinkType;

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// A TCP segment; the output is filled.
    Segment,
    /// No TCP header here.
    NotTcp,
    /// An IP fragment whose datagram is not complete yet; the frame that completes it is the segment.
    FragmentPending,
    /// A TCP header quoted inside an ICMP or ICMPv6 error: a report about a segment, not one.
    Quoted,
    /// The capture ends before the 20 fixed bytes of the TCP header do, or inside a header below it.
    HeaderCut,
    /// A header contradicts itself or the length of its packet.
    Malformed,
    /// The link type is not one of those that are understood.
    UnknownLink(LinkType),
}
