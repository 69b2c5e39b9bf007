//! The first significant events of a connection, stored by the first pass, so that explaining them does not require a
//! second pass over a large capture.
//!
//! Because thousands of connections may have events, an entry is stored as differences from the previous one: about
//! thirty bytes, without loss.

use crate::event::{self, Events};
use crate::tcp::recovery::cause::{Confidence, Diagnosis, RetransmissionCause};
use crate::tcp::recovery::evidence::{Evidence, Kind, PARTS};
use crate::wire::Segment;

/// Events that carry a cause, an age or an original.
pub const TELLING: Events =
    event::WITH_EVIDENCE | event::SYN_RETRANSMISSION | event::IDLE_RESTART | event::WINDOW_SHRINK;
/// Maximum number of such events per connection.
const MOST_TELLING: u8 = 64;
/// Maximum number of events of each other kind.
const MOST_OF_A_KIND: u8 = 6;
/// Initial capacity: most connections with events have a single entry.
const FIRST_ROOM_BYTES: usize = 48;
/// Growth of the list: doubling it would waste more memory than the entries need.
const GROWTH_BYTES: usize = 192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalEntry {
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

impl JournalEntry {
    pub fn of(side: usize, segment: &Segment, events: Events, evidence: Option<Evidence>) -> Self {
        JournalEntry {
            frame: segment.frame,
            time_ns: segment.time_ns,
            side: side as u8 & 1,
            events,
            seq: segment.seq,
            ack: segment.ack,
            length: segment.payload_len,
            window_raw: segment.window,
            evidence,
        }
    }
}

/// Values that the next entry is stored relative to.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    frame: u64,
    time_ns: i64,
    seq: [u32; 2],
    ack: [u32; 2],
}

#[derive(Clone, Debug, Default)]
pub struct Journal {
    written: Vec<u8>,
    last: Last,
    /// Distinct reasons in the entries.
    reasons: Vec<&'static str>,
    telling: u8,
    of_a_kind: [u8; event::NAMES.len()],
    /// Kinds of events of which enough are stored.
    full: Events,
}

impl Journal {
    /// Return the kinds of events of which enough are stored.
    pub fn full(&self) -> Events {
        self.full
    }

    /// Store the event if it is among the first of its kind; return whether it was stored.
    pub fn note(&mut self, entry: &JournalEntry) -> bool {
        let is_wanted = self.is_wanted(entry.events);
        if is_wanted {
            self.write(entry);
        }
        is_wanted
    }

    pub fn entries(&self) -> Vec<JournalEntry> {
        let mut numbers = Numbers(&self.written);
        let mut last = Last::default();
        std::iter::from_fn(|| self.read(&mut numbers, &mut last)).collect()
    }

    /// Remove the entries of later frames. No entry may be added afterwards.
    pub fn end_at(&mut self, frame: u64) {
        if self.last.frame <= frame {
            return;
        }
        let mut numbers = Numbers(&self.written);
        let mut last = Last::default();
        let mut kept = 0;
        while self
            .read(&mut numbers, &mut last)
            .is_some_and(|entry| entry.frame <= frame)
        {
            kept = self.written.len() - numbers.0.len();
        }
        self.written.truncate(kept);
        self.written.shrink_to_fit();
    }

