//! The events of a segment on their way into the journal of its connection.

use crate::connection::state::Connection;
use crate::event::Events;
use crate::recovery::cause::Evidence;
use crate::wire::Segment;

/// Entries of all journals: beyond it none is kept, and memory stays bounded.
const MOST_JOURNALED: usize = 1 << 18;

/// Write events, which were counted, into a connection's journal; the number of entries that this adds to all of
/// `journaled`.
#[inline]
pub fn keep(
    journaled: usize,
    connection: &mut Connection,
    side: usize,
    segment: &Segment,
    events: Events,
    evidence: Option<Evidence>,
) -> usize {
    if journaled >= MOST_JOURNALED || !connection.directions[side].may_journal(events) {
        return 0;
    }
    usize::from(journal(connection, side, segment, events, evidence))
}

#[cold]
fn journal(
    connection: &mut Connection,
    side: usize,
    segment: &Segment,
    events: Events,
    evidence: Option<Evidence>,
) -> bool {
    let journal = &mut connection.directions[0].cold().journal;
    let journal = journal.get_or_insert_with(Box::default);
    let is_kept = journal.note(side, segment, events, evidence);
    let full = journal.full();
    let cold = connection.directions[side].cold();
    cold.journal_full = full;
    if !is_kept {
        cold.note_omitted(events);
    }
    is_kept
}
