//! What is kept of a connection: one record, two directions, nothing per packet.
//!
//! Hot fields stand in the record; what most connections never need lies behind one pointer a direction.

use crate::connection::journal::{Journal, TELLING};
use crate::connection::stalls::Stalls;
use crate::event::{self, Counts, Events};
use crate::recovery::episode::{Episode, Phase};
use crate::recovery::holes::Holes;
use crate::recovery::missed::Missed;
use crate::recovery::ranges::RangeSet;
use crate::sequence::Seq;
use crate::timing::echo::EchoTimer;
use crate::timing::ledger::Ledger;
use crate::window::flight::Flight;
use crate::window::receive::ReceiveWindow;
use crate::window::scale::{Offer, ScaleInference, ScaleState};
use crate::window::zero::{EndedBy, ZeroWindow};
use crate::wire::Segment;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Network byte order; IPv4 as ::ffff:a.b.c.d.
    pub address: [u8; 16],
    pub port: u16,
}

/// An address as two integers.
#[inline(always)]
pub(super) fn halves(address: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_ne_bytes(*address);
    [both as u64, (both >> 64) as u64]
}

/// The options of one side's SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    pub offer: Offer,
    /// 0 where the option is absent.
    pub mss: u16,
    pub window: u16,
    /// Which of the options in [`syn_kind`] it carried.
    pub kinds: u8,
    /// Timestamp value; where no SYN was captured, of the first segment.
    pub tsval: Option<u32>,
    /// It was a SYN/ACK.
    pub is_answer: bool,
    /// Data that it carried by TCP Fast Open: more may follow before the first acknowledgment (RFC 7413 §4.2).
    pub early_bytes: u16,
}

/// Options of a SYN without a value that matters, as bits.
pub mod syn_kind {
    pub const SACK_PERMITTED: u8 = 1;
    pub const TIMESTAMPS: u8 = 2;
    pub const FAST_OPEN: u8 = 4;
    pub const MULTIPATH: u8 = 8;
}

impl SynOptions {
    /// What the options that were offered take of each segment.
    pub fn options_bytes(&self) -> u16 {
        if self.has(syn_kind::TIMESTAMPS) {
            TIMESTAMPS_BYTES
        } else {
            0
        }
    }

    pub fn has_early_data(&self) -> bool {
        self.early_bytes > 0
    }

    /// Whether all of the options were there.
    pub fn has(&self, kinds: u8) -> bool {
        self.kinds & kinds == kinds
    }
}

impl Default for SynOptions {
    fn default() -> Self {
        SynOptions {
            offer: Offer::Unseen,
            mss: 0,
            window: 0,
            kinds: 0,
            tsval: None,
            is_answer: false,
            early_bytes: 0,
        }
    }
}

/// Rarely needed state of a direction. What decides whether it bears on the next segment stands first.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Cold {
    /// Reported by SACK, above SND.UNA.
    pub sacked: RangeSet,
    /// Below SND.MAX and never captured.
    pub unseen: RangeSet,
    pub zero: Option<Box<ZeroWindow>>,
    pub episode: Option<Box<Episode>>,
    pub sacked_bytes: u32,
    /// The episode is not quiet (see [`Episode::is_quiet`]).
    pub is_disturbed: bool,
    /// End of a one-byte zero-window probe: its byte counts as sent, and is sent again with what follows.
    pub probe_end: Option<Seq>,
    /// A keep-alive was sent and nothing has come back since.
    pub is_keep_alive_unanswered: bool,
    /// The newest ACK that came while something was lost, reported or sent again: its time and frame.
    pub last_answer: Option<(i64, u64)>,
    /// The ACK that first spoke of loss since SND.UNA moved: its time and frame.
    pub loss_report: Option<(i64, u64)>,
    pub holes: Holes,
    /// Time in which the receive window held the next segment back.
    pub limited_ns: i64,
    pub limited_since_ns: i64,
    pub counts: Counts,
    /// Kinds of events of which the connection's journal has enough, as far as this direction knows.
    pub journal_full: Events,
    /// Telling events of this direction that the journal did not keep.
    pub journal_omitted: u32,
    /// Bytes acknowledged though they were never captured: the capture's loss, not the network's.
    pub missed: Missed,
    pub resent_bytes: u64,
    pub resent_segments: u32,
    /// Segments longer than the MSS: captured before segmentation or after coalescing (TSO, GRO).
    pub super_segments: u32,
    pub window_near_full: u32,
    pub window_overrun: u32,
    pub inference: Option<Box<ScaleInference>>,
    /// How long after this side's SYN it was captured again, the first time.
    pub syn_copy_ns: Option<i64>,
    /// Time in silences that only the capture's clock knows of.
    pub clock_step_ns: i64,
    /// Frame of the newest SYN with data of Fast Open.
    pub early_frame: Option<u64>,
    /// Initial sequence number and frame of the newest SYN that was sent again.
    pub syn_copy: Option<(Seq, u64)>,
    /// When a SYN or SYN/ACK was last sent again after the handshake.
    pub syn_again_ns: Option<i64>,
    /// Initial sequence number of the SYN before, where this side sent another.
    pub earlier_isn: Option<Seq>,
    /// Shift in an earlier copy of the SYN, whose last copy came without the option.
    pub earlier_shift: Option<u8>,
    /// Events of the connection; kept with side 0.
    pub journal: Option<Box<Journal>>,
    /// Silences of the connection; kept with side 0.
    pub stalls: Option<Box<Stalls>>,
    /// Frame of the first RST of a connection that had data; kept with side 0.
    pub reset_frame: Option<u64>,
    /// A RST that its receiver need not have obeyed, while nothing refutes that it did: the side that sent it, its time
    /// and frame; kept with side 0.
    pub doubtful_reset: Option<(u8, i64, u64)>,
    /// Shift of this side's windows by a snapshot of the socket.
    pub given_shift: Option<u8>,
    /// Frame and window field of the segment that confirmed this side's offered scale without the peer's answer.
    pub scale_confirming: Option<(u64, u16)>,
}

