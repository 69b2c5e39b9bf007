//! The state of one direction of a connection, and what follows from that state alone.

use crate::sequence::Seq;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::syn::SynOptions;
use crate::tcp::timing::ledger::Ledger;
use crate::tcp::timing::timestamp_echo::EchoTimer;
use crate::tcp::window::flight::{Flight, Unknown};
use crate::tcp::window::receive::ReceiveWindow;
use crate::tcp::window::scale::ScaleState;

/// The shortest payload of a full segment on any usual path: the least MSS, less options (RFC 9293 §3.7.1, MUST-15).
pub const LEAST_FULL: u32 = 500;
/// Full segments of Ethernet and of its jumbo frames, down to those of tunnels through it.
const USUAL_FULL: [std::ops::RangeInclusive<u32>; 2] = [1200..=1460, 8800..=8960];
/// Windows up to this are not halved (Linux TCP_MSS_DEFAULT; RFC 9293 §3.7.1, MUST-15).
const MSS_DEFAULT: u32 = 536;

/// How far the FIN of a direction has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fin {
    #[default]
    NotSent,
    Sent,
    Acknowledged,
}

/// One direction: data from one endpoint, and the receive window of the other that limits it.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub flight: Flight,
    pub window: ReceiveWindow,
    /// The segments in flight, and their round trips.
    pub ledger: Ledger,
    /// Round trips from this side's segments to their timestamps' echo.
    pub echo: EchoTimer,
    /// How the shift of the windows **in this side's own segments** is known, and the shift to apply.
    pub own_scale: ScaleState,
    pub own_shift: u8,
    /// A segment of this side was captured.
    pub is_seen: bool,
    fin: Fin,
    pub has_rst: bool,
    /// The window blocks while it is open: what counts as held back; a closed window is counted apart.
    pub is_limited: bool,
    pub has_syn: bool,
    /// Segments as long as `mss` are certainly full ones: by both SYNs, or since one was as long as one SYN allows.
    pub is_mss_certain: bool,
    /// Nothing but a SYN was sent.
    pub has_only_syn: bool,
    pub has_tsval: bool,
    /// Initial sequence number; without a SYN, one less than the first sequence number seen.
    pub isn: Seq,
    /// While the FIN is not acknowledged where it ends; then by how many microseconds its own ACK came after the data's.
    fin_word: u32,
    /// Timestamp value of the SYN, or the first one seen, while `has_tsval`.
    pub first_tsval: u32,
    /// The latest one.
    pub tsval: u32,
    /// From the peer's data to this side's first, and one more; 0 where it did not answer, or answered more than once.
    pub first_answer_us: u32,
    pub syn: SynOptions,
    /// Largest segment that may be sent: the peer's MSS less the timestamps option, or what the path leaves of it; 0 while
    /// unknown.
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
    /// When the last byte was acknowledged, or the FIN.
    pub last_ack_ns: i64,
    pub cold_state: Option<Box<ColdState>>,
}

impl Direction {
    #[inline]
    pub fn cold_state(&mut self) -> &mut ColdState {
        self.cold_state.get_or_insert_with(Box::default)
    }

    #[inline(always)]
    pub fn has_fin(&self) -> bool {
        self.fin != Fin::NotSent
    }

    /// A FIN was sent, and takes the sequence number before `end`.
    pub fn send_fin(&mut self, end: Seq) {
        (self.fin, self.fin_word) = (Fin::Sent, end.0);
    }

    pub fn forget_fin(&mut self) {
        self.fin = Fin::NotSent;
    }

    /// A FIN was sent and not acknowledged.
    pub fn is_fin_out(&self) -> bool {
        self.fin == Fin::Sent && Seq(self.fin_word).is_after(self.flight.una)
    }

    /// SND.UNA moved by `advance`, past a FIN if one was out.
    pub fn acknowledge_fin(&mut self, advance: u32, now_ns: i64) {
        if self.fin != Fin::Sent || self.is_fin_out() {
            return;
        }
        let is_alone = advance == 1 && Seq(self.fin_word) == self.flight.una;
        let alone_ns = now_ns.saturating_sub(self.last_ack_ns).max(0);
        let alone_us = if is_alone { alone_ns / 1000 } else { 0 };
        self.fin = Fin::Acknowledged;
        self.fin_word = u32::try_from(alone_us).unwrap_or(u32::MAX);
    }

