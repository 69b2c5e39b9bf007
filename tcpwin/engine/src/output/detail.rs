//! A sink that records series, percentiles, events, stalls and rows of chosen connections, over their whole life or a
//! span. Nothing is recorded for other connections.

use std::collections::{HashMap, HashSet};

use crate::event::{Events, CAPTURE_DUPLICATE};
use crate::output::budget_track::BudgetTrack;
use crate::output::columns::ViewRows;
use crate::output::pass::Sink;
use crate::output::series::Span;
use crate::output::track::Track;
use crate::tcp::connection::journal::JournalEntry;
use crate::tcp::connection::stalls::Stall;
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::tracker::{Annotation, Tracker};
use crate::tcp::window::zero::Episode;
use crate::wire::Segment;

/// Maximum events recorded per connection; further ones are only counted.
const MAX_EVENTS: usize = 1 << 20;

/// Maximum stalls recorded per connection, and zero-window episodes per direction.
const MAX_STALLS: usize = 1 << 16;

/// The connections to follow.
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
    /// Evidence that the segment is a retransmission or late.
    pub evidence: Option<Evidence>,
}

impl EventRecord {
    /// Convert an entry of a connection's journal.
    pub fn of(entry: &JournalEntry, initiator_side: usize) -> Self {
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

/// The details of one connection.
pub struct Detail {
    /// Indexed by sender's side; empty if series are not recorded.
    pub tracks: Vec<Track>,
    pub budgets: Vec<BudgetTrack>,
    pub events: Vec<EventRecord>,
    pub events_omitted: u64,
    /// With the frame before each.
    pub stalls: Vec<(u64, Stall)>,
    /// Zero-window episodes that overlap the span, by sender's side.
    pub zero_windows: [Vec<Episode>; 2],
    pub rows: ViewRows,
    /// The side called `a`, decided over the whole connection.
    pub initiator_side: usize,
    last_frame: u64,
    /// Number of each side's zero-window episodes processed.
    processed_episodes: [u32; 2],
}

/// Limits on what is recorded per connection.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Record series, events, stalls and rows within this span only.
    pub span: Span,
    /// Maximum number of buckets per series.
    pub buckets: usize,
    /// Record rows only if there are no more than this.
    pub rows: usize,
    /// Whether to record series, budgets over time and rows as well, at several times the cost of events and stalls.
    pub has_series: bool,
}

pub struct DetailSink {
    chosen: Chosen,
    extent: Extent,
    details: HashMap<u32, Box<Detail>>,
}

impl DetailSink {
    pub fn new(chosen: Chosen, extent: Extent) -> Self {
        DetailSink {
            chosen,
            extent,
            details: HashMap::new(),
        }
    }

    fn is_chosen(&self, connection: u32) -> bool {
        match &self.chosen {
            Chosen::All => true,
            Chosen::These(ids) => ids.contains(&connection),
        }
    }

    /// Return the details by connection number. The pass and its connections must be complete.
    pub fn finish(mut self, tracker: &Tracker) -> HashMap<u32, Box<Detail>> {
        for (index, connection) in (0..).zip(tracker.connections.iter()) {
            let number = tracker.number(index);
            let detail = number.and_then(|number| self.details.get_mut(&number));
            if let Some(detail) = detail {
                detail.finish(connection, self.extent.span);
            }
        }
        self.details
    }
}

impl Sink for DetailSink {
    fn wants_budget(&self, connection: u32) -> bool {
        self.extent.has_series && self.is_chosen(connection)
    }

    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
    ) -> bool {
        if !self.is_chosen(annotation.connection) {
            return true;
        }
        let extent = self.extent;
        let detail = self
            .details
            .entry(annotation.connection)
            .or_insert_with(|| Box::new(Detail::new(segment, extent)));
        detail.take(segment, annotation, connection, extent.span);
        true
    }
}

