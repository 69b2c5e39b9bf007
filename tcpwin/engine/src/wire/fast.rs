//! The fast path: Ethernet II, IPv4 without options or fragmentation, TCP with no options or only NOP NOP Timestamps.
//! Fixed offsets, no loop. Declines whatever is not exactly that, and the layered walk then gives the answer.

use super::segment::{capture_flag, Options, Segment};
use crate::capture::Packet;

const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
/// Ethernet + IPv4 + the fixed TCP header.
const FIXED_LEN: usize = 54;
/// The same with the twelve bytes of NOP, NOP, Timestamps (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 66;
const NOP_NOP_TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
const TCP: u8 = 6;

/// Fill `out` and return true if `packet`, an Ethernet frame, is of the ordinary kind.
#[inline]
pub(super) fn parse(packet: &Packet<'_>, previous_time_ns: i64, out: &mut Segment) -> bool {
    let Some(b) = packet.captured.first_chunk::<FIXED_LEN>() else {
        return false;
    };
    let wire_len = (packet.original_len as usize).max(packet.captured.len());
    let total_len = u16::from_be_bytes([b[16], b[17]]) as usize;
    // 0x3FFF: more-fragments and the fragment offset (RFC 791 §3.1).
    let whole = u16::from_be_bytes([b[20], b[21]]) & 0x3FFF == 0;
    if b[12] != 0x08
        || b[13] != 0x00
        || b[14] != 0x45
        || b[23] != TCP
        || !whole
        || total_len > wire_len - ETHERNET_LEN
    {
        return false;
    }
    let (header_len, timestamps) = match b[46] >> 4 {
        5 => (20, None),
        8 => {
            let Some(with_options) = packet.captured.first_chunk::<TIMESTAMPS_LEN>() else {
                return false;
            };
            let o: &[u8; 12] = match with_options.last_chunk() {
                Some(options) => options,
                None => return false,
            };
            if o[..4] != NOP_NOP_TIMESTAMPS {
                return false;
            }
            let value = u32::from_be_bytes([o[4], o[5], o[6], o[7]]);
            let echo = u32::from_be_bytes([o[8], o[9], o[10], o[11]]);
            (32, Some((value, echo)))
        }
        _ => return false,
    };
    let Some(payload_len) = total_len.checked_sub(IPV4_LEN + header_len) else {
        return false;
    };
    // Ethernet padding is no part of the header; only bytes that the IP length counts are read above.
    *out = Segment {
        frame: packet.frame,
        time_ns: packet.time_ns.unwrap_or(previous_time_ns),
        src: mapped([b[26], b[27], b[28], b[29]]),
        dst: mapped([b[30], b[31], b[32], b[33]]),
        src_port: u16::from_be_bytes([b[34], b[35]]),
        dst_port: u16::from_be_bytes([b[36], b[37]]),
        seq: u32::from_be_bytes([b[38], b[39], b[40], b[41]]),
        ack: u32::from_be_bytes([b[42], b[43], b[44], b[45]]),
        payload_len: payload_len as u32,
        ip_id: u32::from(u16::from_be_bytes([b[18], b[19]])),
        flags: u16::from_be_bytes([b[46], b[47]]) & 0x0FFF,
        window: u16::from_be_bytes([b[48], b[49]]),
        checksum: u16::from_be_bytes([b[50], b[51]]),
        ip_version: 4,
        ttl: b[22],
        capture_flags: if packet.captured.len() < wire_len {
            capture_flag::SNAPPED
        } else {
            0
        },
        options: Options {
            timestamps,
            ..Segment::EMPTY.options
        },
    };
    true
}

/// An IPv4 address as an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2).
#[inline]
pub(super) fn mapped(a: [u8; 4]) -> [u8; 16] {
    [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a[0], a[1], a[2], a[3],
    ]
}
