//! Every link type, tag and tunnel around the same two inner packets. The headers are spelled out in bytes.

use proptest::prelude::*;

use super::build::*;
use crate::capture::{LinkType, Packet};
use crate::wire::{capture_flag, Outcome, Segment, SegmentParser};

pub struct Case {
    pub name: &'static str,
    pub link_type: LinkType,
    pub bytes: Vec<u8>,
    pub segment: Segment,
}

const SNAP_IPV4: [u8; 8] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];
/// IEEE 802.11 data to the distribution system: control, duration, three addresses, sequence control.
#[rustfmt::skip]
const WIFI: [u8; 24] = [0x08, 0x01, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x10, 0x00];
const LABEL_BOTTOM: [u8; 4] = [0x00, 0x01, 0x01, 0x40];

fn with_control(control: u8, flags: u8) -> [u8; 24] {
    let mut header = WIFI;
    header[0] = control;
    header[1] = flags;
    header
}

fn v4(name: &'static str, link_type: LinkType, headers: &[&[u8]]) -> Case {
    let bytes = join(&[&headers.concat(), &INNER_V4]);
    Case {
        name,
        link_type,
        bytes,
        segment: inner_v4_segment(),
    }
}

fn v6(name: &'static str, link_type: LinkType, headers: &[&[u8]]) -> Case {
    let bytes = join(&[&headers.concat(), &INNER_V6]);
    Case {
        name,
        link_type,
        bytes,
        segment: inner_v6_segment(),
    }
}

/// Headers and the inner packet as the payload of IPv4.
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

pub fn all() -> Vec<Case> {
    let mut cases = links();
    cases.extend(wireless());
    cases.extend(tags());
    cases.extend(ip_tunnels());
    cases.extend(udp_tunnels());
    cases
}

