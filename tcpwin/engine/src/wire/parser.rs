//! One packet in, at most one TCP segment out: the first TCP header met on the way in through links and tunnels.
//! Ordinary Ethernet/IPv4/TCP packets take the fast path; every other one walks its layers, a bounded number of them.

use super::fast;
use super::fragments::{FragmentTable, Rebuilt};
use super::ip_facts::IpFacts;
use super::outcome::{Outcome, Unread};
use super::segment::{capture_flag, Segment};
use super::view::{Layer, Step, View, TCP, UDP};
use super::walk::Walk;
use super::{ethernet, ip, ip_tunnel, link, ppp, sflow, tcp, udp, wifi};
use crate::capture::{LinkType, Packet};

/// Bound on the headers walked in one frame, all branches (aggregated 802.11 frames, samples) counted together.
const MAX_LAYERS: u32 = 64;

const LINK_TYPE_ETHERNET: LinkType = 1;

/// How many frames had each outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseCounters {
    pub segments: u64,
    /// Of these, samples of a flow monitor.
    pub sampled: u64,
    /// Those that are not understood included.
    pub not_tcp: u64,
    /// Frames that carry something that is not understood, and the first kinds of it.
    pub unread: u64,
    pub unread_kinds: Vec<(Unread, u64)>,
    pub fragments_pending: u64,
    pub quoted: u64,
    pub header_cut: u64,
    pub malformed: u64,
    pub unknown_link: u64,
    /// The first unknown link types and their frames; further ones are in `unknown_link` only.
    pub unknown_link_types: Vec<(LinkType, u64)>,
    /// Fragmented TCP datagrams that never became complete: too old, pushed out, or still open at the end.
    pub datagrams_incomplete: u64,
}

impl ParseCounters {
    const MAX_KINDS: usize = 8;

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Segment => self.segments += 1,
            Outcome::NotTcp => self.not_tcp += 1,
            Outcome::Unread(kind) => {
                self.not_tcp += 1;
                self.unread += 1;
                count_kind(&mut self.unread_kinds, kind, Self::MAX_KINDS);
            }
            Outcome::FragmentPending => self.fragments_pending += 1,
            Outcome::Quoted => self.quoted += 1,
            Outcome::HeaderCut => self.header_cut += 1,
            Outcome::Malformed => self.malformed += 1,
            Outcome::UnknownLink(link_type) => {
                self.unknown_link += 1;
                count_kind(&mut self.unknown_link_types, link_type, Self::MAX_KINDS);
            }
        }
    }
}

/// One more frame of `kind`; a kind beyond the first `at_most` is not named.
fn count_kind<K: PartialEq>(kinds: &mut Vec<(K, u64)>, kind: K, at_most: usize) {
    if let Some(entry) = kinds.iter_mut().find(|(known, _)| *known == kind) {
        entry.1 += 1;
    } else if kinds.len() < at_most {
        kinds.push((kind, 1));
    }
}

/// Parses the packets of one capture, in order. Holds the open IP fragments and the counters.
#[derive(Default)]
pub struct SegmentParser {
    fragments: FragmentTable,
    counters: ParseCounters,
}

