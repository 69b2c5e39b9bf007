//! Link types, IEEE 802.11 and EtherTypes.

use super::build::*;
use super::cases::*;

#[rustfmt::skip]
pub fn links() -> Vec<Case> {
    let sll = |protocol: u16| {
        join(&[
            &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
            &protocol.to_be_bytes(),
        ])
    };
    let erf = |kind: u8| join(&[&[0; 8], &[kind, 4, 0, 0, 0, 0, 0, 0]]);
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
        // First bit of the source: a six-byte route follows.
        v4("token-ring-routed", 6, &[&[0x10, 0x40], &[2; 6], &[0x82, 2, 2, 2, 2, 2],
            &[0x06, 0x30, 0, 0x11, 0, 0x20], &SNAP_IPV4]),
        v4("arcnet-bsd-rfc1051", 7, &[&[1, 2, 240]]),
        v4("arcnet-bsd-rfc1201", 7, &[&[1, 2, 212, 0, 0, 9]]),
        v4("arcnet-bsd-exception", 7, &[&[1, 2, 212, 0xff, 0xff, 0xff, 212, 0, 0, 9]]),
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
        v4("ppp-cisco-hdlc", 9, &[&[0x0f, 0x00, 0x08, 0x00]]),
        // RFC 1990: begin and end of a packet in one fragment, with the inner PPP's address and control omitted.
        v4("ppp-multilink", 9, &[&[0xff, 0x03, 0x00, 0x3d], &[0xc0, 0, 0, 9], &[0x00, 0x21]]),
        v4("ppp-multilink-short", 9, &[&[0x00, 0x3d], &[0xc1, 9], &[0x21]]),
        // The PPPoE length counts the PPP protocol field: 2 + 45 = 0x2f.
        v4("pppoe-link", 51, &[&[0x11, 0x00, 0, 1, 0, 0x2f, 0x00, 0x21]]),
        v4("atm-llc", 100, &[&SNAP_IPV4]),
        v4("atm-bridged", 100, &[&[0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x07, 0, 0], &ethernet(0x0800, &[])]),
        v4("cisco-hdlc", 104, &[&[0x0f, 0x00, 0x08, 0x00]]),
        v6("cisco-hdlc-v6", 104, &[&[0x8f, 0x00, 0x86, 0xdd]]),
        v4("frame-relay", 107, &[&[0x18, 0x41, 0x03, 0xcc]]),
        v6("frame-relay-v6", 107, &[&[0x18, 0x41, 0x03, 0x8e]]),
        v4("frame-relay-snap", 107, &[&[0x18, 0x41, 0x03, 0x00, 0x80, 0, 0, 0, 0x08, 0x00]]),
        v4("frame-relay-cisco", 107, &[&[0x18, 0x41, 0x08, 0x00]]),
        v4("frame-relay-four-byte-address", 107, &[&[0x18, 0x40, 0x40, 0x41, 0x03, 0xcc]]),
        v4("enc-little-endian", 109, &[&[2, 0, 0, 0], &[0; 8]]),
        v6("enc-big-endian", 109, &[&[0, 0, 0, 24], &[0, 0, 0x10, 1, 0, 0, 0x2c, 0]]),
        v4("sunatm-llc", 123, &[&[0x82, 0, 0, 100], &SNAP_IPV4]),
        v4("sunatm-lane", 123, &[&[0x01, 0, 0, 100], &[0, 7], &ethernet(0x0800, &[])]),
        v4("juniper-ethernet", 178, &[&[0x4d, 0x47, 0x43, 0x01], &ethernet(0x0800, &[])]),
        v4("juniper-ethernet-extensions", 178, &[&[0x4d, 0x47, 0x43, 0x80, 0, 6], &[0; 6], &ethernet(0x0800, &[])]),
        v6("juniper-without-link-layer", 178, &[&[0x4d, 0x47, 0x43, 0x02], &[6, 0, 0, 0]]),
        // Type, flags, record length, counter and wire length, after the eight-byte time.
        v4("erf-ethernet", 197, &[&erf(2), &[0, 0], &ethernet(0x0800, &[])]),
        v4("erf-ethernet-extensions", 197, &[&erf(0x82), &[0x83], &[0; 7], &[0x04], &[0; 7], &[0, 0],
            &ethernet(0x0800, &[])]),
        v4("erf-pos", 197, &[&erf(1), &[0xff, 0x03, 0x00, 0x21]]),
        v4("erf-pos-cisco", 197, &[&erf(1), &[0x0f, 0x00, 0x08, 0x00]]),
        v4("erf-channel", 197, &[&erf(5), &[0; 4], &[0xff, 0x03, 0x00, 0x21]]),
        v4("erf-aal5", 197, &[&erf(4), &[0; 4], &SNAP_IPV4]),
        v4("erf-channel-aal5", 197, &[&erf(9), &[0; 8], &SNAP_IPV4]),
        v4("erf-ipv4", 197, &[&erf(22)]),
        v6("erf-ipv6", 197, &[&erf(23)]),
        v4("linux-cooked", 113, &[&sll(0x0800)]),
        v4("linux-cooked-llc", 113, &[&sll(0x0004), &SNAP_IPV4]),
        v6("linux-cooked-v6", 113, &[&sll(0x86dd)]),
        v4("pf-log", 117, &[&pf_log(2)]),
        v6("pf-log-v6", 117, &[&pf_log(24)]),
        v4("ip-over-fibre-channel", 122, &[&[0; 16], &SNAP_IPV4]),
        v4("firewire", 138, &[&[0; 16], &[0x08, 0x00]]),
        v4("per-packet-information", 192, &[&[0, 0, 12, 0, 1, 0, 0, 0], &[0; 4], &ethernet(0x0800, &[])]),
        v4("ppp-with-direction", 204, &[&[1, 0xff, 0x03, 0x00, 0x21]]),
        v4("mpls-link", 219, &[&LABEL_BOTTOM]),
        v4("solaris-ipnet", 226, &[&[1, 2, 0, 0, 0, 0, 0, 45], &[0; 16]]),
        v4("ipv4-link", 228, &[]),
        v6("ipv6-link", 229, &[]),
        // A five-byte record padded to eight, then the payload: 4 + 45 = 0x31.
        v4("nflog-little-endian", 239, &[&[2, 0, 0, 0], &[5, 0, 10, 0, b'x', 0, 0, 0], &[0x31, 0, 9, 0]]),
        v4("nflog-big-endian", 239, &[&[2, 0, 0, 0], &[0, 5, 0, 10, b'x', 0, 0, 0], &[0, 0x31, 0, 9]]),
        v4("infiniband", 242, &[&[0; 40], &[0x08, 0x00, 0, 0]]),
        v4("darwin-packet-tap", 258, &[&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], &[0; 96], &ethernet(0x0800, &[])]),
        v4("linux-cooked-2", 276, &[&[0x08, 0x00, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]]),
        v4("broadcom-tag", 281, &[&[2; 12], &[0x20, 0, 0, 1], &[0x08, 0x00]]),
        v4("broadcom-tag-before", 282, &[&[0x20, 0, 0, 1], &ethernet(0x0800, &[])]),
        v4("marvell-tag", 284, &[&[2; 12], &[0xc0, 0, 0, 1], &[0x08, 0x00]]),
        v4("marvell-ethertype-tag", 285, &[&[2; 12], &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 1], &[0x08, 0x00]]),
    ]
}

