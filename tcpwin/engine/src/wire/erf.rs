//! Endace's extensible record format, one record per packet:
//! <https://www.endace.com/erf-extensible-record-format-types.pdf>.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

const HEADER_LEN: usize = 16;
const EXTENSION_LEN: usize = 8;
const MAX_EXTENSIONS: usize = 16;
/// High bit of the record type and of each extension header: another extension header follows.
const MORE: u8 = 0x80;

/// Record types.
mod record {
    pub const HDLC_POS: u8 = 1;
    pub const ETHERNET: u8 = 2;
    pub const AAL5: u8 = 4;
    pub const MULTI_CHANNEL_HDLC: u8 = 5;
    pub const MULTI_CHANNEL_AAL5: u8 = 9;
    pub const COLOR_HDLC_POS: u8 = 10;
    pub const COLOR_ETHERNET: u8 = 11;
    pub const DSM_COLOR_HDLC_POS: u8 = 15;
    pub const DSM_COLOR_ETHERNET: u8 = 16;
    pub const COLOR_MULTI_CHANNEL_HDLC: u8 = 17;
    pub const COLOR_HASH_POS: u8 = 19;
    pub const COLOR_HASH_ETHERNET: u8 = 20;
    pub const IPV4: u8 = 22;
    pub const IPV6: u8 = 23;
}

pub(super) fn step(view: View<'_>) -> Step<'_> {
    let kind = view.u8(8)?;
    let mut payload = view.skip(HEADER_LEN)?;
    let mut has_extension = kind & MORE != 0;
    for _ in 0..MAX_EXTENSIONS {
        if !has_extension {
            break;
        }
        has_extension = payload.u8(0)? & MORE != 0;
        payload = payload.skip(EXTENSION_LEN)?;
    }
    match kind & !MORE {
        record::HDLC_POS
        | record::COLOR_HDLC_POS
        | record::DSM_COLOR_HDLC_POS
        | record::COLOR_HASH_POS => Ok((Layer::Ppp, payload)),
        // A four-byte header identifies the channel.
        record::MULTI_CHANNEL_HDLC | record::COLOR_MULTI_CHANNEL_HDLC => {
            Ok((Layer::Ppp, payload.skip(4)?))
        }
        // Offset and padding.
        record::ETHERNET
        | record::COLOR_ETHERNET
        | record::DSM_COLOR_ETHERNET
        | record::COLOR_HASH_ETHERNET => Ok((Layer::Ethernet, payload.skip(2)?)),
        // The header of the frame's first cell.
        record::AAL5 => Ok((Layer::Llc, payload.skip(4)?)),
        record::MULTI_CHANNEL_AAL5 => Ok((Layer::Llc, payload.skip(8)?)),
        record::IPV4 => Ok((Layer::Ipv4, payload)),
        record::IPV6 => Ok((Layer::Ipv6, payload)),
        _ => Err(Outcome::NotTcp),
    }
}
