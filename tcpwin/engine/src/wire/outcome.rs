//! The result of parsing a frame.

use crate::capture::LinkType;

/// The first undecoded protocol in a frame; it may hide TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    EtherType(u16),
    /// A PPP protocol number (RFC 1661 §2).
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

/// The result of parsing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// A TCP segment; the output has been filled.
    Segment,
    /// No TCP header.
    NotTcp,
    /// An unsupported protocol: neither TCP nor known to be something else.
    Unread(Unread),
    /// An IP fragment of an incomplete datagram; the frame that completes it yields the segment.
    FragmentPending,
    /// A TCP header quoted in an ICMP or ICMPv6 error: a report about a segment, not a segment.
    Quoted,
    /// The capture ends inside the 20-byte TCP header or inside a header below it.
    HeaderCut,
    /// A header contradicts itself or its packet's length.
    Malformed,
    /// An unsupported link type.
    UnknownLink(LinkType),
}
