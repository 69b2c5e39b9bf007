//! The fields of connections and directions: the single list behind columns, JSON and the Python objects.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::event;
use crate::output::budget_fields::BUDGET_FIELDS;
use crate::output::field::{
    count, fields, int, optional, text, ConnectionField, ConnectionView, DirectionField,
    DirectionView, Value,
};
use crate::output::loss_fields::LOSS_FIELDS;
use crate::output::time_fields::TIME_FIELDS;
use crate::output::turns::{Conversation, Turns};
use crate::output::vantage::{handshake_half_ns, nearer, path_rtt_ns, Nearer};
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::ecn::Ecn;
use crate::tcp::connection::marks::Initiator;
use crate::tcp::connection::stalls::Stalls;
use crate::tcp::connection::state::Connection;
use crate::tcp::connection::syn::syn_kind;
use crate::tcp::window::filled::LostUnread;
use crate::tcp::window::scale::{Offer, ScaleState, MAX_SHIFT};
use crate::tcp::window::zero::{Episode, ZeroWindow};

/// Share of the mean window that must be delivered per round trip for a transfer to count as window-limited.
const WINDOW_FILLED: f64 = 0.8;

/// On shorter paths the hosts' own delays exceed the path's, so the capture point cannot be determined.
const NEAR_FROM_NS: i64 = 1_000_000;

impl<'a> DirectionView<'a> {
    /// `from_initiator`: true for `a_to_b`, false for `b_to_a`.
    pub fn new(connection: &'a Connection, from_initiator: bool) -> Self {
        let initiator = connection.initiator_side();
        DirectionView {
            connection,
            sender: if from_initiator {
                initiator
            } else {
                1 - initiator
            },
        }
    }

    pub(super) fn data(&self) -> &Direction {
        &self.connection.directions[self.sender]
    }

    pub(super) fn answers(&self) -> &Direction {
        &self.connection.directions[1 - self.sender]
    }

    pub(super) fn cold_state(&self) -> Option<&ColdState> {
        self.data().cold_state.as_deref()
    }

    /// Return true if the windows that limit this direction are known in bytes.
    pub(super) fn is_certain(&self) -> bool {
        self.data().window.is_known && self.answers().own_scale.is_certain()
    }

    fn window(&self, bytes: u32) -> Value {
        if self.is_certain() {
            Value::Int(i64::from(bytes))
        } else {
            Value::None
        }
    }

    /// Return the first window; it is known without the scale if it came in a SYN, whose window is never scaled.
    fn initial_window(&self) -> Value {
        if self.data().window.is_known && (self.is_certain() || self.answers().has_syn) {
            Value::Int(i64::from(self.data().window.initial_bytes))
        } else {
            Value::None
        }
    }

    /// Return how often events of a set occurred at the sender's segments.
    pub(super) fn sent_events(&self, events: event::Events) -> u32 {
        self.connection.event_count(self.sender, events)
    }

    pub(super) fn sent_count(&self, events: event::Events) -> Value {
        Value::Int(i64::from(self.sent_events(events)))
    }

    pub(super) fn answer_count(&self, events: event::Events) -> Value {
        let count = self.connection.event_count(1 - self.sender, events);
        Value::Int(i64::from(count))
    }

    pub(super) fn rare_int(&self, get: fn(&ColdState) -> i64) -> Value {
        Value::Int(self.cold_state().map_or(0, get))
    }

    fn zero(&self) -> Option<&ZeroWindow> {
        self.cold_state()?.zero.as_deref()
    }

    /// Return the time in which the window was closed while the sender had data to send.
    pub(super) fn closed_ns(&self) -> i64 {
        self.zero().map_or(0, |zero| zero.waiting_ns)
    }

    fn zero_int(&self, get: fn(&ZeroWindow) -> i64) -> Value {
        Value::Int(self.zero().map_or(0, get))
    }

    /// Return the recorded zero-window episodes.
    pub fn episodes(&self) -> &[Episode] {
        self.zero().map_or(&[], |zero| &zero.episodes)
    }

    pub(super) fn resent_bytes(&self) -> u64 {
        self.cold_state()
            .map_or(0, |cold_state| cold_state.resent_bytes)
    }

