//! Tunnels in IP and in UDP.

use super::build::*;
use super::cases::*;
use crate::wire::{capture_flag, Segment};

/// Headers and the inner packet as an IPv4 payload.
fn in_ip(name: &'static str, protocol: u8, headers: &[&[u8]]) -> Case {
    let payload = join(&[&headers.concat(), &INNER_V4]);
    Case {
        name,
        link_type: RAW_IP,
        bytes: ipv4(protocol, &payload),
        segment: inner_v4_segment(),
    }
}

fn in_udp(name: &'static str, destination: u16, headers: &[&[u8]]) -> Case {
    let payload = join(&[&headers.concat(), &INNER_V4]);
    let bytes = ipv4(17, &udp(50_000, destination, &payload));
    Case {
        name,
        link_type: RAW_IP,
        bytes,
        segment: inner_v4_segment(),
    }
}

/// Mark the case's segment as a sample.
fn sampled(case: Case) -> Case {
    let segment = Segment {
        capture_flags: capture_flag::SAMPLED,
        ..case.segment
    };
    Case { segment, ..case }
}

#[rustfmt::skip]
pub fn ip_tunnels() -> Vec<Case> {
    let inner_ethernet = ethernet(0x0800, &[]);
    // RFC 1951 §3.2.4: one final stored block of 0x2d bytes, and that length's complement.
    let stored = [0x01, 0x2d, 0x00, 0xd2, 0xff];
    vec![
        in_ip("ip-compression", 108, &[&[4, 0, 0, 2], &stored]),
        // A negotiated CPI, as used by security associations.
        in_ip("ip-compression-negotiated", 108, &[&[4, 0, 0x63, 0x5c], &stored]),
        in_ip("ip-in-ip", 4, &[]),
        Case { name: "ipv6-in-ipv4", link_type: RAW_IP, bytes: ipv4(41, &INNER_V6), segment: inner_v6_segment() },
        Case { name: "ipv4-in-ipv6", link_type: RAW_IP, bytes: ipv6(4, &INNER_V4), segment: inner_v4_segment() },
        in_ip("gre", 47, &[&[0, 0, 0x08, 0x00]]),
        in_ip("gre-all-flags", 47, &[&[0xb0, 0, 0x08, 0x00], &[0; 4], &[0, 0, 0, 9], &[0, 0, 0, 1]]),
        in_ip("gre-source-route", 47, &[&[0x40, 0, 0x08, 0x00], &[0; 4], &[0x08, 0x00, 0, 4, 1, 2, 3, 4], &[0; 4]]),
        in_ip("gre-ethernet", 47, &[&[0x20, 0, 0x65, 0x58], &[0, 0, 0, 9], &inner_ethernet]),
        in_ip("gre-mpls", 47, &[&[0, 0, 0x88, 0x47], &LABEL_BOTTOM]),
        in_ip("gre-ppp", 47, &[&[0x30, 0x81, 0x88, 0x0b, 0, 0x31, 0, 7], &[0, 0, 0, 1], &[0, 0, 0, 2],
            &[0xff, 0x03, 0x00, 0x21]]),
        in_ip("gre-wifi", 47, &[&[0, 0, 0x82, 0x10], &WIFI, &SNAP_IPV4]),
        in_ip("wccp-1", 47, &[&[0, 0, 0x88, 0x3e]]),
        in_ip("wccp-2", 47, &[&[0, 0, 0x88, 0x3e], &[0, 0, 0, 0]]),
        in_ip("erspan-1", 47, &[&[0, 0, 0x88, 0xbe], &inner_ethernet]),
        in_ip("erspan-2", 47, &[&[0x10, 0, 0x88, 0xbe], &[0, 0, 0, 1], &[0x10, 0x01, 0, 0, 0, 0, 0, 0],
            &inner_ethernet]),
        in_ip("erspan-3", 47, &[&[0x10, 0, 0x22, 0xeb], &[0, 0, 0, 1], &[0x20, 0x01], &[0; 10], &inner_ethernet]),
        in_ip("erspan-3-subheader", 47, &[&[0x10, 0, 0x22, 0xeb], &[0, 0, 0, 1], &[0x20, 0x01], &[0; 9], &[1],
            &[0; 8], &inner_ethernet]),
        in_ip("erspan-3-ip", 47, &[&[0x10, 0, 0x22, 0xeb], &[0, 0, 0, 1], &[0x20, 0x01], &[0; 8], &[0x08, 0x00]]),
        in_ip("authentication", 51, &[&[4, 4, 0, 0], &[0; 20]]),
        in_ip("ethernet-in-ip", 97, &[&[0x30, 0x00], &inner_ethernet]),
        in_ip("mpls-in-ip", 137, &[&LABEL_BOTTOM]),
        Case { name: "ethernet-in-ipv6", link_type: RAW_IP, bytes: ipv6(143, &ethernet(0x0800,
            &INNER_V4)), segment: inner_v4_segment() },
    ]
}