impl Cold {
    pub fn episode(&mut self) -> &mut Episode {
        self.episode.get_or_insert_with(Box::default)
    }

    /// Called after each change of the episode.
    pub fn note_episode(&mut self) {
        let episode = self.episode.as_ref();
        self.is_disturbed = episode.is_some_and(|episode| !episode.is_quiet());
    }

    pub fn zero(&mut self) -> &mut ZeroWindow {
        self.zero.get_or_insert_with(Box::default)
    }

    /// Whether an ACK may cover bytes that were sent again, reported by SACK or never captured.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        debug_assert_eq!(
            self.is_disturbed,
            self.episode
                .as_ref()
                .is_some_and(|episode| !episode.is_quiet())
        );
        !self.sacked.is_empty() || !self.unseen.is_empty() || self.is_disturbed
    }

    /// The phase of recovery that the sender is in.
    #[inline]
    pub fn phase(&self) -> Phase {
        if !self.is_disturbed {
            return Phase::Open;
        }
        self.episode
            .as_ref()
            .map_or(Phase::Open, |episode| episode.phase)
    }

    pub fn note_omitted(&mut self, events: Events) {
        let is_telling = events & TELLING != 0;
        self.journal_omitted = self.journal_omitted.saturating_add(u32::from(is_telling));
    }

    pub fn is_zero_open(&self) -> bool {
        self.zero.as_ref().is_some_and(|zero| zero.is_open())
    }

    pub fn is_probe_unanswered(&self) -> bool {
        self.zero
            .as_ref()
            .is_some_and(|zero| zero.is_probe_unanswered)
    }

    pub fn end_zero(&mut self, frame: u64, now_ns: i64, ended_by: EndedBy) {
        if let Some(zero) = &mut self.zero {
            zero.end(frame, now_ns, ended_by);
        }
    }

    /// Whether nothing here bears on the next segment of this direction.
    fn is_quiet_to_send(&self) -> bool {
        !self.is_zero_open()
            && self.doubtful_reset.is_none()
            && !self.is_probe_unanswered()
            && !self.is_keep_alive_unanswered
            && self.probe_end.is_none()
            && self.zero.as_ref().is_none_or(|zero| !zero.is_undecided())
    }
}

