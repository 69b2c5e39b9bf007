//! The first telling events of a connection, kept in the first reading: so that a large capture need not be read again
//! to say why, and where.

use crate::event::{self, Events};
use crate::recovery::cause::Evidence;
use crate::wire::Segment;

/// Events of which each says something of its own: a cause, an age, an original.
const TELLING: Events =
    event::WITH_EVIDENCE | event::SYN_RETRANSMISSION | event::IDLE_RESTART | event::WINDOW_SHRINK;
/// Telling events kept for one connection.
const MOST_TELLING: usize = 64;
/// Of every other kind.
const MOST_OF_A_KIND: u8 = 6;

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub frame: u64,
    pub time_ns: i64,
    pub side: u8,
    pub events: Events,
    pub seq: u32,
    pub ack: u32,
    pub length: u32,
    pub window_raw: u16,
    pub evidence: Option<Evidence>,
}

#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub entries: Vec<Entry>,
    telling: usize,
    of_a_kind: [u8; event::NAMES.len()],
    /// Kinds of which enough are kept.
    full: Events,
    /// Telling events that were not kept.
    pub omitted: u32,
}

impl Journal {
    /// Keep the event if it is among the first of its kind; true where it was.
    pub fn note(
        &mut self,
        side: usize,
        segment: &Segment,
        events: Events,
        evidence: Option<Evidence>,
    ) -> bool {
        if !self.is_wanted(events) {
            return false;
        }
        self.entries.push(Entry {
            frame: segment.frame,
            time_ns: segment.time_ns,
            side: side as u8,
            events,
            seq: segment.seq,
            ack: segment.ack,
            length: segment.payload_len,
            window_raw: segment.window,
            evidence,
        });
        true
    }

    #[inline]
    fn is_wanted(&mut self, events: Events) -> bool {
        if events & !self.full == 0 {
            let is_telling = events & TELLING != 0;
            self.omitted = self.omitted.saturating_add(u32::from(is_telling));
            return false;
        }
        if events & TELLING != 0 {
            if self.telling < MOST_TELLING {
                self.telling += 1;
                if self.telling == MOST_TELLING {
                    self.full |= TELLING;
                }
                return true;
            }
            self.omitted = self.omitted.saturating_add(1);
        }
        let mut is_new = false;
        for (bit, count) in self.of_a_kind.iter_mut().enumerate() {
            if events & !TELLING & (1 << bit) != 0 && *count < MOST_OF_A_KIND {
                *count += 1;
                is_new = true;
                if *count == MOST_OF_A_KIND {
                    self.full |= 1 << bit;
                }
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_kind_are_kept_and_telling_ones_that_are_not_are_counted() {
        let mut journal = Journal::default();
        for _ in 0..100 {
            journal.note(0, &Segment::EMPTY, event::WINDOW_FULL, None);
            journal.note(1, &Segment::EMPTY, event::RTO_RETRANSMISSION, None);
        }
        assert_eq!(
            journal.entries.len(),
            usize::from(MOST_OF_A_KIND) + MOST_TELLING
        );
        assert_eq!(journal.omitted as usize, 100 - MOST_TELLING);
    }
}
