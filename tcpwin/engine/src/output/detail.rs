//! Series, percentiles and events of chosen connections: a sink beside the tracker, paid for only where asked.

use std::collections::{HashMap, HashSet};

use crate::connection::journal::Entry;
use crate::connection::stalls::Stall;
use crate::connection::state::Connection;
use crate::event::Events;
use crate::output::histogram::Histogram;
use crate::output::pass::Sink;
use crate::output::series::Series;
use crate::recovery::cause::Evidence;
use crate::sequence::Seq;
use crate::timing::delays::Delays;
use crate::tracker::Verdict;
use crate::wire::Segment;

/// Names of the series of a direction, in the order of [`Track::series`].
pub const SERIES: [&str; 13] = [
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
];

/// Events kept for one connection; beyond it they are counted only.
const MAX_EVENTS: usize = 1 << 20;

/// Stalls kept for one connection.
const MAX_STALLS: usize = 1 << 16;

/// Which connections to follow.
pub enum Chosen {
    All,
    These(HashSet<u32>),
}

#[derive(Clone, Copy, Debug)]
pub struct EventRecord {
    pub frame: u64,
    pub time_ns: i64,
    pub is_from_initiator: bool,
    pub events: Events,
    pub seq: u32,
    pub ack: u32,
    pub length: u32,
    pub window_raw: u16,
    /// Why the segment counts as sent again or late.
    pub evidence: Option<Evidence>,
}

impl EventRecord {
    /// An entry of a connection's journal.
    pub fn of(entry: &Entry, initiator_side: usize) -> Self {
        EventRecord {
            frame: entry.frame,
            time_ns: entry.time_ns,
            is_from_initiator: usize::from(entry.side) == initiator_side,
            events: entry.events,
            seq: entry.seq,
            ack: entry.ack,
            length: entry.length,
            window_raw: entry.window_raw,
            evidence: entry.evidence,
        }
    }
}

/// One direction over time.
pub struct Track {
    pub series: [Series; SERIES.len()],
    pub window: Histogram,
    pub flight: Histogram,
    pub pipe: Histogram,
    pub rtt: Delays,
    /// SND.MAX at the last segment.
    at: Option<Seq>,
    /// SND.MAX less the first SND.UNA, beyond 32 bits.
    extended: i64,
    last_ns: i64,
    last_window: Option<u32>,
    last_flight: Option<u32>,
    last_pipe: Option<u32>,
}

pub struct Detail {
    /// By sender's side.
    pub tracks: [Track; 2],
    pub events: Vec<EventRecord>,
    pub events_omitted: u64,
    /// With the frame before each.
    pub stalls: Vec<(u64, Stall)>,
    last_frame: u64,
}

pub struct DetailSink {
    chosen: Chosen,
    limit: usize,
    pub details: HashMap<u32, Box<Detail>>,
}

impl DetailSink {
    /// At most `limit` buckets a series.
    pub fn new(chosen: Chosen, limit: usize) -> Self {
        DetailSink {
            chosen,
            limit,
            details: HashMap::new(),
        }
    }

    pub fn into_details(self) -> HashMap<u32, Box<Detail>> {
        self.details
    }
}

impl Sink for DetailSink {
    fn take(&mut self, segment: &Segment, verdict: &Verdict, connection: &Connection) -> bool {
        if let Chosen::These(ids) = &self.chosen {
            if !ids.contains(&verdict.connection) {
                return true;
            }
        }
        let limit = self.limit;
        let detail = self.details.entry(verdict.connection).or_insert_with(|| {
            Box::new(Detail {
                tracks: [
                    Track::new(segment.time_ns, limit),
                    Track::new(segment.time_ns, limit),
                ],
                events: Vec::new(),
                events_omitted: 0,
                stalls: Vec::new(),
                last_frame: segment.frame,
            })
        });
        detail.take(segment, verdict, connection);
        true
    }
}

