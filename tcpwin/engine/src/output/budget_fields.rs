//! Fields of a direction: where the sender's time went. They add up to the connection's duration.

use crate::budget_item::each_item;
use crate::budget_item::{SenderState, SENDER_STATES};
use crate::event;
use crate::output::field::{DirectionField, DirectionView, Kind, Value, Within};
use crate::output::vantage::path_rtt_ns;
use crate::tcp::budget::forget_flight;
use crate::tcp::budget::unknown_scale::Shift;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::end_stall::EndStall;
use crate::tcp::window::scale::{Offer, ScaleState, MAX_SHIFT};
use crate::tcp::window::zero::EndedBy;

/// A SYN waits a second for its answer (RFC 6298 §2.1; Linux's TCP_TIMEOUT_INIT): sooner it is a copy.
const SOONEST_SYN_NS: i64 = 500_000_000;
/// Of fewer segments a few that were really lost may be two in five.
const DOUBLED_SEGMENTS: u32 = 10;
/// A receiver further away than that is at the other end of a network.
const FAR_NS: i64 = 2_000_000;

impl DirectionView<'_> {
    fn spent(&self, item: SenderState) -> Value {
        Value::Int(self.budget()[item as usize])
    }

    /// Nanoseconds of each item.
    pub fn budget(&self) -> [i64; SENDER_STATES] {
        let connection = self.connection;
        let total_ns = connection.end_ns.saturating_sub(connection.start_ns).max(0);
        let mut spent = [0i64; SENDER_STATES];
        if connection.is_sampled() {
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
                // Before two segments were in flight: what its own counts say, the rest its application's.
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

    /// Since when a sender of few segments is done: all that it sent is acknowledged, or the connection was reset.
    pub(super) fn closed_since_ns(&self) -> Option<i64> {
        let data = self.data();
        let is_done = data.has_fin() && !data.flight.is_outstanding();
        let done_ns = is_done.then(|| data.last_ack_ns.max(data.last_data_ns));
        [done_ns, self.connection.reset_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    /// What stalls when the capture, or a reset, ends the connection.
    pub(super) fn end_stall(&self) -> Option<EndStall> {
        self.cold_state()?.end_stall()
    }

    /// Time of it in which the peer did not answer.
    fn unanswered_ns(&self) -> i64 {
        self.end_stall()
            .filter(|stall| stall.kind.is_unanswered())
            .map_or(0, |stall| stall.duration_ns())
    }

    /// Time in which the window was closed, the sender had something to send and its peer was there.
    fn waiting_ns(&self) -> i64 {
        let is_closed = self
            .episodes()
            .last()
            .is_some_and(|episode| matches!(episode.ended_by, EndedBy::Open | EndedBy::Reset));
        let silent_ns = if is_closed { self.unanswered_ns() } else { 0 };
        (self.closed_ns() - silent_ns).max(0)
    }

    /// Whether all data would have fitted into the smallest window with room left: on loopback the segment size is as large
    /// as the window, so that no second segment fits, and none is needed.
    fn fits_any_window(&self) -> bool {
        let data = self.data();
        let outstanding = data.known_flight().map_or(0, u64::from);
        // What the capture lacks took room, too.
        let most = self
            .unique_bytes()
            .max(data.acked_payload_bytes() + outstanding);
        self.is_certain() && most < u64::from(data.window.min_bytes)
    }

    /// Whether the capture holds the packets twice: as they left one end, and later as they came to the other.
    ///
    /// Both SYNs are there again sooner than any is sent again (RFC 6298 §2.1: after a second), and of the data as much
    /// as two in five segments.
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
        let resent = u64::from(data.event_count(event::RESENT));
        self.connection.directions.iter().all(is_copied)
            && resent * 5 >= u64::from(data.data_segments) * 2
    }

    /// Whether the distance from sender to capture point was known when time was charged.
    ///
    /// By the handshake, or since something of the sender's was timed here. A receiver far away as well says enough:
    /// who captures does so at one of the ends.
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

    /// What is known of the shift of the windows that limit this direction.
    fn known_shift(&self) -> Shift {
        let peer = &self.connection.directions[1 - self.sender];
        let cold_state = self.data().cold_state.as_ref();
        let inference = cold_state.and_then(|cold_state| cold_state.inference.as_ref());
        let least = inference
            .filter(|inference| !inference.is_contradicted)
            .map_or(0, |inference| inference.firm_min);
        match (peer.own_scale, peer.syn.offer) {
            (state, _) if state.is_certain() => Shift::Known(peer.own_shift),
            // Either it was agreed on, or windows are not scaled at all.
            (ScaleState::SynOnly, Offer::Shift(shift)) if least > 0 => {
                Shift::Known(shift.min(MAX_SHIFT))
            }
            _ => Shift::AtLeast(least),
        }
    }

    /// Whether the capture holds the beginning of the connection.
    pub fn is_from_start(&self) -> bool {
        self.connection.directions.iter().any(|side| side.has_syn)
    }

    /// Whether the window is known, or always held more than was ever in flight.
    fn had_room(&self) -> bool {
        let data = self.data();
        let (Shift::Known(shift) | Shift::AtLeast(shift)) = self.known_shift();
        let peer = &self.connection.directions[1 - self.sender];
        let least = u64::from(data.window.min_bytes) << shift;
        let wanted = u64::from(data.flight_max_bytes()) + u64::from(data.segment_size());
        peer.own_scale.is_certain() || (data.window.is_known && least >= wanted)
    }

    /// From the first SYN to the ACK that completed the handshake; all of it where none did.
    pub(super) fn handshake_ns(&self, total_ns: i64) -> i64 {
        let connection = self.connection;
        let since_start = |ns: i64| ns.saturating_sub(connection.start_ns).max(0);
        if let Some(established_ns) = connection.established_ns() {
            return since_start(established_ns);
        }
        if connection.syn_ns().or(connection.syn_ack_ns()).is_none() {
            return 0;
        }
        // Of a handshake that was captured in part the first data says that it was over.
        let data = connection.directions.iter();
        let first = data
            .filter(|direction| direction.data_segments > 0)
            .map(|direction| since_start(direction.first_data_ns))
            .min();
        // So does an ACK where the other side was not captured.
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
