//! One direction of a followed connection over time: series and distributions.

use crate::output::histogram::Histogram;
use crate::output::sender_history::SenderHistory;
use crate::output::series::{Series, Span};
use crate::sequence::Seq;
use crate::tcp::connection::state::Connection;
use crate::tcp::timing::delays::Delays;

/// Names of a direction's series, in the order of [`Track::series`].
pub const SERIES: [&str; 19] = [
    "receive_window",
    "right_edge",
    "flight",
    "pipe",
    "sequence",
    "throughput",
    "rtt",
    "rtt_smoothed",
    "rto",
    "sender_flight",
    "cwnd_model",
    "acknowledged",
    "window_raw",
    "goodput",
    "resent",
    "sacked",
    "sender_window",
    "delivery_rate",
    "queue_delay",
];

/// Series of instantaneous samples, whose values do not hold until the next.
const INSTANTANEOUS: [&str; 4] = ["throughput", "rtt", "goodput", "resent"];

/// One direction over time, within a span.
pub struct Track {
    pub series: [Series; SERIES.len()],
    pub window: Histogram,
    pub flight: Histogram,
    pub pipe: Histogram,
    pub rtt: Delays,
    span: Span,
    /// SND.MAX after the last segment.
    at: Option<Seq>,
    /// SND.MAX minus the first SND.UNA, extended beyond 32 bits.
    extended: i64,
    payload_bytes: u64,
    acked_bytes: u64,
    resent_bytes: u64,
    last_ns: i64,
    last_window: Option<u32>,
    last_flight: Option<u32>,
    last_pipe: Option<u32>,
    most_flight: u32,
    most_sender_flight: u32,
    /// The sender's view, if the capture was made elsewhere.
    seen: Option<Box<SenderHistory>>,
}

impl Track {
    /// Create the track of a connection that starts at `start_ns`, with at most `limit` buckets per series.
    pub fn new(start_ns: i64, span: Span, limit: usize) -> Self {
        Track {
            series: SERIES
                .map(|name| Series::new(start_ns, span, limit, !INSTANTANEOUS.contains(&name))),
            window: Histogram::default(),
            flight: Histogram::default(),
            pipe: Histogram::default(),
            rtt: Delays::default(),
            span,
            at: None,
            extended: 0,
            payload_bytes: 0,
            acked_bytes: 0,
            resent_bytes: 0,
            last_ns: start_ns,
            last_window: None,
            last_flight: None,
            last_pipe: None,
            most_flight: 0,
            most_sender_flight: 0,
            seen: None,
        }
    }

    /// Return the position of a sequence number on the direction's axis: bytes since the connection's start, counting
    /// the SYN as one.
    pub fn place(&self, seq: u32) -> Option<i64> {
        let at = self.at?;
        Some(self.extended + i64::from(at.to(Seq(seq))))
    }

