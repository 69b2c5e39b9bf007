//! The events of a segment on their way into the journal of its connection.

use crate::connection::state::Connection;
use crate::event::Events;
use crate::recovery::evidence::Evidence;
use crate::wire::Segment;

/// Entries of all journals: beyond it none is kept, and memory stays bounded.
const MOST_JOURNALED: usize = 1 << 18;

/// How much all journals together keep.
pub struct Journaled {
    entries: usize,
    /// The last frame of which they take anything.
    until_frame: u64,
}

impl Default for Journaled {
    fn default() -> Self {
        Journaled::until(None)
    }
}

impl Journaled {
    /// Journals that take nothing after a frame, as they did when more connections were tracked.
    pub fn until(frame: Option<u64>) -> Self {
        Journaled {
            entries: 0,
            until_frame: frame.unwrap_or(u64::MAX),
        }
    }

    /// The last frame of which they took anything, where they became full.
    pub fn until_frame(&self) -> Option<u64> {
        (self.until_frame != u64::MAX).then_some(self.until_frame)
    }

    /// Write events, which were counted, into a connection's journal.
    #[inline]
    pub fn keep(
        &mut self,
        connection: &mut Connection,
        side: usize,
        segment: &Segment,
        events: Events,
        evidence: Option<Evidence>,
    ) {
        if segment.frame > self.until_frame || !connection.directions[side].may_journal(events) {
            return;
        }
        if journal(connection, side, segment, events, evidence) {
            self.entries += 1;
            if self.entries == MOST_JOURNALED {
                self.until_frame = segment.frame;
            }
        }
    }
}

#[cold]
fn journal(
    connection: &mut Connection,
    side: usize,
    segment: &Segment,
    events: Events,
    evidence: Option<Evidence>,
) -> bool {
    let journal = &mut connection.incidents_mut().journal;
    let journal = journal.get_or_insert_with(Box::default);
    let is_kept = journal.note(side, segment, events, evidence);
    let full = journal.full();
    let rare = connection.directions[side].rare();
    rare.journal_full = full;
    if !is_kept {
        rare.note_omitted(events);
    }
    is_kept
}