    /// Return the payload sent, each byte counted once.
    pub(super) fn unique_bytes(&self) -> u64 {
        let sent_bytes = self.data().payload_bytes;
        sent_bytes.saturating_sub(self.resent_bytes())
    }

    /// Return the payload delivered: acknowledged bytes count even if they are missing from the capture.
    pub fn carried_bytes(&self) -> u64 {
        self.unique_bytes().max(self.data().acked_payload_bytes())
    }

    pub(super) fn transfer_ns(&self) -> i64 {
        let data = self.data();
        if data.data_segments == 0 {
            return 0;
        }
        // Data acknowledged before the first captured data was delivered, too.
        let unseen_ns = self
            .cold_state()
            .and_then(|cold_state| cold_state.unseen_since_ns);
        let first_ns = data.first_data_ns.min(unseen_ns.unwrap_or(i64::MAX));
        let last_ns = data.last_data_ns.max(data.last_data_ack_ns());
        let stepped = self
            .cold_state()
            .and_then(|cold_state| cold_state.transfer_step);
        let stepped_ns =
            stepped.map_or(0, |(ns, until_ns)| if until_ns <= last_ns { ns } else { 0 });
        last_ns
            .saturating_sub(first_ns)
            .saturating_sub(stepped_ns)
            .max(0)
    }

    /// Return the total adjustment of the capture's clock during the connection.
    pub(super) fn clock_step_ns(&self) -> i64 {
        self.cold_state()
            .map_or(0, |cold_state| cold_state.clock_step_ns)
    }

    fn rate(&self, bytes: u64) -> Value {
        match self.transfer_ns() {
            0 => Value::None,
            ns => Value::Real(bytes as f64 * 8e9 / ns as f64),
        }
    }

    /// Return true if the capture point is near the receiver: data is acknowledged there in less than a tenth of the
    /// handshake's round trip. Data in flight towards it is then captured only on arrival.
    pub fn is_near_receiver(&self) -> bool {
        match (self.data().ledger.min_ns(), path_rtt_ns(self.connection)) {
            (Some(least_ns), Some(path_ns)) => {
                path_ns >= NEAR_FROM_NS && i64::try_from(least_ns).is_ok_and(|ns| ns < path_ns / 10)
            }
            _ => false,
        }
    }

    /// Return true if the goodput fills the window once per round trip, which is the maximum of a window-limited
    /// sender.
    fn fills_window(&self) -> bool {
        let (Some(path_ns), true) = (path_rtt_ns(self.connection), self.is_certain()) else {
            return false;
        };
        let transfer_ns = self.transfer_ns();
        if transfer_ns <= path_ns {
            return false;
        }
        let per_round_trip =
            self.data().acked_payload_bytes() as f64 * path_ns as f64 / transfer_ns as f64;
        let window = &self.data().window;
        per_round_trip >= WINDOW_FILLED * mean(window.integral, window.known_ns, window.bytes)
    }

    /// Return the time that the receive window cost the sender.
    pub fn window_cost_ns(&self) -> i64 {
        let closed_ns = self.zero().map_or(0, |zero| zero.waiting_ns);
        let connection = self.connection;
        let life_ns = connection.end_ns.saturating_sub(connection.start_ns);
        let held_back_ns = closed_ns
            .saturating_add(self.data().limited_ns())
            .min(life_ns);
        let transfer_ns = self.transfer_ns();
        if transfer_ns > held_back_ns && self.is_near_receiver() && self.fills_window() {
            transfer_ns
        } else {
            held_back_ns
        }
    }

    /// Return the range of an uncertain shift.
    fn shift_range(&self) -> (u8, u8) {
        let answers = self.answers();
        if answers.own_scale.is_certain() {
            return (answers.own_shift, answers.own_shift);
        }
        let least = self
            .cold_state()
            .and_then(|cold_state| cold_state.inference.as_deref())
            .map_or(0, |inference| inference.shift_min);
        match answers.syn.offer {
            // Offered in the SYN but not confirmed: that shift, or none.
            Offer::Shift(shift) if least > 0 => (shift.min(MAX_SHIFT), shift.min(MAX_SHIFT)),
            Offer::Shift(shift) => (0, shift.min(MAX_SHIFT)),
            _ => (least, MAX_SHIFT),
        }
    }