impl Detail {
    fn take(&mut self, segment: &Segment, verdict: &Verdict, connection: &Connection) {
        if verdict.events != 0 {
            if self.events.len() < MAX_EVENTS {
                self.events.push(EventRecord {
                    frame: segment.frame,
                    time_ns: segment.time_ns,
                    is_from_initiator: verdict.is_from_initiator,
                    events: verdict.events,
                    seq: segment.seq,
                    ack: segment.ack,
                    length: segment.payload_len,
                    window_raw: segment.window,
                    evidence: verdict.evidence,
                });
            } else {
                self.events_omitted += 1;
            }
        }
        if verdict.events & crate::event::CAPTURE_DUPLICATE != 0 {
            return;
        }
        let before_frame = std::mem::replace(&mut self.last_frame, segment.frame);
        if let Some(stall) = verdict.stall {
            if self.stalls.len() < MAX_STALLS {
                self.stalls.push((before_frame, stall));
            }
        }
        for (side, track) in self.tracks.iter_mut().enumerate() {
            let sent = if side == usize::from(verdict.side) {
                segment.payload_len
            } else {
                0
            };
            track.take(segment.time_ns, connection, side, sent);
        }
        if let Some(rtt_ns) = verdict.rtt_ns {
            let timed = 1 - usize::from(verdict.side);
            self.tracks[timed].time(segment.time_ns, connection, timed, rtt_ns);
        }
    }
}

impl Track {
    fn new(start_ns: i64, limit: usize) -> Self {
        Track {
            series: std::array::from_fn(|_| Series::new(start_ns, limit)),
            window: Histogram::default(),
            flight: Histogram::default(),
            pipe: Histogram::default(),
            rtt: Delays::default(),
            at: None,
            extended: 0,
            last_ns: start_ns,
            last_window: None,
            last_flight: None,
            last_pipe: None,
        }
    }

    fn take(&mut self, now_ns: i64, connection: &Connection, side: usize, sent_bytes: u32) {
        let direction = &connection.directions[side];
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
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

        let [window, edge, flight, pipe, sequence, throughput, _, _, _, sender_flight, cwnd, acknowledged, raw] =
            &mut self.series;
        if sent_bytes > 0 {
            throughput.add(now_ns, i64::from(sent_bytes));
        }
        if !direction.is_started {
            return;
        }
        let next = direction.flight.nxt;
        let at = self.at.replace(next).unwrap_or(direction.flight.una);
        self.extended += i64::from(at.to(next));
        sequence.add(now_ns, self.extended);
        let span = direction.flight.una.to(next);
        acknowledged.add(now_ns, self.extended - i64::from(span));
        if direction.is_acked {
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
        // As the means do, percentiles begin where SND.UNA is known, not with the SYN.
        self.last_flight = known.filter(|_| direction.is_acked);
        self.last_pipe = piped.filter(|_| direction.is_acked);
        if let (Some(known), Some(piped)) = (known, piped) {
            flight.add(now_ns, i64::from(known));
            pipe.add(now_ns, i64::from(piped));
        }
        if let Some(pace) = direction.pace() {
            if let Some(view) = &pace.view {
                sender_flight.add(now_ns, i64::from(view.bytes()));
            }
            if pace.window_bytes > 0 {
                cwnd.add(now_ns, i64::from(pace.window_bytes));
            }
        }
    }

    /// An ACK timed data of this side.
    fn time(&mut self, now_ns: i64, connection: &Connection, side: usize, rtt_ns: u64) {
        let (direction, peer) = (
            &connection.directions[side],
            &connection.directions[1 - side],
        );
        let rtt_ns = i64::try_from(rtt_ns).unwrap_or(i64::MAX);
        self.rtt.add(rtt_ns);
        let near_ns = peer.far_ns().unwrap_or(0);
        let [_, _, _, _, _, _, rtt, smoothed, rto, ..] = &mut self.series;
        rtt.add(now_ns, rtt_ns);
        smoothed.add(now_ns, direction.ledger.estimator().smoothed_ns());
        rto.add(now_ns, direction.ledger.rto_ns(near_ns));
    }
}
