//! ICMP and ICMPv6 errors about TCP segments (RFC 792, RFC 1191, RFC 4443).
//!
//! In: an error message and its IP header. Out: what it says, and the ports and sequence number of the quoted segment.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};
use super::walk::Walk;

/// The start of the packet that caused an error (RFC 792; RFC 4443 §3).
const QUOTATION: usize = 8;
const UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const V6_PACKET_TOO_BIG: u8 = 2;
const V6_LEN: u32 = 40;

/// An error about a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    pub frame: u64,
    pub time_ns: i64,
    /// 4 for ICMP, 6 for ICMPv6; `kind` is the message's type.
    pub version: u8,
    pub kind: u8,
    pub code: u8,
    /// MTU of the next hop; 0 if the message has none (RFC 1191 §3, RFC 4443 §3.2).
    pub mtu: u32,
    /// The host or router that sent the error.
    pub reporter: [u8; 16],
    /// Addresses, ports, sequence number and IP length of the quoted segment.
    pub src: [u8; 16],
    pub dst: [u8; 16],
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ip_len: u32,
}

/// Follow the quotation of an error of one of `types`.
pub(super) fn error<'a>(walk: &mut Walk<'_>, view: View<'a>, types: &[u8]) -> Step<'a> {
    let kind = view.u8(0)?;
    if walk.quoted || !types.contains(&kind) {
        return Err(Outcome::NotTcp);
    }
    let quotation = view.skip(QUOTATION)?;
    let mut report = IcmpError {
        frame: walk.frame,
        time_ns: walk.time_ns,
        version: walk.ip.version,
        kind,
        code: view.u8(1)?,
        mtu: 0,
        reporter: walk.ip.src,
        src: [0; 16],
        dst: [0; 16],
        src_port: 0,
        dst_port: 0,
        seq: 0,
        ip_len: 0,
    };
    match (report.version, kind, report.code) {
        (4, UNREACHABLE, FRAGMENTATION_NEEDED) => report.mtu = u32::from(view.be16(6)?),
        (6, V6_PACKET_TOO_BIG, _) => report.mtu = view.be32(4)?,
        _ => {}
    }
    report.ip_len = match quotation.u8(0)? >> 4 {
        4 => u32::from(quotation.be16(2)?),
        _ => V6_LEN + u32::from(quotation.be16(4)?),
    };
    walk.quoted = true;
    walk.report = Some(report);
    match walk.descend(Layer::Ip, quotation) {
        Outcome::Quoted => Err(Outcome::Quoted),
        // A quotation is short by design, so its cuts and inconsistencies are not the frame's.
        _ => Err(Outcome::NotTcp),
    }
}

/// Add a quoted TCP header, of which an error may hold as little as eight bytes (RFC 792).
pub(super) fn quote(walk: &mut Walk<'_>, view: View<'_>) -> Outcome {
    let Ok(&[p, q, r, s, a, b, c, d]) = view.chunk::<8>(0) else {
        return Outcome::NotTcp;
    };
    let ip = walk.ip;
    if let Some(report) = walk.report.as_mut() {
        (report.src, report.dst) = (ip.src, ip.dst);
        report.src_port = u16::from_be_bytes([p, q]);
        report.dst_port = u16::from_be_bytes([r, s]);
        report.seq = u32::from_be_bytes([a, b, c, d]);
    }
    Outcome::Quoted
}