    /// Return the times at which data was lost among unread data, where chance does not explain them.
    fn lost_unread(&self) -> Option<LostUnread> {
        let cold_state = self.data().cold_state.as_ref()?;
        let filled = cold_state.filled.as_ref()?;
        filled.most_unlikely(cold_state.loss_times, self.data().acked_bytes)
    }

    fn disabled_by(&self) -> Option<&'static str> {
        if self.answers().own_scale != ScaleState::Disabled {
            return None;
        }
        let initiator = self.connection.initiator_side();
        let is_absent = |side: usize| self.connection.directions[side].syn.offer == Offer::Absent;
        match (is_absent(initiator), is_absent(1 - initiator)) {
            (true, true) => Some("both"),
            (true, false) => Some("a"),
            _ => Some("b"),
        }
    }

    /// Return the evidence for the window scale, in words.
    pub fn scale_evidence(&self) -> Vec<String> {
        let answers = self.answers();
        let mut evidence = Vec::new();
        for side in [
            self.connection.initiator_side(),
            1 - self.connection.initiator_side(),
        ] {
            let syn = &self.connection.directions[side].syn;
            let segment = if syn.is_answer() { "SYN/ACK" } else { "SYN" };
            match syn.offer {
                Offer::Unseen => {}
                Offer::Absent => evidence.push(format!("{segment} without window scale option")),
                Offer::Shift(shift) if shift > MAX_SHIFT => evidence.push(format!(
                    "{segment} offers shift {shift}, used as {MAX_SHIFT} (RFC 7323 section 2.3)"
                )),
                Offer::Shift(shift) => evidence.push(format!("{segment} offers shift {shift}")),
            }
        }
        let confirming = answers
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.scale_confirming);
        if let (ScaleState::SynConfirmed, Some((frame, window))) = (answers.own_scale, confirming) {
            evidence.push(format!(
                "frame {frame}: the window field drops to {window} right after a SYN with a window of {}, so it is scaled",
                answers.syn.window
            ));
        }
        if answers.own_scale == ScaleState::Given {
            let given = answers
                .cold_state
                .as_ref()
                .and_then(|cold_state| cold_state.given_shift);
            let is_by_hand = given.is_some_and(|given| given.is_by_hand);
            evidence.push(if is_by_hand {
                "given by hand".into()
            } else {
                "shift taken from a snapshot of the socket".into()
            });
        }
        if !answers.own_scale.is_certain() {
            if let Some(inference) = self
                .cold_state()
                .and_then(|cold_state| cold_state.inference.as_deref())
            {
                if let Some(bound) = inference.bound {
                    evidence.push(format!(
                        "frame {}: {} bytes in flight, more than a window field of {} allows below shift {}",
                        bound.frame, bound.flight_bytes, bound.window_raw, inference.shift_min
                    ));
                }
                if let Some((shift, count)) = inference.coincidence() {
                    evidence.push(format!("data stopped exactly at the window's edge {count} times at shift {shift} only"));
                }
                if inference.is_contradicted {
                    evidence.push("data exceeded the window at every shift: the window in force was not captured".into());
                }
            }
        }
        evidence
    }
}

fn mean(integral: f64, known_ns: i64, last: u32) -> f64 {
    if known_ns > 0 {
        integral / known_ns as f64
    } else {
        f64::from(last)
    }
}

fn side(view: &ConnectionView<'_>, is_initiator: bool) -> usize {
    let initiator = view.connection.initiator_side();
    if is_initiator {
        initiator
    } else {
        1 - initiator
    }
}

fn side_name(view: &ConnectionView<'_>, side: u8) -> Value {
    text(if usize::from(side) == view.connection.initiator_side() {
        "a"
    } else {
        "b"
    })
}