#[rustfmt::skip]
pub fn wireless() -> Vec<Case> {
    let qos = with_control(0x88, 0x01);
    let prism = join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136]]);
    let avs = join(&[&[0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64], &[0; 56]]);
    // A 36-byte ARP including LLC, in a subframe of 14 + 36 = 50 bytes padded to 52.
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
        v4("wifi-four-addresses", 105, &[&with_control(0x08, 0x03), &[2; 6], &SNAP_IPV4]),
        v4("wifi-ht-control", 105, &[&with_control(0x88, 0x81), &[0, 0], &[0; 4], &SNAP_IPV4]),
        // QoS control 0x80: an aggregate; 8 + 45 = 53 bytes in the subframe.
        v4("wifi-aggregate", 105, &[&qos, &[0x80, 0], &[2; 12], &[0, 53], &SNAP_IPV4]),
        v4("wifi-aggregate-second", 105, &[&qos, &[0x80, 0], &arp_subframe, &[2; 12], &[0, 53], &SNAP_IPV4]),
        v4("radiotap", 127, &[&[0, 0, 8, 0, 0, 0, 0, 0], &WIFI, &SNAP_IPV4]),
        // Flags 0x20: the 26-byte QoS header is padded to 28.
        v4("radiotap-padded", 127, &[&[0, 0, 9, 0, 2, 0, 0, 0, 0x20], &qos, &[0, 0], &[0, 0], &SNAP_IPV4]),
        v4("radiotap-time-and-padded", 127, &[&[0, 0, 25, 0, 3, 0, 0, 0x80], &[0; 4], &[0; 4], &[0; 8], &[0x20],
            &qos, &[0, 0], &[0, 0], &SNAP_IPV4]),
        v4("prism", 119, &[&prism, &WIFI, &SNAP_IPV4]),
        v4("prism-avs", 119, &[&avs, &WIFI, &SNAP_IPV4]),
        v4("avs", 163, &[&avs, &WIFI, &SNAP_IPV4]),
    ]
}

