//! Budget items along the time axis: consecutive spans, exact while there are few, then merged with their neighbours.
//!
//! Late decisions move time from one item to another; the sum never changes.

use crate::output::series::Span;
use crate::tables::budget_item::{SenderState, SENDER_STATES};

/// The items, and one kind for time not yet charged.
pub const KINDS: usize = SENDER_STATES + 1;
pub const OPEN: usize = SENDER_STATES;

/// A span of time and its division among the kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub start_ns: i64,
    pub end_ns: i64,
    pub spent_ns: [i64; KINDS],
}

impl Slot {
    fn new(start_ns: i64, end_ns: i64, kind: usize) -> Self {
        let mut spent_ns = [0; KINDS];
        spent_ns[kind] = end_ns.saturating_sub(start_ns);
        Slot {
            start_ns,
            end_ns,
            spent_ns,
        }
    }

    fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn is_all(&self, kind: usize) -> bool {
        self.spent_ns[kind] == self.length_ns()
    }

    fn join(&mut self, next: &Slot) {
        self.end_ns = next.end_ns;
        for (spent, more) in self.spent_ns.iter_mut().zip(next.spent_ns) {
            *spent = spent.saturating_add(more);
        }
    }
}

pub struct Timeline {
    slots: Vec<Slot>,
    span: Span,
    limit: usize,
    start_ns: i64,
    end_ns: i64,
    /// Neighbours within this time share a slot.
    width_ns: i64,
}

impl Timeline {
    /// Start at `start_ns`, with at most `limit` slots within the span and one on either side of it.
    pub fn new(start_ns: i64, span: Span, limit: usize) -> Self {
        Timeline {
            slots: Vec::new(),
            span,
            limit: limit.max(2),
            start_ns,
            end_ns: start_ns,
            width_ns: 1,
        }
    }