fn links() -> Vec<Case> {
    let sll = |protocol: u16| {
        join(&[
            &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
            &protocol.to_be_bytes(),
        ])
    };
    let pf_log = |family: u8| join(&[&[61, family], &[0; 62]]);
    vec![
        v4("null-little-endian", 0, &[&[2, 0, 0, 0]]),
        v4("null-big-endian", 0, &[&[0, 0, 0, 2]]),
        v6("null-linux", 0, &[&[10, 0, 0, 0]]),
        v6("null-netbsd", 0, &[&[0, 0, 0, 24]]),
        v6("null-freebsd", 0, &[&[28, 0, 0, 0]]),
        v6("null-darwin", 0, &[&[30, 0, 0, 0]]),
        v4("loop", 108, &[&[0, 0, 0, 2]]),
        v6("loop-v6", 108, &[&[0, 0, 0, 24]]),
        v4("ethernet", ETHERNET, &[&ethernet(0x0800, &[])]),
        v6("ethernet-v6", ETHERNET, &[&ethernet(0x86dd, &[])]),
        v4("token-ring", 6, &[&[0x10, 0x40], &[2; 12], &SNAP_IPV4]),
        // The source's first bit: a route of six bytes follows.
        v4(
            "token-ring-routed",
            6,
            &[
                &[0x10, 0x40],
                &[2; 6],
                &[0x82, 2, 2, 2, 2, 2],
                &[0x06, 0x30, 0, 0x11, 0, 0x20],
                &SNAP_IPV4,
            ],
        ),
        v4("arcnet-bsd-rfc1051", 7, &[&[1, 2, 240]]),
        v4("arcnet-bsd-rfc1201", 7, &[&[1, 2, 212, 0, 0, 9]]),
        v4(
            "arcnet-bsd-exception",
            7,
            &[&[1, 2, 212, 0xff, 0xff, 0xff, 212, 0, 0, 9]],
        ),
        v4("arcnet-linux-rfc1051", 129, &[&[1, 2, 0, 0, 240]]),
        v4("arcnet-linux-rfc1201", 129, &[&[1, 2, 0, 0, 212, 0, 0, 9]]),
        v4("ppp", 9, &[&[0xff, 0x03, 0x00, 0x21]]),
        v4("ppp-without-framing", 9, &[&[0x00, 0x21]]),
        v4("ppp-short-protocol", 9, &[&[0x21]]),
        v6("ppp-v6", 9, &[&[0xff, 0x03, 0x00, 0x57]]),
        v4("ppp-mpls", 9, &[&[0xff, 0x03, 0x02, 0x81], &LABEL_BOTTOM]),
        v4("fddi", 10, &[&[0x54], &[2; 12], &SNAP_IPV4]),
        v4("raw-12", 12, &[]),
        v4("raw-14", 14, &[]),
        v4("raw", 101, &[]),
        v6("raw-v6", 101, &[]),
        v4("ppp-hdlc", 50, &[&[0xff, 0x03, 0x00, 0x21]]),
        v4("ppp-hdlc-cisco", 50, &[&[0x0f, 0x00, 0x08, 0x00]]),
        // The PPPoE length counts the PPP protocol field: 2 + 45 = 0x2f.
        v4(
            "pppoe-link",
            51,
            &[&[0x11, 0x00, 0, 1, 0, 0x2f, 0x00, 0x21]],
        ),
        v4("atm-llc", 100, &[&SNAP_IPV4]),
        v4(
            "atm-bridged",
            100,
            &[
                &[0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x07, 0, 0],
                &ethernet(0x0800, &[]),
            ],
        ),
        v4("cisco-hdlc", 104, &[&[0x0f, 0x00, 0x08, 0x00]]),
        v6("cisco-hdlc-v6", 104, &[&[0x8f, 0x00, 0x86, 0xdd]]),
        v4("frame-relay", 107, &[&[0x18, 0x41, 0x03, 0xcc]]),
        v6("frame-relay-v6", 107, &[&[0x18, 0x41, 0x03, 0x8e]]),
        v4(
            "frame-relay-snap",
            107,
            &[&[0x18, 0x41, 0x03, 0x00, 0x80, 0, 0, 0, 0x08, 0x00]],
        ),
        v4("frame-relay-cisco", 107, &[&[0x18, 0x41, 0x08, 0x00]]),
        v4(
            "frame-relay-four-byte-address",
            107,
            &[&[0x18, 0x40, 0x40, 0x41, 0x03, 0xcc]],
        ),
        v4("linux-cooked", 113, &[&sll(0x0800)]),
        v4("linux-cooked-llc", 113, &[&sll(0x0004), &SNAP_IPV4]),
        v6("linux-cooked-v6", 113, &[&sll(0x86dd)]),
        v4("pf-log", 117, &[&pf_log(2)]),
        v6("pf-log-v6", 117, &[&pf_log(24)]),
        v4("ip-over-fibre-channel", 122, &[&[0; 16], &SNAP_IPV4]),
        v4("firewire", 138, &[&[0; 16], &[0x08, 0x00]]),
        v4(
            "per-packet-information",
            192,
            &[&[0, 0, 12, 0, 1, 0, 0, 0], &[0; 4], &ethernet(0x0800, &[])],
        ),
        v4("ppp-with-direction", 204, &[&[1, 0xff, 0x03, 0x00, 0x21]]),
        v4("mpls-link", 219, &[&LABEL_BOTTOM]),
        v4("solaris-ipnet", 226, &[&[1, 2], &[0; 22]]),
        v4("ipv4-link", 228, &[]),
        v6("ipv6-link", 229, &[]),
        // A record of five bytes padded to eight, then the payload: 4 + 45 = 0x31.
        v4(
            "nflog-little-endian",
            239,
            &[
                &[2, 0, 0, 0],
                &[5, 0, 10, 0, b'x', 0, 0, 0],
                &[0x31, 0, 9, 0],
            ],
        ),
        v4(
            "nflog-big-endian",
            239,
            &[
                &[2, 0, 0, 0],
                &[0, 5, 0, 10, b'x', 0, 0, 0],
                &[0, 0x31, 0, 9],
            ],
        ),
        v4("infiniband", 242, &[&[0; 40], &[0x08, 0x00, 0, 0]]),
        v4(
            "darwin-packet-tap",
            258,
            &[
                &[16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
                &[0; 4],
                &ethernet(0x0800, &[]),
            ],
        ),
        v4(
            "linux-cooked-2",
            276,
            &[&[
                0x08, 0x00, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0,
            ]],
        ),
        v4(
            "broadcom-tag",
            281,
            &[&[2; 12], &[0x20, 0, 0, 1], &[0x08, 0x00]],
        ),
        v4(
            "broadcom-tag-before",
            282,
            &[&[0x20, 0, 0, 1], &ethernet(0x0800, &[])],
        ),
        v4(
            "marvell-tag",
            284,
            &[&[2; 12], &[0xc0, 0, 0, 1], &[0x08, 0x00]],
        ),
        v4(
            "marvell-ethertype-tag",
            285,
            &[&[2; 12], &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 1], &[0x08, 0x00]],
        ),
    ]
}