/// Return the side near which the capture was made.
fn vantage(view: &ConnectionView<'_>) -> &'static str {
    let (a, b) = (side(view, true), side(view, false));
    // Data from a measures the distance to b, and vice versa.
    let to_b = view.connection.directions[a].rtt_to_receiver_ns();
    let to_a = view.connection.directions[b].rtt_to_receiver_ns();
    match (to_a, to_b) {
        (Some(to_a), Some(to_b)) => match nearer(to_a, to_b) {
            Nearer::First => "a",
            Nearer::Second => "b",
            Nearer::Neither => "between",
        },
        _ => "unknown",
    }
}

/// Return how the connection ended, judging by its FINs and RSTs.
pub fn close_state(connection: &Connection) -> &'static str {
    let [first, second] = &connection.directions;
    let has_answered = connection
        .directions
        .iter()
        .any(|direction| direction.has_syn && direction.syn.is_answer());
    if connection.marks.reset_by().is_some() {
        let is_refused = connection.syn_ns().is_some()
            && !has_answered
            && (first.has_only_syn || second.has_only_syn)
            && first.data_segments + second.data_segments == 0;
        return match (is_refused, first.has_fin() && second.has_fin()) {
            (true, _) => "refused",
            (false, true) => "reset_after_close",
            (false, false) => "reset",
        };
    }
    match (first.has_fin(), second.has_fin()) {
        (true, true) => "closed",
        (true, false) | (false, true) => "half_closed",
        (false, false) if first.has_only_syn && !second.is_seen => "unanswered",
        (false, false) => "open",
    }
}

impl ConnectionView<'_> {
    fn stalled(&self, get: fn(&Stalls) -> i64) -> Value {
        Value::Int(self.connection.stalls().map_or(0, get))
    }
}