    fn is_wanted(&mut self, events: Events) -> bool {
        if events & TELLING != 0 && self.telling < MOST_TELLING {
            self.telling += 1;
            if self.telling == MOST_TELLING {
                self.full |= TELLING;
            }
            return true;
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

    fn write(&mut self, entry: &JournalEntry) {
        let side = usize::from(entry.side);
        let last = self.last;
        self.put(u64::from(entry.events) << 1 | u64::from(entry.side));
        self.put(entry.frame.wrapping_sub(last.frame));
        self.put_signed(entry.time_ns.wrapping_sub(last.time_ns));
        self.put_signed(i64::from(entry.seq.wrapping_sub(last.seq[side]) as i32));
        self.put_signed(i64::from(entry.ack.wrapping_sub(last.ack[side]) as i32));
        self.put(u64::from(entry.length));
        self.put(u64::from(entry.window_raw));
        self.write_evidence(entry);
        (self.last.frame, self.last.time_ns) = (entry.frame, entry.time_ns);
        (self.last.seq[side], self.last.ack[side]) = (entry.seq, entry.ack);
    }

    fn write_evidence(&mut self, entry: &JournalEntry) {
        let Some(evidence) = entry.evidence else {
            self.put(0);
            return;
        };
        let diagnosis = evidence.diagnosis;
        let parts = evidence.parts();
        let present = parts
            .iter()
            .fold(0, |bits, part| bits << 1 | u64::from(part.is_some()));
        let kinds = (diagnosis.cause as u64) << 2 | diagnosis.confidence as u64;
        self.put((kinds << PARTS.len() | present) + 1);
        let known = self
            .reasons
            .iter()
            .position(|reason| *reason == diagnosis.reason);
        let place = known.unwrap_or(self.reasons.len());
        if known.is_none() {
            self.reasons.push(diagnosis.reason);
        }
        self.put(place as u64);
        for (part, value) in PARTS.iter().zip(parts) {
            if let Some(value) = value {
                self.put_signed(from_frame(part.kind, entry.frame, value));
            }
        }
    }

    fn read(&self, numbers: &mut Numbers, last: &mut Last) -> Option<JournalEntry> {
        let head = numbers.next()?;
        let side = (head & 1) as usize;
        last.frame = last.frame.wrapping_add(numbers.next()?);
        last.time_ns = last.time_ns.wrapping_add(numbers.next_signed()?);
        last.seq[side] = last.seq[side].wrapping_add(numbers.next_signed()? as u32);
        last.ack[side] = last.ack[side].wrapping_add(numbers.next_signed()? as u32);
        Some(JournalEntry {
            frame: last.frame,
            time_ns: last.time_ns,
            side: side as u8,
            events: (head >> 1) as Events,
            seq: last.seq[side],
            ack: last.ack[side],
            length: numbers.next()? as u32,
            window_raw: numbers.next()? as u16,
            evidence: match numbers.next()? {
                0 => None,
                kinds => Some(self.read_evidence(numbers, last.frame, kinds - 1)?),
            },
        })
    }

    fn read_evidence(&self, numbers: &mut Numbers, frame: u64, kinds: u64) -> Option<Evidence> {
        let reason = *self.reasons.get(numbers.next()? as usize)?;
        let diagnosis = Diagnosis {
            cause: *RetransmissionCause::ALL.get((kinds >> PARTS.len() >> 2) as usize)?,
            reason,
            confidence: *Confidence::ALL.get((kinds >> PARTS.len() & 3) as usize)?,
        };
        let mut parts = [None; PARTS.len()];
        for (place, (part, value)) in PARTS.iter().zip(&mut parts).enumerate() {
            if kinds >> (PARTS.len() - 1 - place) & 1 == 1 {
                *value = Some(from_frame(part.kind, frame, numbers.next_signed()?));
            }
        }
        Some(Evidence::from_parts(diagnosis, parts))
    }

    /// Append a number in groups of seven bits, lowest first; the eighth bit is set if more bytes follow.
    fn put(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.push(number as u8);
    }

    fn push(&mut self, byte: u8) {
        if self.written.len() == self.written.capacity() {
            let is_first = self.written.is_empty();
            let room_bytes = if is_first {
                FIRST_ROOM_BYTES
            } else {
                GROWTH_BYTES
            };
            self.written.reserve_exact(room_bytes);
        }
        self.written.push(byte);
    }

    /// Append a signed number so that small values take few bytes: 0, −1, 1, −2 …
    fn put_signed(&mut self, number: i64) {
        self.put((number << 1 ^ number >> 63) as u64);
    }
}

/// Convert a frame number to its distance before the entry's frame, or back; leave other values unchanged.
fn from_frame(kind: Kind, frame: u64, value: i64) -> i64 {
    if kind == Kind::Frame {
        (frame as i64).wrapping_sub(value)
    } else {
        value
    }
}

/// Reads numbers written by [`Journal::put`].
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }

    fn next_signed(&mut self) -> Option<i64> {
        let number = self.next()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(journal: &mut Journal, events: Events) -> bool {
        journal.note(&JournalEntry::of(0, &Segment::EMPTY, events, None))
    }

    #[test]
    fn the_first_of_each_kind_are_kept() {
        let mut journal = Journal::default();
        for _ in 0..100 {
            note(&mut journal, event::WINDOW_FULL);
            note(&mut journal, event::RTO_RETRANSMISSION);
        }
        assert_eq!(
            journal.entries().len(),
            usize::from(MOST_OF_A_KIND) + usize::from(MOST_TELLING)
        );
        assert_eq!(journal.full(), event::WINDOW_FULL | TELLING);
    }

    #[test]
    fn an_event_that_is_the_first_of_another_kind_too_is_kept_beyond_the_telling_ones() {
        let mut journal = Journal::default();
        for _ in 0..MOST_TELLING {
            assert!(note(&mut journal, event::WINDOW_SHRINK));
        }
        assert!(!note(&mut journal, event::WINDOW_SHRINK));
        assert!(note(
            &mut journal,
            event::WINDOW_SHRINK | event::WINDOW_FULL
        ));
    }

    fn evidence() -> impl Strategy<Value = Evidence> {
        (
            0..RetransmissionCause::ALL.len(),
            0..Confidence::ALL.len(),
            prop_oneof![Just("its timestamp is older"), Just("other")],
            any::<[Option<i64>; PARTS.len()]>(),
        )
            .prop_map(|(cause, confidence, reason, parts)| {
                let diagnosis = Diagnosis {
                    cause: RetransmissionCause::ALL[cause],
                    reason,
                    confidence: Confidence::ALL[confidence],
                };
                Evidence::from_parts(diagnosis, parts)
            })
    }

    fn entry() -> impl Strategy<Value = JournalEntry> {
        (
            any::<u64>(),
            any::<i64>(),
            0u8..2,
            0u32..1 << event::NAMES.len(),
            any::<[u32; 3]>(),
            any::<u16>(),
            proptest::option::of(evidence()),
        )
            .prop_map(|parts| JournalEntry {
                frame: parts.0,
                time_ns: parts.1,
                side: parts.2,
                events: parts.3,
                seq: parts.4[0],
                ack: parts.4[1],
                length: parts.4[2],
                window_raw: parts.5,
                evidence: parts.6,
            })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(entries in prop::collection::vec(entry(), 0..20)) {
            let mut journal = Journal::default();
            for entry in &entries {
                journal.write(entry);
            }
            prop_assert_eq!(journal.entries(), entries);
        }
    }
}