fn wireless() -> Vec<Case> {
    let qos = with_control(0x88, 0x01);
    let prism = join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136]]);
    let avs = join(&[&[0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64], &[0; 56]]);
    // An ARP of 36 bytes with its LLC, in a subframe of 14 + 36 = 50 bytes padded to 52.
    let arp_subframe = join(&[
        &[2; 12],
        &[0, 36],
        &[0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x06],
        &[0; 28],
        &[0; 2],
    ]);
    vec![
        v4("wifi", 105, &[&WIFI, &SNAP_IPV4]),
        v4("wifi-qos", 105, &[&qos, &[0, 0], &SNAP_IPV4]),
        v4(
            "wifi-four-addresses",
            105,
            &[&with_control(0x08, 0x03), &[2; 6], &SNAP_IPV4],
        ),
        v4(
            "wifi-ht-control",
            105,
            &[&with_control(0x88, 0x81), &[0, 0], &[0; 4], &SNAP_IPV4],
        ),
        // QoS control 0x80: an aggregate; 8 + 45 = 53 bytes in the subframe.
        v4(
            "wifi-aggregate",
            105,
            &[&qos, &[0x80, 0], &[2; 12], &[0, 53], &SNAP_IPV4],
        ),
        v4(
            "wifi-aggregate-second",
            105,
            &[
                &qos,
                &[0x80, 0],
                &arp_subframe,
                &[2; 12],
                &[0, 53],
                &SNAP_IPV4,
            ],
        ),
        v4(
            "radiotap",
            127,
            &[&[0, 0, 8, 0, 0, 0, 0, 0], &WIFI, &SNAP_IPV4],
        ),
        // Flags 0x20: the 26 bytes of the QoS header are padded to 28.
        v4(
            "radiotap-padded",
            127,
            &[
                &[0, 0, 9, 0, 2, 0, 0, 0, 0x20],
                &qos,
                &[0, 0],
                &[0, 0],
                &SNAP_IPV4,
            ],
        ),
        v4(
            "radiotap-time-and-padded",
            127,
            &[
                &[0, 0, 25, 0, 3, 0, 0, 0x80],
                &[0; 4],
                &[0; 4],
                &[0; 8],
                &[0x20],
                &qos,
                &[0, 0],
                &[0, 0],
                &SNAP_IPV4,
            ],
        ),
        v4("prism", 119, &[&prism, &WIFI, &SNAP_IPV4]),
        v4("prism-avs", 119, &[&avs, &WIFI, &SNAP_IPV4]),
        v4("avs", 163, &[&avs, &WIFI, &SNAP_IPV4]),
    ]
}