    /// Update with the state of the direction of `side` after a segment.
    pub fn take(&mut self, now_ns: i64, connection: &Connection, side: usize) {
        let direction = &connection.directions[side];
        let elapsed_ns = self.span.overlap_ns(self.last_ns, now_ns);
        if let Some(bytes) = self.last_window {
            self.window.add(bytes, elapsed_ns);
        }
        if let Some(bytes) = self.last_flight {
            self.flight.add(bytes, elapsed_ns);
        }
        if let Some(bytes) = self.last_pipe {
            self.pipe.add(bytes, elapsed_ns);
        }
        self.last_ns = self.last_ns.max(now_ns);

        let [window, edge, flight, pipe, sequence, throughput, _, _, _, sender_flight, cwnd, acknowledged, raw, goodput, resent, sacked, sender_window, ..] =
            &mut self.series;
        let payload_bytes = direction.payload_bytes;
        let before = std::mem::replace(&mut self.payload_bytes, payload_bytes);
        if payload_bytes != before {
            throughput.add(now_ns, payload_bytes.wrapping_sub(before) as i64);
        }
        if !direction.flight.is_started {
            return;
        }
        let acked_bytes = direction.acked_payload_bytes();
        let before = std::mem::replace(&mut self.acked_bytes, acked_bytes);
        if acked_bytes != before {
            goodput.add(now_ns, acked_bytes.wrapping_sub(before) as i64);
        }
        let resent_bytes = direction
            .cold_state
            .as_ref()
            .map_or(0, |cold_state| cold_state.resent_bytes);
        let before = std::mem::replace(&mut self.resent_bytes, resent_bytes);
        if resent_bytes != before {
            resent.add(now_ns, resent_bytes.wrapping_sub(before) as i64);
        }
        let next = direction.flight.nxt;
        let at = self.at.replace(next).unwrap_or(direction.flight.una);
        self.extended += i64::from(at.to(next));
        sequence.add(now_ns, self.extended);
        let span = direction.flight.una.to(next);
        acknowledged.add(now_ns, self.extended - i64::from(span));
        if direction.flight.is_acked {
            raw.add(now_ns, i64::from(direction.window.last_raw));
        }
        let is_certain = direction.window.is_known && connection.window_is_certain(1 - side);
        self.last_window = is_certain.then_some(direction.window.bytes);
        if is_certain {
            window.add(now_ns, i64::from(direction.window.bytes));
            edge.add(
                now_ns,
                self.extended + i64::from(next.to(direction.window.edge)),
            );
        }
        let known = direction.known_flight();
        let piped = known.map(|bytes| bytes.saturating_sub(direction.sacked_bytes()));
        // Like the means, percentiles start when SND.UNA is known, not with the SYN.
        self.last_flight = known.filter(|_| direction.flight.is_acked);
        self.last_pipe = piped.filter(|_| direction.flight.is_acked);
        // The first ACK shows how much data was in flight before it.
        let most = direction.flight_max_bytes();
        let shown = std::mem::replace(&mut self.most_flight, most);
        if most > shown.max(known.unwrap_or(0)) {
            flight.add(now_ns, i64::from(most));
        }
        if let (Some(known), Some(piped)) = (known, piped) {
            flight.add(now_ns, i64::from(known));
            pipe.add(now_ns, i64::from(piped));
            sacked.add(now_ns, i64::from(direction.sacked_bytes()));
        }
        if let Some(pace) = direction.pace() {
            if let Some(view) = &pace.view {
                let seen = self
                    .seen
                    .get_or_insert_with(|| Box::new(SenderHistory::of(view)));
                // The sender's flight may also become known late: with its distance, or with an ACK that took effect
                // together with this segment.
                let most = direction.flight_seen().unwrap_or(0);
                let shown = std::mem::replace(&mut self.most_sender_flight, most);
                if most > shown {
                    sender_flight.add(now_ns, i64::from(most));
                }
                seen.follow(view, now_ns, |state| {
                    // With late segments, an ACK may take effect here before the view applies it.
                    let flight_bytes = state.flight_bytes.min(most);
                    sender_flight.add(state.time_ns, i64::from(flight_bytes));
                    if is_certain && state.has_arrived {
                        sender_window.add(state.time_ns, i64::from(state.window_bytes));
                    }
                });
            }
            if pace.window_bytes > 0 {
                cwnd.add(now_ns, i64::from(pace.window_bytes));
            }
        }
    }

    /// Record the round trip of an ACK for data of this side.
    pub fn time(&mut self, now_ns: i64, connection: &Connection, side: usize, rtt_ns: u64) {
        let (direction, peer) = (
            &connection.directions[side],
            &connection.directions[1 - side],
        );
        let rtt_ns = i64::try_from(rtt_ns).unwrap_or(i64::MAX);
        if self.span.contains(now_ns) {
            self.rtt.add(rtt_ns);
        }
        let rtt_to_sender_ns = peer.rtt_to_receiver_ns().unwrap_or(0);
        let [_, _, _, _, _, _, rtt, smoothed, rto, ..] = &mut self.series;
        rtt.add(now_ns, rtt_ns);
        smoothed.add(now_ns, direction.ledger.estimator().smoothed_ns());
        rto.add(now_ns, direction.ledger.rto_ns(rtt_to_sender_ns));
    }

    /// Finish the connection: add the final flight and the rates and queueing delays of its rounds.
    pub fn finish(&mut self, connection: &Connection, side: usize) {
        let Some(pace) = connection.directions[side].pace() else {
            return;
        };
        let most = connection.directions[side].flight_seen().unwrap_or(0);
        if pace.view.is_some() && most > self.most_sender_flight {
            // ACKs that reach the sender after the last segment may reveal more data in flight.
            let [_, _, _, _, _, _, _, _, _, sender_flight, ..] = &mut self.series;
            sender_flight.add(connection.end_ns, i64::from(most));
        }
        let Some(path) = pace.path.as_deref() else {
            return;
        };
        let base_us = path.base_us(&pace.delay);
        let [.., rate, queue] = &mut self.series;
        for record in path.records() {
            let began_ns = record.end_ns.saturating_sub(record.elapsed_ns);
            let began_ns = began_ns.clamp(connection.start_ns, connection.end_ns);
            rate.add(began_ns, (record.rate() * 8.0) as i64);
            if let Some(base_us) = base_us.filter(|_| record.delay_us > 0) {
                let waited_us = record.delay_us.saturating_sub(base_us);
                queue.add(began_ns, i64::from(waited_us) * 1000);
            }
        }
    }

    /// Complete the series.
    pub fn settle(&mut self) {
        self.series.iter_mut().for_each(Series::settle);
    }
}