#[rustfmt::skip]
pub fn tags() -> Vec<Case> {
    let inner_ethernet = ethernet(0x0800, &[]);
    let e = |ethertype: u16| ethernet(ethertype, &[]);
    vec![
        v4("vlan", ETHERNET, &[&e(0x8100), &[0, 5, 0x08, 0x00]]),
        v4("vlan-in-vlan", ETHERNET, &[&e(0x88a8), &[0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00]]),
        v4("vlan-9100", ETHERNET, &[&e(0x9100), &[0, 5, 0x08, 0x00]]),
        v6("vlan-9200", ETHERNET, &[&e(0x9200), &[0, 5, 0x86, 0xdd]]),
        v4("mpls-two-labels", ETHERNET, &[&e(0x8847), &[0, 2, 0, 0x40], &LABEL_BOTTOM]),
        v6("mpls-v6", ETHERNET, &[&e(0x8848), &LABEL_BOTTOM]),
        v4("mpls-pseudowire", ETHERNET, &[&e(0x8847), &LABEL_BOTTOM, &inner_ethernet]),
        v4("mpls-pseudowire-control-word", ETHERNET, &[&e(0x8847), &LABEL_BOTTOM, &[0; 4], &inner_ethernet]),
        v4("pppoe", ETHERNET, &[&e(0x8864), &[0x11, 0, 0, 1, 0, 0x2f, 0x00, 0x21]]),
        // 802.3: a length (8 + 45) instead of a type.
        v4("ethernet-snap", ETHERNET, &[&e(53), &SNAP_IPV4]),
        v4("ethernet-snap-bridge-tunnel", ETHERNET, &[&e(53), &[0xaa, 0xaa, 0x03, 0, 0, 0xf8, 0x08, 0x00]]),
        v4("ethernet-llc-ip", ETHERNET, &[&e(48), &[0x06, 0x06, 0x03]]),
        v4("vn-tag", ETHERNET, &[&e(0x8926), &[0, 0, 0, 0, 0x08, 0x00]]),
        v4("hsr", ETHERNET, &[&e(0x892f), &[0, 0x37, 0, 1, 0x08, 0x00]]),
        v4("redundancy-tag", ETHERNET, &[&e(0xf1c1), &[0, 0, 0, 1, 0x08, 0x00]]),
        v4("macsec", ETHERNET, &[&e(0x88e5), &[0x00, 0, 0, 0, 0, 1, 0x08, 0x00]]),
        v4("macsec-channel", ETHERNET, &[&e(0x88e5), &[0x20, 0, 0, 0, 0, 1], &[0; 8], &[0x08, 0x00]]),
        v4("backbone", ETHERNET, &[&e(0x88e7), &[0, 0, 0, 1], &inner_ethernet]),
        v4("trill", ETHERNET, &[&e(0x22f3), &[0, 1, 0, 1, 0, 2], &inner_ethernet]),
        v4("trill-options", ETHERNET, &[&e(0x22f3), &[0x00, 0x41, 0, 1, 0, 2], &[0; 4], &inner_ethernet]),
        v4("fabric-path", ETHERNET, &[&e(0x8903), &[0x00, 0x60], &inner_ethernet]),
        v4("nsh", ETHERNET, &[&e(0x894f), &[0x0f, 0xc6, 1, 1], &[0; 20]]),
        v4("nsh-ethernet", ETHERNET, &[&e(0x894f), &[0x0f, 0xc2, 2, 3], &[0; 4], &inner_ethernet]),
        v4("isl", ETHERNET, &[&[0x01, 0x00, 0x0c, 0x00, 0x00, 0x00], &[0; 6], &[0, 71], &[0; 12], &inner_ethernet]),
    ]
}
