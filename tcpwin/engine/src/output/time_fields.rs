//! Fields of a direction: round trips, timers, congestion window, pauses and messages.

use crate::output::field::{
    count, fields, int, optional, text, DirectionField, DirectionView, Value,
};
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

    /// None where it was not known before most of the data had been sent, or a damaged number went into it.
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

    /// Mean and most.
    fn queue_ns(&self) -> Option<(i64, i64)> {
        self.data().pace()?.path.as_deref()?.queue_ns
    }

    /// What the sender's moves were like.
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

    /// From the first byte sent to the last byte arrived: the spread of the segments and half a round trip.
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

/// Where the capture point lies for data of this direction.
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
    view Text ["sender" | "receiver" | "between" | "unknown"] "Where the capture point lies for data of this direction: sender or receiver (within a tenth of the path's round trip), between, or unknown." |v| text(view_name(v));
    sender_shift_ns Int nullable "Least round trip between the capture point and the sender: what is seen here took effect there, and shows here, that much later." |v| optional(v.shift_ns());
    rtt_min_ns Int nullable list brief "Least time from data to its ACK at the capture point." |v| v.data().ledger.min_ns().map_or(Value::None, count);
    rtt_smoothed_ns Int nullable list brief "Time from data to its ACK at the capture point, smoothed as Linux does (RFC 6298), at the end." |v| optional(v.smoothed_ns());
    rtt_variance_ns Int nullable "Mean deviation of it as Linux has it: the second number behind rtt: in ss." |v| { let e = v.data().ledger.estimator(); if e.has_samples() { int(e.deviation_ns()) } else { Value::None } };
    rtt_samples Int "How many ACKs were timed." |v| int(v.data().ledger.samples());
    sender_rtt_smoothed_ns Int nullable "The round trip as the sender has it: the smoothed one and what lies between the sender and the capture point." |v| optional(v.smoothed_ns().map(|ns| ns.saturating_add(v.shift_ns().unwrap_or(0))));
    path_rate_bps Real nullable brief "Rate of the path's bottleneck, bits of payload a second, by the spacing of trains of segments; None where they have no plateau, or a policer lets them through as they came." |v| v.path_rate_bps();
    queue_mean_ns Int nullable brief "By how much round trips were longer than the least, on average over time: what stood in queues." |v| optional(v.queue_ns().map(|(mean_ns, _)| mean_ns));
    queue_max_ns Int nullable "The same of the round trip of the path that waited longest, each averaged over itself." |v| optional(v.queue_ns().map(|(_, most_ns)| most_ns));
    rto_ns Int nullable "Retransmission timeout that a Linux sender has at the end, without back-off: its smoothed round trip and at least 200 ms." |v| v.rto_ns();
    sender_flight_max_bytes Int nullable "Most bytes in flight as the sender saw it, ACKs reaching it sender_shift_ns after they were captured; none where the capture point is the sender's." |v| optional(v.sender_view().and(v.flight_seen()));
    sender_flight_mean_bytes Real nullable "Mean of the same over time; none where it was not known before most of the data had been sent." |v| v.sender_flight_mean();
    sender_window_limited_ns Int nullable "Time in which the window that the sender knew held no further segment, from when data was in flight until one fitted; none where the capture point is the sender's: window_limited_ns tells it." |v| optional(v.sender_view().filter(|_| v.is_certain()).map(|view| view.limited_ns));
    cwnd_estimate_max_bytes Int nullable "Most bytes outstanding, as the sender saw it: without loss the least that the congestion window was at its largest; in recovery SACKed bytes count too, which are no longer in it." |v| optional(v.flight_seen());
    cwnd_model_bytes Int nullable "Congestion window at the end by Linux's rules: ten segments at first, widened by what was acknowledged while it was used, cut to seven tenths by loss and halved by idle timeouts; none before a round trip was seen." |v| optional(v.data().pace().filter(|p| p.window_bytes > 0).map(|p| p.window_bytes));
    sender_algorithm Text nullable brief ["reno" | "cubic" | "bbr" | "dctcp"] "Congestion control of the sender by its moves: reno, cubic, bbr or dctcp, as Linux names them; none where they are too few, agree with none of them, or were not captured at the sender." |v| v.algorithm().map_or(Value::None, |(name, _)| text(name));
    sender_algorithm_confidence Text nullable ["likely" | "possible"] "How sure that is: likely, or possible where few moves show it." |v| v.algorithm().map_or(Value::None, |(_, sure)| text(sure.name()));
    window_cuts Int "Losses and marks after which the flight shows what was left of the congestion window." |v| int(v.response().map_or(0, |r| r.cuts));
    window_cut_mean Real nullable "What they left of it on average: a half by Reno, seven tenths by CUBIC; none without such a cut." |v| v.response().and_then(Response::left).map_or(Value::None, |left| Value::Real(f64::from(left)));
    rate_probes Int "Times that the flight rose by an eighth and more and fell back without a loss, as BBR's does." |v| int(v.response().map_or(0, |r| r.probes));
    clock_step_ns Int "By how much the capture's clock was set during the connection, in all. Forward: time in silences that it counts and the timestamps of the sender that ended them do not; it is in duration_ns and in no rate. Back: what follows counts from the latest time before." @cold_state |c| c.clock_step_ns;
    slow_start_ns Int "Time in round trips whose flight was a third and more above the one before, below the threshold that a loss set." @pace |p| p.slow_start_ns;
    idle_gaps Int "Times that data followed a silence longer than the retransmission timeout with nothing in flight." @idle |i| i64::from(i.gaps);
    idle_ns Int "Time with nothing in flight in these gaps." @idle |i| i.idle_ns;
    idle_restarts Int list "Of these, after which the congestion window had been cut: the burst ended within what Linux leaves, and went on with the ACK." @idle |i| i64::from(i.restarts);
    idle_restart_round_trips Int "Round trips that these restarts cost, against the window before." @idle |i| i64::from(i.round_trips);
    idle_restart_cost_ns Int "Time that they cost." @idle |i| i.cost_ns;
    messages Int "Stretches of data without a word of the other side and without a pause of two round trips with nothing in flight." |v| int(v.messages());
    message_delay_p50_ns Int nullable "From the first byte of a message sent to its last byte arrived: median." |v| v.message_delay(0.50);
    message_delay_p95_ns Int nullable list "The same: not exceeded by 95 % of the messages." |v| v.message_delay(0.95);
    message_delay_p99_ns Int nullable "The same: not exceeded by 99 % of the messages." |v| v.message_delay(0.99);
    turns Int "Times that the sender answered data of the other side, with nothing in flight." |v| int(v.data().first_answer_ns().map_or(0, |_| 1) + v.turns().map_or(0, |t| t.turns));
    first_byte_p50_ns Int nullable "From the other side's last data to the first of the answer, at the capture point: median." |v| v.first_byte(0.50);
    first_byte_p95_ns Int nullable "The same: not exceeded by 95 % of the answers." |v| v.first_byte(0.95);
    first_byte_p99_ns Int nullable "The same: not exceeded by 99 % of the answers." |v| v.first_byte(0.99);
    nagle_delays Int "Small segments that waited for the delayed ACK of a small one before them (Nagle, RFC 9293 section 3.7.4)." @pace |p| i64::from(p.nagle_delays);
    nagle_delay_ns Int "Time that they waited." @pace |p| p.nagle_ns;
    tinygrams Int "Segments smaller than the MSS that more data followed before they were acknowledged." |v| int(v.data().ledger.tinygrams());
};

impl DirectionView<'_> {
    fn flight_seen(&self) -> Option<u32> {
        self.data().flight_seen()
    }
}
