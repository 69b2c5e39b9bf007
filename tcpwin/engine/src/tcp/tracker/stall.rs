//! Diagnoses the silences of a connection by the decision tree of TAPO (Zhou et al. 2015), with additional causes.
//!
//! In: the state before a segment that ends a long silence, and the segment's outcome. Out: one cause.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::stalls::{Stall, StallCause};
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::episode::Phase;
use crate::tcp::window::zero::EndedBy;
use crate::wire::{Segment, SYN};

/// Minimum duration of a stall: Linux's shortest retransmission timeout.
pub const MIN_NS: i64 = 200_000_000;

/// State of one side before the segment: its data, and the window advertised by its peer.
#[derive(Clone, Copy, Debug)]
struct Side {
    is_closed: bool,
    is_blocked: bool,
    is_outstanding: bool,
    has_timed_out: bool,
    last_data_ns: i64,
    nxt: Seq,
    flight_bytes: u32,
    window_bytes: Option<u32>,
}

impl Side {
    fn of(direction: &Direction, is_certain: bool) -> Self {
        let cold_state = direction.cold_state.as_deref();
        let episode = cold_state.and_then(|cold_state| cold_state.episode());
        Side {
            is_closed: cold_state.is_some_and(ColdState::is_zero_open),
            is_blocked: direction.window.is_blocked,
            is_outstanding: direction.is_flight_known() && direction.flight.is_outstanding(),
            has_timed_out: episode.is_some_and(|episode| episode.phase == Phase::Loss),
            last_data_ns: direction.last_data_ns,
            nxt: direction.flight.nxt,
            flight_bytes: direction.flight.bytes(),
            window_bytes: (is_certain && direction.window.is_known)
                .then_some(direction.window.bytes),
        }
    }
}

/// State of a connection before a segment that ends a long silence.
#[derive(Clone, Copy, Debug)]
pub struct BeforeSegment {
    start_ns: i64,
    is_handshake: bool,
    /// The segment's sender, and its peer.
    sent: Side,
    acked: Side,
}

impl BeforeSegment {
    /// Capture the state if the silence is long enough to be a stall.
    #[cold]
    pub fn new(connection: &Connection, side: usize, before_ns: i64, now_ns: i64) -> Option<Self> {
        let silence_ns = now_ns.saturating_sub(before_ns);
        (silence_ns > threshold_ns(connection)).then(|| BeforeSegment {
            start_ns: before_ns,
            is_handshake: connection.established_ns().is_none() && connection.syn_ns().is_some(),
            sent: Side::of(
                &connection.directions[side],
                connection.window_is_certain(1 - side),
            ),
            acked: Side::of(
                &connection.directions[1 - side],
                connection.window_is_certain(side),
            ),
        })
    }

    /// Judge the stall that the segment ended. `after`: the connection including the segment.
    pub fn judge(
        &self,
        after: &Connection,
        side: usize,
        segment: &Segment,
        events: Events,
    ) -> Stall {
        let (cause, is_senders) = self.cause(after, side, segment, events);
        let waiting = if is_senders { &self.sent } else { &self.acked };
        Stall {
            start_ns: self.start_ns,
            end_ns: segment.time_ns,
            after_frame: segment.frame,
            cause,
            waiting: if is_senders { side } else { 1 - side } as u8,
            flight_bytes: waiting.flight_bytes,
            window_bytes: waiting.window_bytes,
        }
    }

    /// Return the cause, and whether the segment's sender was the one that waited.
    fn cause(
        &self,
        after: &Connection,
        side: usize,
        segment: &Segment,
        events: Events,
    ) -> (StallCause, bool) {
        let (sent, acked) = (&self.sent, &self.acked);
        let has = |wanted: Events| events & wanted != 0;
        if self.is_handshake && sent.flight_bytes == 0 {
            let is_resent = segment.flags & SYN != 0 && has(event::SYN_RETRANSMISSION);
            let cause = if is_resent {
                StallCause::HandshakeLoss
            } else {
                StallCause::HandshakeDelay
            };
            return (cause, is_resent);
        }
        if sent.is_closed {
            return (StallCause::ZeroWindow, true);
        }
        if has(event::ZERO_WINDOW_PROBE) {
            // The probe crossed the window update, or the update was lost: the window is open at the capture point.
            return (StallCause::WindowUpdateLost, true);
        }
        if has(event::LOST_RETRANSMISSION) || (has(event::RTO_RETRANSMISSION) && sent.has_timed_out)
        {
            return (StallCause::DoubleLoss, true);
        }
        if has(event::RTO_RETRANSMISSION) {
            let end = Seq(segment.seq) + segment.payload_len;
            let is_last = !end.is_before(sent.nxt);
            let cause = if is_last {
                StallCause::TailLoss
            } else {
                StallCause::Timeout
            };
            return (cause, true);
        }
        if has(event::TAIL_LOSS_PROBE) {
            return (StallCause::TailLossProbe, true);
        }
        if has(event::SPURIOUS_RETRANSMISSION) {
            return (StallCause::SpuriousTimeout, true);
        }
        if has(event::RESENT) {
            return (StallCause::Timeout, true);
        }
        if acked.is_closed {
            let zero = after.directions[1 - side].cold_state.as_deref();
            let last = zero
                .and_then(|cold_state| cold_state.zero.as_deref())
                .and_then(|zero| zero.episodes.last());
            let was_lost = last.is_some_and(|last| last.ended_by == EndedBy::ProbeAnswer);
            let cause = if was_lost {
                StallCause::WindowUpdateLost
            } else {
                StallCause::ZeroWindow
            };
            return (cause, false);
        }
        if acked.is_blocked {
            return (StallCause::WindowFull, false);
        }
        if acked.is_outstanding {
            let cause = if has(event::DELAYED_ACK) {
                StallCause::DelayedAck
            } else {
                StallCause::PathDelay
            };
            return (cause, false);
        }
        if sent.is_blocked {
            return (StallCause::WindowFull, true);
        }
        if sent.is_outstanding {
            // Earlier data is still unacknowledged.
            return (StallCause::PathDelay, true);
        }
        if segment.payload_len == 0 {
            return (StallCause::Idle, true);
        }
        let is_answer = acked.last_data_ns > sent.last_data_ns;
        let cause = if is_answer {
            StallCause::Response
        } else {
            StallCause::Application
        };
        (cause, true)
    }
}

/// Return TAPO's threshold: two round trips or the retransmission timeout, whichever is less, but at least 200 ms.
fn threshold_ns(connection: &Connection) -> i64 {
    let [first, second] = &connection.directions;
    let path_ns = first
        .rtt_to_receiver_ns()
        .unwrap_or(0)
        .saturating_add(second.rtt_to_receiver_ns().unwrap_or(0));
    let bound = |direction: &Direction, peer: &Direction| {
        let smoothed_ns = direction.ledger.estimator().smoothed_ns().max(path_ns);
        let rto_ns = direction
            .ledger
            .rto_ns(peer.rtt_to_receiver_ns().unwrap_or(0));
        smoothed_ns.saturating_mul(2).min(rto_ns)
    };
    // The single sample of a SYN means little for a side that only acknowledges.
    let bounds = [(first, second), (second, first)].map(|(direction, peer)| {
        if direction.data_segments > 0 {
            bound(direction, peer)
        } else {
            0
        }
    });
    bounds.into_iter().fold(MIN_NS, i64::max)
}
