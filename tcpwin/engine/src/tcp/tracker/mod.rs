//! The single pass over segments: finds each segment's connection and updates its state.
//!
//! In: segments in capture order. Out: an annotation per segment, and the connections at the end.
//! One segment costs a table look-up and straight-line arithmetic; everything unusual is a cold call.

mod ack;
mod clock_step;
mod end_stall;
mod fast;
mod fork;
mod handshake;
mod journal;
mod loss_reports;
mod on_segment;
pub mod out_of_window;
mod prefetch;
mod probe;
mod receiver;
mod reset;
mod retransmission;
mod rounds;
mod segment_size;
mod send;
mod sender;
mod slot;
pub mod stall;
mod time_charge;

use std::collections::HashSet;

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::stalls::Stall;
use crate::tcp::connection::state::Connection;
use crate::tcp::connection::table::{FlowTable, Tags};
use crate::tcp::connection::wanted::{These, Wanted};
use crate::tcp::recovery::duplicate::WITHIN_NS;
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::tracker::fork::Forks;
use crate::tcp::tracker::journal::Journaled;
use crate::tcp::tracker::prefetch::Ahead;
pub use crate::tcp::tracker::slot::Slot;
use crate::tcp::window::scale::{GivenShift, GivenShifts, ScaleState, MAX_SHIFT};
use crate::wire::{capture_flag, Segment, SYN};

/// The effect of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentOutcome {
    pub connection: u32,
    /// Side that sent it: 0 sent the connection's first segment.
    pub side: usize,
    pub events: Events,
    pub rtt_ns: Option<u64>,
}

/// The meaning of one segment: its row of the per-segment table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotation {
    pub connection: u32,
    /// Side that sent it: 0 sent the connection's first segment.
    pub side: u8,
    /// Whether the initiator sent it.
    pub is_from_initiator: bool,
    pub events: Events,
    /// Window of this segment in bytes, if its scale is certain.
    pub window_bytes: Option<u32>,
    pub shift: Option<u8>,
    /// Bytes in flight from this segment's sender just after it.
    pub flight_bytes: Option<u32>,
    /// The same without bytes that SACK reported as received.
    pub pipe_bytes: Option<u32>,
    pub rtt_ns: Option<u64>,
    pub evidence: Option<Evidence>,
    /// The silence that this segment ended.
    pub stall: Option<Stall>,
}

#[derive(Default)]
pub struct Tracker {
    table: FlowTable,
    pub connections: Arena,
    /// Segments that the capture itself duplicated.
    pub duplicates: u64,
    /// Segments whose options were truncated by the snapshot length.
    pub options_cut: u64,
    /// Window shifts from outside the capture.
    given_shifts: GivenShifts,
    journaled: Journaled,
    /// Evidence that the newest segment was retransmitted or late.
    evidence: Option<Evidence>,
    /// The silence that the newest segment ended.
    stall: Option<Stall>,
    /// For each connection, the number of the first one of its four-tuple, if kept.
    roots: Option<Vec<u32>>,
    /// First frame of each connection, if several trackers share the capture.
    opening_frames: Option<Vec<u64>>,
    /// The connections to track, if not all.
    wanted: Option<Wanted>,
    ahead: Ahead,
    forks: Forks,
    /// Times that a tag was reassigned to another connection.
    moves: u32,
    /// Whether rounds of finished connections are dropped.
    lets_rounds_go: bool,
}

impl Tracker {
    pub fn new() -> Self {
        Self::default()
    }

    /// Create a tracker that uses these shifts where the capture lacks the SYNs.
    pub fn with_shifts(given_shifts: GivenShifts) -> Self {
        Tracker {
            given_shifts,
            ..Self::default()
        }
    }

    /// Create a tracker of some connections of an earlier pass over the same capture, which keep their numbers. It
    /// tracks all connections if these cannot be identified. For the shifts see [`Tracker::with_shifts`].
    pub fn rereading(earlier: &Tracker, numbers: &HashSet<u32>, given_shifts: GivenShifts) -> Self {
        let mut tracker = Self::with_shifts(given_shifts);
        let known = numbers.iter().filter_map(|number| {
            let connection = earlier.by_number(*number)?;
            let tag = tracker.table.tag_of(&connection.endpoints);
            Some((tag, *number, connection))
        });
        tracker.wanted = These::new(known).map(Wanted::These);
        tracker
    }

