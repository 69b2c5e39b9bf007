//! Writes the events of segments into the journals of their connections.

use crate::event::Events;
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::evidence::Evidence;
use crate::wire::Segment;

/// Maximum number of entries in all journals, which bounds memory.
const MOST_JOURNALED: usize = 1 << 18;

/// Size of all journals together.
pub struct Journaled {
    entries: usize,
    /// The last frame whose events are kept.
    until_frame: u64,
    /// Frame of each entry, if several trackers share the capture.
    frames: Option<Vec<u64>>,
}

impl Default for Journaled {
    fn default() -> Self {
        Journaled::until(None)
    }
}

impl Journaled {
    /// Create journals that keep nothing after a frame, as when more connections were tracked.
    pub fn until(frame: Option<u64>) -> Self {
        Journaled {
            entries: 0,
            until_frame: frame.unwrap_or(u64::MAX),
            frames: None,
        }
    }

    /// Create journals of some of a capture's connections, to be joined with the others.
    pub fn of_some() -> Self {
        Journaled {
            frames: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Join the parts into the journal that a single tracker would have kept.
    pub fn joined(parts: Vec<Journaled>) -> Self {
        let frames = parts.into_iter().filter_map(|part| part.frames);
        let mut frames: Vec<u64> = frames.flatten().collect();
        let mut joined = Journaled::until(None);
        joined.entries = frames.len().min(MOST_JOURNALED);
        if frames.len() >= MOST_JOURNALED {
            let (_, last, _) = frames.select_nth_unstable(MOST_JOURNALED - 1);
            joined.until_frame = *last;
        }
        joined
    }

    /// Return the last frame whose events were kept, if the journals became full.
    pub fn until_frame(&self) -> Option<u64> {
        (self.until_frame != u64::MAX).then_some(self.until_frame)
    }

    /// Write counted events into a connection's journal.
    #[inline]
    pub fn keep(
        &mut self,
        connection: &mut Connection,
        side: usize,
        segment: &Segment,
        events: Events,
        evidence: Option<Evidence>,
    ) {
        if segment.frame > self.until_frame || !may_journal(connection, events) {
            return;
        }
        if journal(connection, side, segment, events, evidence) {
            self.entries += 1;
            if let Some(frames) = &mut self.frames {
                frames.push(segment.frame);
            }
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
    connection
        .incidents_mut()
        .keep(side, segment, events, evidence)
}

#[inline]
fn may_journal(connection: &Connection, events: Events) -> bool {
    (connection.incidents.as_ref()).is_none_or(|incidents| incidents.may_journal(events))
}