fn tags() -> Vec<Case> {
    let inner_ethernet = ethernet(0x0800, &[]);
    let e = |ethertype: u16| ethernet(ethertype, &[]);
    vec![
        v4("vlan", ETHERNET, &[&e(0x8100), &[0, 5, 0x08, 0x00]]),
        v4(
            "vlan-in-vlan",
            ETHERNET,
            &[&e(0x88a8), &[0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00]],
        ),
        v4("vlan-9100", ETHERNET, &[&e(0x9100), &[0, 5, 0x08, 0x00]]),
        v6("vlan-9200", ETHERNET, &[&e(0x9200), &[0, 5, 0x86, 0xdd]]),
        v4(
            "mpls-two-labels",
            ETHERNET,
            &[&e(0x8847), &[0, 2, 0, 0x40], &LABEL_BOTTOM],
        ),
        v6("mpls-v6", ETHERNET, &[&e(0x8848), &LABEL_BOTTOM]),
        v4(
            "mpls-pseudowire",
            ETHERNET,
            &[&e(0x8847), &LABEL_BOTTOM, &inner_ethernet],
        ),
        v4(
            "mpls-pseudowire-control-word",
            ETHERNET,
            &[&e(0x8847), &LABEL_BOTTOM, &[0; 4], &inner_ethernet],
        ),
        v4(
            "pppoe",
            ETHERNET,
            &[&e(0x8864), &[0x11, 0, 0, 1, 0, 0x2f, 0x00, 0x21]],
        ),
        // 802.3: a length (8 + 45) in the type's place.
        v4("ethernet-snap", ETHERNET, &[&e(53), &SNAP_IPV4]),
        v4(
            "ethernet-snap-bridge-tunnel",
            ETHERNET,
            &[&e(53), &[0xaa, 0xaa, 0x03, 0, 0, 0xf8, 0x08, 0x00]],
        ),
        v4("ethernet-llc-ip", ETHERNET, &[&e(48), &[0x06, 0x06, 0x03]]),
        v4("vn-tag", ETHERNET, &[&e(0x8926), &[0, 0, 0, 0, 0x08, 0x00]]),
        v4("hsr", ETHERNET, &[&e(0x892f), &[0, 0x37, 0, 1, 0x08, 0x00]]),
        v4(
            "redundancy-tag",
            ETHERNET,
            &[&e(0xf1c1), &[0, 0, 0, 1, 0x08, 0x00]],
        ),
        v4(
            "macsec",
            ETHERNET,
            &[&e(0x88e5), &[0x00, 0, 0, 0, 0, 1, 0x08, 0x00]],
        ),
        v4(
            "macsec-channel",
            ETHERNET,
            &[&e(0x88e5), &[0x20, 0, 0, 0, 0, 1], &[0; 8], &[0x08, 0x00]],
        ),
        v4(
            "backbone",
            ETHERNET,
            &[&e(0x88e7), &[0, 0, 0, 1], &inner_ethernet],
        ),
        v4(
            "trill",
            ETHERNET,
            &[&e(0x22f3), &[0, 1, 0, 1, 0, 2], &inner_ethernet],
        ),
        v4(
            "trill-options",
            ETHERNET,
            &[
                &e(0x22f3),
                &[0x00, 0x41, 0, 1, 0, 2],
                &[0; 4],
                &inner_ethernet,
            ],
        ),
        v4(
            "nsh",
            ETHERNET,
            &[&e(0x894f), &[0x0f, 0xc6, 1, 1], &[0; 20]],
        ),
        v4(
            "nsh-ethernet",
            ETHERNET,
            &[&e(0x894f), &[0x0f, 0xc2, 2, 3], &[0; 4], &inner_ethernet],
        ),
        v4(
            "isl",
            ETHERNET,
            &[
                &[0x01, 0x00, 0x0c, 0x00, 0x00, 0x00],
                &[0; 20],
                &inner_ethernet,
            ],
        ),
    ]
}