    /// Create a tracker for a stream that holds only segments of these connections, given by number in order, and of
    /// earlier ones of their four-tuples. `journal_until`: the result of [`Tracker::journal_until`] when all were
    /// tracked.
    pub fn of(numbers: Vec<u32>, journal_until: Option<u64>, given_shifts: GivenShifts) -> Self {
        Tracker {
            wanted: Some(Wanted::All(numbers)),
            journaled: Journaled::until(journal_until),
            ..Self::with_shifts(given_shifts)
        }
    }

    /// Create a tracker of the connections whose tags, made by `tags`, it receives: see [`Tracker::joined`].
    pub fn of_some(tags: Tags) -> Self {
        Tracker {
            table: FlowTable::new(tags),
            journaled: Journaled::of_some(),
            opening_frames: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Join finished trackers of different connections into the equivalent of one tracker of all.
    pub fn joined(parts: Vec<Tracker>) -> Self {
        let mut joined = Tracker::default();
        let (mut arenas, mut journals) = (Vec::new(), Vec::new());
        for part in parts {
            joined.duplicates += part.duplicates;
            joined.options_cut += part.options_cut;
            joined.lets_rounds_go |= part.lets_rounds_go;
            arenas.push((part.connections, part.opening_frames.unwrap_or_default()));
            journals.push(part.journaled);
        }
        joined.connections = Arena::joined(arenas);
        joined.journaled = Journaled::joined(journals);
        if let Some(frame) = joined.journal_until() {
            for index in 0..joined.connections.len() {
                if let Some(connection) = joined.connections.get_mut(index) {
                    connection.end_journal_at(frame);
                }
            }
        }
        joined
    }

    /// Return true if it tracks a whole capture without extras, so that several trackers may share the work.
    pub fn is_plain(&self) -> bool {
        self.wanted.is_none() && self.given_shifts.is_empty() && self.roots.is_none()
    }

    /// Drop the rounds of each finished connection, which only series need.
    pub fn let_rounds_go(&mut self) {
        self.lets_rounds_go = true;
    }

    /// Keep [`Tracker::root`].
    pub fn keep_roots(&mut self) {
        self.roots.get_or_insert_with(Vec::new);
    }

    /// Return the first connection with the same four-tuple, if roots are kept.
    #[inline(always)]
    pub fn root(&self, index: u32) -> Option<u32> {
        self.roots.as_ref()?.get(index as usize).copied()
    }

    /// Return the frame after which no event was kept because the journals were full.
    pub fn journal_until(&self) -> Option<u64> {
        self.journaled.until_frame()
    }

    /// Restrict the tracker to the connection with this number and, until that begins, to those before it.
    pub fn of_one(self, number: Option<u32>) -> Self {
        let wanted = number.map(|number| Wanted::Number { number, tag: None });
        Tracker { wanted, ..self }
    }

    /// Return true if a segment with this tag must be tracked.
    #[inline(always)]
    pub fn wants(&self, tag: u32) -> bool {
        match &self.wanted {
            Some(wanted) => wanted.may_hold(tag),
            None => true,
        }
    }

    /// Return the number of the `index`th connection opened, or None if it is not tracked.
    pub fn number(&self, index: u32) -> Option<u32> {
        match &self.wanted {
            Some(wanted) => wanted.number(index),
            None => Some(index),
        }
    }

    pub fn by_number(&self, number: u32) -> Option<&Connection> {
        let index = match &self.wanted {
            Some(wanted) => wanted.index(number)?,
            None => number,
        };
        self.connections.get(index)
    }

    /// Return the table's tag for a segment. Computing a batch of tags first lets their cache misses overlap.
    #[inline]
    pub fn tag(&self, segment: &Segment) -> u32 {
        self.table.tag(segment)
    }

    /// Return a counter that changes whenever a [`Slot`] may: a connection was opened, or an older one continued.
    #[inline(always)]
    pub fn moves(&self) -> u32 {
        self.moves
    }

    /// Return the slot of the connection with a tag, valid until [`Tracker::moves`] changes.
    #[inline(always)]
    pub fn slot(&self, tag: u32) -> Slot {
        Slot(self.table.first(tag).unwrap_or(u32::MAX))
    }

    /// Bring the connections of a batch into the cache.
    #[inline]
    pub fn look_ahead<const N: usize>(&self, slots: &[Slot; N]) {
        self.ahead.look(&self.connections, slots);
    }

    /// Track a segment if it is ordinary. Otherwise change nothing and return its connection and side, if it has one yet:
    /// the caller must then call [`Tracker::track`]. `slot` must come from [`Tracker::slot`], with [`Tracker::moves`]
    /// unchanged since.
    #[inline(always)]
    pub fn track_ordinary(
        &mut self,
        segment: &Segment,
        slot: Slot,
    ) -> Result<SegmentOutcome, Option<(u32, usize)>> {
        let index = slot.0;
        let connection = self.connections.get_mut(index).ok_or(None)?;
        let side = connection.side_of(segment).ok_or(None)?;
        let (events, rtt_ns) = connection
            .take_ordinary(side, segment)
            .ok_or(Some((index, side)))?;
        if events != 0 {
            self.journaled.keep(connection, side, segment, events, None);
        }
        Ok(SegmentOutcome {
            connection: index,
            side,
            events,
            rtt_ns,
        })
    }

    /// Track a segment that [`Tracker::track_ordinary`] declined with the result `found`. `is_repeated` returns whether the
    /// capture already holds the segment; it is called only for a segment that brings nothing new.
    #[inline(never)]
    pub fn track(
        &mut self,
        segment: &Segment,
        tag: u32,
        found: Option<(u32, usize)>,
        is_repeated: impl FnOnce() -> bool,
    ) -> SegmentOutcome {
        let (index, side) = self.locate(segment, tag, found);
        let taken = |(events, rtt_ns)| SegmentOutcome {
            connection: index,
            side,
            events,
            rtt_ns,
        };
        let Some(connection) = self.connections.get_mut(index) else {
            return taken((0, None));
        };
        prefetch::ask_for_rare(connection);
        self.evidence = None;
        self.stall = None;
        if connection.brings_nothing(side, segment) && is_repeated() {
            self.duplicates += 1;
            (connection.incidents_mut()).count(side, event::CAPTURE_DUPLICATE);
            // The row describes the packet, which is counted only once.
            let kind = connection.directions[side]
                .cold_state
                .as_ref()
                .and_then(|cold_state| {
                    let episode = cold_state.episode()?;
                    episode.just_resent(Seq(segment.seq), segment.time_ns, WITHIN_NS)
                });
            let events = event::CAPTURE_DUPLICATE | kind.unwrap_or(0);
            self.journaled
                .keep(connection, side, segment, event::CAPTURE_DUPLICATE, None);
            return taken((events, None));
        }
        self.options_cut += u64::from(segment.capture_flags & capture_flag::OPTIONS_CUT != 0);
        let found = connection.take(side, segment, &mut self.evidence, &mut self.stall);
        if found.0 != 0 {
            let evidence = self
                .evidence
                .filter(|_| found.0 & event::WITH_EVIDENCE != 0);
            self.journaled
                .keep(connection, side, segment, found.0, evidence);
        }
        taken(found)
    }

    /// Return the row of the segment just tracked, or None if its connection is not tracked.
    pub fn annotate(
        &self,
        segment: &Segment,
        taken: &SegmentOutcome,
    ) -> Option<(Annotation, &Connection)> {
        let number = self.number(taken.connection)?;
        let connection = self.connections.get(taken.connection)?;
        let mut annotation = connection.annotate(segment, taken);
        annotation.connection = number;
        if taken.events & event::WITH_EVIDENCE != 0 {
            annotation.evidence = self.evidence;
        }
        // An ordinary segment ends no stall and leaves the last one's record in place.
        annotation.stall = self
            .stall
            .filter(|stall| stall.after_frame == segment.frame);
        Some((annotation, connection))
    }

    /// Let the budgets of a connection keep a log of what they charge.
    pub fn follow_budgets(&mut self, connection: u32) {
        if let Some(connection) = self.connections.get_mut(connection) {
            for direction in &mut connection.directions {
                if let Some(pace) = direction.ledger.pace_mut() {
                    pace.late.budget.follow();
                }
            }
        }
    }

    /// Close time integrals, limited spans and zero-window episodes, which end with the connection. A stalled connection
    /// lasts to the capture's end: `last_ns` is the time of the capture's last packet.
    #[cold]
    pub fn finish(&mut self, last_ns: Option<i64>) {
        for index in 0..self.connections.len() {
            let Some(connection) = self.connections.get(index) else {
                continue;
            };
            let mut until_ns = connection.end_ns;
            let seen_ns = last_ns.unwrap_or(until_ns);
            if connection.is_waiting() {
                let waits_until_ns = connection.waits_until_ns(seen_ns);
                // Once a SYN has opened another connection, the four-tuple shows nothing about this one.
                if connection.is_stalled(waits_until_ns, seen_ns)
                    && self.is_newest(index, connection)
                {
                    until_ns = waits_until_ns;
                }
            }
            if let Some(connection) = self.connections.get_mut(index) {
                connection.finish(until_ns, !self.lets_rounds_go);
            }
        }
    }

    /// Return whether no later connection has its four-tuple.
    fn is_newest(&self, index: u32, connection: &Connection) -> bool {
        let is_same = |other: &Connection| {
            let [first, second] = connection.endpoints;
            [[first, second], [second, first]].contains(&other.endpoints)
        };
        let tag = self.table.tag_of(&connection.endpoints);
        let newest = self.table.find(tag, |index| {
            self.connections.get(index).is_some_and(is_same)
        });
        newest == Some(index)
    }

    /// Return the connection of a segment and the sending side; open a connection if none fits.
    fn locate(&mut self, segment: &Segment, tag: u32, found: Option<(u32, usize)>) -> (u32, usize) {
        match found.or_else(|| self.find(segment, tag)) {
            Some((index, side)) if segment.flags & SYN == 0 => {
                if self.forks.are_open() {
                    return self.locate_forked(segment, tag, index, side);
                }
                (index, side)
            }
            Some((index, side)) => self.locate_syn(segment, tag, index, side),
            None => {
                let index = self.open(segment, None);
                self.table.insert(tag, index);
                self.moves = self.moves.wrapping_add(1);
                (index, 0)
            }
        }
    }

    /// Open a connection; `earlier` had its four-tuple before.
    fn open(&mut self, segment: &Segment, earlier: Option<u32>) -> u32 {
        let before = earlier.and_then(|earlier| self.connections.get(earlier));
        let epoch = before.map_or(0, |before| before.epoch().saturating_add(1));
        let connection = Connection::new(segment, epoch);
        let root = earlier.and_then(|earlier| self.root(earlier));
        if let Some(roots) = &mut self.roots {
            roots.push(root.unwrap_or(self.connections.len()));
        }
        if let Some(frames) = &mut self.opening_frames {
            frames.push(segment.frame);
        }
        if let Some(wanted) = &mut self.wanted {
            let tag = self.table.tag(segment);
            wanted.open(self.connections.len(), tag, &connection);
        }
        let index = self.connections.push(connection);
        let shifts = self
            .number(index)
            .and_then(|number| self.given_shifts.get(&number));
        if let Some(shifts) = shifts {
            if let Some(connection) = self.connections.get_mut(index) {
                for (direction, given) in connection.directions.iter_mut().zip(shifts) {
                    let Some(given) = *given else {
                        continue;
                    };
                    let shift = given.shift.min(MAX_SHIFT);
                    direction.cold_state().given_shift = Some(GivenShift { shift, ..given });
                    (direction.own_scale, direction.own_shift) = (ScaleState::Given, shift);
                }
            }
        }
        index
    }

    fn replace(&mut self, tag: u32, old: u32, new: u32) {
        self.table.replace(tag, old, new);
        self.moves = self.moves.wrapping_add(1);
    }

    fn find(&self, segment: &Segment, tag: u32) -> Option<(u32, usize)> {
        let mut side = None;
        let index = self.table.find(tag, |index| {
            let connection = self.connections.get(index);
            side = connection.and_then(|connection| connection.side_of(segment));
            side.is_some()
        });
        index.zip(side)
    }

    /// Like [`Tracker::locate`], while a SYN on an open connection awaits its answer.
    #[cold]
    fn locate_forked(
        &mut self,
        segment: &Segment,
        tag: u32,
        index: u32,
        side: usize,
    ) -> (u32, usize) {
        let Some(older) = self.forks.gone_on(&self.connections, index, segment) else {
            return (index, side);
        };
        self.replace(tag, index, older);
        (older, self.side_in(older, segment))
    }

    fn side_in(&self, index: u32, segment: &Segment) -> usize {
        let connection = self.connections.get(index);
        connection
            .and_then(|connection| connection.side_of(segment))
            .unwrap_or(0)
    }

    #[cold]
    fn locate_syn(&mut self, segment: &Segment, tag: u32, index: u32, side: usize) -> (u32, usize) {
        match self.connections.get(index) {
            Some(connection) if handshake::begins_again(connection, side, segment) => {}
            _ => return (index, side),
        }
        if let Some(newer) = self.forks.taken_up(&self.connections, index, segment) {
            self.replace(tag, index, newer);
            return (newer, self.side_in(newer, segment));
        }
        let newer = self.open(segment, Some(self.forks.latest(index)));
        self.replace(tag, index, newer);
        self.forks.begin(&self.connections, index, newer);
        (newer, 0)
    }
}
