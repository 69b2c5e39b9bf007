//! PPP (RFC 1661) with or without HDLC-like framing (RFC 1662), PPPoE sessions (RFC 2516), Cisco HDLC.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

mod protocol {
    pub const IPV4: u16 = 0x0021;
    pub const IPV6: u16 = 0x0057;
    /// RFC 3032 §4.
    pub const MPLS_UNICAST: u16 = 0x0281;
    pub const MPLS_MULTICAST: u16 = 0x0283;
}

pub(super) fn step(mut view: View<'_>) -> Step<'_> {
    // RFC 1661 §6.6: the address and control fields may be compressed away.
    if view.u8(0)? == 0xFF && view.u8(1)? == 0x03 {
        view = view.skip(2)?;
    }
    let first = view.u8(0)?;
    // RFC 1661 §6.5: an odd first byte is a protocol field compressed to one byte.
    let (protocol, payload) = if first & 1 == 1 {
        (u16::from(first), view.skip(1)?)
    } else {
        (view.be16(0)?, view.skip(2)?)
    };
    match protocol {
        protocol::IPV4 => Ok((Layer::Ipv4, payload)),
        protocol::IPV6 => Ok((Layer::Ipv6, payload)),
        protocol::MPLS_UNICAST | protocol::MPLS_MULTICAST => Ok((Layer::Mpls, payload)),
        _ => Err(Outcome::NotTcp),
    }
}

/// RFC 2516 §4: six bytes, of which the last two are the length.
pub(super) fn pppoe_session(view: View<'_>) -> Step<'_> {
    const SESSION_DATA: u8 = 0;
    if view.u8(1)? != SESSION_DATA {
        return Err(Outcome::NotTcp);
    }
    let len = usize::from(view.be16(4)?);
    Ok((Layer::Ppp, view.skip(6)?.limit(len)))
}

/// LINKTYPE_PPP_HDLC: PPP in HDLC-like framing, or Cisco HDLC, told apart by the address byte.
pub(super) fn ppp_or_cisco_hdlc(view: View<'_>) -> Step<'_> {
    match view.u8(0)? {
        0x0F | 0x8F => cisco_hdlc(view),
        _ => Ok((Layer::Ppp, view)),
    }
}

pub(super) fn cisco_hdlc(view: View<'_>) -> Step<'_> {
    Ok((Layer::EtherType(view.be16(2)?), view.skip(4)?))
}