pub const CONNECTION_FIELDS: &[ConnectionField] = fields! {
    id Int list composed "Number of the connection, from 0 in the order of first segments." |v| int(v.id);
    a_address Text list composed "Address of the initiator." |v| Value::Address(v.connection.endpoints[side(v, true)].address);
    a_port Int port list composed "TCP port of the initiator." |v| int(v.connection.endpoints[side(v, true)].port);
    b_address Text list composed "Address of the responder." |v| Value::Address(v.connection.endpoints[side(v, false)].address);
    b_port Int port list composed "TCP port of the responder." |v| int(v.connection.endpoints[side(v, false)].port);
    ip_version Int list ["4" | "6"] "4 or 6." |v| int(v.connection.marks.ip_version());
    initiator_known Bool "A SYN or SYN/ACK identifies the initiator; otherwise it is guessed from the ports." |v| Value::Bool(matches!(v.connection.marks.initiator(), Initiator::Known(_)));
    sampled Bool "Some of its segments were sampled by a flow monitor (sFlow): most others are missing, so no loss or cause is certain." |v| Value::Bool(v.connection.is_sampled());
    multipath Bool "Multipath TCP is in use (RFC 8684): both SYNs carry MP_CAPABLE or MP_JOIN, or a segment carries DSS. The connection is one subflow; others may have carried data while it was silent." |v| Value::Bool(is_multipath(v.connection));
    epoch Int list "Number of earlier connections in the capture with the same four-tuple." |v| int(v.connection.epoch());
    first_frame Int positive list brief "Frame of the first segment." |v| count(v.connection.first_frame);
    start_ns Int signed list brief "Time of the first segment, nanoseconds since the Unix epoch." |v| int(v.connection.start_ns);
    end_ns Int signed list "Time of the last segment, nanoseconds since the Unix epoch; for a connection that is stalled when the capture ends, time of the capture's last packet, at most two minutes later (see stall_at_end)." |v| int(v.connection.end_ns);
    duration_ns Int list brief "From start_ns to end_ns." |v| int(v.connection.end_ns.saturating_sub(v.connection.start_ns));
    syn_ns Int nullable signed "Time of the last SYN." |v| optional(v.connection.syn_ns());
    syn_ack_ns Int nullable signed "Time of the last SYN/ACK." |v| optional(v.connection.syn_ack_ns());
    established_ns Int nullable signed "Time of the ACK that completed the handshake." |v| optional(v.connection.established_ns());
    handshake_rtt_ns Int nullable list brief "From the SYN to the ACK that completed the handshake: the round trip of the whole path; none if a SYN or SYN/ACK was retransmitted." |v| optional(v.connection.handshake_rtt_ns());
    handshake_rtt_a_ns Int nullable "From the SYN/ACK to the ACK that completed the handshake: between the capture point and a; none if either was retransmitted." |v| optional(handshake_half_ns(v.connection, v.connection.syn_ack_ns(), v.connection.established_ns()));
    handshake_rtt_b_ns Int nullable "From the SYN to the SYN/ACK: between the capture point and b; none if either was retransmitted." |v| optional(handshake_half_ns(v.connection, v.connection.syn_ns(), v.connection.syn_ack_ns()));
    vantage Text list brief ["a" | "b" | "between" | "unknown"] "Capture point: a or b (within a tenth of the path's round trip from that side), between, or unknown." |v| text(vantage(v));
    path_rtt_ns Int nullable list brief "Minimum known round trip of the whole path: the handshake's, or the sum of both sides of the capture point, each the minimum time from data to its ACK or from a timestamp to its echo." |v| optional(path_rtt_ns(v.connection));
    turns_state Text brief ["known" | "overlapping" | "interleaved" | "scheduled" | "one_sided"] "Whether the packets show whose turn it was: known, overlapping (several requests under way, whose answers may be in another order), interleaved (both sides send whenever they like), scheduled (b sends at even times, whenever a sends), or one_sided (no data was answered)." |v| text(Conversation::of(v.connection).name());
    exchanges Int list brief "Requests that b answered once all of the request had arrived, or in turn if several were under way; 0 if the turns are unknown." |v| of_turns(v, |t| i64::from(t.exchanges));
    requester_turn_ns Int brief "Time between an answer or the handshake and a's next request, if it came within 30 s: spent in a's application." |v| of_turns(v, |t| t.requester_ns);
    responder_turn_ns Int brief "Time between the arrival of a request at b and the first byte of the answer: spent in b's application." |v| of_turns(v, |t| t.responder_ns);
    round_trip_turns_ns Int brief "Time in which requests and the last bytes of answers were in transit: one round trip per exchange." |v| of_turns(v, |t| t.round_trips_ns);
    overlapped_turns_ns Int "With several requests under way, the part of the larger of responder_turn_ns and round_trip_turns_ns in which the other passed, too: removing the larger alone would save less by this." |v| of_turns(v, |t| t.overlapped_ns);
    nothing_asked_ns Int brief "Time without a request: before requests that came more than 30 s after the previous answer, and after the last answer." |v| of_turns(v, |t| t.idle_ns);
    close Text list brief ["closed" | "half_closed" | "reset" | "reset_after_close" | "refused" | "unanswered" | "open"] "closed (FIN both ways), half_closed, reset, reset_after_close, refused (RST answers the SYN), unanswered, or open at the end of the capture." |v| text(close_state(v.connection));
    ecn Text nullable ["off" | "refused" | "ecn" | "accecn"] "Explicit congestion notification as negotiated by the SYNs: off (not offered), refused, ecn (RFC 3168) or accecn (RFC 9768)." |v| Ecn::of(&v.connection.directions[0].syn, &v.connection.directions[1].syn).name().map_or(Value::None, text);
    stall_count Int list brief "Silences longer than 200 ms, two round trips or the timeout in which a side waited for the other, the path or a timer." |v| v.stalled(|s| i64::from(s.count));
    stall_ns Int list brief "Total time of the stalls." |v| v.stalled(|s| s.total_ns);
    stall_longest_ns Int brief "Longest stall." |v| v.stalled(|s| s.longest_ns);
    pause_count Int "Silences of the same length in which neither side had anything to send." |v| v.stalled(|s| i64::from(s.idle));
    pause_ns Int "Total time of the pauses." |v| v.stalled(|s| s.idle_ns);
    closed_first Text nullable ["a" | "b"] "The side, a or b, whose FIN or RST came first." |v| v.connection.marks.closed_first().map_or(Value::None, |side| side_name(v, side));
    reset_by Text nullable ["a" | "b"] "The side, a or b, that sent the first RST." |v| v.connection.marks.reset_by().map_or(Value::None, |side| side_name(v, side));
};

