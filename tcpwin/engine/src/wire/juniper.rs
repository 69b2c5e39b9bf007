//! Juniper's capture header: <https://www.tcpdump.org/linktypes/LINKTYPE_JUNIPER_ETHER.html>.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

/// A magic number, flags, and, if the flags say so, a length-prefixed list of extensions.
pub(super) fn ethernet(view: View<'_>) -> Step<'_> {
    const MAGIC: [u8; 3] = [0x4D, 0x47, 0x43];
    const EXTENDED: u8 = 0x80;
    const WITHOUT_LINK_LAYER: u8 = 0x02;
    let &[a, b, c, flags] = view.chunk::<4>(0)?;
    if [a, b, c] != MAGIC {
        return Err(Outcome::Malformed);
    }
    let header_len = if flags & EXTENDED != 0 {
        6 + usize::from(view.be16(4)?)
    } else {
        4
    };
    let payload = view.skip(header_len)?;
    if flags & WITHOUT_LINK_LAYER == 0 {
        return Ok((Layer::Ethernet, payload));
    }
    let packet = payload.skip(4)?;
    match payload.le32(0)? {
        2 => Ok((Layer::Ipv4, packet)),
        5 => Ok((Layer::Mpls, packet)),
        6 => Ok((Layer::Ipv6, packet)),
        _ => Err(Outcome::NotTcp),
    }
}
