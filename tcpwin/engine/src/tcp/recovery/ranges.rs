//! A set of sequence ranges, kept sorted and disjoint modulo 2^32, with a bound on its size.
//!
//! Used for SACKed bytes and for bytes never captured. All ranges lie within 2^31 of each other.

use crate::sequence::Seq;

/// More ranges than most receivers hold; beyond it the oldest are forgotten.
const MAX_RANGES: usize = 1024;

#[derive(Clone, Debug, Default)]
pub struct RangeSet<const MOST: usize = MAX_RANGES> {
    ranges: Vec<(Seq, Seq)>,
}

impl<const MOST: usize> RangeSet<MOST> {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        self.ranges.iter().copied()
    }

    /// Return the bytes in the set.
    pub fn total(&self) -> u32 {
        self.ranges.iter().fold(0u32, |sum, (left, right)| {
            sum.saturating_add(left.to(*right).max(0) as u32)
        })
    }

    /// Return the highest byte in the set, exclusive.
    pub fn end(&self) -> Option<Seq> {
        self.ranges.last().map(|range| range.1)
    }

    /// Add `[left, right)`; return how many of its bytes were not in the set before.
    pub fn insert(&mut self, left: Seq, right: Seq) -> u32 {
        if !left.is_before(right) {
            return 0;
        }
        let first = self.ranges.partition_point(|range| range.1.is_before(left));
        let last = self
            .ranges
            .partition_point(|range| !range.0.is_after(right));
        let mut merged = (left, right);
        let mut known = 0u32;
        for range in &self.ranges[first..last.max(first)] {
            let low = if range.0.is_before(left) {
                left
            } else {
                range.0
            };
            let high = if range.1.is_after(right) {
                right
            } else {
                range.1
            };
            known = known.saturating_add(low.to(high).max(0) as u32);
            if range.0.is_before(merged.0) {
                merged.0 = range.0;
            }
            merged.1 = merged.1.max(range.1);
        }
        self.ranges.splice(first..last.max(first), [merged]);
        if self.ranges.len() > MOST {
            self.ranges.remove(0);
        }
        (left.to(right) as u32).saturating_sub(known)
    }

    /// Remove `[left, right)`; return how many bytes were in the set.
    pub fn remove(&mut self, left: Seq, right: Seq) -> u32 {
        if !left.is_before(right) {
            return 0;
        }
        let first = self.ranges.partition_point(|range| !range.1.is_after(left));
        let last = self
            .ranges
            .partition_point(|range| range.0.is_before(right))
            .max(first);
        let mut rest = [None, None];
        let mut removed = 0u32;
        for range in &self.ranges[first..last] {
            let low = range.0.max(left);
            let high = if range.1.is_after(right) {
                right
            } else {
                range.1
            };
            removed = removed.saturating_add(low.to(high).max(0) as u32);
            if range.0.is_before(left) {
                rest[0] = Some((range.0, left));
            }
            if range.1.is_after(right) {
                rest[1] = Some((right, range.1));
            }
        }
        if removed > 0 {
            self.ranges.splice(first..last, rest.into_iter().flatten());
        }
        removed
    }

    /// Forget everything below `edge`; return how many bytes that was.
    pub fn remove_below(&mut self, edge: Seq) -> u32 {
        let whole = self.ranges.partition_point(|range| !range.1.is_after(edge));
        let mut removed: u32 = self
            .ranges
            .drain(..whole)
            .fold(0, |sum: u32, (left, right)| {
                sum.saturating_add(left.to(right).max(0) as u32)
            });
        if let Some(first) = self.ranges.first_mut() {
            if first.0.is_before(edge) {
                removed = removed.saturating_add(first.0.to(edge) as u32);
                first.0 = edge;
            }
        }
        removed
    }

    /// Return how many bytes of `[left, right)` are in the set.
    pub fn overlap(&self, left: Seq, right: Seq) -> u32 {
        let first = self.ranges.partition_point(|range| !range.1.is_after(left));
        let mut sum = 0u32;
        for range in &self.ranges[first..] {
            if !range.0.is_before(right) {
                break;
            }
            let low = range.0.max(left);
            let high = if range.1.is_after(right) {
                right
            } else {
                range.1
            };
            sum = sum.saturating_add(low.to(high).max(0) as u32);
        }
        sum
    }

    /// Return true if all of `[left, right)` is in the set.
    pub fn covers(&self, left: Seq, right: Seq) -> bool {
        let first = self.ranges.partition_point(|range| !range.1.is_after(left));
        let range = self.ranges.get(first);
        range.is_some_and(|range| !range.0.is_after(left) && !range.1.is_before(right))
    }

    /// Return the end of the range that holds a byte, or the byte itself.
    pub fn end_from(&self, byte: Seq) -> Seq {
        let first = self.ranges.partition_point(|range| !range.1.is_after(byte));
        let range = self.ranges.get(first);
        range
            .filter(|range| !range.0.is_after(byte))
            .map_or(byte, |range| range.1)
    }

    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn merges_touching_ranges_across_the_wrap() {
        let mut set: RangeSet = RangeSet::default();
        assert_eq!(set.insert(Seq(0xffff_ff00), Seq(0xffff_fff0)), 0xf0);
        assert_eq!(set.insert(Seq(0xffff_fff0), Seq(0x10)), 0x20);
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [(Seq(0xffff_ff00), Seq(0x10))]
        );
        assert_eq!(set.total(), 0x110);
        assert_eq!(set.remove_below(Seq(0)), 0x100);
        assert_eq!(set.total(), 0x10);
    }

    #[test]
    fn known_bytes_from_anywhere_do_not_overflow() {
        let mut set: RangeSet = RangeSet::default();
        for (left, right) in [
            (645_899_016, 914_784_193),
            (2_280_311_397, 0),
            (408_726_688, 408_726_689),
            (408_726_690, 2_050_583_157),
            (1_999_438_925, 2_887_870_907),
            (1_864_911_097, 3_607_148_241),
            (2_147_483_648, 3_376_619_577),
        ] {
            set.insert(Seq(left), Seq(right));
        }
        assert!(set.iter().count() <= MAX_RANGES);
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_bytes(base in any::<u32>(), steps in prop::collection::vec((0u8..3, 0u32..120, 0u32..40), 1..60)) {
            let mut set: RangeSet = RangeSet::default();
            let mut model = BTreeSet::new();
            let at = |offset: u32| Seq(base) + offset;
            for (action, start, length) in steps {
                let (left, right) = (at(start), at(start + length));
                let bytes = start..start + length;
                prop_assert_eq!(set.overlap(left, right) as usize, bytes.clone().filter(|b| model.contains(b)).count());
                match action {
                    0 => {
                        let added = bytes.filter(|b| model.insert(*b)).count();
                        prop_assert_eq!(set.insert(left, right) as usize, added);
                    }
                    1 => {
                        let gone = bytes.filter(|b| model.remove(b)).count();
                        prop_assert_eq!(set.remove(left, right) as usize, gone);
                    }
                    _ => {
                        let before = model.len();
                        model.retain(|b| *b >= start);
                        prop_assert_eq!(set.remove_below(left) as usize, before - model.len());
                    }
                }
                prop_assert_eq!(set.total() as usize, model.len());
                let ranges: Vec<_> = set.iter().collect();
                for pair in ranges.windows(2) {
                    prop_assert!(pair[0].1.is_before(pair[1].0));
                }
            }
        }

        /// Ranges as far apart as possible, which a set of bytes could not hold.
        #[test]
        fn agrees_with_a_list_of_intervals(base in any::<u32>(), steps in prop::collection::vec((0u8..3, 0u32..1 << 30, 0u32..1 << 29), 1..60)) {
            let mut set: RangeSet = RangeSet::default();
            let mut model: Vec<(u32, u32)> = Vec::new();
            let within = |model: &[(u32, u32)], left: u32, right: u32| -> u32 {
                model.iter().map(|each| each.1.min(right).saturating_sub(each.0.max(left))).sum()
            };
            let without = |model: &[(u32, u32)], left: u32, right: u32| -> Vec<(u32, u32)> {
                let halves = model.iter().flat_map(|each| {
                    [(each.0, each.1.min(left)), (each.0.max(right), each.1)]
                });
                halves.filter(|each| each.0 < each.1).collect()
            };
            for (action, start, length) in steps {
                let (left, right) = (Seq(base) + start, Seq(base) + (start + length));
                let known = within(&model, start, start + length);
                prop_assert_eq!(set.overlap(left, right), known);
                match action {
                    0 => {
                        prop_assert_eq!(set.insert(left, right), length - known);
                        model = without(&model, start, start + length);
                        model.push((start, start + length));
                    }
                    1 => {
                        prop_assert_eq!(set.remove(left, right), known);
                        model = without(&model, start, start + length);
                    }
                    _ => {
                        prop_assert_eq!(set.remove_below(left), within(&model, 0, start));
                        model = without(&model, 0, start);
                    }
                }
                prop_assert_eq!(set.total(), within(&model, 0, u32::MAX));
            }
        }

        /// A peer may exceed half the sequence space; then counts are wrong, but nothing worse happens.
        #[test]
        fn numbers_from_anywhere_do_no_harm(steps in prop::collection::vec((0u8..4, any::<u32>(), any::<u32>()), 1..200)) {
            let mut set: RangeSet = RangeSet::default();
            for (action, left, right) in steps {
                let (left, right) = (Seq(left), Seq(right));
                match action {
                    0 => set.insert(left, right),
                    1 => set.remove(left, right),
                    2 => set.remove_below(left),
                    _ => set.overlap(left, right),
                };
                set.total();
                prop_assert!(set.iter().count() <= MAX_RANGES);
            }
        }
    }
}
