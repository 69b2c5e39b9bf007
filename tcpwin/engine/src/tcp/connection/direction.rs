//! The state of one direction of a connection, and its derived values.

use crate::sequence::Seq;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::syn::SynOptions;
use crate::tcp::timing::ledger::Ledger;
use crate::tcp::timing::timestamp_echo::EchoTimer;
use crate::tcp::window::flight::{Flight, Unknown};
use crate::tcp::window::receive::ReceiveWindow;
use crate::tcp::window::scale::ScaleState;
use crate::wire::{Segment, PSH};

/// Minimum payload of a full segment on a usual path: the minimum MSS less options (RFC 9293 §3.7.1, MUST-15).
pub const LEAST_FULL: u32 = 500;
/// Payloads of full segments on Ethernet, without and with jumbo frames, less tunnel headers.
const USUAL_FULL: [std::ops::RangeInclusive<u32>; 2] = [1200..=1460, 8800..=8960];
/// Windows up to this size are not halved (Linux TCP_MSS_DEFAULT; RFC 9293 §3.7.1, MUST-15).
const MSS_DEFAULT: u32 = 536;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fin {
    #[default]
    NotSent,
    Sent,
    Acknowledged,
}

/// One direction: data from one endpoint, and the receive window of the other endpoint.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub flight: Flight,
    pub window: ReceiveWindow,
    /// Segments in flight, and their RTTs.
    pub ledger: Ledger,
    /// RTTs from this side's segments to the echo of their timestamps.
    pub echo: EchoTimer,
    /// Source of the shift for windows **in this side's own segments**, and the shift to apply.
    pub own_scale: ScaleState,
    pub own_shift: u8,
    /// Whether a segment of this side was captured.
    pub is_seen: bool,
    fin: Fin,
    /// Whether the window has no room for the next segment while it is open; a closed window counts separately.
    pub is_limited: bool,
    pub has_syn: bool,
    /// Whether segments of `mss` bytes are certainly full: both SYNs set it, or a segment was as long as one SYN
    /// allows.
    pub is_mss_certain: bool,
    /// Whether only a SYN was sent.
    pub has_only_syn: bool,
    pub has_tsval: bool,
    /// Initial sequence number; without a SYN, one less than the first captured sequence number.
    pub isn: Seq,
    /// End of the FIN until it is acknowledged; then how many microseconds its own ACK came after the last ACK of data.
    fin_word: u32,
    /// TSval of the SYN, or the first one captured, if `has_tsval`.
    pub first_tsval: u32,
    /// The latest TSval.
    pub tsval: u32,
    /// Time from the peer's data to this side's first data, plus one; 0 without an answer or with several.
    pub first_answer_us: u32,
    pub syn: SynOptions,
    /// Largest expected payload: the peer's MSS less the timestamps option, or less if the path allows less; 0 if
    /// unknown.
    pub mss: u16,
    pub duplicate_acks: u16,
    pub max_payload: u32,
    pub segments: u32,
    pub data_segments: u32,
    /// Segments that ended a message ([`Direction::ends_message`]), modulo 256.
    pub writes: u8,
    pub payload_bytes: u64,
    /// Acknowledged sequence space, including SYN and FIN.
    pub acked_bytes: u64,
    pub first_data_ns: i64,
    pub last_data_ns: i64,
    /// Time of the last acknowledgment of data or FIN.
    pub last_ack_ns: i64,
    pub cold_state: Option<Box<ColdState>>,
}

