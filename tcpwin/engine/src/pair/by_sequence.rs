//! Entries of a direction by the sequence numbers they cover: finds those that share bytes with a range.
//!
//! All entries lie within 2^31 of the newest one.

use std::collections::BTreeMap;

use crate::sequence::Seq;

#[derive(Clone, Debug)]
pub struct BySequence<T> {
    /// By unwrapped start and a number that the caller chooses; with the length.
    entries: BTreeMap<(i64, u32), (u32, T)>,
    /// A sequence number and its unwrapped position.
    anchor: (Seq, i64),
    longest: u32,
}

impl<T: Copy> BySequence<T> {
    pub fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            anchor: (Seq(0), 0),
            longest: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn place(&self, seq: Seq) -> i64 {
        self.anchor.1 + i64::from(self.anchor.0.to(seq))
    }

    pub fn insert(&mut self, start: Seq, len: u32, number: u32, value: T) {
        let place = self.place(start);
        self.anchor = (start, place);
        self.longest = self.longest.max(len);
        self.entries.insert((place, number), (len, value));
    }

    pub fn remove(&mut self, start: Seq, number: u32) {
        self.entries.remove(&(self.place(start), number));
    }

    /// Remove entries that end at or below a sequence number, which is acknowledged.
    pub fn remove_below(&mut self, edge: Seq) {
        let edge = self.place(edge);
        while let Some(first) = self.entries.first_entry() {
            if first.key().0 + i64::from(first.get().0) > edge {
                break;
            }
            first.remove();
        }
    }

    /// Return the entries that share bytes with `[start, end)`, in the order of their bytes.
    pub fn overlapping(&self, start: Seq, end: Seq) -> impl Iterator<Item = (u32, T)> + '_ {
        let (start, end) = (self.place(start), self.place(end));
        let least = start - i64::from(self.longest);
        self.entries
            .range((least.min(end), 0)..(end, 0))
            .filter(move |((place, _), (len, _))| place + i64::from(*len) > start)
            .map(|((_, number), (_, value))| (*number, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_search_of_all_entries_finds(
            first: u32,
            steps in proptest::collection::vec((0u32..5_000, 1u32..3_000), 1..60),
            asked in (0u32..200_000, 1u32..4_000),
            removed in 0usize..60,
        ) {
            let mut index = BySequence::new();
            let mut all = Vec::new();
            let mut at = Seq(first);
            for (number, (step, len)) in steps.into_iter().enumerate() {
                index.insert(at, len, number as u32, len);
                all.push((at, len, number as u32));
                at = at + step;
            }
            if removed < all.len() {
                let (start, _, number) = all.remove(removed);
                index.remove(start, number);
            }
            let start = Seq(first) + asked.0;
            let end = start + asked.1;
            let mut found: Vec<u32> = index.overlapping(start, end).map(|each| each.0).collect();
            found.sort_unstable();
            let is_shared = |each: &&(Seq, u32, u32)| {
                each.0.is_before(end) && start.is_before(each.0 + each.1)
            };
            let expected: Vec<u32> = all.iter().filter(is_shared).map(|each| each.2).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
