//! Fields of a direction: round trips, timers, congestion window, pauses and messages.

use crate::output::field::{
    count, fields, int, optional, text, DirectionField, DirectionView, Value,
};
use crate::output::turns::Conversation;
use crate::output::vantage::{nearer, path_rtt_ns, Nearer};
use crate::tcp::budget::idle_restart::Idle;
use crate::tcp::path::bottleneck::Bottleneck;
use crate::tcp::path::congestion_response::{Algorithm, Response};
use crate::tcp::timing::delays::Delays;
use crate::tcp::timing::messages::Messages;
use crate::tcp::window::sender_view::SenderView;

impl DirectionView<'_> {
    /// Round trip between the capture point and the sender.
    pub fn shift_ns(&self) -> Option<i64> {
        self.answers().rtt_to_receiver_ns()
    }

    fn idle(&self, get: fn(&Idle) -> i64) -> Value {
        let idle = self.data().pace().and_then(|pace| pace.idle.as_deref());
        Value::Int(idle.map_or(0, get))
    }

    fn turns(&self) -> Option<&Messages> {
        self.data().pace()?.turns.as_deref()
    }

    fn sender_view(&self) -> Option<&SenderView> {
        self.data().pace()?.view.as_deref()
    }

    /// Return the mean flight as seen by the sender; none if unknown until most of the data had been sent, or if it is
    /// invalid.
    fn sender_flight_mean(&self) -> Value {
        let most = self.flight_seen();
        let view = self
            .sender_view()
            .filter(|view| Some(view.max_bytes) >= most);
        view.and_then(SenderView::mean_bytes)
            .filter(|mean| Some(*mean) <= most.map(f64::from))
            .map_or(Value::None, Value::Real)
    }

    fn bottleneck(&self) -> Option<Bottleneck> {
        self.data().pace()?.bottleneck()
    }

    fn path_rate_bps(&self) -> Value {
        let bottleneck = self.bottleneck();
        let known = bottleneck.filter(|path| !path.is_policed || path.is_steady);
        known.map_or(Value::None, |path| Value::Real(path.bytes_per_s * 8.0))
    }

    /// Return the mean and the maximum queueing delay.
    fn queue_ns(&self) -> Option<(i64, i64)> {
        self.data().pace()?.path.as_deref()?.queue_ns
    }

    /// Return the sender's reactions to loss and congestion marks.
    fn response(&self) -> Option<&Response> {
        self.data().pace()?.path.as_deref()?.response()
    }

    fn algorithm(&self) -> Option<Algorithm> {
        self.response()?.algorithm()
    }

    fn smoothed_ns(&self) -> Option<i64> {
        let estimator = self.data().ledger.estimator();
        estimator.has_samples().then(|| estimator.smoothed_ns())
    }

    fn rto_ns(&self) -> Value {
        let ledger = &self.data().ledger;
        if ledger.samples() == 0 && !ledger.estimator().has_samples() {
            return Value::None;
        }
        Value::Int(ledger.rto_ns(self.shift_ns().unwrap_or(0)))
    }

    /// Return a percentile of the time from sending the first byte to the arrival of the last: the spread of the
    /// segments plus half a round trip.
    fn message_delay(&self, share: f64) -> Value {
        let data = self.data();
        let Some(path_ns) = path_rtt_ns(self.connection) else {
            return Value::None;
        };
        let spread_ns = match self.turns() {
            Some(turns) => turns.spreads.percentile_ns(share),
            None if data.data_segments > 0 => {
                Some(data.last_data_ns.saturating_sub(data.first_data_ns).max(0))
            }
            None => None,
        };
        optional(spread_ns.map(|ns| ns.saturating_add(path_ns / 2)))
    }

    fn messages(&self) -> u32 {
        self.turns()
            .map_or(u32::from(self.data().data_segments > 0), |turns| {
                turns.messages
            })
    }

    fn first_byte(&self, share: f64) -> Value {
        let first_ns = self.data().first_answer_ns();
        let of_turns = |answers: &Delays| answers.percentile_ns(share);
        optional(first_ns.or_else(|| of_turns(&self.turns()?.answers)))
    }
}

