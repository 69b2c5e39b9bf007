//! Ethernet and EtherTypes: tags, MPLS, PPPoE, and the protocols that lead to IP; LLC with SNAP.

use super::outcome::{Outcome, Unread};
use super::ppp;
use super::view::{Layer, Step, View};

pub(super) const NSH: u16 = 0x894F;

/// EtherTypes (IEEE 802 numbers at IANA).
mod ethertype {
    /// Smaller values are a length (IEEE 802.3 §3.2.6).
    pub const LOWEST: u16 = 0x0600;
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const WAKE_ON_LAN: u16 = 0x0842;
    pub const TRILL: u16 = 0x22F3;
    pub const BRIDGED_ETHERNET: u16 = 0x6558;
    pub const REVERSE_ARP: u16 = 0x8035;
    pub const VLAN: u16 = 0x8100;
    pub const IPV6: u16 = 0x86DD;
    pub const PPP: u16 = 0x880B;
    pub const MPLS: u16 = 0x8847;
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// Link aggregation and others (IEEE 802.3 annex 57A).
    pub const SLOW_PROTOCOLS: u16 = 0x8809;
    pub const PPPOE_DISCOVERY: u16 = 0x8863;
    pub const PPPOE_SESSION: u16 = 0x8864;
    pub const PORT_ACCESS: u16 = 0x888E;
    pub const PROVIDER_VLAN: u16 = 0x88A8;
    pub const LLDP: u16 = 0x88CC;
    pub const MACSEC: u16 = 0x88E5;
    pub const BACKBONE: u16 = 0x88E7;
    /// Cisco's; not listed by IANA under this name.
    pub const FABRIC_PATH: u16 = 0x8903;
    pub const VN_TAG: u16 = 0x8926;
    pub const HSR: u16 = 0x892F;
    pub const LOOPBACK: u16 = 0x9000;
    pub const OLD_QINQ: u16 = 0x9100;
    pub const OLD_QINQ_2: u16 = 0x9200;
    pub const REDUNDANCY_TAG: u16 = 0xF1C1;
}

