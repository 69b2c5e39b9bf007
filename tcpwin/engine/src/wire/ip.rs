//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers: addresses, payload length, options, extension headers.
//! A datagram's length is taken from its header, capped by the frame; fragments go to the table.

use super::fast::mapped;
use super::fragments::Fragment;
use super::ip_facts::IpFacts;
use super::ip_tunnel;
use super::outcome::Outcome;
use super::segment::{capture_flag, NO_IP_ID};
use super::view::{Layer, Step, View, TCP, UDP};
use super::walk::Walk;

const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
/// A datagram that lacks less was damaged rather than truncated.
const CUT_BYTES: usize = 64;
/// Maximum length of IPv4 and TCP headers with all options: a program that truncates packets keeps these.
const MOST_HEADERS: usize = 80;

/// IPv6 next-header values of extension headers (RFC 8200 §4, IANA protocol numbers).
mod extension {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const DESTINATION: u8 = 60;
    pub const MOBILITY: u8 = 135;
    pub const HIP: u8 = 139;
    pub const SHIM6: u8 = 140;
}

pub(super) fn by_version(view: View<'_>) -> Step<'_> {
    match view.u8(0)? >> 4 {
        4 => Ok((Layer::Ipv4, view)),
        6 => Ok((Layer::Ipv6, view)),
        _ => Err(Outcome::NotTcp),
    }
}

#[inline]
pub(super) fn v4<'a>(walk: &mut Walk<'_>, view: View<'a>) -> Step<'a> {
    let b = view.chunk::<V4_LEN>(0)?;
    let header_len = usize::from(b[0] & 0x0F) * 4;
    let total_len = usize::from(u16::from_be_bytes([b[2], b[3]]));
    // A total length of 0 is a segmentation-offload super-segment, captured before the driver fills in the field.
    if b[0] >> 4 != 4 || header_len < V4_LEN || (total_len != 0 && total_len < header_len) {
        return Err(Outcome::Malformed);
    }
    let datagram = if total_len == 0 {
        view
    } else if total_len >= view.wire_len + CUT_BYTES
        && is_correct(&view, header_len)
        && is_cut_by_writer(walk, &view, b[9])
    {
        view.lengthened(total_len)
    } else {
        view.limit(total_len)
    };
    let payload = datagram.skip(header_len)?;
    let id = u32::from(u16::from_be_bytes([b[4], b[5]]));
    walk.ip = IpFacts {
        src: mapped([b[12], b[13], b[14], b[15]]),
        dst: mapped([b[16], b[17], b[18], b[19]]),
        ip_id: id,
        version: 4,
        ttl: b[8],
        traffic_class: b[1],
        length_from_frame: total_len == 0,
    };
    let protocol = b[9];
    let fragmentation = u16::from_be_bytes([b[6], b[7]]);
    let (more, offset) = (
        fragmentation & 0x2000 != 0,
        u32::from(fragmentation & 0x1FFF) * 8,
    );
    if more || offset != 0 {
        return fragment(
            walk,
            Fragment {
                frame: walk.frame,
                protocol,
                id,
                offset,
                more,
                payload,
            },
        );
    }
    Ok((Layer::Transport(protocol), payload))
}

/// Return whether a program that truncated the packets also wrote the truncated length as the original one: the frame
/// was long enough for all headers, but its IP header says that the datagram was longer. It may have been truncated
/// again since, as a copy of its headers.
#[cold]
fn is_cut_by_writer(walk: &mut Walk<'_>, view: &View<'_>, protocol: u8) -> bool {
    // A tunnel's payload may be truncated within a whole frame.
    let is_cut = protocol == TCP && view.wire_len >= MOST_HEADERS && walk.ip.version == 0;
    if is_cut {
        walk.frame_flags |= capture_flag::SNAPPED;
    }
    is_cut
}

/// Return whether an IPv4 header's checksum is correct (RFC 1071).
#[cold]
fn is_correct(view: &View<'_>, header_len: usize) -> bool {
    let header = view.bytes.get(..header_len).unwrap_or_default();
    let words = header
        .chunks_exact(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    (sum & 0xFFFF) + (sum >> 16) == 0xFFFF
}

#[inline]
pub(super) fn v6<'a>(walk: &mut Walk<'_>, view: View<'a>) -> Step<'a> {
    let b = view.chunk::<V6_LEN>(0)?;
    if b[0] >> 4 != 6 {
        return Err(Outcome::Malformed);
    }
    let payload_len = usize::from(u16::from_be_bytes([b[4], b[5]]));
    let next = b[6];
    let is_cut =
        V6_LEN + payload_len >= view.wire_len + CUT_BYTES && is_cut_by_writer(walk, &view, next);
    let mut rest = match is_cut {
        true => view.lengthened(V6_LEN + payload_len),
        false => view,
    }
    .skip(V6_LEN)?;
    let jumbo_len = if payload_len == 0 && next == extension::HOP_BY_HOP {
        jumbo_len(rest)
    } else {
        None
    };
    walk.ip = IpFacts {
        src: address(&view, 8)?,
        dst: address(&view, 24)?,
        ip_id: NO_IP_ID,
        version: 6,
        ttl: b[7],
        traffic_class: b[0] << 4 | b[1] >> 4,
        length_from_frame: payload_len == 0 && jumbo_len.is_none(),
    };
    if payload_len != 0 {
        rest = rest.limit(payload_len);
    } else if let Some(len) = jumbo_len {
        rest = rest.limit(len);
    }
    Ok((Layer::Transport(next), rest))
}

/// Return true if `protocol` is an IPv6 extension header, which [`extension()`] skips.
pub(super) fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        extension::HOP_BY_HOP
            | extension::ROUTING
            | extension::FRAGMENT
            | extension::DESTINATION
            | extension::MOBILITY
            | extension::HIP
            | extension::SHIM6
    )
}