impl Detail {
    fn new(first: &Segment, extent: Extent) -> Self {
        let sides = if extent.has_series { 2 } else { 0 };
        let track = || Track::new(first.time_ns, extent.span, extent.buckets);
        let budget = || BudgetTrack::new(first.time_ns, extent.span, extent.buckets);
        Detail {
            tracks: (0..sides).map(|_| track()).collect(),
            budgets: (0..sides).map(|_| budget()).collect(),
            events: Vec::new(),
            events_omitted: 0,
            stalls: Vec::new(),
            zero_windows: [Vec::new(), Vec::new()],
            rows: ViewRows::new(extent.rows),
            initiator_side: 0,
            last_frame: first.frame,
            processed_episodes: [0; 2],
        }
    }

    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
        span: Span,
    ) {
        let is_within = span.contains(segment.time_ns);
        if annotation.events != 0 && is_within {
            self.note(segment, annotation);
        }
        if annotation.events & CAPTURE_DUPLICATE == 0 {
            self.measure(segment, annotation, connection, span);
        }
        let tracks = self.tracks.as_slice();
        if let ([first, second], true) = (tracks, is_within) {
            let (sent, acked) = if annotation.side == 0 {
                (first, second)
            } else {
                (second, first)
            };
            let places = (|seq| sent.place(seq), |seq| acked.place(seq));
            self.rows.push(segment, annotation, places.0, places.1);
        }
    }

    fn note(&mut self, segment: &Segment, annotation: &Annotation) {
        if self.events.len() >= MAX_EVENTS {
            self.events_omitted += 1;
            return;
        }
        self.events.push(EventRecord {
            frame: segment.frame,
            time_ns: segment.time_ns,
            is_from_initiator: annotation.is_from_initiator,
            events: annotation.events,
            seq: segment.seq,
            ack: segment.ack,
            length: segment.payload_len,
            window_raw: segment.window,
            evidence: annotation.evidence,
        });
    }

    fn measure(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
        span: Span,
    ) {
        let before_frame = std::mem::replace(&mut self.last_frame, segment.frame);
        if let Some(stall) = annotation.stall {
            let touches = stall.start_ns <= span.end_ns && stall.end_ns >= span.start_ns;
            if touches && self.stalls.len() < MAX_STALLS {
                self.stalls.push((before_frame, stall));
            }
        }
        // Use the connection's time: the capture clock may have run backwards.
        let now_ns = connection.end_ns;
        for (side, track) in self.tracks.iter_mut().enumerate() {
            track.take(now_ns, connection, side);
        }
        for (budget, direction) in self.budgets.iter_mut().zip(&connection.directions) {
            budget.take(now_ns, direction);
            if segment.payload_len > 0 {
                budget.take_turn(now_ns, connection, usize::from(annotation.side));
            }
        }
        if let Some(rtt_ns) = annotation.rtt_ns {
            let timed = 1 - usize::from(annotation.side);
            if let Some(track) = self.tracks.get_mut(timed) {
                track.time(now_ns, connection, timed, rtt_ns);
            }
        }
        self.take_zero_windows(connection, span);
    }

    /// Record zero-window episodes as they end; a probe still in flight at the end is counted later.
    fn take_zero_windows(&mut self, connection: &Connection, span: Span) {
        for (side, direction) in connection.directions.iter().enumerate() {
            let cold_state = direction.cold_state.as_deref();
            let zero = cold_state.and_then(|cold_state| cold_state.zero.as_deref());
            let Some((zero, last)) = zero.and_then(|zero| Some((zero, zero.episodes.last()?)))
            else {
                continue;
            };
            let episodes = &mut self.zero_windows[side];
            let seen = std::mem::replace(&mut self.processed_episodes[side], zero.episode_count);
            if zero.episode_count == seen {
                if let Some(known) = episodes.last_mut().filter(|k| k.start_ns == last.start_ns) {
                    known.probes = last.probes;
                }
            } else if last.start_ns <= span.end_ns
                && last.end_ns >= span.start_ns
                && episodes.len() < MAX_STALLS
            {
                episodes.push(*last);
            }
        }
    }

    /// Return the sender's side of a direction.
    pub fn side(&self, from_initiator: bool) -> usize {
        if from_initiator {
            self.initiator_side
        } else {
            1 - self.initiator_side
        }
    }

    fn finish(&mut self, connection: &Connection, span: Span) {
        self.initiator_side = connection.initiator_side();
        self.take_zero_windows(connection, span);
        for (side, budget) in self.budgets.iter_mut().enumerate() {
            budget.finish(connection, side);
        }
        for (side, track) in self.tracks.iter_mut().enumerate() {
            track.finish(connection, side);
        }
        if connection.end_ns >= span.start_ns {
            self.tracks.iter_mut().for_each(Track::settle);
        }
    }
}
