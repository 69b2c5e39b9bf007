//! One packet in, at most one TCP segment out: the first TCP header found inside links and tunnels.
//! Ordinary Ethernet/IPv4/TCP packets take the fast path; for all others the layers are walked, up to a limit.

use super::fast;
use super::fragments::{FragmentTable, Rebuilt};
use super::icmp::IcmpError;
use super::ip_facts::IpFacts;
use super::outcome::{Outcome, Unread};
use super::segment::{capture_flag, Segment};
use super::view::{Layer, Step, View, TCP, UDP};
use super::walk::Walk;
use super::{ethernet, ip, ip_tunnel, link, ppp, sflow, tcp, udp, wifi};
use crate::capture::{LinkType, Packet};

/// Maximum headers walked in one frame, counting all branches (aggregated 802.11 frames, samples).
const MAX_LAYERS: u32 = 64;

const LINK_TYPE_ETHERNET: LinkType = 1;

/// Number of frames with each outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseCounters {
    pub segments: u64,
    /// The subset that a flow monitor sampled.
    pub sampled: u64,
    /// Includes unsupported protocols.
    pub not_tcp: u64,
    /// Frames with an unsupported protocol, and the first kinds of it.
    pub unread: u64,
    pub unread_kinds: Vec<(Unread, u64)>,
    pub fragments_pending: u64,
    pub quoted: u64,
    /// The first ICMP errors that quote a segment; further ones are counted in `quoted` only.
    pub icmp_errors: Vec<IcmpError>,
    pub header_cut: u64,
    pub malformed: u64,
    pub unknown_link: u64,
    /// The first unknown link types with their frame counts; further types are counted in `unknown_link` only.
    pub unknown_link_types: Vec<(LinkType, u64)>,
    /// Fragmented TCP datagrams that were never completed: expired, evicted, or still incomplete at the end.
    pub datagrams_incomplete: u64,
}

impl ParseCounters {
    const MAX_KINDS: usize = 8;
    const MAX_ERRORS: usize = 1000;

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

/// Count a frame of `kind`; kinds after the first `at_most` are not listed.
fn count_kind<K: PartialEq>(kinds: &mut Vec<(K, u64)>, kind: K, at_most: usize) {
    if let Some(entry) = kinds.iter_mut().find(|(known, _)| *known == kind) {
        entry.1 += 1;
    } else if kinds.len() < at_most {
        kinds.push((kind, 1));
    }
}

/// Parses the packets of one capture, in order. Holds incomplete IP datagrams and the counters.
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
    /// `previous_time_ns`, the previous packet's time, is used if this one has none.
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

    /// Like [`SegmentParser::parse_layers`], with the packet's fields as separate arguments: as no reference to the
    /// packet is taken, it can stay in registers on the fast path.
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

    /// Number of fragments added so far. While it is unchanged, a packet's outcome does not depend on earlier packets.
    #[inline(always)]
    pub fn fragments_added(&self) -> u64 {
        self.fragments.added()
    }

    /// Frame numbers of the latest completed datagram's fragments.
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

    /// Parse layer by layer whatever the fast path declines. Where both apply, they give the same result.
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
            report: None,
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
        let report = walk.report.filter(|_| outcome == Outcome::Quoted);
        self.counters.count(outcome);
        if self.counters.icmp_errors.len() < ParseCounters::MAX_ERRORS {
            self.counters.icmp_errors.extend(report);
        }
        self.counters.sampled += u64::from(is_sampled);
        outcome
    }
}

impl Walk<'_> {
    /// Walk inwards from `layer` until the outcome is known.
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

    // IP and TCP call each other directly instead of returning to the loop: values then stay in registers, which makes
    // this path about twice as fast.

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

    /// Walk the payload of a datagram that was just completed.
    pub fn descend_rebuilt(&mut self, rebuilt: &Rebuilt) -> Outcome {
        self.frame_flags |= capture_flag::FRAGMENTED;
        self.descend(Layer::Transport(rebuilt.protocol), rebuilt.view())
    }
}
