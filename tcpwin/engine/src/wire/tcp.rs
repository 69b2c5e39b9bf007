//! The TCP header and its options (RFC 9293 §3.1) → the output segment.
//! Options are parsed like in Linux (net/ipv4/tcp_input.c, tcp_parse_options): the last option of a kind wins.

use super::icmp;
use super::outcome::Outcome;
use super::segment::{capture_flag, Options, Segment};
use super::view::View;
use super::walk::Walk;

const FIXED_LEN: usize = 20;
/// RFC 7323 §2.3: no window, and so no segment, is larger. A longer payload is a corrupt length field.
const MAX_PAYLOAD_LEN: usize = 1 << 30;

mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const MULTIPATH: u8 = 30;
    pub const FAST_OPEN: u8 = 34;
    /// RFC 6994 §3: shared by experiments, which the next two bytes distinguish.
    pub const EXPERIMENT: u8 = 254;
}

/// RFC 7413 appendix A: the experimental Fast Open option.
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xF9, 0x89];

pub(super) fn parse(walk: &mut Walk<'_>, view: View<'_>) -> Outcome {
    if walk.quoted {
        return icmp::quote(walk, view);
    }
    let b = match view.chunk::<FIXED_LEN>(0) {
        Ok(header) => header,
        Err(outcome) => return outcome,
    };
    let header_len = usize::from(b[12] >> 4) * 4;
    // RFC 9293 §3.1: the smallest data offset is 5.
    if header_len < FIXED_LEN {
        return Outcome::Malformed;
    }
    // Receivers drop a header longer than its datagram, but tshark shows it. Keep it, without payload.
    let overlong = header_len > view.wire_len;
    let header_len = header_len.min(view.wire_len);
    let payload_len = view.wire_len - header_len;
    if payload_len > MAX_PAYLOAD_LEN {
        return Outcome::Malformed;
    }
    let captured = view
        .bytes
        .get(FIXED_LEN..header_len.min(view.bytes.len()))
        .unwrap_or(&[]);
    let (options, mut option_flags) = parse_options(captured, header_len - FIXED_LEN);
    if overlong {
        option_flags |= capture_flag::OPTIONS_BAD;
    }
    let length_flag = if walk.ip.length_from_frame {
        capture_flag::LENGTH_FROM_FRAME
    } else {
        0
    };
    *walk.out = Segment {
        frame: walk.frame,
        time_ns: walk.time_ns,
        src: walk.ip.src,
        dst: walk.ip.dst,
        src_port: u16::from_be_bytes([b[0], b[1]]),
        dst_port: u16::from_be_bytes([b[2], b[3]]),
        seq: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        ack: u32::from_be_bytes([b[8], b[9], b[10], b[11]]),
        payload_len: payload_len as u32,
        ip_id: walk.ip.ip_id,
        flags: u16::from_be_bytes([b[12], b[13]]) & 0x0FFF,
        window: u16::from_be_bytes([b[14], b[15]]),
        checksum: u16::from_be_bytes([b[16], b[17]]),
        ip_version: walk.ip.version,
        ttl: walk.ip.ttl,
        traffic_class: walk.ip.traffic_class,
        capture_flags: walk.frame_flags | length_flag | option_flags,
        options,
    };
    Outcome::Segment
}

/// Parse the captured part of an options field of `wire_len` bytes; return the options and their capture flags.
#[inline(never)]
pub(super) fn parse_options(captured: &[u8], wire_len: usize) -> (Options, u8) {
    let mut options = Options::default();
    let mut flags = if captured.len() < wire_len {
        capture_flag::OPTIONS_CUT
    } else {
        0
    };
    let mut rest = captured;
    while let Some((&kind, after)) = rest.split_first() {
        match kind {
            kind::END => break,
            kind::NOP => rest = after,
            _ => {
                let Some(&len) = after.first() else {
                    if captured.len() == wire_len {
                        flags |= capture_flag::OPTIONS_BAD;
                    }
                    break;
                };
                let len = usize::from(len);
                let position = captured.len() - rest.len();
                // RFC 9293 §3.2: the length includes the kind and length bytes.
                if len < 2 || position + len > wire_len {
                    flags |= capture_flag::OPTIONS_BAD;
                    break;
                }
                let (Some(value), Some(next)) = (rest.get(2..len), rest.get(len..)) else {
                    break;
                };
                if !set_option(&mut options, kind, value) {
                    flags |= capture_flag::OPTIONS_BAD;
                }
                rest = next;
            }
        }
    }
    (options, flags)
}

/// Store an option. Return false, and ignore it, if its length is wrong for its kind.
fn set_option(options: &mut Options, kind: u8, value: &[u8]) -> bool {
    match (kind, value) {
        (kind::MSS, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
        (kind::WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift),
        (kind::SACK_PERMITTED, &[]) => options.sack_permitted = true,
        (kind::SACK, blocks) => return set_sack(options, blocks),
        (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
            options.timestamps = Some((
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, g, h]),
            ));
        }
        (kind::MULTIPATH, value) => {
            options.multipath |= 1 << value.first().map_or(15, |first| first >> 4)
        }
        (kind::FAST_OPEN, _) => options.fast_open = true,
        (kind::EXPERIMENT, [a, b, ..]) if [*a, *b] == FAST_OPEN_EXPERIMENT => {
            options.fast_open = true
        }
        (kind::MSS | kind::WINDOW_SCALE | kind::SACK_PERMITTED | kind::TIMESTAMPS, _) => {
            return false
        }
        _ => {}
    }
    true
}

/// RFC 2018 §3: one to four blocks of eight bytes.
fn set_sack(options: &mut Options, blocks: &[u8]) -> bool {
    let edges = blocks.chunks_exact(8);
    if blocks.is_empty() || !edges.remainder().is_empty() {
        return false;
    }
    for edge in edges {
        let Some(slot) = options.sack.get_mut(usize::from(options.sack_count)) else {
            return false;
        };
        let &[a, b, c, d, e, f, g, h] = edge else {
            return false;
        };
        *slot = (
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        );
        options.sack_count += 1;
    }
    true
}
