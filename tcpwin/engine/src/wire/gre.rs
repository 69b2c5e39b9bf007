//! GRE (RFC 1701, 2784, 2890), its PPTP variant (RFC 2637), ERSPAN, and 802.11 frames from Aruba access points.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

mod flag {
    pub const CHECKSUM: u16 = 0x8000;
    pub const ROUTING: u16 = 0x4000;
    pub const KEY: u16 = 0x2000;
    pub const SEQUENCE: u16 = 0x1000;
    /// RFC 2637 §4.1, version 1 only.
    pub const ACKNOWLEDGMENT: u16 = 0x0080;
    pub const VERSION: u16 = 0x0007;
}

const ERSPAN_I_II: u16 = 0x88BE;
const ERSPAN_III: u16 = 0x22EB;
const WCCP: u16 = 0x883E;

pub(super) fn step(view: View<'_>) -> Step<'_> {
    let flags = view.be16(0)?;
    let protocol = view.be16(2)?;
    let version = flags & flag::VERSION;
    if version > 1 {
        return Err(Outcome::NotTcp);
    }
    let mut header_len = 4;
    if flags & (flag::CHECKSUM | flag::ROUTING) != 0 {
        header_len += 4;
    }
    if flags & flag::KEY != 0 {
        header_len += 4;
    }
    if flags & flag::SEQUENCE != 0 {
        header_len += 4;
    }
    if version == 1 && flags & flag::ACKNOWLEDGMENT != 0 {
        header_len += 4;
    }
    let mut payload = view.skip(header_len)?;
    if flags & flag::ROUTING != 0 {
        payload = skip_source_routes(payload)?;
    }
    match protocol {
        ERSPAN_I_II if flags & flag::SEQUENCE == 0 => Ok((Layer::Ethernet, payload)),
        ERSPAN_I_II | ERSPAN_III => erspan(payload),
        WCCP => wccp(payload),
        // 0x8200, 0x8210 … 0x8370: one per class of service.
        0x8200..=0x8370 if protocol & 0x000F == 0 => Ok((Layer::Wifi(false), payload)),
        0x9000 => Ok((Layer::Wifi(false), payload)),
        _ => Ok((Layer::EtherType(protocol), payload)),
    }
}

/// RFC 1701: source route entries (family, offset, length), terminated by an empty one.
fn skip_source_routes(mut view: View<'_>) -> Result<View<'_>, Outcome> {
    const MAX_ROUTES: usize = 16;
    for _ in 0..MAX_ROUTES {
        let (family, len) = (view.be16(0)?, view.u8(3)?);
        view = view.skip(4 + usize::from(len))?;
        if family == 0 && len == 0 {
            return Ok(view);
        }
    }
    Err(Outcome::Malformed)
}

/// draft-foschiano-erspan-03: type II has eight bytes; type III has twelve, plus eight if its O bit is set.
fn erspan(view: View<'_>) -> Step<'_> {
    const FRAME_TYPE_IP: u16 = 2;
    match view.u8(0)? >> 4 {
        1 => Ok((Layer::Ethernet, view.skip(8)?)),
        2 => {
            let flags = view.be16(10)?;
            let payload = view.skip(if flags & 1 != 0 { 20 } else { 12 })?;
            let is_ip = (flags >> 10) & 0x1F == FRAME_TYPE_IP;
            Ok((if is_ip { Layer::Ip } else { Layer::Ethernet }, payload))
        }
        _ => Err(Outcome::NotTcp),
    }
}

/// WCCP version 1 starts with the IP packet; version 2 puts a four-byte redirect header before it.
fn wccp(view: View<'_>) -> Step<'_> {
    if view.u8(0)? >> 4 == 4 {
        return Ok((Layer::Ipv4, view));
    }
    Ok((Layer::Ip, view.skip(4)?))
}
