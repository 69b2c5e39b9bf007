//! Fields of a direction: the sender's time budget. The items add up to the connection's duration.

use crate::event;
use crate::output::field::{DirectionField, DirectionView, Kind, Value, Within};
use crate::output::turns::Conversation;
use crate::output::vantage::path_rtt_ns;
use crate::tables::budget_item::each_item;
use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tcp::budget::forget_flight;
use crate::tcp::budget::unknown_scale::Shift;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::end_stall::EndStall;
use crate::tcp::window::scale::{Offer, ScaleState, MAX_SHIFT};
use crate::tcp::window::zero::EndedBy;

/// A SYN is retransmitted after a second (RFC 6298 §2.1; Linux's TCP_TIMEOUT_INIT): an earlier repetition is a copy.
const SOONEST_SYN_NS: i64 = 500_000_000;
/// With fewer segments, a few genuine losses can make up two in five.
const DOUBLED_SEGMENTS: u32 = 10;
/// A receiver farther away than this is across a network.
const FAR_NS: i64 = 2_000_000;

impl DirectionView<'_> {
    fn spent(&self, item: SenderState) -> Value {
        Value::Int(self.budget()[item as usize])
    }

    /// Return the nanoseconds of each item.
    pub fn budget(&self) -> [i64; SENDER_STATES] {
        let connection = self.connection;
        let total_ns = connection.end_ns.saturating_sub(connection.start_ns).max(0);
        let mut spent = [0i64; SENDER_STATES];
        if connection.is_sampled() || self.is_one_sided() || self.is_mostly_missing() {
            spent[SenderState::Unknown as usize] = total_ns;
            return spent;
        }
        if total_ns == 0 {
            return spent;
        }
        let mut left_ns = total_ns;
        let mut take = |item: SenderState, ns: i64| {
            let ns = ns.clamp(0, left_ns);
            left_ns -= ns;
            spent[item as usize] += ns;
        };
        take(SenderState::Handshake, self.handshake_ns(total_ns));
        let silent_ns = self.unanswered_ns();
        take(SenderState::PeerSilent, silent_ns);
        let data = self.data();
        let is_known = data.is_seen
            && (data.data_segments == 0 || (data.is_flight_known() && self.had_room()));
        let rest = if is_known {
            SenderState::Application
        } else {
            SenderState::Unknown
        };
        match data.pace().map(|pace| &pace.late.budget) {
            Some(budget) if budget.has_begun() => {
                let mut items = budget.spent(self.known_shift());
                let closed_ns = items[SenderState::ZeroWindow as usize];
                items[SenderState::PeerSilent as usize] = 0;
                // Before two segments were in flight, use the direction's own counts; the rest is the application's.
                let mut early_ns = budget.began_ns.saturating_sub(connection.start_ns)
                    - self.handshake_ns(total_ns);
                for (item, ns) in [
                    (SenderState::ZeroWindow, self.waiting_ns() - closed_ns),
                    (SenderState::WindowFull, budget.early_limited_ns),
                ] {
                    let ns = ns.clamp(0, early_ns.max(0));
                    take(item, ns);
                    early_ns -= ns;
                }
                let first_ns = budget.began_ns.saturating_sub(data.first_data_ns);
                let is_first_round = first_ns <= path_rtt_ns(connection).unwrap_or(0);
                let first_ns = if self.is_from_start() { first_ns } else { 0 };
                take(
                    SenderState::SlowStart,
                    if is_first_round {
                        first_ns.min(early_ns)
                    } else {
                        0
                    },
                );
                early_ns -= if is_first_round { first_ns.max(0) } else { 0 };
                take(
                    if budget.is_voided {
                        SenderState::Unknown
                    } else {
                        rest
                    },
                    early_ns,
                );
                // A closed window costs nothing while there is nothing to send.
                let idle_ns = (closed_ns - self.waiting_ns()).max(0);
                items[SenderState::ZeroWindow as usize] -= idle_ns;
                items[SenderState::Application as usize] += idle_ns;
                for (item, ns) in SenderState::ALL.into_iter().zip(items) {
                    take(item, ns);
                }
            }
            _ => {
                take(SenderState::ZeroWindow, self.waiting_ns());
                take(SenderState::WindowFull, data.limited_ns());
                take(SenderState::FastRecovery, self.recovery_ns());
                if let Some(closed_ns) = self.closed_since_ns() {
                    take(
                        SenderState::Closed,
                        connection.end_ns.saturating_sub(closed_ns),
                    );
                }
                take(rest, i64::MAX);
            }
        }
        spent[SenderState::Unknown as usize] += left_ns;
        if let Some(turns) = Conversation::of(connection).turns() {
            turns.reassign(&mut spent);
            self.hide_turns(&mut spent);
        }
        if self.is_doubled() {
            for item in SenderState::ALL {
                if !matches!(item, SenderState::Handshake | SenderState::Closed) {
                    let ns = std::mem::take(&mut spent[item as usize]);
                    spent[SenderState::Unknown as usize] += ns;
                }
            }
        }
        if !self.is_place_known() {
            forget_flight(&mut spent);
        }
        if self.fits_any_window() {
            for item in [SenderState::SmallWindow, SenderState::WindowFull] {
                let ns = std::mem::take(&mut spent[item as usize]);
                spent[SenderState::Application as usize] += ns;
            }
        }
        spent
    }

    /// With several requests under way, turns that pass while the other side's larger data is transferred cost nothing.
    fn hide_turns(&self, spent: &mut [i64; SENDER_STATES]) {
        let other = DirectionView {
            sender: 1 - self.sender,
            ..*self
        };
        if !self.connection.is_pipelined() || self.carried_bytes() >= other.carried_bytes() {
            return;
        }
        let larger = other.budget();
        for item in [
            SenderState::RoundTrip,
            SenderState::Responder,
            SenderState::Requester,
        ] {
            let hidden_ns = (spent[item as usize] - larger[item as usize]).max(0);
            spent[item as usize] -= hidden_ns;
            spent[SenderState::Path as usize] += hidden_ns;
        }
    }

    /// Return the time at which a sender of few segments was done: everything was acknowledged, or the connection was
    /// reset.
    pub(super) fn closed_since_ns(&self) -> Option<i64> {
        let data = self.data();
        let is_done = data.has_fin() && !data.flight.is_outstanding();
        let done_ns = is_done.then(|| data.last_ack_ns.max(data.last_data_ns));
        [done_ns, self.connection.reset_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Return the stall at the end of the capture or at a reset.
    pub fn end_stall(&self) -> Option<EndStall> {
        self.cold_state()?.end_stall()
    }

    /// Return the part of the final stall in which the peer did not answer.
    fn unanswered_ns(&self) -> i64 {
        self.end_stall()
            .filter(|stall| stall.kind.is_unanswered())
            .map_or(0, |stall| stall.duration_ns())
    }

    /// Return the time in which the window was closed, the sender had data to send and its peer was alive.
    fn waiting_ns(&self) -> i64 {
        let is_closed = self
            .episodes()
            .last()
            .is_some_and(|episode| matches!(episode.ended_by, EndedBy::Open | EndedBy::Reset));
        let silent_ns = if is_closed { self.unanswered_ns() } else { 0 };
        (self.closed_ns() - silent_ns).max(0)
    }

    /// Return true if all data would have fitted into the smallest window with space to spare. On loopback, the segment
    /// size equals the window, so that a second segment neither fits nor is needed.
    fn fits_any_window(&self) -> bool {
        let data = self.data();
        let outstanding = data.known_flight().map_or(0, u64::from);
        // Data missing from the capture took window space, too.
        let most = self
            .unique_bytes()
            .max(data.acked_payload_bytes() + outstanding);
        self.is_certain() && most < u64::from(data.window.min_bytes)
    }

    /// Return true if the capture holds each packet twice: leaving one end, and later arriving at the other.
    ///
    /// Both SYNs are repeated sooner than a retransmission could be (RFC 6298 §2.1: after a second), and so are at
    /// least two in five data segments.
    fn is_doubled(&self) -> bool {
        let data = self.data();
        if data.data_segments < DOUBLED_SEGMENTS {
            return false;
        }
        let is_copied = |direction: &Direction| {
            let age_ns = direction
                .cold_state
                .as_ref()
                .and_then(|cold_state| cold_state.syn_copy_ns);
            age_ns.is_some_and(|ns| ns < SOONEST_SYN_NS)
        };
        let resent = u64::from(self.sent_events(event::RESENT));
        self.connection.directions.iter().all(is_copied)
            && resent * 5 >= u64::from(data.data_segments) * 2
    }

    /// Return true if the distance between sender and capture point was known when time was charged.
    ///
    /// It is known from the handshake, or once a segment of the sender's was timed here. A distant receiver is
    /// sufficient as well: captures are made at one of the ends.
    fn is_place_known(&self) -> bool {
        let [first, second] = &self.connection.directions;
        let (data, peer) = (self.data(), &self.connection.directions[1 - self.sender]);
        if first.has_syn && second.has_syn || data.data_segments == 0 {
            return true;
        }
        let is_followed = data.pace().is_some_and(|pace| pace.view.is_some());
        match peer.rtt_to_receiver_ns() {
            Some(_) => is_followed || data.away_ns(peer).is_none(),
            None => data.rtt_to_receiver_ns().is_some_and(|ns| ns >= FAR_NS),
        }
    }

    /// Return the shift of the windows that limit this direction, as far as it is known.
    fn known_shift(&self) -> Shift {
        let peer = &self.connection.directions[1 - self.sender];
        let cold_state = self.data().cold_state.as_ref();
        let inference = cold_state.and_then(|cold_state| cold_state.inference.as_ref());
        let least = inference
            .filter(|inference| !inference.is_contradicted)
            .map_or(0, |inference| inference.firm_min);
        match (peer.own_scale, peer.syn.offer) {
            (state, _) if state.is_certain() => Shift::Known(peer.own_shift),
            // Either the shift was negotiated, or windows are not scaled at all.
            (ScaleState::SynOnly, Offer::Shift(shift)) if least > 0 => {
                Shift::Known(shift.min(MAX_SHIFT))
            }
            _ => Shift::AtLeast(least),
        }
    }

    /// Return true if the capture contains the start of the connection.
    pub fn is_from_start(&self) -> bool {
        self.connection.directions.iter().any(|side| side.has_syn)
    }

    /// Return true if the window is known, or was always larger than the maximum flight.
    fn had_room(&self) -> bool {
        let data = self.data();
        let (Shift::Known(shift) | Shift::AtLeast(shift)) = self.known_shift();
        let peer = &self.connection.directions[1 - self.sender];
        let least = u64::from(data.window.min_bytes) << shift;
        let wanted = u64::from(data.flight_max_bytes()) + u64::from(data.segment_size());
        peer.own_scale.is_certain() || (data.window.is_known && least >= wanted)
    }

    /// Return whether only one side was captured, and without its SYN: the packets that it waited for are missing.
    fn is_one_sided(&self) -> bool {
        let [side, other] = &self.connection.directions;
        side.is_seen != other.is_seen
            && self.connection.syn_ns().is_none()
            && self.unanswered_ns() == 0
    }

    /// Return true if the capture lacks almost all of the data that was acknowledged: what it holds shows no idle time.
    fn is_mostly_missing(&self) -> bool {
        let data = self.data();
        let missed_bytes = data
            .cold_state
            .as_ref()
            .map_or(0, |cold| cold.missed.bytes());
        missed_bytes / 10 * 11 > data.acked_bytes
    }

    /// Return the time from the first SYN to the ACK that completed the handshake; `total_ns` if none did.
    pub(super) fn handshake_ns(&self, total_ns: i64) -> i64 {
        let connection = self.connection;
        let since_start = |ns: i64| ns.saturating_sub(connection.start_ns).max(0);
        if let Some(established_ns) = connection.established_ns() {
            return since_start(established_ns);
        }
        if connection.syn_ns().or(connection.syn_ack_ns()).is_none() {
            return 0;
        }
        // If only part of the handshake was captured, the first data shows that it is over.
        let data = connection.directions.iter();
        let first = data
            .filter(|direction| direction.data_segments > 0)
            .map(|direction| since_start(direction.first_data_ns))
            .min();
        // So does an ACK if the other side was not captured.
        let [side, other] = &connection.directions;
        let is_over =
            (!other.is_seen && !side.has_only_syn) || (!side.is_seen && !other.has_only_syn);
        first.unwrap_or(if is_over { 0 } else { total_ns })
    }
}

macro_rules! budget_fields {
    ($($item:ident)*) => {
        pub const BUDGET_FIELDS: &[DirectionField] = &[$(DirectionField {
            name: SenderState::$item.field(),
            kind: Kind::Int,
            within: Within::Record,
            choices: &[],
            marks: &[],
            doc: SenderState::$item.row().doc,
            get: |v| v.spent(SenderState::$item),
        }),*];
    };
}
each_item!(budget_fields);