impl DirectionView<'_> {
    /// Return the side's own part of the time to first byte.
    fn work(&self, share: f64) -> Value {
        let connection = self.connection;
        if self.sender != connection.initiator_side() {
            if let Some(found) = Conversation::pipelined(connection) {
                return optional(found.works.percentile_ns(share));
            }
        }
        match (self.first_byte(share), self.shift_ns()) {
            (Value::Int(first_ns), leg_ns) => {
                Value::Int(first_ns.saturating_sub(leg_ns.unwrap_or(0)).max(0))
            }
            (none, _) => none,
        }
    }
}

/// Return the position of the capture point for data of this direction.
fn view_name(view: &DirectionView<'_>) -> &'static str {
    match (view.shift_ns(), view.data().rtt_to_receiver_ns()) {
        (Some(rtt_to_sender_ns), Some(rtt_to_receiver_ns)) => {
            match nearer(rtt_to_sender_ns, rtt_to_receiver_ns) {
                Nearer::First => "sender",
                Nearer::Second => "receiver",
                Nearer::Neither => "between",
            }
        }
        _ => "unknown",
    }
}

pub const TIME_FIELDS: &[DirectionField] = fields! {
    view Text ["sender" | "receiver" | "between" | "unknown"] "Position of the capture point for data of this direction: sender or receiver (within a tenth of the path's round trip), between, or unknown." |v| text(view_name(v));
    sender_shift_ns Int nullable "Minimum round trip between the capture point and the sender: an ACK captured here shows its effect here this much later." |v| optional(v.shift_ns());
    rtt_min_ns Int nullable list brief "Minimum time from data to its ACK at the capture point." |v| v.data().ledger.min_ns().map_or(Value::None, count);
    rtt_smoothed_ns Int nullable list brief "Time from data to its ACK at the capture point, smoothed as Linux does (RFC 6298), at the end." |v| optional(v.smoothed_ns());
    rtt_variance_ns Int nullable "Mean deviation of rtt_smoothed_ns as in Linux: the second number after rtt: in ss." |v| { let e = v.data().ledger.estimator(); if e.has_samples() { int(e.deviation_ns()) } else { Value::None } };
    rtt_samples Int "Number of timed ACKs." |v| int(v.data().ledger.samples());
    sender_rtt_smoothed_ns Int nullable "Smoothed round trip at the sender: rtt_smoothed_ns plus the round trip between the sender and the capture point." |v| optional(v.smoothed_ns().map(|ns| ns.saturating_add(v.shift_ns().unwrap_or(0))));
    path_rate_bps Real nullable brief "Rate of the path's bottleneck, in bits of payload per second, measured by the spacing of segment trains; none if they show no plateau, or pass a policer unchanged." |v| v.path_rate_bps();
    queue_mean_ns Int nullable brief "Queueing delay: excess of round trips over the minimum, averaged over time." |v| optional(v.queue_ns().map(|(mean_ns, _)| mean_ns));
    queue_max_ns Int nullable "Maximum queueing delay of a round trip, each averaged over its duration." |v| optional(v.queue_ns().map(|(_, most_ns)| most_ns));
    rto_ns Int nullable "Retransmission timeout of a Linux sender at the end, without back-off: its smoothed round trip plus at least 200 ms." |v| v.rto_ns();
    sender_flight_max_bytes Int nullable "Maximum bytes in flight as seen by the sender, which ACKs reach sender_shift_ns after their capture; none if captured at the sender." |v| optional(v.sender_view().and(v.flight_seen()));
    sender_flight_mean_bytes Real nullable "Average over time of the bytes in flight as seen by the sender; none if unknown until most of the data had been sent." |v| v.sender_flight_mean();
    sender_window_limited_ns Int nullable "Time in which the window known to the sender had no space for another segment, from when data was in flight until one fitted; none if captured at the sender (see window_limited_ns)." |v| optional(v.sender_view().filter(|_| v.is_certain()).map(|view| view.limited_ns));
    cwnd_estimate_max_bytes Int nullable "Maximum bytes outstanding, as seen by the sender. Without loss, a lower bound for the largest congestion window; in recovery it also includes SACKed bytes, which no longer count against the window." |v| optional(v.flight_seen());
    cwnd_model_bytes Int nullable "Congestion window at the end by Linux's rules: ten segments at first, increased by ACKs while in use, reduced to seven tenths by loss and halved by idle timeouts; none before the first round trip." |v| optional(v.data().pace().filter(|p| p.window_bytes > 0).map(|p| p.window_bytes));
    sender_algorithm Text nullable brief ["reno" | "cubic" | "bbr" | "dctcp"] "Congestion control of the sender, inferred from its behaviour: reno, cubic, bbr or dctcp, as named by Linux; none if there is too little evidence, none of them fits, or the capture was not made at the sender." |v| v.algorithm().map_or(Value::None, |(name, _)| text(name));
    sender_algorithm_confidence Text nullable ["likely" | "possible"] "Confidence in sender_algorithm: likely, or possible if there is little evidence." |v| v.algorithm().map_or(Value::None, |(_, sure)| text(sure.name()));
    window_cuts Int "Losses and marks after which the flight shows the reduced congestion window." |v| int(v.response().map_or(0, |r| r.cuts));
    window_cut_mean Real nullable "Average share of the window that remained after a cut: half with Reno, seven tenths with CUBIC; none without a cut." |v| v.response().and_then(Response::left).map_or(Value::None, |left| Value::Real(f64::from(left)));
    rate_probes Int "Times that the flight rose by at least an eighth and fell back without a loss, as BBR's does." |v| int(v.response().map_or(0, |r| r.probes));
    clock_step_ns Int "Total adjustment of the capture's clock during the connection. Forward: silence that the clock shows but the timestamps of the sender that ended it do not; included in duration_ns but in no rate. Backward: later times are counted from the latest time before." @cold_state |c| c.clock_step_ns;
    slow_start_ns Int "Time in round trips whose flight grew by at least a third over the previous one, below the threshold set by a loss." @pace |p| p.slow_start_ns;
    idle_gaps Int "Times that data followed a silence longer than the retransmission timeout with nothing in flight." @idle |i| i64::from(i.gaps);
    idle_ns Int "Time with nothing in flight in idle gaps." @idle |i| i.idle_ns;
    idle_restarts Int list "Idle gaps after which the congestion window had been reduced: the burst stopped within the window that Linux leaves, and continued with the ACK." @idle |i| i64::from(i.restarts);
    idle_restart_round_trips Int "Round trips lost to idle restarts, compared with the window before." @idle |i| i64::from(i.round_trips);
    idle_restart_cost_ns Int "Time lost to idle restarts." @idle |i| i.cost_ns;
    messages Int "Runs of data uninterrupted by data of the other side or by a pause of two round trips with nothing in flight." |v| int(v.messages());
    message_delay_p50_ns Int nullable "Message delay, from sending the first byte to the arrival of the last: median." |v| v.message_delay(0.50);
    message_delay_p95_ns Int nullable list "Message delay: 95th percentile." |v| v.message_delay(0.95);
    message_delay_p99_ns Int nullable "Message delay: 99th percentile." |v| v.message_delay(0.99);
    turns Int "Times that the sender answered data of the other side, with nothing in flight." |v| int(v.data().first_answer_ns().map_or(0, |_| 1) + v.turns().map_or(0, |t| t.turns));
    first_byte_p50_ns Int nullable "Time to first byte, from the other side's last data to the first data of the answer, at the capture point: median." |v| v.first_byte(0.50);
    first_byte_p95_ns Int nullable "Time to first byte: 95th percentile." |v| v.first_byte(0.95);
    first_byte_p99_ns Int nullable "Time to first byte: 99th percentile." |v| v.first_byte(0.99);
    work_p50_ns Int nullable "Time to answer, from having the other side's data to sending the first byte: first_byte less the round trip between the capture point and this side; median." |v| v.work(0.50);
    work_p95_ns Int nullable "Time to answer: 95th percentile." |v| v.work(0.95);
    work_max_ns Int nullable "Time to answer: maximum." |v| v.work(1.0);
    nagle_delays Int "Small segments that waited for the delayed ACK of a previous small segment (Nagle, RFC 9293 section 3.7.4)." @pace |p| i64::from(p.nagle_delays);
    nagle_delay_ns Int "Total time that small segments waited for delayed ACKs." @pace |p| p.nagle_ns;
    nagle_waits Int "Small segments sent as soon as the ACK of a previous small segment reached the sender, whether that ACK was delayed or not." @pace |p| i64::from(p.nagle_waits);
    nagle_wait_ns Int "Total time from the previous small segment to its ACK, at the sender." @pace |p| p.nagle_wait_ns;
    tinygrams Int "Segments smaller than the MSS that were followed by more data before they were acknowledged." |v| int(v.data().ledger.tinygrams());
};

impl DirectionView<'_> {
    fn flight_seen(&self) -> Option<u32> {
        self.data().flight_seen()
    }
}
