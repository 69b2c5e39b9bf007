//! Rare state of a connection: earlier connections of its four-tuple, events, stalls, sampling, a reset.
//!
//! In a capture of a million tiny connections, many have a single event. The first event is stored inline; the lists
//! are allocated for the second.

use crate::event::{self, Counts, Events};
use crate::tcp::connection::clock::Clock;
use crate::tcp::connection::journal::{Journal, JournalEntry};
use crate::tcp::connection::stalls::Stalls;
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::timing::pipeline::Pipeline;
use crate::wire::Segment;

#[derive(Clone, Debug, Default)]
pub struct Incidents {
    first: First,
    /// Present from the second segment with events, or if the first has evidence.
    tally: Option<Box<Tally>>,
    pub rare: Option<Box<RareIncidents>>,
    /// Number of earlier connections with the same four-tuple.
    pub epoch: u16,
    /// Whether some of its segments are samples, so that most others are missing.
    pub is_sampled: bool,
}

// One cache line with the allocator's header.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Incidents>() <= 56);

/// The first segment with events; `events` is 0 without one, or once a [`Tally`] counts them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
struct First {
    frame: u64,
    time_ns: i64,
    events: Events,
    seq: u32,
    ack: u32,
    length: u32,
    window_raw: u16,
    side: u8,
    /// Whether it belongs to the journal.
    is_kept: bool,
}

/// Counts of all events by side, and the first events in detail.
#[derive(Clone, Debug, Default)]
struct Tally {
    counts: [Counts; 2],
    journal: Journal,
}

#[derive(Clone, Debug, Default)]
pub struct RareIncidents {
    pub stalls: Option<Box<Stalls>>,
    /// Time and frame of the first RST of a connection that had data.
    pub reset: Option<(i64, u64)>,
    pub doubtful_reset: Option<DoubtfulReset>,
    /// The correction of a capture clock that was set back.
    pub clock: Clock,
    /// Requests under way at once, since data of one side crossed the other's.
    pub pipeline: Option<Box<Pipeline>>,
}

impl Incidents {
    /// Return the incidents of a new connection.
    pub fn of_epoch(epoch: u16) -> Option<Box<Self>> {
        (epoch > 0).then(|| {
            Box::new(Incidents {
                epoch,
                ..Incidents::default()
            })
        })
    }

    pub fn rare_mut(&mut self) -> &mut RareIncidents {
        self.rare.get_or_insert_with(Box::default)
    }

    pub fn count(&mut self, side: usize, events: Events) {
        if let (None, 0) = (&self.tally, self.first.events) {
            (self.first.events, self.first.side) = (events, side as u8 & 1);
        } else {
            event::count(&mut self.tally_mut().counts[side & 1], events);
        }
    }

    /// Return how often events of a set occurred at a side's segments.
    pub fn event_count(&self, side: usize, events: Events) -> u32 {
        match &self.tally {
            Some(tally) => event::counted(&tally.counts[side & 1], events),
            None if usize::from(self.first.side) == side => {
                (self.first.events & events).count_ones()
            }
            None => 0,
        }
    }

    #[inline]
    pub fn may_journal(&self, events: Events) -> bool {
        (self.tally.as_ref()).is_none_or(|tally| events & !tally.journal.full() != 0)
    }

    /// Store the counted events of a segment if they are among the first; return whether they were stored.
    pub fn keep(
        &mut self,
        side: usize,
        segment: &Segment,
        events: Events,
        evidence: Option<Evidence>,
    ) -> bool {
        if self.tally.is_none() && evidence.is_none() && !self.first.is_kept {
            self.first = First {
                frame: segment.frame,
                time_ns: segment.time_ns,
                events,
                seq: segment.seq,
                ack: segment.ack,
                length: segment.payload_len,
                window_raw: segment.window,
                side: side as u8 & 1,
                is_kept: true,
            };
            return true;
        }
        let entry = JournalEntry::of(side, segment, events, evidence);
        self.tally_mut().journal.note(&entry)
    }