/// One direction: data from one endpoint, and the receive window of the other that limits it.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub flight: Flight,
    pub window: ReceiveWindow,
    /// What is in flight, and the round trips that come of it.
    pub ledger: Ledger,
    /// Round trips from this side's segments to their timestamps' echo.
    pub echo: EchoTimer,
    /// How the shift of the windows **in this side's own segments** is known, and the shift to apply.
    pub own_scale: ScaleState,
    pub own_shift: u8,
    /// A segment of this side was captured.
    pub is_seen: bool,
    /// `flight` has a sequence number to stand on.
    pub is_started: bool,
    /// The peer's acknowledgments were captured, so SND.UNA is real.
    pub is_acked: bool,
    /// An ACK covered bytes never captured: what is in flight is unknown until new data shows SND.MAX again.
    pub is_flight_lost: bool,
    pub has_fin: bool,
    pub has_rst: bool,
    /// The next segment does not fit the receive window, and data in flight showed that there is one to send (Linux
    /// `tcp_snd_wnd_test`).
    pub is_blocked: bool,
    /// The same while the window is open: what counts as held back; a closed window is counted apart.
    pub is_limited: bool,
    pub has_syn: bool,
    /// Segments as long as `mss` are certainly full ones: by both SYNs, or since one was as long as one SYN allows.
    pub is_mss_certain: bool,
    /// Nothing but a SYN was sent.
    pub has_only_syn: bool,
    pub has_tsval: bool,
    /// Initial sequence number; without a SYN, one less than the first sequence number seen.
    pub isn: Seq,
    pub fin_end: Seq,
    /// Latest timestamp value sent, while `has_tsval`.
    pub tsval: u32,
    /// From the peer's data to this side's first, and one more; 0 where it did not answer, or answered more than once.
    pub first_answer_us: u32,
    pub syn: SynOptions,
    /// Largest segment that may be sent: the peer's MSS less the timestamps option; 0 while unknown.
    pub mss: u16,
    pub duplicate_acks: u16,
    pub max_payload: u32,
    pub segments: u32,
    pub data_segments: u32,
    pub payload_bytes: u64,
    /// Sequence space acknowledged, SYN and FIN included.
    pub acked_bytes: u64,
    pub first_data_ns: i64,
    pub last_data_ns: i64,
    /// When the last byte was acknowledged.
    pub last_ack_ns: i64,
    pub cold: Option<Box<Cold>>,
}

impl Direction {
    #[inline]
    pub fn cold(&mut self) -> &mut Cold {
        self.cold.get_or_insert_with(Box::default)
    }

    /// Bytes in flight, where they can be known.
    #[inline]
    pub fn known_flight(&self) -> Option<u32> {
        self.is_flight_known().then(|| self.flight.bytes())
    }

    #[inline]
    pub fn is_flight_known(&self) -> bool {
        // Before any acknowledgment, only a SYN stands on firm ground: what follows it was acknowledged unseen.
        let has_una = self.is_acked || self.has_only_syn;
        self.is_seen && has_una && !self.is_flight_lost
    }

    /// Whether the next segment of this direction may take the short way: everything known, nothing open.
    #[inline]
    pub fn is_ordinary_to_send(&self) -> bool {
        self.is_started
            && (self.is_mss_certain || self.data_segments == 0)
            && self.is_flight_known()
            && self.is_acked
            && self.flight.control == 0
            && !self.has_fin
            && self.own_scale.is_certain()
            && self.window.is_known
            && self.window.bytes > 0
            && self
                .cold
                .as_ref()
                .is_none_or(|cold| cold.is_quiet_to_send())
    }

