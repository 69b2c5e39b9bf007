//! The rounds of a direction: its flight, the path, and the view of a distant sender.

use crate::cache::{ask_for, ask_for_all, from};
use crate::tcp::connection::direction::Direction;
use crate::tcp::path::pace::{Pace, Round};
use crate::tcp::recovery::episode::Phase;
use crate::tcp::timing::messages::PAUSE_MIN_NS;
use crate::tcp::timing::timestamp_echo::Echo;
use crate::tcp::tracker::time_charge::open_state;
use crate::tcp::window::sender_view::{Known, SenderView};

/// A capture point is remote from the sender if its round trip to the sender is at least this fraction (one tenth) of the
/// whole path's.
const AWAY_SHARE: i64 = 10;
const AWAY_MIN_NS: i64 = 200_000;
/// Number of first rounds in which the path is always checked; later, it is checked once per this many rounds.
const EARLY_ROUNDS: u32 = 16;

impl Direction {
    /// Return the RTT between the capture point and the receiver of this direction's data.
    pub fn rtt_to_receiver_ns(&self) -> Option<i64> {
        let least = [self.ledger.min_ns(), self.echo.min_ns()];
        least
            .into_iter()
            .flatten()
            .min()
            .and_then(|ns| i64::try_from(ns).ok())
    }