#[inline]
pub(super) fn step(view: View<'_>) -> Step<'_> {
    // Cisco ISL: identified by its destination address, 26 bytes before the frame.
    if let Ok([0x01 | 0x0C, 0x00, 0x0C, 0x00, 0x00]) = view.chunk::<5>(0) {
        return Ok((Layer::Ethernet, view.skip(26)?));
    }
    length_or_type(view, 12)
}

/// Dispatch on the length/type field at `at`.
#[inline]
pub(super) fn length_or_type(view: View<'_>, at: usize) -> Step<'_> {
    let field = view.be16(at)?;
    let payload = view.skip(at + 2)?;
    // Shortcut for the two most common types: no extra turn of the walk.
    match field {
        ethertype::IPV4 => Ok((Layer::Ipv4, payload)),
        ethertype::IPV6 => Ok((Layer::Ipv6, payload)),
        ..ethertype::LOWEST => Ok((Layer::Llc, payload.limit(usize::from(field)))),
        _ => Ok((Layer::EtherType(field), payload)),
    }
}

pub(super) fn payload(ethertype: u16, view: View<'_>) -> Step<'_> {
    match ethertype {
        ethertype::IPV4 => Ok((Layer::Ipv4, view)),
        ethertype::IPV6 => Ok((Layer::Ipv6, view)),
        ethertype::VLAN
        | ethertype::PROVIDER_VLAN
        | ethertype::OLD_QINQ
        | ethertype::OLD_QINQ_2 => length_or_type(view, 2),
        // IEEE 802.1BR, IEC 62439-3 and IEEE 802.1CB: four bytes of tag.
        ethertype::VN_TAG | ethertype::HSR | ethertype::REDUNDANCY_TAG => length_or_type(view, 4),
        ethertype::MPLS | ethertype::MPLS_MULTICAST => Ok((Layer::Mpls, view)),
        ethertype::PPPOE_SESSION => ppp::pppoe_session(view),
        ethertype::PPP => Ok((Layer::Ppp, view)),
        ethertype::BRIDGED_ETHERNET => Ok((Layer::Ethernet, view)),
        // IEEE 802.1ah: four bytes of I-TAG, then the customer's addresses and frame.
        ethertype::BACKBONE => Ok((Layer::Ethernet, view.skip(4)?)),
        ethertype::MACSEC => macsec(view),
        ethertype::TRILL => trill(view),
        // Two bytes of forwarding tag and TTL, then the original frame.
        ethertype::FABRIC_PATH => Ok((Layer::Ethernet, view.skip(2)?)),
        NSH => nsh(view),
        // Types that never carry TCP; values below the lowest EtherType are numbers private to Linux or GRE.
        ethertype::ARP
        | ethertype::WAKE_ON_LAN
        | ethertype::REVERSE_ARP
        | ethertype::SLOW_PROTOCOLS
        | ethertype::PPPOE_DISCOVERY
        | ethertype::PORT_ACCESS
        | ethertype::LLDP
        | ethertype::LOOPBACK
        | ..ethertype::LOWEST => Err(Outcome::NotTcp),
        other => Err(Outcome::Unread(Unread::EtherType(other))),
    }
}

/// IEEE 802.1AE §9: readable if neither encrypted nor changed; an SCI adds eight bytes.
fn macsec(view: View<'_>) -> Step<'_> {
    const SCI_PRESENT: u8 = 0x20;
    const ENCRYPTED_OR_CHANGED: u8 = 0x0C;
    let control = view.u8(0)?;
    if control & ENCRYPTED_OR_CHANGED != 0 {
        return Err(Outcome::Unread(Unread::EtherType(ethertype::MACSEC)));
    }
    length_or_type(view, if control & SCI_PRESENT != 0 { 14 } else { 6 })
}

/// RFC 6325 §3: six bytes, and options counted in 4-byte words.
fn trill(view: View<'_>) -> Step<'_> {
    let options = usize::from((view.be16(0)? >> 6) & 0x1F);
    Ok((Layer::Ethernet, view.skip(6 + options * 4)?))
}

/// RFC 8300 §2.2: length in 4-byte words, next protocol.
fn nsh(view: View<'_>) -> Step<'_> {
    let header_len = usize::from(view.be16(0)? & 0x3F) * 4;
    if header_len < 8 {
        return Err(Outcome::Malformed);
    }
    let payload = view.skip(header_len)?;
    match view.u8(3)? {
        1 | 2 => Ok((Layer::Ip, payload)),
        3 => Ok((Layer::Ethernet, payload)),
        5 => Ok((Layer::Mpls, payload)),
        _ => Err(Outcome::NotTcp),
    }
}

/// IEEE 802.2 LLC: unnumbered information for SNAP or for IP itself.
pub(super) fn llc(view: View<'_>) -> Step<'_> {
    const UNNUMBERED_INFORMATION: u8 = 0x03;
    const SNAP: u8 = 0xAA;
    const IP: u8 = 0x06;
    let &[destination, source, control] = view.chunk::<3>(0)?;
    let payload = view.skip(3)?;
    match (destination & 0xFE, source & 0xFE, control) {
        (SNAP, SNAP, UNNUMBERED_INFORMATION) => snap(payload),
        (IP, IP, UNNUMBERED_INFORMATION) => Ok((Layer::Ip, payload)),
        _ => Err(Outcome::NotTcp),
    }
}

pub(super) fn snap(view: View<'_>) -> Step<'_> {
    let &[a, b, c, high, low] = view.chunk::<5>(0)?;
    let protocol = u16::from_be_bytes([high, low]);
    let payload = view.skip(5)?;
    match [a, b, c] {
        // RFC 1042; IEEE 802.1H bridge tunnel.
        [0, 0, 0] | [0, 0, 0xF8] => Ok((Layer::EtherType(protocol), payload)),
        // RFC 2684 §5.2: bridged Ethernet after two bytes of padding.
        [0, 0x80, 0xC2] if matches!(protocol, 1 | 7) => Ok((Layer::Ethernet, payload.skip(2)?)),
        _ => Err(Outcome::NotTcp),
    }
}

/// RFC 3032: labels up to the bottom of the stack. The payload type is not stated, so it is guessed.
pub(super) fn mpls(mut view: View<'_>) -> Step<'_> {
    const BOTTOM: u32 = 0x100;
    const MAX_LABELS: usize = 32;
    for _ in 0..MAX_LABELS {
        let entry = view.be32(0)?;
        view = view.skip(4)?;
        if entry & BOTTOM != 0 {
            return mpls_payload(view);
        }
    }
    Err(Outcome::Malformed)
}

/// RFC 4928 §3: IP by its version nibble; RFC 4385 §3: a control word starts with 0. Otherwise a pseudowire's Ethernet.
fn mpls_payload(view: View<'_>) -> Step<'_> {
    match view.u8(0)? >> 4 {
        4 if view.u8(0)? & 0x0F >= 5 && usize::from(view.be16(2)?) <= view.wire_len => {
            Ok((Layer::Ipv4, view))
        }
        6 if usize::from(view.be16(4)?) + 40 <= view.wire_len => Ok((Layer::Ipv6, view)),
        0 if !leads_to_ip(&view) => Ok((Layer::Ethernet, view.skip(4)?)),
        _ if leads_to_ip(&view) => Ok((Layer::Ethernet, view)),
        _ => Err(Outcome::NotTcp),
    }
}

/// Return true for an Ethernet frame whose type is parsed further.
fn leads_to_ip(view: &View<'_>) -> bool {
    let known = |field| {
        matches!(
            field,
            ethertype::IPV4
                | ethertype::IPV6
                | ethertype::VLAN
                | ethertype::PROVIDER_VLAN
                | ethertype::MPLS
                | ethertype::PPPOE_SESSION
        )
    };
    view.be16(12).is_ok_and(known)
}