    /// When the last byte of data was acknowledged, to the microsecond where the FIN was acknowledged by itself.
    pub fn last_data_ack_ns(&self) -> i64 {
        let is_acknowledged = self.fin == Fin::Acknowledged;
        let alone_us = if is_acknowledged { self.fin_word } else { 0 };
        self.last_ack_ns.saturating_sub(i64::from(alone_us) * 1000)
    }

    /// Bytes in flight, where they can be known.
    #[inline]
    pub fn known_flight(&self) -> Option<u32> {
        self.is_flight_known().then(|| self.flight.bytes())
    }

    #[inline]
    pub fn is_flight_known(&self) -> bool {
        // Before any acknowledgment only a SYN is certain: data after it was acknowledged unseen.
        let has_una = self.flight.is_acked || self.has_only_syn;
        self.is_seen && has_una && self.flight.unknown == Unknown::Neither
    }

    /// Whether the next segment of this direction may take the short way: everything known, nothing open.
    #[inline]
    pub fn is_ordinary_to_send(&self) -> bool {
        self.flight.is_started
            && (self.is_mss_certain || self.data_segments == 0)
            && self.is_flight_known()
            && self.flight.is_acked
            && self.flight.control == 0
            && !self.has_fin()
            && self.own_scale.is_certain()
            && self.window.is_known
            && self.window.bytes > 0
            && self
                .cold_state
                .as_ref()
                .is_none_or(|cold_state| cold_state.is_quiet_to_send())
    }

    /// Whether the next acknowledgment of this direction may: nothing lost, reported or sent again.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        self.cold_state
            .as_ref()
            .is_some_and(|cold_state| cold_state.has_doubts())
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
                    self.tick(value, now_ns);
                }
                if !self.has_tsval {
                    self.first_tsval = value;
                }
                (self.tsval, self.has_tsval) = (value, true);
            }
        }
    }

    /// The timestamp clock shows a new value.
    #[inline(always)]
    pub fn tick(&mut self, tsval: u32, now_ns: i64) {
        self.echo.sent(tsval, now_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.tick_ns = now_ns;
        }
    }

    /// When the segment that is being taken was captured, by a clock that may have run backwards.
    #[inline]
    pub fn clock_ns(&self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(
            self.cold_state
                .as_ref()
                .map_or(0, |cold_state| cold_state.early_ns),
        )
    }

    /// Time in which the next segment did not fit the receive window.
    pub fn limited_ns(&self) -> i64 {
        self.cold_state
            .as_ref()
            .map_or(0, |cold_state| cold_state.limited_ns)
    }

    /// Return the same up to `now_ns`, including the span that has not ended.
    pub fn limited_until_ns(&self, now_ns: i64) -> i64 {
        self.cold_state.as_ref().map_or(0, |cold_state| {
            let open_ns = if self.is_limited {
                now_ns.saturating_sub(cold_state.limited_since_ns).max(0)
            } else {
                0
            };
            cold_state.limited_ns.saturating_add(open_ns)
        })
    }

    /// Payload that was acknowledged: sequence space less SYN and FIN, and less what was sent before the capture began.
    pub fn acked_payload_bytes(&self) -> u64 {
        let before_bytes = self
            .cold_state
            .as_ref()
            .map_or(0, |cold_state| cold_state.before_bytes);
        let control = u64::from(self.has_syn && self.acked_bytes > 0)
            + u64::from(self.has_fin() && !self.is_fin_out());
        self.acked_bytes.saturating_sub(control + before_bytes)
    }

    /// Acknowledged, or reported by SACK above SND.UNA.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.acked_bytes + u64::from(self.sacked_bytes())
    }

    #[inline]
    pub fn sacked_bytes(&self) -> u32 {
        self.cold_state
            .as_ref()
            .map_or(0, |cold_state| cold_state.sacked_bytes)
    }

    /// Return the largest segment to expect: by the options, or else by the segments so far.
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

    /// Learn from the size of a data segment while the SYNs have not set the MSS.
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
}
