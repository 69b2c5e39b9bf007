//! CAPWAP data (RFC 5415 §4.3, RFC 5416): traffic between access points and their controller.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

/// Clear text only; packets with a DTLS header cannot be read. The first fragment of a packet is enough.
pub(super) fn data(view: View<'_>) -> Step<'_> {
    const CLEAR_TEXT: u8 = 0;
    const WIRELESS_802_11: u32 = 1;
    const NATIVE: u32 = 1 << 8;
    const FRAGMENT: u32 = 1 << 7;
    const KEEP_ALIVE: u32 = 1 << 3;
    if view.u8(0)? != CLEAR_TEXT {
        return Err(Outcome::NotTcp);
    }
    // Preamble, header length in words, radio, binding, flags.
    let word = view.be32(0)?;
    let header_len = ((word >> 19) & 0x1F) as usize * 4;
    if header_len < 8 {
        return Err(Outcome::Malformed);
    }
    let offset = view.be16(6)? >> 3;
    if word & KEEP_ALIVE != 0 || offset != 0 {
        return Err(Outcome::NotTcp);
    }
    let mut payload = view.skip(header_len)?;
    if word & FRAGMENT != 0 {
        payload = payload.first_of_several();
    }
    match ((word >> 9) & 0x1F, word & NATIVE != 0) {
        (_, false) => Ok((Layer::Ethernet, payload)),
        (WIRELESS_802_11, true) => Ok((Layer::Wifi(false), payload)),
        _ => Err(Outcome::NotTcp),
    }
}
