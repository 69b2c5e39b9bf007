//! IEEE 802.11 data frames, aggregates (A-MSDU), and the capture headers before them.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};
use super::walk::Walk;

const HEADER_LEN: usize = 24;
const MAX_SUBFRAMES: usize = 16;

/// Parse the 802.11 header (IEEE 802.11-2020 §9.3.2.1); some drivers pad it to a multiple of four bytes (`padded`).
pub(super) fn step<'a>(walk: &mut Walk<'_>, view: View<'a>, padded: bool) -> Step<'a> {
    const DATA: u8 = 2;
    const NO_DATA: u8 = 0x40;
    const QOS: u8 = 0x80;
    const TO_DS_FROM_DS: u8 = 0x03;
    const MORE_FRAGMENTS: u8 = 0x04;
    const PROTECTED: u8 = 0x40;
    const HT_CONTROL: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    const VERSION: u8 = 0x03;
    let &[first, second] = view.chunk::<2>(0)?;
    // Some access points send these two bytes to their controller in swapped order. The version is always 0, while the
    // flags in its place always contain a To DS or From DS bit.
    let (control, flags) = if first & VERSION == 0 {
        (first, second)
    } else {
        (second, first)
    };
    let is_data = control & VERSION == 0 && (control >> 2) & 3 == DATA && control & NO_DATA == 0;
    // Control frames end before the sequence control: an ACK has 10 bytes (IEEE 802.11-2020 §9.3.1).
    if !is_data || flags & PROTECTED != 0 {
        return Err(Outcome::NotTcp);
    }
    let fragment = view.le16(22)? & 0x0F;
    if flags & MORE_FRAGMENTS != 0 || fragment != 0 {
        return Err(Outcome::NotTcp);
    }
    let mut header_len = HEADER_LEN;
    if flags & TO_DS_FROM_DS == TO_DS_FROM_DS {
        header_len += 6;
    }
    let mut aggregate = false;
    if control & QOS != 0 {
        aggregate = view.u8(header_len)? & AGGREGATE != 0;
        header_len += 2;
        if flags & HT_CONTROL != 0 {
            header_len += 4;
        }
    }
    if padded {
        header_len = header_len.next_multiple_of(4);
    }
    let body = view.skip(header_len)?;
    if aggregate {
        return Err(subframes(walk, body));
    }
    Ok((Layer::Llc, body))
}

/// IEEE 802.11-2020 §9.3.2.2: each subframe has an Ethernet-like header with a length and is padded to four bytes.
#[cold]
#[inline(never)]
fn subframes(walk: &mut Walk<'_>, mut view: View<'_>) -> Outcome {
    const SUBFRAME_HEADER_LEN: usize = 14;
    for _ in 0..MAX_SUBFRAMES {
        let (Ok(len), Ok(body)) = (view.be16(12), view.skip(SUBFRAME_HEADER_LEN)) else {
            break;
        };
        let len = usize::from(len);
        let outcome = walk.descend(Layer::Llc, body.limit(len));
        if outcome == Outcome::Segment {
            return outcome;
        }
        let Ok(next) = view.skip((SUBFRAME_HEADER_LEN + len).next_multiple_of(4)) else {
            break;
        };
        view = next;
    }
    Outcome::NotTcp
}

/// Radiotap (radiotap.org): little-endian; fields are listed in present bits, of which only TSFT and Flags matter here.
pub(super) fn radiotap(view: View<'_>) -> Step<'_> {
    const TSFT: u32 = 0x1;
    const FLAGS: u32 = 0x2;
    const ANOTHER_WORD: u32 = 0x8000_0000;
    const DATA_PADDED: u8 = 0x20;
    const MAX_WORDS: usize = 32;
    let header_len = usize::from(view.le16(2)?);
    let present = view.le32(4)?;
    let mut at = 8;
    let mut word = present;
    for _ in 0..MAX_WORDS {
        if word & ANOTHER_WORD == 0 {
            break;
        }
        word = view.le32(at)?;
        at += 4;
    }
    if present & TSFT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let padded = present & FLAGS != 0 && at < header_len && view.u8(at)? & DATA_PADDED != 0;
    Ok((Layer::Wifi(padded), view.skip(header_len)?))
}

/// Prism (144 bytes) or, under the same link type, AVS, recognized by its magic number.
pub(super) fn prism(view: View<'_>) -> Step<'_> {
    const AVS_MAGIC: u32 = 0x8021_1000;
    const PRISM_LEN: usize = 144;
    if view.be32(0)? & 0xFFFF_F000 == AVS_MAGIC {
        return avs(view);
    }
    Ok((Layer::Wifi(false), view.skip(PRISM_LEN)?))
}

/// AVS: version and header length, big-endian.
pub(super) fn avs(view: View<'_>) -> Step<'_> {
    let header_len = usize::try_from(view.be32(4)?).unwrap_or(usize::MAX);
    Ok((Layer::Wifi(false), view.skip(header_len)?))
}