impl SegmentParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parse `packet` into `out`, which is meaningful only after [`Outcome::Segment`].
    /// `previous_time_ns` is the time of the packet before, taken when this one has none.
    #[inline(always)]
    pub fn parse(
        &mut self,
        packet: &Packet<'_>,
        previous_time_ns: i64,
        out: &mut Segment,
    ) -> Outcome {
        if packet.link_type == LINK_TYPE_ETHERNET && fast::parse(packet, previous_time_ns, out) {
            self.counters.segments += 1;
            return Outcome::Segment;
        }
        let time_ns = packet.time_ns.unwrap_or(previous_time_ns);
        let (captured, original_len) = (packet.captured, packet.original_len);
        self.parse_rarely(
            packet.frame,
            time_ns,
            captured,
            original_len,
            packet.link_type,
            out,
        )
    }

    /// [`SegmentParser::parse_layers`] by single values: a packet that is never referred to as a whole can stay in
    /// registers on the fast path.
    #[cold]
    #[inline(never)]
    fn parse_rarely(
        &mut self,
        frame: u64,
        time_ns: i64,
        captured: &[u8],
        original_len: u32,
        link_type: LinkType,
        out: &mut Segment,
    ) -> Outcome {
        let packet = Packet {
            frame,
            time_ns: Some(time_ns),
            captured,
            original_len,
            link_type,
        };
        self.parse_layers(&packet, time_ns, out)
    }

    /// Fragments taken so far: what a packet is depends on those before it only where this grows.
    #[inline(always)]
    pub fn fragments_taken(&self) -> u64 {
        self.fragments.taken()
    }

    /// Frames of the fragments that the datagram completed last was in.
    pub fn completed_frames(&self) -> &[u64] {
        self.fragments.completed()
    }

    /// The counters as if the capture ended here.
    pub fn counters(&self) -> ParseCounters {
        ParseCounters {
            datagrams_incomplete: self.fragments.incomplete(),
            ..self.counters.clone()
        }
    }

    /// The way of every packet that the fast path declines; gives the same answer for those that it takes.
    pub(super) fn parse_layers(
        &mut self,
        packet: &Packet<'_>,
        previous_time_ns: i64,
        out: &mut Segment,
    ) -> Outcome {
        let time_ns = packet.time_ns.unwrap_or(previous_time_ns);
        let view = View::new(packet.captured, packet.original_len as usize);
        let snapped = if view.bytes.len() < view.wire_len {
            capture_flag::SNAPPED
        } else {
            0
        };
        let mut walk = Walk {
            fragments: &mut self.fragments,
            out,
            frame: packet.frame,
            time_ns,
            layers_left: MAX_LAYERS,
            quoted: false,
            inflated: false,
            frame_flags: snapped,
            ip: IpFacts::NONE,
        };
        let layer = match packet.link_type {
            LINK_TYPE_ETHERNET => Layer::Ethernet,
            other => Layer::Link(other),
        };
        let outcome = walk.descend(layer, view);
        let is_sampled =
            outcome == Outcome::Segment && walk.out.capture_flags & capture_flag::SAMPLED != 0;
        self.counters.count(outcome);
        self.counters.sampled += u64::from(is_sampled);
        outcome
    }
}

impl Walk<'_> {
    /// Walk from `layer` inwards until the outcome is known.
    pub fn descend(&mut self, mut layer: Layer, mut view: View<'_>) -> Outcome {
        loop {
            if self.layers_left == 0 {
                return Outcome::NotTcp;
            }
            self.layers_left -= 1;
            let step = match layer {
                Layer::Link(link_type) => link::step(link_type, view),
                Layer::Ethernet => match ethernet::step(view) {
                    Ok((Layer::Ipv4, payload)) => return self.ipv4(payload),
                    Ok((Layer::Ipv6, payload)) => return self.ipv6(payload),
                    step => step,
                },
                Layer::EtherType(ethertype) => ethernet::payload(ethertype, view),
                Layer::Llc => ethernet::llc(view),
                Layer::Mpls => ethernet::mpls(view),
                Layer::Ppp => ppp::step(view),
                Layer::Wifi(padded) => wifi::step(self, view, padded),
                Layer::Ip => ip::by_version(view),
                Layer::Ipv4 => return self.ipv4(view),
                Layer::Ipv6 => return self.ipv6(view),
                Layer::Transport(TCP) => return tcp::parse(self, view),
                Layer::Transport(UDP) => udp::step(view),
                Layer::Transport(protocol)
                    if self.ip.version == 6 && ip::is_extension(protocol) =>
                {
                    ip::extension(self, protocol, view)
                }
                Layer::Transport(protocol) => ip_tunnel::step(self, protocol, view),
                Layer::Sflow => return sflow::descend(self, view),
            };
            match step {
                Ok(next) => (layer, view) = next,
                Err(outcome) => return outcome,
            }
        }
    }

    // IP and TCP follow each other by calls rather than by turns of the loop: what one hands to the next then stays
    // in registers, which makes this way about twice as fast.

    #[inline]
    fn ipv4(&mut self, view: View<'_>) -> Outcome {
        let step = ip::v4(self, view);
        self.after_ip(step)
    }

    #[inline]
    fn ipv6(&mut self, view: View<'_>) -> Outcome {
        let step = ip::v6(self, view);
        self.after_ip(step)
    }

    #[inline(always)]
    fn after_ip(&mut self, step: Step<'_>) -> Outcome {
        match step {
            Ok((Layer::Transport(TCP), payload)) => tcp::parse(self, payload),
            Ok((layer, payload)) => self.descend(layer, payload),
            Err(outcome) => outcome,
        }
    }

    /// Walk the payload of a datagram that its last fragment has just completed.
    pub fn descend_rebuilt(&mut self, rebuilt: &Rebuilt) -> Outcome {
        self.frame_flags |= capture_flag::FRAGMENTED;
        self.descend(Layer::Transport(rebuilt.protocol), rebuilt.view())
    }
}