    /// Close the round: everything in flight at its start is acknowledged, or the sender paused.
    #[cold]
    pub fn end_round(&mut self, now_ns: i64, peer: Option<&Direction>) {
        if let Some(pace) = self.pace() {
            // With many connections, fields read only by rounds are uncached.
            ask_for_all(pace);
            if let Some(path) = &pace.path {
                ask_for(from(path.as_ref()));
            }
            if let Some(idle) = &pace.idle {
                idle.ask_for_owed();
            }
        }
        let round = Round {
            now_ns,
            nxt: self.flight.nxt,
            peak_bytes: self.flight.max_bytes,
            acked_bytes: self.acked_bytes,
            delivered_bytes: self.delivered_bytes(),
            window_bytes: self.flight.una.to(self.window.edge).max(0) as u32,
            mss: self.segment_size(),
            is_recovering: self.is_recovering(),
            round_trip_ns: peer.map_or(0, |peer| self.path_ns(peer)),
            last_data_ns: self.last_data_ns,
            is_from_start: self.has_syn || peer.is_some_and(|peer| peer.has_syn),
        };
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        if let Some(view) = &mut pace.view {
            view.arrive(now_ns);
            let budget = &mut pace.late.budget;
            let is_blocked = view.is_blocked() && budget.has_known_room();
            budget.drain(open_state(is_blocked, false, true), view.drained_ns);
        }
        let round = match &pace.view {
            Some(view) => Round {
                window_bytes: view.window_bytes(),
                ..round
            },
            None => round,
        };
        pace.end_round(&round);
        pace.settle_restart();
        let has_view = pace.view.is_some();
        let is_early = pace.rounds < EARLY_ROUNDS || pace.rounds % EARLY_ROUNDS == 0;
        self.flight.max_bytes = self.known_flight().unwrap_or(0);
        // The path's round trip is found early, and changes little later.
        let Some(peer) = peer.filter(|_| is_early) else {
            return;
        };
        if has_view {
            self.note_shorter_way(peer);
        } else {
            self.begin_view(peer, now_ns);
        }
        let path_ns = self.path_ns(peer);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.pause_ns = path_ns.saturating_mul(2).max(PAUSE_MIN_NS);
        }
    }

    /// Return the minimum RTT of the path, as far as it is known.
    pub(super) fn path_ns(&self, peer: &Direction) -> i64 {
        let (rtt_to_sender_ns, rtt_to_receiver_ns) = (
            peer.rtt_to_receiver_ns().unwrap_or(0),
            self.rtt_to_receiver_ns().unwrap_or(0),
        );
        rtt_to_sender_ns.saturating_add(rtt_to_receiver_ns)
    }

    /// Measure the round trip to the sender from a timestamp of the peer that this side echoed.
    #[cold]
    pub fn note_echo(&mut self, peer: &Direction, echo: Echo, now_ns: i64) {
        if echo.is_least {
            self.note_shorter_way(peer);
        }
        let Some(pace) = self.ledger.pace_mut().filter(|pace| pace.view.is_some()) else {
            return;
        };
        // Data held back by a sender carries a late echo.
        let from_ns = now_ns.saturating_sub(i64::from(echo.elapsed_us) * 1000);
        if pace.late.budget.was_busy_since(from_ns) {
            if let Some(path) = &mut pace.path {
                path.near.add(echo.elapsed_us);
            }
        }
    }

    /// Apply a shorter round trip to the sender, also to the ACKs still on the way.
    #[cold]
    pub fn note_shorter_way(&mut self, peer: &Direction) {
        let rtt_to_sender_ns = peer.rtt_to_receiver_ns().unwrap_or(i64::MAX);
        let view = self.ledger.pace_mut().and_then(|pace| pace.view.as_mut());
        if let Some(view) = view {
            view.shift_ns = view.shift_ns.min(rtt_to_sender_ns);
        }
    }

    /// Start the sender's view if it differs from the capture's, from the third segment on: waiting until then loses
    /// nothing.
    #[cold]
    pub fn begin_view(&mut self, peer: &Direction, now_ns: i64) {
        let away_ns = self.away_ns(peer);
        let (Some(away_ns), None) = (away_ns, self.pace().and_then(|pace| pace.view.as_ref()))
        else {
            return;
        };
        let newest = Known {
            una: self.flight.una,
            edge: self.window.edge,
        };
        let first = Known {
            una: self.isn + 1,
            edge: self.isn + 1 + self.window.initial_bytes,
        };
        let is_early = self.has_syn && self.first_data_ns.saturating_add(away_ns) > now_ns;
        // A sender never exceeds the first window before an ACK: the SYN's number is damaged.
        let ahead = first.una.to(self.flight.nxt);
        let is_early = is_early && ahead as u32 <= self.window.initial_bytes;
        let known = if is_early { first } else { newest };
        let mut view = SenderView::new(away_ns, known, self.flight.nxt, now_ns);
        view.has_edge = peer.own_scale.is_certain();
        if !is_early {
            view.miss_initial();
        }
        // Acknowledgments, windows and reports captured so far have not reached the sender.
        if !newest.una.is_before(first.una) {
            view.acked(newest, self.last_ack_ns);
        } else if is_early && newest.edge.is_after(first.edge) {
            // An ACK that opens the window without acknowledging the SYN is not valid TCP, but later data uses that
            // window.
            let edge = newest.edge;
            view.acked(Known { edge, ..first }, self.last_ack_ns);
        }
        let last_answer = self
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.last_answer);
        if let Some((time_ns, _)) = last_answer.filter(|_| self.sacked_bytes() > 0) {
            view.reported(time_ns);
        }
        let (una, delivered_bytes) = (self.flight.una, self.delivered_bytes());
        let is_from_start = self.has_syn || peer.has_syn;
        let is_late = self.data_segments > 2;
        let pace = self.ledger.pace_from(una);
        pace.view = Some(Box::new(view));
        pace.late.budget.forget_rates();
        pace.forget_path(delivered_bytes);
        if !is_from_start && is_late {
            pace.late.budget.void();
        }
    }

    /// Return the round trip between the capture point and this direction's sender, if it is a significant part of the path.
    pub fn away_ns(&self, peer: &Direction) -> Option<i64> {
        let (rtt_to_sender_ns, rtt_to_receiver_ns) =
            (peer.rtt_to_receiver_ns()?, self.rtt_to_receiver_ns()?);
        (rtt_to_sender_ns >= AWAY_MIN_NS
            && rtt_to_sender_ns >= rtt_to_sender_ns.saturating_add(rtt_to_receiver_ns) / AWAY_SHARE)
            .then_some(rtt_to_sender_ns)
    }

    fn is_recovering(&self) -> bool {
        let cold_state = self.cold_state.as_ref();
        cold_state.is_some_and(|cold_state| cold_state.phase() != Phase::Open)
    }

    /// Return the bytes in flight as the sender has them.
    pub fn flight_as_sent(&self) -> u32 {
        let view = self.pace().and_then(|pace| pace.view.as_ref());
        view.map_or(self.flight.bytes(), |view| view.bytes())
    }

    /// Return the maximum bytes in flight so far.
    pub fn flight_max_bytes(&self) -> u32 {
        let before = self.pace().map_or(0, |pace| pace.peak);
        before.max(self.flight.max_bytes)
    }

    /// Return the maximum bytes in flight, as seen by the sender if the capture point is elsewhere.
    pub fn flight_seen(&self) -> Option<u32> {
        let here = (self.flight.is_acked && self.is_seen).then(|| self.flight_max_bytes());
        let view = self.pace().and_then(|pace| pace.view.as_deref());
        view.map(|view| view.max_bytes).max(here)
    }

    /// Note that the receiver echoed a congestion mark.
    #[cold]
    pub fn note_mark(&mut self) {
        if let Some(path) = self.ledger.pace_mut().and_then(|pace| pace.path.as_mut()) {
            path.note_mark();
        }
    }

    /// Note that data arrived after a gap or out of order.
    #[cold]
    pub fn note_disorder(&mut self) {
        if let Some(path) = self.ledger.pace_mut().and_then(|pace| pace.path.as_mut()) {
            path.note_disorder();
        }
    }

    /// Close open measurements at the end of the connection.
    pub fn finish_pace(&mut self, end_ns: i64, keeps_rounds: bool) {
        if let Some(cold_state) = &mut self.cold_state {
            cold_state.change_known_episode(|episode| episode.leave(end_ns));
        }
        self.end_round(end_ns, None);
        let (first_ns, last_ns) = (self.first_data_ns, self.last_data_ns);
        let mss = self.segment_size();
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        if let Some(turns) = &mut pace.turns {
            turns.close(first_ns, last_ns);
        }
        if let Some(idle) = &mut pace.idle {
            idle.end();
        }
        pace.settle_restart();
        if let Some(view) = &mut pace.view {
            view.finish(end_ns);
        }
        for each in pace.conclude(mss, keeps_rounds) {
            let budget = &mut pace.late.budget;
            budget.reassign(each.item, each.into, each.span_ns);
        }
    }

    /// Return how soon the side's first data followed the peer's, while it is the only answer.
    pub fn first_answer_ns(&self) -> Option<i64> {
        let delay_us = self.first_answer_us.checked_sub(1)?;
        Some(i64::from(delay_us) * 1000)
    }

    pub fn pace(&self) -> Option<&Pace> {
        self.ledger.pace()
    }
}