/// Whether a length is of full segments only.
#[inline(always)]
pub fn is_full(payload_len: u32, mss: u32) -> bool {
    payload_len.checked_rem(mss) == Some(0)
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

    /// Record a FIN, whose sequence number is just before `end`.
    pub fn send_fin(&mut self, end: Seq) {
        (self.fin, self.fin_word) = (Fin::Sent, end.0);
    }

    pub fn forget_fin(&mut self) {
        self.fin = Fin::NotSent;
    }

    /// Return whether a FIN is unacknowledged.
    pub fn is_fin_out(&self) -> bool {
        self.fin == Fin::Sent && Seq(self.fin_word).is_after(self.flight.una)
    }

    /// Record the acknowledgment of a FIN, if SND.UNA moved past one by `advance`.
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

    /// Return the time at which the last byte of data was acknowledged, in whole microseconds if the FIN had its own
    /// ACK.
    pub fn last_data_ack_ns(&self) -> i64 {
        let is_acknowledged = self.fin == Fin::Acknowledged;
        let alone_us = if is_acknowledged { self.fin_word } else { 0 };
        self.last_ack_ns.saturating_sub(i64::from(alone_us) * 1000)
    }

    /// Return whether a segment with data ends a message: a short one that emptied the sender's buffer. Full segments may
    /// carry PSH too, the last of each train that was segmented later (Linux `tcp_set_skb_tso_segs`, since 5.4).
    #[inline(always)]
    pub fn ends_message(&self, segment: &Segment) -> bool {
        segment.flags & PSH != 0 && !is_full(segment.payload_len, self.segment_size())
    }

    /// Return the bytes in flight, if known.
    #[inline]
    pub fn known_flight(&self) -> Option<u32> {
        self.is_flight_known().then(|| self.flight.bytes())
    }

    #[inline]
    pub fn is_flight_known(&self) -> bool {
        // Before any acknowledgment, only a SYN is certainly in flight: ACKs of later data may be missing.
        let has_una = self.flight.is_acked || self.has_only_syn;
        self.is_seen && has_una && self.flight.unknown == Unknown::Neither
    }

    /// Return whether the next segment of this direction may take the fast path: everything is known and nothing
    /// pending.
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

    /// Return whether data was lost, reported by SACK or retransmitted, so that an acknowledgment needs the slow path.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        self.cold_state
            .as_ref()
            .is_some_and(|cold_state| cold_state.has_doubts())
    }

    /// Return whether a timestamp is older than the latest one: the segment was overtaken.
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

    /// Record a new value of the timestamp clock.
    #[inline(always)]
    pub fn tick(&mut self, tsval: u32, now_ns: i64) {
        self.echo.sent(tsval, now_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.tick_ns = now_ns;
        }
    }

    /// Return the capture time of the current segment, by a clock that may have run backwards.
    #[inline]
    pub fn clock_ns(&self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(
            self.cold_state
                .as_ref()
                .map_or(0, |cold_state| cold_state.early_ns),
        )
    }

    /// Return the time in which the next segment did not fit the receive window.
    pub fn limited_ns(&self) -> i64 {
        self.cold_state
            .as_ref()
            .map_or(0, |cold_state| cold_state.limited_ns)
    }

    /// Like [`Direction::limited_ns`], with the open span up to `now_ns`.
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

    /// Return the acknowledged payload: sequence space without SYN, FIN and data from before the capture.
    pub fn acked_payload_bytes(&self) -> u64 {
        let before_bytes = self
            .cold_state
            .as_ref()
            .map_or(0, |cold_state| cold_state.before_bytes);
        let control = u64::from(self.has_syn && self.acked_bytes > 0)
            + u64::from(self.has_fin() && !self.is_fin_out());
        self.acked_bytes.saturating_sub(control + before_bytes)
    }

    /// Return the bytes acknowledged, or reported by SACK above SND.UNA.
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

    /// Return the largest expected payload, by the options or else by the segments so far.
    #[inline]
    pub fn segment_size(&self) -> u32 {
        if self.mss > 0 {
            u32::from(self.mss)
        } else {
            self.max_payload
        }
    }

    /// Return whether a segment of this size ended a write; None if the size of a full segment is unknown.
    pub fn ends_a_write(&self, payload_len: u32) -> Option<bool> {
        if self.is_mss_certain {
            return Some(payload_len < self.segment_size());
        }
        if payload_len < LEAST_FULL {
            return Some(true);
        }
        // Segments larger than a link's were captured before segmentation: they may be partial.
        let is_whole = USUAL_FULL
            .iter()
            .any(|sizes| sizes.contains(&self.max_payload));
        is_whole.then_some(payload_len < self.max_payload)
    }

    /// Learn from the size of a data segment if the SYNs have not set the MSS.
    #[cold]
    pub fn learn_segment_size(&mut self, payload_len: u32) {
        let own = self.syn.mss.saturating_sub(self.syn.options_bytes());
        let bound = if self.mss > 0 { self.mss } else { own };
        if bound > 0 && payload_len >= u32::from(bound) {
            (self.mss, self.is_mss_certain) = (bound, true);
        }
    }

    /// Return the room that a sender needs to continue: a segment, or half of the largest window if that is less (RFC
    /// 9293 §3.8.6.2.1; Linux `tcp_bound_to_half_wnd`, include/net/tcp.h). On loopback, the MSS is as large as the
    /// first window.
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

    /// Return how much larger than a segment on the wire a captured segment may be.
    #[inline]
    pub fn offload_bytes(&self) -> u32 {
        self.max_payload.saturating_sub(self.segment_size())
    }
}
