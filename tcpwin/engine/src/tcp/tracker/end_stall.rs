//! Judges whether a connection is stalled when the capture, or a reset, ends it, with the reason and the start.
//!
//! In: a connection, and the time of the capture's last packet or of the reset. Out: at most one stall per sender. Data in
//! flight for less than a retransmission timeout (RFC 6298 §2) is not a stall, nor a closed window that nobody waits for.

use crate::event::{self, Events};
use crate::tables::budget_item::SenderState;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::end_stall::{EndStall, Kind, Tries};
use crate::tcp::connection::state::Connection;
use crate::tcp::timing::estimator::{RTO_INITIAL_NS, RTO_MAX_NS};
use crate::tcp::tracker::stall::MIN_NS;

/// Number of unanswered timer segments that show a silent peer: one or two segments or answers may be lost, and an answer
/// to a probe may be suppressed for half a second (Linux `tcp_oow_rate_limited`).
const SILENT_TRIES: u32 = 3;

/// A sender's timer has expired after this many timeouts, and after this time whatever its bounds (RFC 6298 §2.4, §2.5).
const OVERDUE: i64 = 8;
const OVERDUE_NS: i64 = 20_000_000_000;

/// Segments that ask for an answer.
pub(super) const ASKING: Events = event::RESENT | event::ZERO_WINDOW_PROBE | event::KEEP_ALIVE;

/// Find the stall of data from `side` that is in progress at `until_ns`; `seen_ns` is the capture's end.
fn find(connection: &Connection, side: usize, until_ns: i64, seen_ns: i64) -> Option<EndStall> {
    let (sent, peer) = (
        &connection.directions[side],
        &connection.directions[1 - side],
    );
    let cold_state = sent.cold_state.as_deref();
    if connection.is_sampled() || !sent.is_waiting() {
        return None;
    }
    let tries = cold_state.and_then(|cold_state| cold_state.waiting.as_deref()?.tries);
    let count = tries.map_or(0, |tries| tries.count);
    let silent = tries.filter(|tries| tries.count >= SILENT_TRIES);
    let closed = cold_state.and_then(|cold_state| cold_state.zero.as_deref()?.current());
    let has_data_out = sent.has_data_out();
    let timeout_ns = sent
        .ledger
        .rto_ns(peer.rtt_to_receiver_ns().unwrap_or(0))
        .max(MIN_NS);
    let stall = |kind: Kind, start_ns: i64, least_ns: i64| {
        (until_ns.saturating_sub(start_ns) >= least_ns).then_some(EndStall {
            kind,
            start_ns,
            end_ns: until_ns,
            tries: count,
        })
    };
    // A sender that has data probes once its timer runs out (RFC 9293 §3.8.6.1): until then it may be waiting.
    let may_be_early =
        |start_ns: i64| until_ns.saturating_sub(start_ns) < timeout_ns.max(RTO_INITIAL_NS) * 2;
    if !sent.flight.is_acked {
        // Without an ACK the flight is unknown, unless a timer keeps retransmitting the same segment.
        let silent = silent.filter(|_| !peer.is_seen)?;
        return stall(Kind::PeerSilent, silent.before_ns, timeout_ns);
    }
    if let Some(closed) = closed {
        if let Some(silent) = silent {
            return stall(Kind::PeerSilent, silent.first_ns, timeout_ns);
        }
        let waits = closed.probes > 0 || has_data_out;
        let may_wait = sent.data_segments > 0 && !sent.has_fin() && may_be_early(closed.start_ns);
        return stall(Kind::ZeroWindow, closed.start_ns, MIN_NS).filter(|_| waits || may_wait);
    }
    if has_data_out {
        let sent_ns = sent.ledger.oldest_ns().unwrap_or(sent.last_data_ns);
        let first_ns = sent_ns.max(sent.last_ack_ns);
        let overdue_ns = timeout_ns.saturating_mul(OVERDUE).max(OVERDUE_NS);
        let resent = cold_state.and_then(|cold_state| cold_state.waiting.as_deref()?.resent);
        let resent = resent.filter(|tries| tries.first_ns >= first_ns);
        // A retransmission long after its timer shows that ACKs until then are missing.
        let start_ns = match resent {
            Some(tries) if tries.first_ns.saturating_sub(first_ns) > overdue_ns => tries.first_ns,
            _ => first_ns,
        };
        // A sender that sends new data after its timeout without retransmitting got ACKs that the capture lacks.
        if !sent.has_doubts() && sent.last_data_ns.saturating_sub(start_ns) > timeout_ns {
            return None;
        }
        // So did a sender that sends nothing: it would have retransmitted this data (RFC 6298 §5.4).
        if resent.is_none() && seen_ns.saturating_sub(start_ns) > overdue_ns {
            return None;
        }
        let kind = if silent.is_some() {
            Kind::PeerSilent
        } else {
            Kind::Unacknowledged
        };
        let tries = resent.map_or(0, |tries| tries.count).max(count);
        // Several expired timers are sufficient proof, although the next timer is longer than all of them together.
        let least_ns = if silent.is_some() { MIN_NS } else { timeout_ns };
        return stall(kind, start_ns, least_ns).map(|stall| EndStall { tries, ..stall });
    }
    if sent.flight.is_outstanding() || !sent.is_flight_known() {
        return None;
    }
    if let Some(silent) = silent {
        return stall(Kind::PeerSilent, silent.first_ns, timeout_ns);
    }
    if sent.is_limited {
        let since_ns = cold_state.map_or(until_ns, |cold_state| cold_state.limited_since_ns);
        let start_ns = since_ns.max(sent.last_ack_ns).max(sent.last_data_ns);
        return stall(Kind::SmallWindow, start_ns, timeout_ns).filter(|_| may_be_early(start_ns));
    }
    None
}