fn ip_tunnels() -> Vec<Case> {
    let inner_ethernet = ethernet(0x0800, &[]);
    let mut compressed = in_ip(
        "ip-compression",
        108,
        &[&[4, 0, 0, 2], &[0x01, 0x2d, 0x00, 0xd2, 0xff]],
    );
    // A negotiated index, as security associations have.
    let mut negotiated = in_ip(
        "ip-compression-negotiated",
        108,
        &[&[4, 0, 0x63, 0x5c], &[0x01, 0x2d, 0x00, 0xd2, 0xff]],
    );
    for case in [&mut compressed, &mut negotiated] {
        // RFC 1951 §3.2.4: one final stored block of 0x002d bytes and that length's complement.
        assert_eq!(case.bytes.len(), 20 + 4 + 5 + 45);
    }
    vec![
        compressed,
        negotiated,
        in_ip("ip-in-ip", 4, &[]),
        Case {
            name: "ipv6-in-ipv4",
            link_type: RAW_IP,
            bytes: ipv4(41, &INNER_V6),
            segment: inner_v6_segment(),
        },
        Case {
            name: "ipv4-in-ipv6",
            link_type: RAW_IP,
            bytes: ipv6(4, &INNER_V4),
            segment: inner_v4_segment(),
        },
        in_ip("gre", 47, &[&[0, 0, 0x08, 0x00]]),
        in_ip(
            "gre-all-flags",
            47,
            &[
                &[0xb0, 0, 0x08, 0x00],
                &[0; 4],
                &[0, 0, 0, 9],
                &[0, 0, 0, 1],
            ],
        ),
        in_ip(
            "gre-source-route",
            47,
            &[
                &[0x40, 0, 0x08, 0x00],
                &[0; 4],
                &[0x08, 0x00, 0, 4, 1, 2, 3, 4],
                &[0; 4],
            ],
        ),
        in_ip(
            "gre-ethernet",
            47,
            &[&[0x20, 0, 0x65, 0x58], &[0, 0, 0, 9], &inner_ethernet],
        ),
        in_ip("gre-mpls", 47, &[&[0, 0, 0x88, 0x47], &LABEL_BOTTOM]),
        in_ip(
            "gre-ppp",
            47,
            &[
                &[0x30, 0x81, 0x88, 0x0b, 0, 0x31, 0, 7],
                &[0, 0, 0, 1],
                &[0, 0, 0, 2],
                &[0xff, 0x03, 0x00, 0x21],
            ],
        ),
        in_ip("gre-wifi", 47, &[&[0, 0, 0x82, 0x10], &WIFI, &SNAP_IPV4]),
        in_ip("wccp-1", 47, &[&[0, 0, 0x88, 0x3e]]),
        in_ip("wccp-2", 47, &[&[0, 0, 0x88, 0x3e], &[0, 0, 0, 0]]),
        in_ip("erspan-1", 47, &[&[0, 0, 0x88, 0xbe], &inner_ethernet]),
        in_ip(
            "erspan-2",
            47,
            &[
                &[0x10, 0, 0x88, 0xbe],
                &[0, 0, 0, 1],
                &[0x10, 0x01, 0, 0, 0, 0, 0, 0],
                &inner_ethernet,
            ],
        ),
        in_ip(
            "erspan-3",
            47,
            &[
                &[0x10, 0, 0x22, 0xeb],
                &[0, 0, 0, 1],
                &[0x20, 0x01],
                &[0; 10],
                &inner_ethernet,
            ],
        ),
        in_ip(
            "erspan-3-subheader",
            47,
            &[
                &[0x10, 0, 0x22, 0xeb],
                &[0, 0, 0, 1],
                &[0x20, 0x01],
                &[0; 9],
                &[1],
                &[0; 8],
                &inner_ethernet,
            ],
        ),
        in_ip(
            "erspan-3-ip",
            47,
            &[
                &[0x10, 0, 0x22, 0xeb],
                &[0, 0, 0, 1],
                &[0x20, 0x01],
                &[0; 8],
                &[0x08, 0x00],
            ],
        ),
        in_ip("authentication", 51, &[&[4, 4, 0, 0], &[0; 20]]),
        in_ip("ethernet-in-ip", 97, &[&[0x30, 0x00], &inner_ethernet]),
        in_ip("mpls-in-ip", 137, &[&LABEL_BOTTOM]),
        Case {
            name: "ethernet-in-ipv6",
            link_type: RAW_IP,
            bytes: ipv6(143, &ethernet(0x0800, &INNER_V4)),
            segment: inner_v4_segment(),
        },
    ]
}