    pub fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// Return the slots within the span.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots
            .iter()
            .filter(|slot| self.zone(slot) == Zone::Within)
    }

    /// Extend the timeline to `to_ns` with time of one kind.
    pub fn push(&mut self, kind: usize, to_ns: i64) {
        for border_ns in [self.span.start_ns, self.span.end_ns, to_ns] {
            let piece_ns = border_ns.min(to_ns);
            if piece_ns > self.end_ns {
                let slot = Slot::new(self.end_ns, piece_ns, kind);
                self.end_ns = piece_ns;
                self.append(slot, kind);
            }
        }
    }

    fn append(&mut self, slot: Slot, kind: usize) {
        let zone = self.zone(&slot);
        match self.slots.last() {
            Some(last)
                if self.zone(last) == zone && (zone == Zone::Outside || last.is_all(kind)) =>
            {
                if let Some(last) = self.slots.last_mut() {
                    last.join(&slot);
                }
            }
            _ => self.slots.push(slot),
        }
        if self.slots.len() > self.limit * 2 {
            self.shorten();
        }
    }

    /// Convert up to `most_ns` of the first matching kinds between two times to another kind, earliest first. Return
    /// the amount converted.
    pub fn convert(
        &mut self,
        from_ns: i64,
        to_ns: i64,
        kinds: &[usize],
        into: usize,
        most_ns: i64,
    ) -> i64 {
        let mut left_ns = most_ns.max(0);
        for kind in kinds {
            left_ns -= self.convert_one(from_ns, to_ns, *kind, into, left_ns);
        }
        if self.slots.len() > self.limit * 2 {
            self.shorten();
        }
        most_ns.max(0) - left_ns
    }

    fn convert_one(
        &mut self,
        from_ns: i64,
        to_ns: i64,
        kind: usize,
        into: usize,
        most_ns: i64,
    ) -> i64 {
        let mut given_ns = 0;
        let mut index = self.slots.partition_point(|slot| slot.end_ns <= from_ns);
        while let Some(slot) = self.slots.get_mut(index) {
            if slot.start_ns >= to_ns || given_ns >= most_ns {
                break;
            }
            let first_ns = slot.start_ns.max(from_ns);
            let overlap_ns = slot.end_ns.min(to_ns).saturating_sub(first_ns);
            let moved_ns = slot.spent_ns[kind].min(overlap_ns).min(most_ns - given_ns);
            if moved_ns > 0 && kind != into {
                given_ns += moved_ns;
                if moved_ns < slot.length_ns() && slot.is_all(kind) {
                    index += self.split(index, kind, into, first_ns, moved_ns);
                } else {
                    slot.spent_ns[kind] -= moved_ns;
                    slot.spent_ns[into] += moved_ns;
                }
            }
            index += 1;
        }
        given_ns
    }

    fn convert_latest(&mut self, kind: usize, into: usize, most_ns: i64) -> i64 {
        let mut left_ns = most_ns;
        for index in (0..self.slots.len()).rev().take_while(|_| most_ns > 0) {
            let Some(slot) = self.slots.get(index) else {
                break;
            };
            let (start_ns, end_ns) = (slot.start_ns, slot.end_ns);
            let spare_ns = slot.length_ns() - slot.spent_ns[kind].min(left_ns);
            let from_ns = if slot.is_all(kind) {
                start_ns.saturating_add(spare_ns)
            } else {
                start_ns
            };
            left_ns -= self.convert_one(from_ns, end_ns, kind, into, left_ns);
        }
        most_ns - left_ns
    }

    /// Split a slot of a single kind and convert part of it. Return the number of slots added.
    fn split(
        &mut self,
        index: usize,
        kind: usize,
        into: usize,
        first_ns: i64,
        moved_ns: i64,
    ) -> usize {
        let Some(slot) = self.slots.get(index).cloned() else {
            return 0;
        };
        if self.zone(&slot) == Zone::Outside {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.spent_ns[kind] -= moved_ns;
                slot.spent_ns[into] += moved_ns;
            }
            return 0;
        }
        let last_ns = first_ns.saturating_add(moved_ns);
        let parts = [
            Slot::new(slot.start_ns, first_ns, kind),
            Slot::new(first_ns, last_ns, into),
            Slot::new(last_ns, slot.end_ns, kind),
        ];
        let parts: Vec<Slot> = parts
            .into_iter()
            .filter(|part| part.length_ns() > 0)
            .collect();
        let added = parts.len() - 1;
        self.slots.splice(index..=index, parts);
        added
    }

    /// Return the sums over the whole timeline.
    pub fn totals_ns(&self) -> [i64; KINDS] {
        let mut totals = [0i64; KINDS];
        for slot in &self.slots {
            for (total, spent) in totals.iter_mut().zip(slot.spent_ns) {
                *total = total.saturating_add(spent);
            }
        }
        totals
    }

    /// Match each item's sum to `wanted_ns` by taking time from items with too much, latest first; the application's
    /// time, whose corrections concern the start, earliest first.
    pub fn settle(&mut self, wanted_ns: &[i64; SENDER_STATES]) {
        let mut totals = self.totals_ns();
        for (into, wanted) in wanted_ns.iter().enumerate() {
            for kind in (0..KINDS).rev().filter(|kind| *kind != into) {
                let lacking_ns = wanted.saturating_sub(totals[into]).max(0);
                let spare_ns = totals[kind] - wanted_ns.get(kind).copied().unwrap_or(0);
                let most_ns = lacking_ns.min(spare_ns.max(0));
                let moved_ns = if kind == SenderState::Application as usize {
                    self.convert_one(i64::MIN, i64::MAX, kind, into, most_ns)
                } else {
                    self.convert_latest(kind, into, most_ns)
                };
                totals[kind] -= moved_ns;
                totals[into] += moved_ns;
            }
        }
        self.shorten();
    }

    /// Merge neighbours of one kind and then, while there are too many slots, those within a width that doubles.
    fn shorten(&mut self) {
        self.merge(|one, next| {
            let kind = (0..KINDS).find(|kind| one.is_all(*kind));
            kind.is_some_and(|kind| next.is_all(kind))
        });
        let start_ns = self.start_ns.max(self.span.start_ns);
        while self.slots().count() > self.limit {
            let width_ns = self.width_ns;
            let bucket = |time_ns: i64| time_ns.saturating_sub(start_ns) / width_ns;
            self.merge(|one, next| bucket(one.start_ns) == bucket(next.end_ns - 1));
            if self.slots().count() > self.limit {
                self.width_ns = self.width_ns.saturating_mul(2);
            }
        }
    }

    fn merge(&mut self, is_one: impl Fn(&Slot, &Slot) -> bool) {
        let mut merged: Vec<Slot> = Vec::with_capacity(self.slots.len());
        for slot in std::mem::take(&mut self.slots) {
            let zone = self.zone(&slot);
            match merged.last_mut() {
                Some(last)
                    if zone == Zone::Within
                        && self.zone(last) == Zone::Within
                        && is_one(last, &slot) =>
                {
                    last.join(&slot)
                }
                _ => merged.push(slot),
            }
        }
        self.slots = merged;
    }

    fn zone(&self, slot: &Slot) -> Zone {
        if slot.start_ns >= self.span.start_ns && slot.start_ns < self.span.end_ns {
            Zone::Within
        } else {
            Zone::Outside
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    Within,
    Outside,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(timeline: &Timeline) -> Vec<(i64, i64, usize)> {
        let only = |slot: &Slot| (0..KINDS).find(|kind| slot.is_all(*kind)).unwrap();
        let slots = timeline.slots();
        slots
            .map(|slot| (slot.start_ns, slot.end_ns, only(slot)))
            .collect()
    }

    #[test]
    fn few_spans_are_exact() {
        let mut timeline = Timeline::new(100, Span::ALL, 8);
        timeline.push(0, 150);
        timeline.push(OPEN, 300);
        timeline.push(OPEN, 350);
        timeline.push(2, 350);
        timeline.push(2, 400);
        assert_eq!(
            seen(&timeline),
            [(100, 150, 0), (150, 350, OPEN), (350, 400, 2)]
        );
        assert_eq!(timeline.convert(200, 1_000, &[OPEN], 3, 60), 60);
        assert_eq!(
            seen(&timeline)[1..4],
            [(150, 200, OPEN), (200, 260, 3), (260, 350, OPEN)]
        );
        assert_eq!(timeline.convert(0, 1_000, &[OPEN, 0], 2, 1_000), 190);
        timeline.settle(&{
            let mut wanted = [0; SENDER_STATES];
            (wanted[2], wanted[3]) = (230, 70);
            wanted
        });
        assert_eq!(
            seen(&timeline),
            [(100, 200, 2), (200, 260, 3), (260, 390, 2), (390, 400, 3)]
        );
    }

    #[test]
    fn a_span_is_cut_out() {
        let span = Span {
            start_ns: 200,
            end_ns: 300,
        };
        let mut timeline = Timeline::new(100, span, 8);
        timeline.push(0, 150);
        timeline.push(1, 250);
        timeline.push(2, 350);
        timeline.push(3, 400);
        assert_eq!(seen(&timeline), [(200, 250, 1), (250, 300, 2)]);
        assert_eq!(timeline.totals_ns()[..4], [50, 100, 100, 50]);
    }

    proptest! {
        #[test]
        fn sums_are_preserved_by_all_operations(steps in prop::collection::vec((0i64..500, 0usize..KINDS, 0usize..KINDS, 0i64..20_000, 0i64..2_000), 1..400), limit in 2usize..40) {
            let span = Span { start_ns: 3_000, end_ns: 30_000 };
            let mut timeline = Timeline::new(0, span, limit);
            let mut wanted = [0i64; SENDER_STATES];
            let mut now = 0;
            for (step, kind, into, from, length) in steps {
                now += step;
                timeline.push(kind, now);
                timeline.convert(from, from + length, &[kind], into, length / 2);
                wanted[into.min(SENDER_STATES - 1)] += step;
                prop_assert_eq!(timeline.totals_ns().iter().sum::<i64>(), now);
                prop_assert!(timeline.slots.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
            }
            timeline.settle(&wanted);
            prop_assert_eq!(&timeline.totals_ns()[..SENDER_STATES], &wanted[..]);
            prop_assert!(timeline.slots().count() <= limit);
            prop_assert!(timeline.slots().all(|slot| slot.spent_ns.iter().sum::<i64>() == slot.length_ns() && slot.spent_ns.iter().all(|ns| *ns >= 0)));
        }
    }
}