/// Skip an extension header of type `header` (RFC 8200 §4).
pub(super) fn extension<'a>(walk: &mut Walk<'_>, header: u8, view: View<'a>) -> Step<'a> {
    let next = view.u8(0)?;
    if header != extension::FRAGMENT {
        let payload = view.skip((usize::from(view.u8(1)?) + 1) * 8)?;
        if header == extension::ROUTING {
            walk.ip.dst = final_destination(view).unwrap_or(walk.ip.dst);
        }
        return Ok((Layer::Transport(next), payload));
    }
    let fragmentation = view.be16(2)?;
    let id = view.be32(4)?;
    let payload = view.skip(8)?;
    walk.ip.ip_id = id;
    let (more, offset) = (fragmentation & 1 != 0, u32::from(fragmentation & 0xFFF8));
    if more || offset != 0 {
        return fragment(
            walk,
            Fragment {
                frame: walk.frame,
                protocol: next,
                id,
                offset,
                more,
                payload,
            },
        );
    }
    // An atomic fragment (RFC 6946) is a complete datagram.
    Ok((Layer::Transport(next), payload))
}

#[cold]
#[inline(never)]
fn fragment<'a>(walk: &mut Walk<'_>, fragment: Fragment<'a>) -> Step<'a> {
    if walk.quoted {
        let first = fragment.offset == 0;
        return if first {
            Ok((Layer::Transport(fragment.protocol), fragment.payload))
        } else {
            Err(Outcome::NotTcp)
        };
    }
    if !may_carry_tcp(fragment.protocol) {
        return Err(Outcome::NotTcp);
    }
    match walk.fragments.add(&walk.ip, &fragment, walk.time_ns) {
        Some(rebuilt) => {
            walk.ip.ttl = rebuilt.ttl;
            Err(walk.descend_rebuilt(&rebuilt))
        }
        None => Err(Outcome::FragmentPending),
    }
}

/// Protocols worth a slot in the fragment table: TCP and those that may lead to it.
fn may_carry_tcp(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP) || is_extension(protocol) || ip_tunnel::may_carry_tcp(protocol)
}

fn address(view: &View<'_>, at: usize) -> Result<[u8; 16], Outcome> {
    view.chunk::<16>(at).copied()
}

/// The jumbo payload option (RFC 2675 §2) of a hop-by-hop header: the length of everything after the IPv6 header.
fn jumbo_len(hop_by_hop: View<'_>) -> Option<usize> {
    const PAD1: u8 = 0;
    const JUMBO: u8 = 0xC2;
    let header_len = (usize::from(hop_by_hop.u8(1).ok()?) + 1) * 8;
    let mut at = 2;
    while at < header_len {
        match hop_by_hop.u8(at).ok()? {
            PAD1 => at += 1,
            JUMBO => {
                return usize::try_from(hop_by_hop.be32(at + 2).ok()?)
                    .ok()
                    .filter(|len| *len > 0)
            }
            _ => at += 2 + usize::from(hop_by_hop.u8(at + 1).ok()?),
        }
    }
    None
}

/// The final destination of a packet with a routing header, as used in the TCP checksum (RFC 8200 §8.1).
fn final_destination(routing: View<'_>) -> Option<[u8; 16]> {
    const SOURCE_ROUTE: u8 = 0;
    const MOBILE: u8 = 2;
    const SEGMENT_ROUTING: u8 = 4;
    let &[_, len, kind, segments_left] = routing.chunk::<4>(0).ok()?;
    let addresses = usize::from(len) / 2;
    if segments_left == 0 || addresses == 0 {
        return None;
    }
    match kind {
        SOURCE_ROUTE => address(&routing, 8 + 16 * (addresses - 1)).ok(),
        // RFC 6275 §6.4: the home address. RFC 8754 §2: the list is in reverse order.
        MOBILE | SEGMENT_ROUTING => address(&routing, 8).ok(),
        _ => None,
    }
}
