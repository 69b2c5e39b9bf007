//! What a frame may turn out to be.

use crate::capture::LinkType;

/// What a frame carries that is not read further, and may hide TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    EtherType(u16),
    /// A protocol number of PPP (RFC 1661 §2).
    Ppp(u16),
}

impl std::fmt::Display for Unread {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unread::EtherType(number) => write!(out, "EtherType 0x{number:04x}"),
            Unread::Ppp(number) => write!(out, "PPP protocol 0x{number:04x}"),
        }
    }
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// A TCP segment; the output is filled.
    Segment,
    /// No TCP header here.
    NotTcp,
    /// Nothing that is understood: neither TCP nor known to be something else.
    Unread(Unread),
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
