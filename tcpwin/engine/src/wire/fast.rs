//! The fast path: Ethernet II, IPv4 without options or fragmentation, and TCP with completely captured options. Uses
//! fixed offsets, and a loop only for options other than NOP NOP Timestamps. Any deviation, including a set reserved
//! bit, is left to the layered walk.

use super::segment::{capture_flag, Segment};
use super::tcp::parse_options;
use crate::capture::Packet;

const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
/// Ethernet, IPv4 and the fixed TCP header.
const FIXED_LEN: usize = 54;
/// NOP, NOP, Timestamps (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 12;
const NOP_NOP_TIMESTAMPS: u32 = 0x0101_080A;
/// EtherType IPv4, version 4, a five-word header.
const IPV4_WITHOUT_OPTIONS: u64 = 0x08_0045;
/// Flags and fragment offset except don't-fragment (RFC 791 §3.1), then the protocol after the TTL.
const WHOLE_MASK: u32 = 0xBFFF_00FF;
const WHOLE_TCP: u32 = 6;
const TCP_LEN: usize = 20;
/// The two usual data offsets, with the reserved bits and AE zero (RFC 9293 §3.1; RFC 9768 §3.1).
const WITHOUT_OPTIONS: u32 = 0x50;
const WITH_TIMESTAMPS: u32 = 0x80;
const RESERVED: u32 = 0x0F;

/// Fill `out` and return true if `packet`, an Ethernet frame, is ordinary.
#[inline(always)]
pub(super) fn parse(packet: &Packet<'_>, previous_time_ns: i64, out: &mut Segment) -> bool {
    let Some((b, after)) = packet.captured.split_first_chunk::<FIXED_LEN>() else {
        return false;
    };
    let captured_len = packet.captured.len();
    let wire_len = (packet.original_len as usize).max(captured_len);
    // EtherType, version and header length, type of service, total length, identification.
    let front = u64::from_be_bytes([b[12], b[13], b[14], b[15], b[16], b[17], b[18], b[19]]);
    // Flags and fragment offset, time to live, protocol.
    let middle = u32::from_be_bytes([b[20], b[21], b[22], b[23]]);
    // Data offset and flags, window.
    let control = u32::from_be_bytes([b[46], b[47], b[48], b[49]]);
    let total_len = (front >> 16) as u16 as usize;
    if front >> 40 != IPV4_WITHOUT_OPTIONS
        || middle & WHOLE_MASK != WHOLE_TCP
        || total_len > wire_len - ETHERNET_LEN
    {
        return false;
    }
    let offset = control >> 24;
    let options_len = (offset >> 4) as usize * 4;
    let Some(options_len) = options_len.checked_sub(TCP_LEN) else {
        return false;
    };
    let Some(captured_options) = after.get(..options_len) else {
        return false;
    };
    let timestamps = match (offset, captured_options.first_chunk::<TIMESTAMPS_LEN>()) {
        (WITHOUT_OPTIONS, _) => Some(None),
        (WITH_TIMESTAMPS, Some(&[k0, k1, k2, k3, v0, v1, v2, v3, e0, e1, e2, e3]))
            if u32::from_be_bytes([k0, k1, k2, k3]) == NOP_NOP_TIMESTAMPS =>
        {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            let echo = u32::from_be_bytes([e0, e1, e2, e3]);
            Some(Some((value, echo)))
        }
        _ if offset & RESERVED == 0 => None,
        _ => return false,
    };
    let Some(payload) = total_len.checked_sub(IPV4_LEN + TCP_LEN + options_len) else {
        return false;
    };
    // Assign field by field: a temporary would be copied, including the unused SACK blocks. The pattern lists every
    // field, so that a field added later cannot retain an earlier segment's value.
    let Segment {
        frame,
        time_ns,
        src,
        dst,
        src_port,
        dst_port,
        seq,
        ack,
        payload_len,
        ip_id,
        flags,
        window,
        checksum,
        ip_version,
        ttl,
        traffic_class,
        capture_flags,
        options,
    } = out;
    *frame = packet.frame;
    *time_ns = packet.time_ns.unwrap_or(previous_time_ns);
    *src = mapped([b[26], b[27], b[28], b[29]]);
    *dst = mapped([b[30], b[31], b[32], b[33]]);
    *src_port = u16::from_be_bytes([b[34], b[35]]);
    *dst_port = u16::from_be_bytes([b[36], b[37]]);
    *seq = u32::from_be_bytes([b[38], b[39], b[40], b[41]]);
    *ack = u32::from_be_bytes([b[42], b[43], b[44], b[45]]);
    *payload_len = payload as u32;
    *ip_id = u32::from(front as u16);
    *flags = (control >> 16) as u16 & 0x00FF;
    *window = control as u16;
    *checksum = u16::from_be_bytes([b[50], b[51]]);
    *ip_version = 4;
    *ttl = (middle >> 8) as u8;
    *traffic_class = (front >> 32) as u8;
    *capture_flags = if captured_len < wire_len {
        capture_flag::SNAPPED
    } else {
        0
    };
    match timestamps {
        Some(timestamps) => options.set_only(timestamps),
        None => {
            let (others, flags) = parse_options(captured_options, options_len);
            *options = others;
            *capture_flags |= flags;
        }
    }
    true
}

/// An IPv4 address as an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2).
#[inline(always)]
pub(super) fn mapped(address: [u8; 4]) -> [u8; 16] {
    // In 64-bit halves, as they are compared later.
    let low = u64::from(u32::from_le_bytes(address)) << 32 | 0xFFFF_0000;
    let mut mapped = [0; 16];
    mapped[8..].copy_from_slice(&low.to_le_bytes());
    mapped
}
