//! Check the window space of a sender, segment by segment: its flight, and its application-limited time, against the
//! window.

use crate::event::{self, CAPTURE_DUPLICATE, KEEP_ALIVE, ZERO_WINDOW_PROBE};
use crate::output::detail::Detail;
use crate::output::field::{DirectionView, Value};
use crate::output::fields::direction_field;
use crate::output::invariants::Ledger;
use crate::output::timeline::Timeline;
use crate::sequence::Seq;
use crate::tables::budget_item::SenderState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::tcp::window::scale::ScaleState;
use crate::wire::{Segment, ACK, FIN, RST, SYN};

/// A few violations per sender are enough to show the mechanism.
const MAX_FAULTS: usize = 4;
/// Data sent this soon after a window opened had been waiting for it.
const SOON_NS: i64 = 200_000_000;

/// Both senders of a connection.
#[derive(Default)]
pub struct Room {
    senders: [Sender; 2],
    now_ns: i64,
    /// Whether the connection contains segments that TCP does not send, or its clock ran backwards, so that nothing can
    /// be inferred.
    pub is_anomalous: bool,
    /// Whether the connection was reset.
    is_over: bool,
}

impl Room {
    pub fn take(&mut self, segment: &Segment, annotation: &Annotation, connection: &Connection) {
        if annotation.events & CAPTURE_DUPLICATE != 0 {
            return;
        }
        let side = usize::from(annotation.side);
        // A segment without ACK, or a SYN in mid-connection, is dropped by the receiver (RFC 9293 §3.10.7.4).
        let (data, heard) = (
            &connection.directions[side],
            &connection.directions[1 - side],
        );
        let acknowledges_data = heard.acked_bytes > 1 && Seq(segment.ack) == heard.flight.una;
        let is_late_syn = segment.flags & SYN != 0
            && (segment.payload_len > 0
                || segment.flags & FIN != 0
                || data.data_segments > 0
                || acknowledges_data);
        self.is_anomalous |=
            segment.flags & (ACK | SYN | RST) == 0 || is_late_syn || segment.time_ns < self.now_ns;
        self.now_ns = self.now_ns.max(segment.time_ns);
        self.is_over |= segment.flags & RST != 0;
        let known_in_bytes = |sender: usize| {
            let data = &connection.directions[sender];
            let is_known = connection.window_is_certain(1 - sender)
                && data.window.is_known
                && data.is_flight_known();
            is_known.then_some(data)
        };
        self.senders[side].send(segment, annotation, known_in_bytes(side));
        self.senders[1 - side].is_peer_active |= segment.payload_len > 0;
        for sender in [side, 1 - side] {
            // Data in flight at a reset is abandoned (RFC 9293 §3.5.3).
            let data = known_in_bytes(sender).filter(|_| !self.is_over);
            self.senders[sender].fill(self.now_ns, data, sender == side);
        }
    }

    /// Check the results for a direction once everything has been read.
    pub fn check(&mut self, view: &DirectionView<'_>, detail: &Detail, ledger: &mut Ledger<'_>) {
        if self.is_anomalous {
            return;
        }
        check_window(view, ledger);
        let sender = &mut self.senders[view.sender];
        sender.end_full(self.now_ns);
        for fault in &sender.faults {
            ledger.demand(false, "flight is within the window", || fault.clone());
        }
        let counted = view.data().cold_state.as_ref();
        ledger.demand_at_most(
            "segments beyond all windows are counted",
            ("segments beyond", sender.overruns),
            (
                "window_overrun",
                counted.map_or(0, |cold_state| i64::from(cold_state.window_overrun)),
            ),
        );
        sender.check_application(&detail.budgets[view.sender].timeline, ledger);
    }
}

/// The window space of one sender.
#[derive(Default)]
struct Sender {
    nxt: Option<Seq>,
    /// Segments that moved SND.MAX beyond all advertised edges.
    overruns: i64,
    faults: Vec<String>,
    /// Whether the sender sent more than the window allows, so that an ACK or segment is missing from the capture.
    is_incomplete: bool,
    /// Start of the current span, and all spans, in which data was in flight and the window had no space for another
    /// byte.
    full_since_ns: Option<i64>,
    full_ns: Vec<(i64, i64)>,
    /// The same for a window that closed, or shrank onto data in flight, until the data after its opening shows whether
    /// any was waiting.
    closed_ns: Vec<(i64, i64)>,
    is_closed: bool,
    /// Whether an ACK filled the window, rather than a segment of this sender.
    is_shrunk: bool,
    opened_ns: Option<i64>,
    /// Whether the peer has sent data since the window closed or shrank, so that the next data may be an answer that
    /// was not waiting.
    is_peer_active: bool,
}

