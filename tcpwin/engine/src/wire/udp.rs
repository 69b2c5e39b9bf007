//! UDP tunnels (RFC 768), identified by port.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

const HEADER_LEN: usize = 8;

/// IANA port numbers, with two exceptions as noted.
mod port {
    pub const L2TP: u16 = 1701;
    pub const GTP_U: u16 = 2152;
    pub const TEREDO: u16 = 3544;
    pub const LISP_DATA: u16 = 4341;
    pub const GRE: u16 = 4754;
    pub const VXLAN: u16 = 4789;
    pub const VXLAN_GPE: u16 = 4790;
    pub const CAPWAP_DATA: u16 = 5247;
    pub const GENEVE: u16 = 6081;
    pub const SFLOW: u16 = 6343;
    pub const MPLS: u16 = 6635;
    /// Linux's default before the port was assigned.
    pub const VXLAN_LINUX: u16 = 8472;
    /// Not assigned; the port that sniffers use.
    pub const TZSP: u16 = 37_008;
}

pub(super) fn step(view: View<'_>) -> Step<'_> {
    let (source, destination) = (view.be16(0)?, view.be16(2)?);
    let len = usize::from(view.be16(4)?);
    // RFC 2675 §4: a length of 0 means the length of the IP payload.
    let datagram = if len >= HEADER_LEN {
        view.limit(len)
    } else {
        view
    };
    let payload = datagram.skip(HEADER_LEN)?;
    match destination {
        port::VXLAN | port::VXLAN_LINUX => return vxlan(payload),
        port::VXLAN_GPE => return vxlan_gpe(payload),
        port::GENEVE => return geneve(payload),
        port::MPLS => return Ok((Layer::Mpls, payload)),
        port::GRE => return super::gre::step(payload),
        port::LISP_DATA => return Ok((Layer::Ip, payload.skip(8)?)),
        port::TZSP => return tzsp(payload),
        port::SFLOW => return Ok((Layer::Sflow, payload)),
        _ => {}
    }
    // Both ends of these protocols use the port.
    match (source, destination) {
        (port::GTP_U, _) | (_, port::GTP_U) => gtp_u(payload),
        (port::CAPWAP_DATA, _) | (_, port::CAPWAP_DATA) => super::capwap::data(payload),
        (port::TEREDO, _) | (_, port::TEREDO) => teredo(payload),
        (port::L2TP, _) | (_, port::L2TP) => l2tp(payload),
        _ => Err(Outcome::NotTcp),
    }
}

/// RFC 7348 §5: the I flag, reserved bytes, the network identifier.
fn vxlan(view: View<'_>) -> Step<'_> {
    const VALID: u8 = 0x08;
    if view.u8(0)? & VALID == 0 {
        return Err(Outcome::NotTcp);
    }
    Ok((Layer::Ethernet, view.skip(8)?))
}

/// draft-ietf-nvo3-vxlan-gpe §3.
fn vxlan_gpe(view: View<'_>) -> Step<'_> {
    const NEXT_PROTOCOL: u8 = 0x04;
    let payload = view.skip(8)?;
    if view.u8(0)? & NEXT_PROTOCOL == 0 {
        return vxlan(view);
    }
    match view.u8(3)? {
        1 | 2 => Ok((Layer::Ip, payload)),
        3 => Ok((Layer::Ethernet, payload)),
        4 => Ok((Layer::EtherType(super::ethernet::NSH), payload)),
        5 => Ok((Layer::Mpls, payload)),
        _ => Err(Outcome::NotTcp),
    }
}

/// RFC 8926 §3.4: options counted in 4-byte words, then a payload with an EtherType.
fn geneve(view: View<'_>) -> Step<'_> {
    let first = view.u8(0)?;
    if first >> 6 != 0 {
        return Err(Outcome::NotTcp);
    }
    let options_len = usize::from(first & 0x3F) * 4;
    Ok((Layer::EtherType(view.be16(2)?), view.skip(8 + options_len)?))
}

/// 3GPP TS 29.281 §5: the G-PDU of GTPv1-U and its extension headers.
fn gtp_u(view: View<'_>) -> Step<'_> {
    const G_PDU: u8 = 255;
    const ANY_OPTIONAL: u8 = 0x07;
    const EXTENSION: u8 = 0x04;
    const MAX_EXTENSIONS: usize = 16;
    let flags = view.u8(0)?;
    // Version 1, protocol type GTP.
    if flags & 0xF0 != 0x30 || view.u8(1)? != G_PDU {
        return Err(Outcome::NotTcp);
    }
    let mut payload = view.limit(8 + usize::from(view.be16(2)?)).skip(8)?;
    if flags & ANY_OPTIONAL != 0 {
        let mut next = if flags & EXTENSION != 0 {
            payload.u8(3)?
        } else {
            0
        };
        payload = payload.skip(4)?;
        for _ in 0..MAX_EXTENSIONS {
            if next == 0 {
                break;
            }
            let len = usize::from(payload.u8(0)?) * 4;
            if len == 0 {
                return Err(Outcome::Malformed);
            }
            next = payload.u8(len - 1)?;
            payload = payload.skip(len)?;
        }
    }
    Ok((Layer::Ip, payload))
}

/// RFC 4380 §5.1.1: optional authentication and origin indications before the IPv6 packet.
fn teredo(mut view: View<'_>) -> Step<'_> {
    const ORIGIN: u16 = 0;
    const AUTHENTICATION: u16 = 1;
    if view.be16(0)? == AUTHENTICATION {
        let (id_len, value_len) = (view.u8(2)?, view.u8(3)?);
        view = view.skip(13 + usize::from(id_len) + usize::from(value_len))?;
    }
    if view.be16(0)? == ORIGIN {
        view = view.skip(8)?;
    }
    if view.u8(0)? >> 4 != 6 {
        return Err(Outcome::NotTcp);
    }
    Ok((Layer::Ipv6, view))
}

/// RFC 2661 §3.1: data messages of version 2.
fn l2tp(mut view: View<'_>) -> Step<'_> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = view.be16(0)?;
    if flags & CONTROL != 0 || flags & 0x000F != 2 {
        return Err(Outcome::NotTcp);
    }
    let mut header_len = 6;
    if flags & LENGTH != 0 {
        view = view.limit(usize::from(view.be16(2)?));
        header_len += 2;
    }
    if flags & SEQUENCE != 0 {
        header_len += 4;
    }
    if flags & OFFSET != 0 {
        header_len += 2 + usize::from(view.be16(header_len)?);
    }
    Ok((Layer::Ppp, view.skip(header_len)?))
}

/// TaZmen Sniffer Protocol: a list of tags, then the frame.
fn tzsp(view: View<'_>) -> Step<'_> {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    const MAX_TAGS: usize = 64;
    // Version 1; a received packet, or one for transmission.
    if view.u8(0)? != 1 || view.u8(1)? > 1 {
        return Err(Outcome::NotTcp);
    }
    let encapsulated = view.be16(2)?;
    let mut rest = view.skip(4)?;
    for _ in 0..MAX_TAGS {
        let tag = rest.u8(0)?;
        let len = if matches!(tag, PADDING | END) {
            1
        } else {
            2 + usize::from(rest.u8(1)?)
        };
        rest = rest.skip(len)?;
        if tag == END {
            return match encapsulated {
                1 => Ok((Layer::Ethernet, rest)),
                18 => Ok((Layer::Wifi(false), rest)),
                _ => Err(Outcome::NotTcp),
            };
        }
    }
    Err(Outcome::Malformed)
}