    /// Whether the next acknowledgment of this direction may: nothing lost, reported or sent again.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.has_doubts())
    }

    /// Whether a timestamp is older than the latest one sent: the segment was overtaken.
    #[inline]
    pub fn is_overtaken(&self, timestamps: Option<(u32, u32)>) -> bool {
        timestamps
            .is_some_and(|(value, _)| self.has_tsval && (value.wrapping_sub(self.tsval) as i32) < 0)
    }

    #[inline]
    pub fn note_timestamps(&mut self, timestamps: Option<(u32, u32)>, now_ns: i64) {
        if let Some((value, _)) = timestamps {
            if !self.is_overtaken(timestamps) {
                if !self.has_tsval || value != self.tsval {
                    self.note_tick(value, now_ns);
                }
                (self.tsval, self.has_tsval) = (value, true);
            }
        }
    }

    /// The timestamp clock shows a new value.
    #[inline(always)]
    pub fn note_tick(&mut self, tsval: u32, now_ns: i64) {
        self.echo.sent(tsval, now_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.tick_ns = now_ns;
        }
    }

    /// Time in which the next segment did not fit the receive window.
    pub fn limited_ns(&self) -> i64 {
        self.cold.as_ref().map_or(0, |cold| cold.limited_ns)
    }

    /// The same up to a time, with what is not over yet.
    pub fn limited_until_ns(&self, now_ns: i64) -> i64 {
        self.cold.as_ref().map_or(0, |cold| {
            let open_ns = if self.is_limited {
                now_ns.saturating_sub(cold.limited_since_ns).max(0)
            } else {
                0
            };
            cold.limited_ns.saturating_add(open_ns)
        })
    }

    /// Payload that was acknowledged: sequence space less SYN and FIN.
    pub fn acked_payload_bytes(&self) -> u64 {
        let control = u64::from(self.has_syn && self.acked_bytes > 0)
            + u64::from(self.has_fin && !self.fin_end.is_after(self.flight.una));
        self.acked_bytes.saturating_sub(control)
    }

    #[inline]
    pub fn sacked_bytes(&self) -> u32 {
        self.cold.as_ref().map_or(0, |cold| cold.sacked_bytes)
    }

    /// The largest segment to expect: by the options, else by what was seen.
    #[inline]
    pub fn segment_size(&self) -> u32 {
        if self.mss > 0 {
            u32::from(self.mss)
        } else {
            self.max_payload
        }
    }

    /// Whether a segment of that size ended what was written, as far as the size of a full one is known.
    pub fn ends_a_write(&self, payload_len: u32) -> Option<bool> {
        if self.is_mss_certain {
            return Some(payload_len < self.segment_size());
        }
        if payload_len < LEAST_FULL {
            return Some(true);
        }
        // Larger than a link's segments are those captured before segmentation: any of them may be a part.
        let is_whole = USUAL_FULL
            .iter()
            .any(|sizes| sizes.contains(&self.max_payload));
        is_whole.then_some(payload_len < self.max_payload)
    }

    /// Take in the size of a segment with data, while no two SYNs told how large one may be.
    #[cold]
    pub fn learn_segment_size(&mut self, payload_len: u32) {
        let own = self.syn.mss.saturating_sub(self.syn.options_bytes());
        let bound = if self.mss > 0 { self.mss } else { own };
        if bound > 0 && payload_len >= u32::from(bound) {
            (self.mss, self.is_mss_certain) = (bound, true);
        }
    }

    /// The room that lets a sender go on: a segment, or half of the largest window where that is less (RFC 9293 §3.8.6.2.1;
    /// Linux `tcp_bound_to_half_wnd`, include/net/tcp.h). Loopback's MSS is as large as its first window.
    #[inline]
    pub fn least_room(&self) -> u32 {
        let max_bytes = self.window.max_bytes;
        let half = if max_bytes > MSS_DEFAULT {
            max_bytes / 2
        } else {
            max_bytes
        };
        self.segment_size().min(half.max(1))
    }

    /// How much larger than a segment on the wire a captured one may be.
    #[inline]
    pub fn offload_bytes(&self) -> u32 {
        self.max_payload.saturating_sub(self.segment_size())
    }

    pub fn count(&mut self, events: Events) {
        event::count(&mut self.cold().counts, events);
    }

    /// Whether the journal may take these events, which were counted; one that it does not is counted apart.
    #[inline]
    pub fn may_journal(&mut self, events: Events) -> bool {
        let cold = self.cold();
        if events & !cold.journal_full == 0 {
            cold.note_omitted(events);
            return false;
        }
        true
    }

    pub fn event_count(&self, events: Events) -> u32 {
        self.cold.as_ref().map_or(0, |cold| {
            event::NAMES
                .iter()
                .enumerate()
                .filter(|(bit, _)| events >> bit & 1 == 1)
                .map(|(bit, _)| cold.counts[bit])
                .sum()
        })
    }
}

/// Who sent the first SYN, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// By a SYN or SYN/ACK; the side's number.
    Known(u8),
    /// By the ports, or by who was seen first.
    Guessed(u8),
}

/// Shorter payloads are no full segments on any usual path: the least MSS, less options (RFC 9293 §3.7.1, MUST-15).
const LEAST_FULL: u32 = 500;
/// Full segments of Ethernet and of its jumbo frames, down to those of tunnels through it.
const USUAL_FULL: [std::ops::RangeInclusive<u32>; 2] = [1200..=1460, 8800..=8960];
/// Bytes of the timestamps option with its padding (RFC 7323 §3.2, appendix A).
pub const TIMESTAMPS_BYTES: u16 = 12;
/// Windows up to this are not halved (Linux TCP_MSS_DEFAULT; RFC 9293 §3.7.1, MUST-15).
const MSS_DEFAULT: u32 = 536;

/// A time that did not come.
const NEVER: i64 = i64::MIN;

fn if_ever(time_ns: i64) -> Option<i64> {
    (time_ns != NEVER).then_some(time_ns)
}

