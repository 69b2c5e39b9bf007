//! IP payloads other than TCP and UDP: IP, GRE, Ethernet, MPLS, AH, IPComp, ICMP errors.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};
use super::walk::Walk;
use super::{gre, icmp, ipcomp};

/// IANA protocol numbers.
mod protocol {
    pub const ICMP: u8 = 1;
    pub const IPV4: u8 = 4;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
    pub const AUTHENTICATION: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const ETHER_IP: u8 = 97;
    pub const COMPRESSED: u8 = 108;
    pub const MPLS: u8 = 137;
    pub const ETHERNET: u8 = 143;
}

#[cold]
#[inline(never)]
pub(super) fn step<'a>(walk: &mut Walk<'_>, protocol: u8, view: View<'a>) -> Step<'a> {
    match protocol {
        // Use the inner header's version: senders confuse 4 and 41.
        protocol::IPV4 | protocol::IPV6 => Ok((Layer::Ip, view)),
        protocol::GRE => gre::step(view),
        protocol::AUTHENTICATION => {
            let header_len = (usize::from(view.u8(1)?) + 2) * 4;
            Ok((Layer::Transport(view.u8(0)?), view.skip(header_len)?))
        }
        // RFC 3378 §3: version 3 and twelve reserved bits.
        protocol::ETHER_IP => Ok((Layer::Ethernet, view.skip(2)?)),
        protocol::COMPRESSED => Err(ipcomp::descend(walk, view)),
        protocol::MPLS => Ok((Layer::Mpls, view)),
        protocol::ETHERNET => Ok((Layer::Ethernet, view)),
        protocol::ICMP => icmp::error(walk, view, &[3, 4, 5, 11, 12]),
        protocol::ICMPV6 => icmp::error(walk, view, &[1, 2, 3, 4]),
        _ => Err(Outcome::NotTcp),
    }
}

/// The protocols above whose datagrams are worth reassembling.
pub(super) fn may_carry_tcp(protocol: u8) -> bool {
    matches!(
        protocol,
        protocol::IPV4
            | protocol::IPV6
            | protocol::GRE
            | protocol::AUTHENTICATION
            | protocol::ETHER_IP
            | protocol::COMPRESSED
            | protocol::MPLS
            | protocol::ETHERNET
    )
}