fn udp_tunnels() -> Vec<Case> {
    let inner_ethernet = ethernet(0x0800, &[]);
    let vxlan = [0x08, 0, 0, 0, 0, 0, 9, 0];
    // Teredo carries IPv6: an authentication of 13 + 0 + 0 bytes, an origin of 8.
    let teredo = |headers: &[u8]| ipv4(17, &udp(50_000, 3544, &join(&[headers, &INNER_V6])));
    let teredo_case = |name, headers: &[u8]| Case {
        name,
        link_type: RAW_IP,
        bytes: teredo(headers),
        segment: inner_v6_segment(),
    };
    vec![
        in_udp("vxlan", 4789, &[&vxlan, &inner_ethernet]),
        in_udp(
            "vxlan-reserved-bits",
            4789,
            &[&[0xff, 1, 2, 3, 0, 0, 9, 4], &inner_ethernet],
        ),
        in_udp("vxlan-linux", 8472, &[&vxlan, &inner_ethernet]),
        in_udp("vxlan-gpe-ip", 4790, &[&[0x0c, 0, 0, 1, 0, 0, 9, 0]]),
        in_udp(
            "vxlan-gpe-ethernet",
            4790,
            &[&[0x0c, 0, 0, 3, 0, 0, 9, 0], &inner_ethernet],
        ),
        in_udp(
            "geneve-ethernet",
            6081,
            &[&[0x02, 0, 0x65, 0x58, 0, 0, 9, 0], &[0; 8], &inner_ethernet],
        ),
        in_udp("geneve-ip", 6081, &[&[0x00, 0, 0x08, 0x00, 0, 0, 9, 0]]),
        in_udp("gtp", 2152, &[&[0x30, 255, 0, 45, 0, 0, 0, 1]]),
        in_udp(
            "gtp-sequence",
            2152,
            &[&[0x32, 255, 0, 49, 0, 0, 0, 1], &[0, 1, 0, 0]],
        ),
        in_udp(
            "gtp-extension",
            2152,
            &[
                &[0x34, 255, 0, 57, 0, 0, 0, 1],
                &[0, 0, 0, 0x85],
                &[1, 0, 9, 0x84],
                &[1, 0, 9, 0],
            ],
        ),
        in_udp(
            "l2tp",
            1701,
            &[&[0x00, 0x02, 0, 1, 0, 2, 0xff, 0x03, 0x00, 0x21]],
        ),
        in_udp(
            "l2tp-all-fields",
            1701,
            &[
                &[0x4a, 0x02, 0, 63, 0, 1, 0, 2],
                &[0, 1, 0, 1],
                &[0, 2, 0, 0],
                &[0xff, 0x03, 0x00, 0x21],
            ],
        ),
        in_udp("mpls-in-udp", 6635, &[&LABEL_BOTTOM]),
        in_udp("gre-in-udp", 4754, &[&[0, 0, 0x08, 0x00]]),
        in_udp("lisp", 4341, &[&[0x80, 0, 0, 1, 0, 0, 0, 1]]),
        in_udp(
            "tzsp",
            37_008,
            &[&[1, 0, 0, 1], &[0], &[0x0a, 1, 0xc0], &[1], &inner_ethernet],
        ),
        in_udp("sflow", 6343, &[&sflow_headers()]),
        teredo_case("teredo", &[]),
        teredo_case("teredo-origin", &[0, 0, 0xc3, 0x50, 1, 2, 3, 4]),
        teredo_case(
            "teredo-authentication",
            &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
    ]
}

/// One flow sample with one raw packet header: an Ethernet frame of 14 + 45 bytes, all of them sampled.
fn sflow_headers() -> Vec<u8> {
    let words = |values: &[u32]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect()
    };
    join(&[
        &words(&[5, 1, 0x0a00_0009, 0, 1, 1000, 1]),
        &words(&[1, 32 + 8 + 16 + 60, 1, 3, 512, 512, 0, 3, 4, 1]),
        &words(&[1, 16 + 60, 1, 63, 4, 59]),
        &ethernet(0x0800, &[]),
    ])
}