/// Bytes, options, windows.
const WINDOW_FIELDS: &[DirectionField] = fields! {
    segments Int list "Segments sent, excluding the capture's own duplicates." |v| int(v.data().segments);
    data_segments Int brief "Segments that carried payload." |v| int(v.data().data_segments);
    payload_bytes Int list "Payload sent, including retransmissions." |v| count(v.data().payload_bytes);
    unique_bytes Int brief "Payload sent, each byte counted once." |v| count(v.unique_bytes());
    acked_bytes Int list brief "Payload that the receiver acknowledged." |v| count(v.data().acked_payload_bytes());
    first_data_ns Int nullable signed "Time of the first payload." |v| if v.data().data_segments > 0 { int(v.data().first_data_ns) } else { Value::None };
    last_data_ns Int nullable signed "Time of the last payload." |v| if v.data().data_segments > 0 { int(v.data().last_data_ns) } else { Value::None };
    throughput_bps Real nullable list "Payload bits per second from the first payload to the last, or to its acknowledgment." |v| v.rate(v.data().payload_bytes);
    goodput_bps Real nullable list brief "Acknowledged payload bits per second over the same time." |v| v.rate(v.data().acked_payload_bytes());
    mss_bytes Int list brief "Largest expected payload: the smaller MSS option minus the timestamps option, or the size that the path finally allowed; otherwise the largest payload seen." |v| int(v.data().segment_size());
    max_payload_bytes Int "Largest payload seen; above the MSS with segmentation offload (TSO, GRO)." |v| int(v.data().max_payload);
    syn_mss Int nullable "MSS option in the sender's SYN." |v| if v.data().syn.mss > 0 { int(v.data().syn.mss) } else { Value::None };
    syn_window_scale Int nullable octet "Window scale option in the sender's SYN, as sent." |v| match v.data().syn.offer { Offer::Shift(shift) => int(shift), _ => Value::None };
    syn_sack_permitted Bool "SACK permitted option in the sender's SYN." |v| Value::Bool(v.data().syn.has(syn_kind::SACK_PERMITTED));
    syn_timestamps Bool "Timestamps option in the sender's SYN." |v| Value::Bool(v.data().syn.has(syn_kind::TIMESTAMPS));
    syn_fast_open Bool "TCP Fast Open option in the sender's SYN." |v| Value::Bool(v.data().syn.has(syn_kind::FAST_OPEN));
    syn_multipath Bool "Multipath TCP option in the sender's SYN." |v| Value::Bool(v.data().syn.has(syn_kind::MULTIPATH));
    multipath_options Text nullable "Multipath TCP options that the sender sent (RFC 8684 section 3), separated by |: MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE, MP_TCPRST, and unknown for all others; none without any." |v| multipath_options(v.data());
    syn_seen Bool "The sender's SYN or SYN/ACK was captured." |v| Value::Bool(v.data().has_syn);
    window_scale_state Text list composed ["known" | "disabled" | "syn_confirmed" | "given" | "syn_only" | "unknown"] "Source of the scale of the receiver's windows: known, disabled, syn_confirmed, given (by a snapshot of the socket), syn_only or unknown." |v| text(v.answers().own_scale.name());
    window_scale_shift Int nullable shift list composed "Shift of the receiver's windows; none if it is not certain." |v| if v.answers().own_scale.is_certain() { int(v.answers().own_shift) } else { Value::None };
    window_scale_min Int shift composed "Smallest shift consistent with the packets." |v| int(v.shift_range().0);
    window_scale_max Int shift composed "Largest shift consistent with the packets." |v| int(v.shift_range().1);
    window_scale_disabled_by Text nullable composed ["a" | "b" | "both"] "The side whose SYN lacked the option: a, b or both." |v| v.disabled_by().map_or(Value::None, text);
    receive_window_initial_bytes Int nullable "First window that the receiver advertised; a SYN's is never scaled." |v| v.initial_window();
    receive_window_min_bytes Int nullable list brief "Smallest accepted receive window." |v| v.window(v.data().window.min_bytes);
    receive_window_max_bytes Int nullable list brief "Largest accepted receive window." |v| v.window(v.data().window.max_bytes);
    receive_window_last_bytes Int nullable "Receive window at the end." |v| v.window(v.data().window.bytes);
    receive_window_mean_bytes Real nullable list brief "Receive window, averaged over time." |v| if v.is_certain() { Value::Real(mean(v.data().window.integral, v.data().window.known_ns, v.data().window.bytes)) } else { Value::None };
    flight_max_bytes Int nullable list brief "Maximum bytes in flight: SND.MAX minus SND.UNA." |v| if v.data().is_flight_measured() { int(v.data().flight_max_bytes()) } else { Value::None };
    flight_mean_bytes Real nullable list brief "Bytes in flight, averaged over the time in which they were known." |v| if v.data().is_flight_measured() { Value::Real(mean(v.data().flight.integral, v.data().flight.known_ns, 0)) } else { Value::None };
    window_utilisation Real nullable list "Mean flight divided by mean receive window." |v| utilisation(v);
    window_limited_ns Int list brief "Time in which the next segment (at most half of the largest window) did not fit the open receive window, from when data was in flight until one fitted (Linux tcp_snd_wnd_test); a closed window is not counted here." |v| int(v.data().limited_ns());
    window_cost_ns Int "Time that the receive window cost: closed while the sender had more to send (it probed, or sent soon after the opening), or too small for the next segment; near the receiver, where flight cannot be seen, the whole transfer when its goodput fills the window once per round trip." |v| int(v.window_cost_ns());
    captured_near_receiver Bool "Data is acknowledged at the capture point in less than a tenth of the path's round trip: bytes in flight are a lower bound of the sender's." |v| Value::Bool(v.is_near_receiver());
    window_full Int "Segments that ended exactly at the right edge of the window." @sent event::WINDOW_FULL;
    window_near_full Int "Segments that left less than one segment's room below the right edge." @cold_state |c| i64::from(c.window_near_full);
    window_overrun Int "Segments that ended beyond every right edge advertised so far." @cold_state |c| i64::from(c.window_overrun);
    window_low_acked_bytes Int "Acknowledged bytes whose ACK left less than half of the largest window until then: unread data took the rest." @cold_state |c| c.filled.as_ref().map_or(0, |filled| filled.low_bytes() as i64);
    loss_times Int "Times at which data was lost, each after the retransmission of what was lost before." @cold_state |c| i64::from(c.loss_times);
    loss_times_unread Int "Of these, times at which `loss_unread_share` of the receiver's largest window or more was filled by unread data, as the last ACK shows." |v| int(v.lost_unread().map_or(0, |lost| lost.times));
    loss_unread_share Real nullable "The share, a quarter or more in steps of an eighth, that explains the most losses; none if chance explains them." |v| v.lost_unread().map_or(Value::None, |lost| Value::Real(lost.unread_share));
    loss_unread_arrived_share Real nullable "Share of all acknowledged data that arrived while so much was unread." |v| v.lost_unread().map_or(Value::None, |lost| Value::Real(lost.arrived_share));
    loss_unread_chance Real nullable "Probability, at most, that a path that loses at any time would have lost so often while so much was unread (Chernoff's bound)." |v| v.lost_unread().map_or(Value::None, |lost| Value::Real(lost.chance));
    window_updates Int "ACKs from the receiver that changed nothing but the window." @answered event::WINDOW_UPDATE;
    window_shrinks Int "ACKs that moved the right edge to the left by at least one unit of the scale." @answered event::WINDOW_SHRINK;
    sub_mss_windows Int "Accepted windows above zero that are smaller than one segment." @answered event::SUB_MSS_WINDOW;
    zero_window_segments Int "Segments from the receiver with a window of zero." @answered event::ZERO_WINDOW;
    zero_window_episode_count Int list brief "Times the receiver closed its window." @zero |z| i64::from(z.episode_count);
    zero_window_ns Int list brief "Time in which the receiver's window was closed." @zero |z| z.total_ns;
    zero_window_longest_ns Int list "Longest time for which the receiver's window was closed." @zero |z| z.longest_ns;
    zero_window_probes Int "Probes sent into the closed window." @zero |z| i64::from(z.probes);
    keep_alives Int "Keep-alives sent." @sent event::KEEP_ALIVE;
    stall_at_end Text nullable ["zero_window" | "small_window" | "unacknowledged" | "peer_silent"] "What the sender waits for when the capture or a reset ends the connection: zero_window (a closed window to open), small_window (space for the next segment), unacknowledged (an ACK for data in flight longer than its retransmission timeout) or peer_silent (any answer after at least three retransmissions, probes or keep-alives); none without a stall." |v| v.end_stall().map_or(Value::None, |stall| text(stall.kind.name()));
    stall_at_end_start_ns Int nullable signed "Start of the stall: when the window closed, the oldest byte in flight was sent, the last acknowledgment arrived or the first unanswered probe or keep-alive was sent." |v| optional(v.end_stall().map(|stall| stall.start_ns));
    stall_at_end_ns Int "Duration of the stall, until the reset or the capture's last packet, at most two minutes after the connection's last one." @cold_state |c| c.end_stall().map_or(0, |stall| stall.duration_ns());
    stall_at_end_tries Int "Retransmissions, probes and keep-alives, each triggered by its own timer, since the peer was last heard from or last acknowledged data in flight." |v| int(v.end_stall().map_or(0, |stall| stall.tries));
    fin Bool "The sender sent a FIN." |v| Value::Bool(v.data().has_fin());
    rst Bool "The sender sent a RST." |v| Value::Bool(v.has_rst());
};