#[rustfmt::skip]
pub fn udp_tunnels() -> Vec<Case> {
    let inner_ethernet = ethernet(0x0800, &[]);
    let vxlan = [0x08, 0, 0, 0, 0, 0, 9, 0];
    // Teredo carries IPv6, after an authentication of 13 + 0 + 0 bytes and an origin of 8.
    let teredo = |headers: &[u8]| ipv4(17, &udp(50_000, 3544, &join(&[headers, &INNER_V6])));
    let teredo_case = |name, headers: &[u8]| Case {
        name,
        link_type: RAW_IP,
        bytes: teredo(headers),
        segment: inner_v6_segment(),
    };
    vec![
        in_udp("vxlan", 4789, &[&vxlan, &inner_ethernet]),
        in_udp("vxlan-reserved-bits", 4789, &[&[0xff, 1, 2, 3, 0, 0, 9, 4], &inner_ethernet]),
        in_udp("vxlan-linux", 8472, &[&vxlan, &inner_ethernet]),
        in_udp("vxlan-gpe-ip", 4790, &[&[0x0c, 0, 0, 1, 0, 0, 9, 0]]),
        in_udp("vxlan-gpe-ethernet", 4790, &[&[0x0c, 0, 0, 3, 0, 0, 9, 0], &inner_ethernet]),
        in_udp("geneve-ethernet", 6081, &[&[0x02, 0, 0x65, 0x58, 0, 0, 9, 0], &[0; 8], &inner_ethernet]),
        in_udp("geneve-ip", 6081, &[&[0x00, 0, 0x08, 0x00, 0, 0, 9, 0]]),
        // A two-word header; the IEEE 802.11 binding; T: the native frame.
        in_udp("capwap-ethernet", 5247, &[&[0, 0x10, 0x02, 0x00], &[0; 4], &inner_ethernet]),
        in_udp("capwap-wifi", 5247, &[&[0, 0x10, 0x43, 0x00], &[0; 4], &WIFI, &SNAP_IPV4]),
        in_udp("capwap-wifi-swapped", 5247, &[&[0, 0x10, 0x43, 0x00], &[0; 4], &[0x01, 0x08], &WIFI[2..], &SNAP_IPV4]),
        // W: four words, two of which contain radio information.
        in_udp("capwap-wireless-information", 5247, &[&[0, 0x20, 0x43, 0x20], &[0; 4], &[4, 0, 0, 0, 0, 0, 0, 0],
            &WIFI, &SNAP_IPV4]),
        in_udp("gtp", 2152, &[&[0x30, 255, 0, 45, 0, 0, 0, 1]]),
        in_udp("gtp-sequence", 2152, &[&[0x32, 255, 0, 49, 0, 0, 0, 1], &[0, 1, 0, 0]]),
        in_udp("gtp-extension", 2152, &[&[0x34, 255, 0, 57, 0, 0, 0, 1], &[0, 0, 0, 0x85], &[1, 0, 9, 0x40],
            &[1, 0x08, 0x68, 0]]),
        in_udp("l2tp", 1701, &[&[0x00, 0x02, 0, 1, 0, 2, 0xff, 0x03, 0x00, 0x21]]),
        in_udp("l2tp-all-fields", 1701, &[&[0x4a, 0x02, 0, 65, 0, 1, 0, 2], &[0, 1, 0, 1], &[0, 2, 0, 0],
            &[0xff, 0x03, 0x00, 0x21]]),
        in_udp("mpls-in-udp", 6635, &[&LABEL_BOTTOM]),
        in_udp("gre-in-udp", 4754, &[&[0, 0, 0x08, 0x00]]),
        in_udp("lisp", 4341, &[&[0x80, 0, 0, 1, 0, 0, 0, 1]]),
        in_udp("tzsp", 37_008, &[&[1, 0, 0, 1], &[0], &[0x0a, 1, 0xc0], &[1], &inner_ethernet]),
        sampled(in_udp("sflow", 6343, &[&sflow_headers()])),
        teredo_case("teredo", &[]),
        teredo_case("teredo-origin", &[0, 0, 0xc3, 0x50, 1, 2, 3, 4]),
        teredo_case("teredo-authentication", &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ]
}

/// A flow sample with a raw packet header: a PPP frame of 3 + 45 bytes, sampled except for its checksum.
fn sflow_headers() -> Vec<u8> {
    let words = |values: &[u32]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect()
    };
    join(&[
        &words(&[5, 1, 0x0a00_0009, 0, 1, 1000, 1]),
        &words(&[1, 32 + 8 + 16 + 48, 1, 3, 512, 512, 0, 3, 4, 1]),
        &words(&[1, 16 + 48, 7, 52, 4, 48]),
        &[0xff, 0x03, 0x21],
    ])
}