#[test]
fn each_encapsulation_gives_the_inner_segment() {
    for case in all() {
        let (outcome, segment) = parse(case.link_type, &case.bytes);
        assert_eq!(outcome, Outcome::Segment, "{}", case.name);
        assert_eq!(segment, case.segment, "{}", case.name);
    }
}

#[test]
fn case_names_are_unique() {
    let mut names: Vec<_> = all().iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
}

/// Cut by the snapshot length at every byte: nothing before the fixed TCP header is whole, the segment after.
#[test]
fn a_cut_packet_has_its_segment_from_the_last_byte_of_the_fixed_header_on() {
    for case in all() {
        let payload_len = 5;
        let header_end = case.bytes.len() - payload_len;
        for captured_len in 0..case.bytes.len() {
            let packet = Packet {
                captured: &case.bytes[..captured_len],
                original_len: case.bytes.len() as u32,
                ..packet(case.link_type, &[])
            };
            let (outcome, segment) = parse_packet(&packet);
            if captured_len < header_end {
                // An aggregate or a sample whose part is cut says no more than that no TCP header was found.
                assert!(
                    matches!(outcome, Outcome::HeaderCut | Outcome::NotTcp),
                    "{} cut to {captured_len}: {outcome:?}",
                    case.name
                );
            } else {
                let expected = Segment {
                    capture_flags: capture_flag::SNAPPED,
                    ..case.segment
                };
                assert_eq!(
                    (outcome, segment),
                    (Outcome::Segment, expected),
                    "{} cut to {captured_len}",
                    case.name
                );
            }
        }
    }
}

/// The same bytes missing from the wire itself: never a segment, since the TCP header is not whole.
#[test]
fn a_packet_that_was_sent_too_short_gives_no_segment() {
    for case in all() {
        for len in 0..case.bytes.len() - 5 {
            let (outcome, _) = parse(case.link_type, &case.bytes[..len]);
            assert_ne!(outcome, Outcome::Segment, "{} of {len} bytes", case.name);
            assert_ne!(outcome, Outcome::HeaderCut, "{} of {len} bytes", case.name);
        }
    }
}

#[test]
fn an_unknown_link_type_is_named_and_counted_within_bounds() {
    let mut parser = SegmentParser::new();
    let mut segment = Segment::EMPTY;
    for link_type in [147, 148, 149, 147].into_iter().chain(1000..1020) {
        let outcome = parser.parse(&packet(link_type, &INNER_V4), 0, &mut segment);
        assert_eq!(outcome, Outcome::UnknownLink(link_type));
    }
    let counters = parser.counters();
    assert_eq!(counters.unknown_link, 24);
    assert_eq!(counters.unknown_link_types.len(), 8);
    assert_eq!(
        counters.unknown_link_types[..3],
        [(147, 2), (148, 1), (149, 1)]
    );
}