impl Connection {
    /// Return whether a side waits for anything, and may be stalled.
    pub(super) fn is_waiting(&self) -> bool {
        self.directions.iter().any(Direction::is_waiting)
    }

    /// Return whether a stall is in progress at `until_ns`; `seen_ns` is the capture's end.
    pub(super) fn is_stalled(&self, until_ns: i64, seen_ns: i64) -> bool {
        (0..2).any(|side| find(self, side, until_ns, seen_ns).is_some())
    }

    /// Return the end of the wait for the connection: the capture's end, bounded by the next timers.
    ///
    /// If the capture is a concatenation and a later part lacks the segment of an expired timer, the connection's own
    /// packets do not show a longer wait.
    pub(super) fn waits_until_ns(&self, last_ns: i64) -> i64 {
        let next_ns = self.next_timer_ns(0).max(self.next_timer_ns(1));
        last_ns
            .min(self.end_ns.saturating_add(next_ns))
            .max(self.end_ns)
    }

    /// Return the time after the connection's last segment by which a timer of a side has expired: two timeouts, or
    /// twice the time of the previous tries, as each timeout doubles (RFC 6298 §5.5).
    fn next_timer_ns(&self, side: usize) -> i64 {
        let (sent, peer) = (&self.directions[side], &self.directions[1 - side]);
        let timeout_ns = sent
            .ledger
            .rto_ns(peer.rtt_to_receiver_ns().unwrap_or(0))
            .max(RTO_INITIAL_NS);
        let waiting = sent
            .cold_state
            .as_deref()
            .and_then(|state| state.waiting.as_deref());
        let tries = waiting.and_then(|waiting| waiting.tries);
        timeout_ns
            .max(tries.map_or(0, Tries::lasted_ns))
            .saturating_mul(2)
            .min(RTO_MAX_NS)
    }

    /// Record the stalls in progress at `until_ns`, when the capture or a reset ends the connection.
    #[cold]
    pub(super) fn note_end_stalls(&mut self, until_ns: i64) {
        for side in 0..2 {
            let Some(stall) = find(self, side, until_ns, until_ns) else {
                continue;
            };
            let direction = &mut self.directions[side];
            let cold_state = direction.cold_state();
            cold_state.waiting().end_stall = Some(stall);
            if let Some(zero) = &mut cold_state.zero {
                zero.is_waited_for |= zero.is_open();
            }
            if stall.kind.is_unanswered() {
                direction.note_unanswered(&stall);
            }
        }
    }
}

impl Direction {
    fn has_data_out(&self) -> bool {
        self.is_flight_known() && self.flight.bytes() > 0
    }

    /// Return whether its sender waits for an acknowledgment, a window or an answer to a probe.
    fn is_waiting(&self) -> bool {
        let waits = |state: &ColdState| {
            let tries = state.waiting.as_deref().and_then(|waiting| waiting.tries);
            tries.is_some()
                || state
                    .zero
                    .as_deref()
                    .is_some_and(|zero| zero.current().is_some())
        };
        !self.has_only_syn
            && (self.is_limited
                || self.has_data_out()
                || self.cold_state.as_deref().is_some_and(waits))
    }

    /// Record that the peer sent something.
    #[inline]
    pub(super) fn note_heard(&mut self) {
        if let Some(waiting) = self
            .cold_state
            .as_mut()
            .and_then(|cold_state| cold_state.waiting.as_mut())
        {
            waiting.tries = None;
        }
    }

    /// Note that it retransmitted, or sent a probe, after data at `before_ns`.
    #[cold]
    pub(super) fn note_try(&mut self, now_ns: i64, before_ns: i64) {
        // A segment captured no later than the data before it is a copy made by the capture, not a timer's.
        if self.clock_ns(now_ns) <= before_ns {
            return;
        }
        let last_ack_ns = self.last_ack_ns;
        let waiting = self.cold_state().waiting();
        for (tries, since_ns) in [
            (&mut waiting.tries, i64::MIN),
            (&mut waiting.resent, last_ack_ns),
        ] {
            match tries {
                Some(tries) if tries.first_ns >= since_ns => tries.add(now_ns),
                tries => *tries = Some(Tries::new(now_ns, before_ns)),
            }
        }
    }

    /// Charge the time of a stall to the silent peer, instead of what it was charged to before.
    fn note_unanswered(&mut self, stall: &EndStall) {
        let is_closed = self
            .cold_state
            .as_ref()
            .is_some_and(|cold_state| cold_state.is_zero_open());
        let likely: &[SenderState] = if is_closed {
            &[SenderState::ZeroWindow]
        } else {
            &[
                SenderState::Timeout,
                SenderState::Tail,
                SenderState::FastRecovery,
            ]
        };
        self.end_limit_at(stall.start_ns);
        self.spend_silence(SenderState::PeerSilent, stall.start_ns, stall.end_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            let budget = &mut pace.late.budget;
            budget.claim(SenderState::PeerSilent, stall.duration_ns(), likely);
        }
    }
}