pub fn direction_fields() -> impl Iterator<Item = &'static DirectionField> {
    WINDOW_FIELDS
        .iter()
        .chain(LOSS_FIELDS)
        .chain(TIME_FIELDS)
        .chain(BUDGET_FIELDS)
}

pub fn direction_field(name: &str) -> Option<&'static DirectionField> {
    static BY_NAME: OnceLock<HashMap<&str, &DirectionField>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        direction_fields()
            .map(|field| (field.name, field))
            .collect()
    });
    by_name.get(name).copied()
}

pub fn connection_field(name: &str) -> Option<&'static ConnectionField> {
    static BY_NAME: OnceLock<HashMap<&str, &ConnectionField>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        CONNECTION_FIELDS
            .iter()
            .map(|field| (field.name, field))
            .collect()
    });
    by_name.get(name).copied()
}

fn of_turns(view: &ConnectionView<'_>, get: fn(&Turns) -> i64) -> Value {
    let turns = Conversation::of(view.connection).turns();
    Value::Int(turns.map_or(0, |turns| get(&turns)))
}

impl DirectionView<'_> {
    fn has_rst(&self) -> bool {
        let reset_by = self.connection.marks.reset_by().map(usize::from);
        reset_by == Some(self.sender) || self.cold_state().is_some_and(|state| state.has_rst)
    }
}

