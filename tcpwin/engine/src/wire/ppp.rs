//! PPP (RFC 1661) with and without HDLC-like framing (RFC 1662), multilink bundles (RFC 1990), PPPoE sessions
//! (RFC 2516), Cisco HDLC.

use super::outcome::{Outcome, Unread};
use super::view::{Layer, Step, View};

mod protocol {
    pub const IPV4: u16 = 0x0021;
    pub const MULTILINK: u16 = 0x003D;
    pub const IPV6: u16 = 0x0057;
    /// RFC 3032 §4.
    pub const MPLS_UNICAST: u16 = 0x0281;
    pub const MPLS_MULTICAST: u16 = 0x0283;
    /// Control and low-volume protocols start here (RFC 1661 §2).
    pub const LOWEST_CONTROL: u16 = 0x4000;
}

pub(super) fn step(mut view: View<'_>) -> Step<'_> {
    if is_cisco_hdlc(&view)? {
        return cisco_hdlc(view);
    }
    // RFC 1661 §6.6: the address and control fields may be omitted by compression.
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
        protocol::MULTILINK => multilink(payload),
        ..protocol::LOWEST_CONTROL => Err(Outcome::Unread(Unread::Ppp(protocol))),
        _ => Err(Outcome::NotTcp),
    }
}

/// RFC 1990 §3: begin and end bits and a 24-bit sequence number, or a 12-bit one if both sides agreed on the short
/// format.
fn multilink(view: View<'_>) -> Step<'_> {
    const BEGIN: u8 = 0x80;
    const END: u8 = 0x40;
    const RESERVED_IN_LONG: u8 = 0x3F;
    const LONG_LEN: usize = 4;
    const SHORT_LEN: usize = 2;
    let first = view.u8(0)?;
    if first & BEGIN == 0 {
        return Err(Outcome::NotTcp);
    }
    let is_long = first & RESERVED_IN_LONG == 0;
    let fragment = view.skip(if is_long { LONG_LEN } else { SHORT_LEN })?;
    Ok((
        Layer::Ppp,
        if first & END == 0 {
            fragment.first_of_several()
        } else {
            fragment
        },
    ))
}

/// RFC 2516 §4: six bytes, the last two of which are the length.
pub(super) fn pppoe_session(view: View<'_>) -> Step<'_> {
    const SESSION_DATA: u8 = 0;
    if view.u8(1)? != SESSION_DATA {
        return Err(Outcome::NotTcp);
    }
    let len = usize::from(view.be16(4)?);
    Ok((Layer::Ppp, view.skip(6)?.limit(len)))
}

/// Cisco's framing under the PPP link type: its unicast or broadcast address, then a zero byte. A PPP packet with
/// compressed fields never starts like this, as no such protocol is assigned.
fn is_cisco_hdlc(view: &View<'_>) -> Result<bool, Outcome> {
    Ok(matches!(view.u8(0)?, 0x0F | 0x8F) && view.u8(1)? == 0)
}

pub(super) fn cisco_hdlc(view: View<'_>) -> Step<'_> {
    Ok((Layer::EtherType(view.be16(2)?), view.skip(4)?))
}