    /// Return the entries of the journal in capture order.
    pub fn journal(&self) -> Vec<JournalEntry> {
        match &self.tally {
            Some(tally) => tally.journal.entries(),
            None if self.first.is_kept => vec![self.first.entry()],
            None => Vec::new(),
        }
    }

    /// Remove later frames from the journal.
    pub fn end_journal_at(&mut self, frame: u64) {
        self.first.is_kept &= self.first.frame <= frame;
        if let Some(tally) = &mut self.tally {
            tally.journal.end_at(frame);
        }
    }

    fn tally_mut(&mut self) -> &mut Tally {
        let first = &mut self.first;
        self.tally.get_or_insert_with(|| {
            let mut tally = Box::<Tally>::default();
            event::count(&mut tally.counts[usize::from(first.side)], first.events);
            if first.is_kept {
                tally.journal.note(&first.entry());
            }
            *first = First::default();
            tally
        })
    }
}

impl First {
    fn entry(&self) -> JournalEntry {
        JournalEntry {
            frame: self.frame,
            time_ns: self.time_ns,
            side: self.side,
            events: self.events,
            seq: self.seq,
            ack: self.ack,
            length: self.length,
            window_raw: self.window_raw,
            evidence: None,
        }
    }
}

/// A RST that the receiver may have ignored.
#[derive(Clone, Copy, Debug)]
pub struct DoubtfulReset {
    /// Side that sent it.
    pub side: u8,
    pub time_ns: i64,
    pub frame: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{WINDOW_FULL, WINDOW_SHRINK, ZERO_WINDOW};

    fn segment(frame: u64) -> Segment {
        Segment {
            frame,
            seq: frame as u32 * 10,
            window: 7,
            ..Segment::EMPTY
        }
    }

    /// The first event is stored inline, later ones in the lists: counts and entries must agree either way.
    #[test]
    fn the_first_event_is_counted_and_kept_as_the_others_are() {
        let mut incidents = Incidents::default();
        let events = [WINDOW_SHRINK | ZERO_WINDOW, ZERO_WINDOW, WINDOW_FULL];
        let mut expected = Vec::new();
        for (nth, events) in events.into_iter().enumerate() {
            let (side, segment) = ([1, 1, 0][nth], segment(nth as u64 + 1));
            incidents.count(side, events);
            assert!(incidents.may_journal(events) && incidents.keep(side, &segment, events, None));
            expected.push(JournalEntry::of(side, &segment, events, None));
            assert_eq!(incidents.journal(), expected);
            assert_eq!(incidents.tally.is_some(), nth > 0);
            assert_eq!(incidents.event_count(1, ZERO_WINDOW), [1, 2, 2][nth]);
            assert_eq!(
                incidents.event_count(1, WINDOW_SHRINK | ZERO_WINDOW),
                [2, 3, 3][nth]
            );
            assert_eq!(incidents.event_count(0, WINDOW_FULL), [0, 0, 1][nth]);
        }
        incidents.end_journal_at(2);
        assert_eq!(incidents.journal(), expected[..2]);
    }

    #[test]
    fn an_event_that_is_not_kept_counts() {
        let mut incidents = Incidents::default();
        incidents.count(0, ZERO_WINDOW);
        assert!(incidents.journal().is_empty());
        incidents.count(0, ZERO_WINDOW);
        assert_eq!(incidents.event_count(0, ZERO_WINDOW), 2);
        assert!(incidents.journal().is_empty());
        let mut lone = Incidents::default();
        lone.count(0, ZERO_WINDOW);
        lone.keep(0, &segment(9), ZERO_WINDOW, None);
        lone.end_journal_at(8);
        assert_eq!(
            (lone.journal().len(), lone.event_count(0, ZERO_WINDOW)),
            (0, 1)
        );
    }
}