impl Sender {
    /// Process a segment of this sender; `data` is set if its flight and window are known.
    fn send(&mut self, segment: &Segment, annotation: &Annotation, data: Option<&Direction>) {
        let Some(data) = data else {
            self.nxt = None;
            return;
        };
        let nxt = data.flight.nxt;
        let beyond = data.window.edge.to(nxt);
        let Some(before) = self.nxt.replace(nxt) else {
            self.is_incomplete = beyond > 1;
            return;
        };
        let is_new = before.is_before(nxt);
        if !is_new {
            return;
        }
        if segment.payload_len > 0 {
            self.decide(segment.time_ns);
        }
        // A probe's byte and a FIN need no window space (RFC 9293 §3.8.6.1); a SYN's data precedes any window.
        let needs_room = segment.payload_len > 0
            && segment.flags & (SYN | FIN | RST) == 0
            && annotation.events & (ZERO_WINDOW_PROBE | KEEP_ALIVE) == 0;
        self.is_incomplete = !needs_room || beyond > 1;
        if !needs_room {
            return;
        }
        self.overruns += i64::from(data.window.edge_max.to(nxt) > 1);
        let view = data.pace().and_then(|pace| pace.view.as_ref());
        if let Some(view) = view.filter(|view| view.has_edge && beyond <= 0) {
            let is_within = view.bytes() <= view.window_bytes();
            if !is_within && self.faults.len() < MAX_FAULTS {
                let (bytes, window) = (view.bytes(), view.window_bytes());
                self.faults.push(format!(
                    "frame {}: the sender has {bytes} B in flight but knows of a window of {window}",
                    segment.frame
                ));
            }
        }
    }

    /// Update whether data is in flight and the window is full; `is_own`: after a segment of this sender.
    fn fill(&mut self, now_ns: i64, data: Option<&Direction>, is_own: bool) {
        let is_closed = data.is_some_and(|data| data.window.bytes == 0);
        if is_closed != self.is_closed {
            self.end_full(now_ns);
            self.opened_ns = self.is_closed.then_some(now_ns);
            if is_closed {
                // It was open for a while and nothing was sent.
                self.closed_ns.clear();
                self.is_peer_active = false;
            }
            self.is_closed = is_closed;
        }
        let is_full = data.is_some_and(|data| self.is_full(data, is_own));
        if is_full && self.full_since_ns.is_none() {
            self.full_since_ns = Some(now_ns);
            self.is_shrunk = !is_own;
            if self.is_shrunk && !self.is_closed {
                // It was open for a while and nothing was sent.
                self.closed_ns.clear();
                self.is_peer_active = false;
            }
        } else if !is_full {
            if self.full_since_ns.is_some() && self.is_shrunk && !self.is_closed {
                self.opened_ns = Some(now_ns);
            }
            self.end_full(now_ns);
        }
    }

    fn is_full(&self, data: &Direction, is_own: bool) -> bool {
        // For a distant sender, use its own view of the window; a shrunken window shows with its next data.
        let view = data.pace().and_then(|pace| pace.view.as_ref());
        let is_open_there = view.is_some_and(|view| {
            let has_room = view.bytes() == 0 || view.nxt().is_before(view.known().edge);
            has_room || (!is_own && self.full_since_ns.is_none())
        });
        let is_full = data.flight.bytes() > 0 && !data.flight.nxt.is_before(data.window.edge);
        is_full && !data.has_fin() && !self.is_incomplete && !is_open_there
    }

    fn end_full(&mut self, now_ns: i64) {
        let since_ns = self.full_since_ns.take();
        if let Some(since_ns) = since_ns.filter(|since_ns| *since_ns < now_ns) {
            let spans_ns = if self.is_closed || self.is_shrunk {
                &mut self.closed_ns
            } else {
                &mut self.full_ns
            };
            spans_ns.push((since_ns, now_ns));
        }
    }

