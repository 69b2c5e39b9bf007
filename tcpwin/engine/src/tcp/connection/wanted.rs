//! Selects the connections that a pass tracks; segments of other connections are skipped.
//!
//! In: connections of an earlier pass over the same capture, or the number of one. Out: whether a tag of the flow table
//! may be theirs, and their earlier numbers.

use std::collections::HashMap;

use super::state::{Connection, Endpoint};

/// Bits of the bitmap per tag: about one in this many other tags passes it.
const BITS_PER_TAG: usize = 64;
const BITS_MIN: usize = 1 << 16;
const BITS_MAX: usize = 1 << 22;

/// Identity of a connection across passes: its endpoints in the order of its first segment, and its epoch.
type Key = ([Endpoint; 2], u16);

pub enum Wanted {
    These(These),
    /// The connections with these numbers, in the order in which they open; the stream contains no others.
    All(Vec<u32>),
    /// The connection with this number. Its tag is known once it opens.
    Number {
        number: u32,
        tag: Option<u32>,
    },
}

pub struct These {
    /// Bitmap of the tags' low bits.
    sieve: Vec<u64>,
    tags: Vec<u32>,
    numbers: HashMap<Key, u32>,
    /// The number of each opened connection, if it is wanted.
    opened: Vec<Option<u32>>,
}

impl These {
    /// Select connections by tag and number. Returns None if one of them cannot be distinguished from others of its
    /// four-tuple.
    pub fn new<'a>(connections: impl Iterator<Item = (u32, u32, &'a Connection)>) -> Option<These> {
        let (mut tags, mut numbers) = (Vec::new(), HashMap::new());
        for (tag, number, connection) in connections {
            if connection.epoch() == u16::MAX {
                return None;
            }
            tags.push(tag);
            numbers.insert(key(connection), number);
        }
        tags.sort_unstable();
        tags.dedup();
        let bits = (tags.len() * BITS_PER_TAG)
            .next_power_of_two()
            .clamp(BITS_MIN, BITS_MAX);
        let mut sieve = vec![0; bits / 64];
        for tag in &tags {
            let bit = *tag as usize % bits;
            sieve[bit / 64] |= 1 << (bit % 64);
        }
        Some(These {
            sieve,
            tags,
            numbers,
            opened: Vec::new(),
        })
    }

    #[inline(always)]
    fn may_hold(&self, tag: u32) -> bool {
        let place = (tag as usize / 64) & (self.sieve.len() - 1);
        let is_in = self
            .sieve
            .get(place)
            .is_some_and(|bits| bits >> (tag % 64) & 1 == 1);
        is_in && self.tags.binary_search(&tag).is_ok()
    }
}

impl Wanted {
    /// Return whether a segment with this tag may belong to a wanted connection.
    #[inline(always)]
    pub fn may_hold(&self, tag: u32) -> bool {
        match self {
            Wanted::These(these) => these.may_hold(tag),
            Wanted::All(_) => true,
            Wanted::Number { tag: known, .. } => known.is_none_or(|known| known == tag),
        }
    }

    pub fn open(&mut self, index: u32, tag: u32, connection: &Connection) {
        match self {
            Wanted::These(these) => {
                let number = these.numbers.get(&key(connection)).copied();
                these.opened.push(number);
            }
            Wanted::All(_) => {}
            Wanted::Number { number, tag: known } => {
                if index == *number {
                    *known = Some(tag);
                }
            }
        }
    }

    /// Return the index at which the connection with this number was opened, if it was.
    pub fn index(&self, number: u32) -> Option<u32> {
        let place = match self {
            Wanted::These(these) => these.opened.iter().position(|known| *known == Some(number)),
            Wanted::All(numbers) => numbers.binary_search(&number).ok(),
            Wanted::Number { number: known, .. } => return (*known == number).then_some(number),
        };
        place.and_then(|place| u32::try_from(place).ok())
    }

    /// Return the number of the `index`th connection opened; None if it is not wanted.
    pub fn number(&self, index: u32) -> Option<u32> {
        match self {
            Wanted::These(these) => these.opened.get(index as usize).copied().flatten(),
            Wanted::All(numbers) => numbers.get(index as usize).copied(),
            Wanted::Number { number, .. } => (index == *number).then_some(index),
        }
    }
}

fn key(connection: &Connection) -> Key {
    (connection.endpoints, connection.epoch())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Segment;

    fn connection(port: u16, epoch: u16) -> Connection {
        let segment = Segment {
            src_port: port,
            ..Segment::EMPTY
        };
        Connection::new(&segment, epoch)
    }

    #[test]
    fn connections_keep_their_numbers() {
        let (one, again, other) = (connection(1, 0), connection(1, 1), connection(2, 0));
        let known = [(70_001, 5, &one), (70_001, 9, &again)];
        let mut wanted = Wanted::These(These::new(known.into_iter()).unwrap());
        assert!(wanted.may_hold(70_001));
        assert!(!wanted.may_hold(70_002));
        assert!(!wanted.may_hold(70_001 + (1 << 16)), "the same low bits");
        wanted.open(0, 70_001, &one);
        wanted.open(1, 70_001, &other);
        wanted.open(2, 70_001, &again);
        let numbers: Vec<_> = (0..4).map(|index| wanted.number(index)).collect();
        assert_eq!(numbers, [Some(5), None, Some(9), None]);
    }

    #[test]
    fn epochs_beyond_the_count_are_not_told_apart() {
        assert!(These::new([(1, 1, &connection(1, u16::MAX))].into_iter()).is_none());
    }

    #[test]
    fn one_by_its_number_shows_when_it_is_opened() {
        let mut wanted = Wanted::Number {
            number: 1,
            tag: None,
        };
        wanted.open(0, 10, &connection(1, 0));
        assert!(wanted.may_hold(10) && wanted.may_hold(11));
        wanted.open(1, 11, &connection(2, 0));
        assert!(!wanted.may_hold(10) && wanted.may_hold(11));
        assert_eq!((wanted.number(0), wanted.number(1)), (None, Some(1)));
    }
}