#[test]
fn what_is_not_tcp_is_said_to_be_so() {
    let cases: [(&str, LinkType, Vec<u8>); 13] = [
        ("ARP", ETHERNET, ethernet(0x0806, &[0; 28])),
        (
            "spanning tree",
            ETHERNET,
            ethernet(38, &[0x42, 0x42, 0x03, 0, 0, 0]),
        ),
        ("UDP", RAW_IP, ipv4(17, &udp(53, 53, &INNER_V4))),
        ("ICMP echo", RAW_IP, ipv4(1, &[8, 0, 0, 0, 0, 0, 0, 0])),
        ("SCTP", RAW_IP, ipv4(132, &[0; 12])),
        (
            "VXLAN without its flag",
            RAW_IP,
            ipv4(
                17,
                &udp(
                    50_000,
                    4789,
                    &join(&[&[0; 8], &ethernet(0x0800, &INNER_V4)]),
                ),
            ),
        ),
        (
            "GTP echo",
            RAW_IP,
            ipv4(
                17,
                &udp(
                    2152,
                    2152,
                    &join(&[&[0x30, 1, 0, 45, 0, 0, 0, 1], &INNER_V4]),
                ),
            ),
        ),
        (
            "L2TP control",
            RAW_IP,
            ipv4(
                17,
                &udp(1701, 1701, &[0xc8, 0x02, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]),
            ),
        ),
        (
            "protected 802.11",
            105,
            join(&[&with_control(0x08, 0x41), &SNAP_IPV4, &INNER_V4]),
        ),
        (
            "802.11 null data",
            105,
            join(&[&with_control(0x48, 0x01), &SNAP_IPV4, &INNER_V4]),
        ),
        (
            "802.11 beacon",
            105,
            join(&[&with_control(0x80, 0x00), &SNAP_IPV4, &INNER_V4]),
        ),
        (
            "encrypted MACsec",
            ETHERNET,
            ethernet(
                0x88e5,
                &join(&[&[0x0c, 0, 0, 0, 0, 1, 0x08, 0x00], &INNER_V4]),
            ),
        ),
        (
            "PPP control",
            9,
            vec![0xff, 0x03, 0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0],
        ),
    ];
    for (name, link_type, bytes) in cases {
        assert_eq!(parse(link_type, &bytes).0, Outcome::NotTcp, "{name}");
    }
}

/// Deeper than any real stack, each layer well formed: the walk gives up in bounded time and stack.
#[test]
fn endless_nesting_ends() {
    let mut vlans = ethernet(0x8100, &[]);
    for _ in 0..10_000 {
        vlans.extend([0, 1, 0x81, 0x00]);
    }
    assert_eq!(parse(ETHERNET, &vlans).0, Outcome::NotTcp);

    let mut tunnels = INNER_V4.to_vec();
    for _ in 0..200 {
        tunnels = ipv4(4, &tunnels);
    }
    assert_eq!(parse(RAW_IP, &tunnels).0, Outcome::NotTcp);

    let taps = [16, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0].repeat(1000);
    assert_eq!(parse(258, &taps).0, Outcome::NotTcp);
}

proptest! {
    /// A few bytes of a well-formed packet changed, a few packets in a row: any outcome, no panic.
    #[test]
    fn damaged_encapsulations_never_panic(
        picks in prop::collection::vec((0usize..1000, prop::collection::vec((0usize..200, any::<u8>()), 0..5), 0u32..2000), 1..6),
    ) {
        let cases = all();
        let mut parser = SegmentParser::new();
        for (pick, changes, extra) in picks {
            let case = &cases[pick % cases.len()];
            let mut bytes = case.bytes.clone();
            for (at, value) in changes {
                let len = bytes.len();
                bytes[at % len] = value;
            }
            let packet = Packet { original_len: bytes.len() as u32 + extra, ..packet(case.link_type, &bytes) };
            let mut segment = Segment::EMPTY;
            if parser.parse(&packet, 0, &mut segment) == Outcome::Segment {
                prop_assert!(segment.payload_len <= 1 << 30);
                prop_assert!(segment.options.sack_count <= 4);
                prop_assert!(matches!(segment.ip_version, 4 | 6));
            }
        }
    }
}