impl Direction {
    /// Return true if bytes in flight were known at any time.
    fn is_flight_measured(&self) -> bool {
        self.is_seen && self.flight.is_started && self.flight.is_acked
    }
}

/// Indexed by subtype number (RFC 8684, table 1).
const SUBTYPES: [&str; 9] = [
    "MP_CAPABLE",
    "MP_JOIN",
    "DSS",
    "ADD_ADDR",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST",
];

fn subtypes(direction: &Direction) -> u16 {
    direction
        .cold_state
        .as_ref()
        .map_or(0, |cold_state| cold_state.multipath)
}

fn multipath_options(direction: &Direction) -> Value {
    let bits = subtypes(direction);
    let known = (SUBTYPES.iter().enumerate())
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, name)| *name);
    let other = (bits >> SUBTYPES.len() != 0).then_some("unknown");
    let names: Vec<&str> = known.chain(other).collect();
    if names.is_empty() {
        return Value::None;
    }
    Value::Text(names.join("|").into())
}

/// Return whether both sides use Multipath TCP. If the peer or the path does not support it, the SYN/ACK lacks the
/// option (RFC 8684 §3.7).
fn is_multipath(connection: &Connection) -> bool {
    const OPENING: u16 = 0b011;
    const DSS: u16 = 0b100;
    let [first, second] = [0, 1].map(|side: usize| subtypes(&connection.directions[side]));
    (first & OPENING != 0 && second & OPENING != 0) || (first | second) & DSS != 0
}

fn utilisation(view: &DirectionView<'_>) -> Value {
    let (flight, window) = (&view.data().flight, &view.data().window);
    if !view.is_certain()
        || !view.data().is_flight_measured()
        || window.integral <= 0.0
        || flight.known_ns == 0
    {
        return Value::None;
    }
    let mean_window = window.integral / window.known_ns.max(1) as f64;
    Value::Real(flight.integral / flight.known_ns as f64 / mean_window)
}

#[cfg(test)]
mod tests;
