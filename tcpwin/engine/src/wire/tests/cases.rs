//! Every link type, tag and tunnel around the same two inner packets, with headers spelled out in bytes.

use super::build::*;
use super::{link_cases, tunnel_cases};
use crate::capture::LinkType;
use crate::wire::Segment;

pub struct Case {
    pub name: &'static str,
    pub link_type: LinkType,
    pub bytes: Vec<u8>,
    pub segment: Segment,
}

pub const SNAP_IPV4: [u8; 8] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];
/// IEEE 802.11 data to the distribution system: control, duration, three addresses, sequence control.
#[rustfmt::skip]
pub const WIFI: [u8; 24] = [0x08, 0x01, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x10, 0x00];
pub const LABEL_BOTTOM: [u8; 4] = [0x00, 0x01, 0x01, 0x40];

pub fn with_control(control: u8, flags: u8) -> [u8; 24] {
    let mut header = WIFI;
    header[0] = control;
    header[1] = flags;
    header
}

pub fn v4(name: &'static str, link_type: LinkType, headers: &[&[u8]]) -> Case {
    let bytes = join(&[&headers.concat(), &INNER_V4]);
    Case {
        name,
        link_type,
        bytes,
        segment: inner_v4_segment(),
    }
}

pub fn v6(name: &'static str, link_type: LinkType, headers: &[&[u8]]) -> Case {
    let bytes = join(&[&headers.concat(), &INNER_V6]);
    Case {
        name,
        link_type,
        bytes,
        segment: inner_v6_segment(),
    }
}

pub fn all() -> Vec<Case> {
    let mut cases = link_cases::links();
    cases.extend(link_cases::wireless());
    cases.extend(link_cases::tags());
    cases.extend(tunnel_cases::ip_tunnels());
    cases.extend(tunnel_cases::udp_tunnels());
    cases
}