    /// Decide, at new data, whether it had been waiting for the closed window: it follows the opening soon.
    ///
    /// A window that is closed by the last bytes written stops nobody: Linux counts rwnd_limited only if more data
    /// is waiting (`tcp_write_xmit`, net/ipv4/tcp_output.c).
    fn decide(&mut self, now_ns: i64) {
        if let Some(opened_ns) = self.opened_ns.take() {
            if now_ns.saturating_sub(opened_ns) <= SOON_NS && !self.is_peer_active {
                self.full_ns.append(&mut self.closed_ns);
            }
            self.closed_ns.clear();
        }
    }

    /// Check that the application is not the limit while the window is full.
    fn check_application(&mut self, budget: &Timeline, ledger: &mut Ledger<'_>) {
        self.full_ns.sort_unstable();
        let mut full = self.full_ns.iter().peekable();
        for slot in budget.slots() {
            let mut full_ns = 0;
            while let Some((from_ns, to_ns)) = full.peek() {
                let overlap_ns = (*to_ns).min(slot.end_ns) - (*from_ns).max(slot.start_ns);
                full_ns += overlap_ns.max(0);
                if *to_ns > slot.end_ns {
                    break;
                }
                full.next();
            }
            let application_ns = slot.spent_ns[SenderState::Application as usize];
            ledger.demand(
                application_ns <= slot.end_ns - slot.start_ns - full_ns,
                "the application is not the limit while the window is full",
                || {
                    format!(
                        "{application_ns} of {} to {}, full for {full_ns}",
                        slot.start_ns, slot.end_ns
                    )
                },
            );
        }
    }
}

/// Check that flight stays below the right edge, unless a segment was seen to exceed it.
fn check_window(view: &DirectionView<'_>, ledger: &mut Ledger<'_>) {
    let data = view.data();
    // Only if known from the start: earlier data is not compared with any window.
    let is_certain = matches!(
        view.answers().own_scale,
        ScaleState::Known | ScaleState::Disabled
    );
    let is_plain_start = view.connection.handshake_rtt_ns().is_some()
        && view.connection.established_ns() <= Some(data.first_data_ns);
    if !is_certain || !is_plain_start || view.sent_events(event::ZERO_WINDOW_PROBE) > 0 {
        return;
    }
    let get = |name| match direction_field(name).map(|field| (field.get)(view)) {
        Some(Value::Int(value)) => Some(value),
        _ => None,
    };
    if get("window_overrun") != Some(0) || get("window_shrinks") != Some(0) {
        return;
    }
    for name in ["flight_max_bytes", "sender_flight_max_bytes"] {
        if let (Some(flight), Some(window)) = (get(name), get("receive_window_max_bytes")) {
            // A FIN and a probe's byte need no window space.
            ledger.demand(flight <= window + 2, "flight is within the window", || {
                format!("{name} {flight} > receive_window_max_bytes {window}")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::series::Span;

    /// Return the number of application-limited faults for a sender whose window was full from 10 to 20.
    fn faults(parts: &[(SenderState, i64)]) -> usize {
        let mut sender = Sender {
            full_ns: vec![(10, 20)],
            ..Sender::default()
        };
        let mut budget = Timeline::new(0, Span::ALL, 8);
        for (item, until_ns) in parts {
            budget.push(*item as usize, *until_ns);
        }
        let mut found = Vec::new();
        let mut ledger = Ledger {
            found: &mut found,
            connection: 0,
            from_initiator: None,
        };
        sender.check_application(&budget, &mut ledger);
        found.len()
    }

    #[test]
    fn the_application_is_not_the_limit_while_the_window_is_full() {
        let (application, window) = (SenderState::Application, SenderState::WindowFull);
        assert_eq!(
            faults(&[(application, 10), (window, 20), (application, 30)]),
            0
        );
        assert_eq!(faults(&[(application, 11), (window, 30)]), 1);
        assert_eq!(
            faults(&[
                (window, 12),
                (application, 13),
                (window, 19),
                (application, 40)
            ]),
            2
        );
    }

    #[test]
    fn a_sender_that_sends_soon_after_the_opening_was_waiting() {
        for (later_ns, spans) in [(SOON_NS, 1), (SOON_NS + 1, 0)] {
            let mut sender = Sender {
                closed_ns: vec![(10, 20)],
                opened_ns: Some(20),
                ..Sender::default()
            };
            sender.decide(20 + later_ns);
            assert_eq!(sender.full_ns.len(), spans);
        }
    }
}
