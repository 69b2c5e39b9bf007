//! The IP header fields that a TCP segment needs.

use super::segment::NO_IP_ID;

/// Fields of the innermost IP header.
#[derive(Clone, Copy)]
pub(super) struct IpFacts {
    pub src: [u8; 16],
    pub dst: [u8; 16],
    pub ip_id: u32,
    pub version: u8,
    pub ttl: u8,
    pub traffic_class: u8,
    /// Whether the header's length field is 0, so the length was taken from the frame.
    pub length_from_frame: bool,
}

impl IpFacts {
    pub(super) const NONE: IpFacts = IpFacts {
        src: [0; 16],
        dst: [0; 16],
        ip_id: NO_IP_ID,
        version: 0,
        ttl: 0,
        traffic_class: 0,
        length_from_frame: false,
    };
}