#[derive(Clone, Debug)]
pub struct Connection {
    /// Side 0 sent the first segment seen.
    pub endpoints: [Endpoint; 2],
    /// `directions[s]`: data sent by side `s`.
    pub directions: [Direction; 2],
    pub initiator: Initiator,
    pub ip_version: u8,
    /// A SYN or SYN/ACK was sent again.
    pub is_handshake_ambiguous: bool,
    /// By side: whether its next segment may take the short way, the limits of both directions being noted.
    pub is_ordinary: [bool; 2],
    /// Some of its segments are samples: of what else was sent the capture tells nothing.
    pub is_sampled: bool,
    /// How many connections of this four-tuple came before.
    pub epoch: u16,
    pub start_ns: i64,
    pub end_ns: i64,
    pub first_frame: u64,
    /// Times of the last SYN, the last SYN/ACK and the ACK that completed the handshake, or [`NEVER`].
    syn_ns: i64,
    syn_ack_ns: i64,
    established_ns: i64,
    /// The side whose FIN or RST came first.
    pub closed_first: Option<u8>,
    /// A RST was seen from this side first.
    pub reset_by: Option<u8>,
}

impl Connection {
    pub fn new(segment: &Segment, epoch: u16) -> Self {
        Connection {
            endpoints: [
                Endpoint {
                    address: segment.src,
                    port: segment.src_port,
                },
                Endpoint {
                    address: segment.dst,
                    port: segment.dst_port,
                },
            ],
            directions: Default::default(),
            initiator: guess_initiator(segment),
            ip_version: segment.ip_version,
            is_handshake_ambiguous: false,
            is_ordinary: [false; 2],
            is_sampled: false,
            epoch,
            start_ns: segment.time_ns,
            end_ns: segment.time_ns,
            first_frame: segment.frame,
            syn_ns: NEVER,
            syn_ack_ns: NEVER,
            established_ns: NEVER,
            closed_first: None,
            reset_by: None,
        }
    }

    /// 0 or 1 when the segment belongs to this four-tuple: the side that sent it.
    #[inline(always)]
    pub fn side_of(&self, segment: &Segment) -> Option<usize> {
        let differs = |endpoint: &Endpoint, address: &[u8; 16], port: u16| {
            let [first, last] = halves(&endpoint.address);
            let [other_first, other_last] = halves(address);
            (first ^ other_first) | (last ^ other_last) | u64::from(endpoint.port ^ port)
        };
        // No branch on the side, which cannot be predicted.
        let (src, dst) = (&segment.src, &segment.dst);
        let side = usize::from(differs(&self.endpoints[0], src, segment.src_port) != 0);
        let sender = differs(&self.endpoints[side], src, segment.src_port);
        let receiver = differs(&self.endpoints[1 - side], dst, segment.dst_port);
        (sender | receiver == 0).then_some(side)
    }

    /// The side that is `a`.
    #[inline]
    pub fn initiator_side(&self) -> usize {
        match self.initiator {
            Initiator::Known(side) | Initiator::Guessed(side) => usize::from(side),
        }
    }

    pub fn syn_ns(&self) -> Option<i64> {
        if_ever(self.syn_ns)
    }

    pub fn syn_ack_ns(&self) -> Option<i64> {
        if_ever(self.syn_ack_ns)
    }

    #[inline]
    pub fn established_ns(&self) -> Option<i64> {
        if_ever(self.established_ns)
    }

    pub fn note_syn(&mut self, is_answer: bool, now_ns: i64) {
        *(if is_answer {
            &mut self.syn_ack_ns
        } else {
            &mut self.syn_ns
        }) = now_ns;
    }

    pub fn note_established(&mut self, now_ns: i64) {
        self.established_ns = now_ns;
    }

    /// From the SYN to the ACK that completed the handshake: the round trip of the whole path.
    /// None when a SYN or its answer was sent again: which one was answered is ambiguous (Karn, RFC 6298 §3).
    pub fn handshake_rtt_ns(&self) -> Option<i64> {
        if self.is_handshake_ambiguous {
            return None;
        }
        let (syn_ns, established_ns) = (self.syn_ns()?, self.established_ns()?);
        Some(established_ns.saturating_sub(syn_ns)).filter(|ns| *ns >= 0)
    }

    /// Whether windows in segments of this side can be given in bytes.
    #[inline]
    pub fn window_is_certain(&self, side: usize) -> bool {
        self.directions[side].own_scale.is_certain()
    }
}

/// Without a SYN: a well-known port answers; else the lower of two unequal kinds of port; else who was seen first.
fn guess_initiator(segment: &Segment) -> Initiator {
    let is_service = |port: u16| port < 1024;
    // IANA's dynamic range begins at 49152, Linux's default range (ip_local_port_range) at 32768.
    let is_ephemeral = |port: u16| port >= 32_768;
    let (from, to) = (segment.src_port, segment.dst_port);
    let sender_answers = (is_service(from) && !is_service(to))
        || (!is_ephemeral(from) && is_ephemeral(to) && !is_service(to));
    Initiator::Guessed(u8::from(sender_answers))
}
