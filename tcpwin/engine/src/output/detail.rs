//! Series, percentiles, events, stalls and rows of chosen connections, over all their life or a span of it: a sink beside the tracker, paid for only where asked.

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

/// Events kept for one connection; beyond it they are counted only.
const MAX_EVENTS: usize = 1 << 20;

/// Stalls kept for one connection, and closed windows of each direction.
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

/// What is kept of one connection.
pub struct Detail {
    /// By sender's side; empty where series are not kept.
    pub tracks: Vec<Track>,
    pub budgets: Vec<BudgetTrack>,
    pub events: Vec<EventRecord>,
    pub events_omitted: u64,
    /// With the frame before each.
    pub stalls: Vec<(u64, Stall)>,
    /// Closed windows that touch the span, by sender's side.
    pub zero_windows: [Vec<Episode>; 2],
    pub rows: ViewRows,
    /// The side that is `a`, as far as the whole connection tells.
    pub initiator_side: usize,
    last_frame: u64,
    /// Closed windows of each side that were looked at.
    seen_episodes: [u32; 2],
}

/// How much of each followed connection is kept.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Series, events, stalls and rows are of this span only.
    pub span: Span,
    /// Buckets that a series has at most.
    pub buckets: usize,
    /// Rows that are kept, if there are no more than these.
    pub rows: usize,
    /// Series, budgets over time and rows are kept beside events and stalls, at several times their cost.
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

    /// What was kept, by number, with the connections of the pass, which is over.
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
            seen_episodes: [0; 2],
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
        // When the connection counts it: its clock may have run backwards.
        let now_ns = connection.end_ns;
        for (side, track) in self.tracks.iter_mut().enumerate() {
            track.take(now_ns, connection, side);
        }
        for (budget, direction) in self.budgets.iter_mut().zip(&connection.directions) {
            budget.take(now_ns, direction);
        }
        if let Some(rtt_ns) = annotation.rtt_ns {
            let timed = 1 - usize::from(annotation.side);
            if let Some(track) = self.tracks.get_mut(timed) {
                track.time(now_ns, connection, timed, rtt_ns);
            }
        }
        self.take_zero_windows(connection, span);
    }

    /// Keep closed windows as they end; a probe that was under way then is counted later.
    fn take_zero_windows(&mut self, connection: &Connection, span: Span) {
        for (side, direction) in connection.directions.iter().enumerate() {
            let cold_state = direction.cold_state.as_deref();
            let zero = cold_state.and_then(|cold_state| cold_state.zero.as_deref());
            let Some((zero, last)) = zero.and_then(|zero| Some((zero, zero.episodes.last()?)))
            else {
                continue;
            };
            let episodes = &mut self.zero_windows[side];
            let seen = std::mem::replace(&mut self.seen_episodes[side], zero.episode_count);
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

    /// The sender's side of a direction.
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
