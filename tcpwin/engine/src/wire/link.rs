//! Link types (<https://www.tcpdump.org/linktypes.html>) → the first layer of a packet.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};
use super::{atm, erf, ethernet, juniper, ppp, wifi};
use crate::capture::LinkType;

pub(super) fn step(link_type: LinkType, view: View<'_>) -> Step<'_> {
    match link_type {
        0 | 108 => null(view),
        1 => Ok((Layer::Ethernet, view)),
        6 => token_ring(view),
        7 => arcnet(view, 2, true),
        // PPP, without and with HDLC-like framing.
        9 | 50 => Ok((Layer::Ppp, view)),
        10 => fddi(view),
        // 12 and 14 are DLT_RAW on BSD and OpenBSD.
        12 | 14 | 101 => Ok((Layer::Ip, view)),
        51 => ppp::pppoe_session(view),
        100 => Ok((Layer::Llc, view)),
        104 => ppp::cisco_hdlc(view),
        105 => Ok((Layer::Wifi(false), view)),
        107 => frame_relay(view),
        109 => encapsulated(view),
        113 => linux_cooked(view, 14, 2, 16),
        117 => pf_log(view),
        119 => wifi::prism(view),
        // RFC 2625 §3: destination and source, then LLC.
        122 => Ok((Layer::Llc, view.skip(16)?)),
        123 => atm::sun(view),
        127 => wifi::radiotap(view),
        129 => arcnet(view, 4, false),
        // RFC 2734: two eight-byte addresses.
        138 => ethernet::length_or_type(view, 16),
        163 => wifi::avs(view),
        178 => juniper::ethernet(view),
        192 => per_packet_information(view),
        197 => erf::step(view),
        204 => Ok((Layer::Ppp, view.skip(1)?)),
        219 => Ok((Layer::Mpls, view)),
        // Solaris ipnet: 24 bytes.
        226 => Ok((Layer::Ip, view.skip(24)?)),
        228 => Ok((Layer::Ipv4, view)),
        229 => Ok((Layer::Ipv6, view)),
        239 => nflog(view),
        // A 40-byte global route header, then RFC 4391 §6.
        242 => Ok((Layer::EtherType(view.be16(40)?), view.skip(44)?)),
        258 => packet_tap(view),
        276 => linux_cooked(view, 0, 8, 20),
        // Broadcom's tag is between the addresses and the type, or before everything.
        281 => ethernet::length_or_type(view, 16),
        282 => Ok((Layer::Ethernet, view.skip(4)?)),
        // Marvell's distributed switch tag; its Ethertype form is four bytes longer.
        284 => ethernet::length_or_type(view, 16),
        285 => ethernet::length_or_type(view, 20),
        other => Err(Outcome::UnknownLink(other)),
    }
}

/// BSD loopback: an address family in the capturing machine's byte order, or in network order.
fn null(view: View<'_>) -> Step<'_> {
    by_family(family_in_any_order(&view)?, view.skip(4)?)
}

/// Families are small numbers, so a large value means the other byte order.
fn family_in_any_order(view: &View<'_>) -> Result<u32, Outcome> {
    let family = view.be32(0)?;
    Ok(if family > 0xFFFF {
        family.swap_bytes()
    } else {
        family
    })
}

/// AF_INET6 is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on Darwin.
fn by_family(family: u32, payload: View<'_>) -> Step<'_> {
    match family {
        2 => Ok((Layer::Ipv4, payload)),
        10 | 23 | 24 | 28 | 30 => Ok((Layer::Ipv6, payload)),
        _ => Err(Outcome::NotTcp),
    }
}

/// OpenBSD's enc: address family in the capturing machine's byte order, index of the security association, flags.
fn encapsulated(view: View<'_>) -> Step<'_> {
    const HEADER_LEN: usize = 12;
    by_family(family_in_any_order(&view)?, view.skip(HEADER_LEN)?)
}

/// Linux cooked captures, versions 1 and 2, which differ in the offsets of protocol, ARPHRD type and payload.
fn linux_cooked(
    view: View<'_>,
    protocol_at: usize,
    hardware_at: usize,
    header_len: usize,
) -> Step<'_> {
    const LLC: u16 = 0x0004;
    const ARPHRD_WIFI: u16 = 801;
    const ARPHRD_PRISM: u16 = 802;
    const ARPHRD_RADIOTAP: u16 = 803;
    let protocol = view.be16(protocol_at)?;
    let hardware = view.be16(hardware_at)?;
    let payload = view.skip(header_len)?;
    match (hardware, protocol) {
        (ARPHRD_WIFI, _) => Ok((Layer::Wifi(false), payload)),
        (ARPHRD_PRISM, _) => wifi::prism(payload),
        (ARPHRD_RADIOTAP, _) => wifi::radiotap(payload),
        (_, LLC) => Ok((Layer::Llc, payload)),
        _ => Ok((Layer::EtherType(protocol), payload)),
    }
}

/// IEEE 802.5: access and frame control, addresses, and a route if the first bit of the source is set.
fn token_ring(view: View<'_>) -> Step<'_> {
    const LLC_FRAME: u8 = 0x40;
    if view.u8(1)? & 0xC0 != LLC_FRAME {
        return Err(Outcome::NotTcp);
    }
    let routed = view.u8(8)? & 0x80 != 0;
    let route_len = if routed {
        usize::from(view.u8(14)? & 0x1F)
    } else {
        0
    };
    Ok((Layer::Llc, view.skip(14 + route_len)?))
}

/// Frame control 0x50 to 0x5F (0xD0 to 0xDF synchronous) is LLC, followed by two addresses.
fn fddi(view: View<'_>) -> Step<'_> {
    if view.u8(0)? & 0x70 != 0x50 {
        return Err(Outcome::NotTcp);
    }
    Ok((Layer::Llc, view.skip(13)?))
}

/// ARCNET: the protocol is at `at`. RFC 1051 has no further header; RFC 1201 has a split flag and a sequence number,
/// which BSD captures repeat after an exception.
fn arcnet(view: View<'_>, at: usize, exceptions: bool) -> Step<'_> {
    const IP_RFC1051: u8 = 240;
    const IP_RFC1201: u8 = 212;
    const IPV6: u8 = 196;
    const EXCEPTION: u8 = 0xFF;
    let split_at = at + 1;
    let split = match view.u8(at)? {
        IP_RFC1051 => return Ok((Layer::Ipv4, view.skip(split_at)?)),
        IP_RFC1201 | IPV6 if exceptions && view.u8(split_at)? == EXCEPTION => split_at + 4,
        IP_RFC1201 | IPV6 => split_at,
        _ => return Err(Outcome::NotTcp),
    };
    if view.u8(split)? != 0 {
        return Err(Outcome::NotTcp);
    }
    Ok((Layer::Ip, view.skip(split + 3)?))
}

/// RFC 2427: the network layer protocol identifier, SNAP, or Cisco's EtherType after a two-byte address.
fn frame_relay(view: View<'_>) -> Step<'_> {
    const LAST_ADDRESS_BYTE: u8 = 0x01;
    const UNNUMBERED_INFORMATION: u8 = 0x03;
    let mut at = 1;
    while view.u8(at)? & LAST_ADDRESS_BYTE == 0 {
        at += 1;
        if at > 3 {
            return Err(Outcome::Malformed);
        }
    }
    at += 1;
    if view.u8(at)? != UNNUMBERED_INFORMATION {
        return Ok((Layer::EtherType(view.be16(at)?), view.skip(at + 2)?));
    }
    at += 1;
    if view.u8(at)? == 0 {
        at += 1;
    }
    let payload = view.skip(at + 1)?;
    match view.u8(at)? {
        0xCC => Ok((Layer::Ipv4, payload)),
        0x8E => Ok((Layer::Ipv6, payload)),
        0x80 => ethernet::snap(payload),
        0xCF => Ok((Layer::Ppp, payload)),
        _ => Err(Outcome::NotTcp),
    }
}

/// OpenBSD's pflog: the header's length, rounded up to four bytes, and the address family.
fn pf_log(view: View<'_>) -> Step<'_> {
    let &[len, family] = view.chunk::<2>(0)?;
    by_family(
        u32::from(family),
        view.skip(usize::from(len).next_multiple_of(4))?,
    )
}

/// PPI: a little-endian length and the link type of the payload.
fn per_packet_information(view: View<'_>) -> Step<'_> {
    let header_len = usize::from(view.le16(2)?);
    if header_len < 8 {
        return Err(Outcome::Malformed);
    }
    Ok((Layer::Link(view.le32(4)?), view.skip(header_len)?))
}

/// Darwin's pktap: a little-endian length and, after the record type, the link type.
fn packet_tap(view: View<'_>) -> Step<'_> {
    let header_len = usize::try_from(view.le32(0)?).unwrap_or(usize::MAX);
    if header_len < 12 {
        return Err(Outcome::Malformed);
    }
    Ok((Layer::Link(view.le32(8)?), view.skip(header_len)?))
}

/// Linux's NFLOG: type-length-value records in the capturing machine's byte order, padded to four bytes.
fn nflog(view: View<'_>) -> Step<'_> {
    const HEADER_LEN: usize = 4;
    const PAYLOAD: u16 = 9;
    const MAX_RECORDS: usize = 64;
    let mut rest = view.skip(HEADER_LEN)?;
    for _ in 0..MAX_RECORDS {
        let (mut len, mut kind) = (rest.le16(0)?, rest.le16(2)?);
        // Types are small numbers, so a value above 255 means the other byte order.
        if kind > 0xFF {
            (len, kind) = (len.swap_bytes(), kind.swap_bytes());
        }
        let len = usize::from(len);
        if len < HEADER_LEN {
            return Err(Outcome::Malformed);
        }
        if kind == PAYLOAD {
            return Ok((Layer::Ip, rest.limit(len).skip(HEADER_LEN)?));
        }
        rest = rest.skip(len.next_multiple_of(4))?;
    }
    Err(Outcome::Malformed)
}
