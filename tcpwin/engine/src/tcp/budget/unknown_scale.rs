//! The time budget of a sender whose receive window has an unknown scale.
//!
//! In: spans, each with the smallest shift at which the window had room, and the item if it had. Out: time by item,
//! once more is known about the shift; the rest remains unknown. Never guesses a scale.

use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tcp::budget::forget_flight;
use crate::tcp::window::scale::MAX_SHIFT;

/// Above all shifts: the window has no room at any scale.
const NO_SHIFT: u8 = MAX_SHIFT + 1;
const NEEDS: usize = NO_SHIFT as usize + 1;
/// A window of this many segments is not filled to its last segment by chance.
const TELLING_SEGMENTS: u64 = 8;

/// The shifts at which a window field leaves room for another segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleNeed {
    /// The smallest shift with room; also 0 if the window is known.
    need: u8,
    /// The shift, if any, at which the flight ends within a segment of the window's edge.
    edge: u8,
}

impl ScaleNeed {
    /// The window is known, or irrelevant to the sender.
    pub const KNOWN: ScaleNeed = ScaleNeed {
        need: 0,
        edge: NO_SHIFT,
    };

    /// Derive the shifts from a window field, the bytes in flight and the size of the next segment.
    pub fn of(field: u32, flight_bytes: u32, segment_bytes: u32) -> ScaleNeed {
        let (flight, segment) = (u64::from(flight_bytes), u64::from(segment_bytes));
        let window = |shift: u8| u64::from(field) << shift;
        let has_room = |shift: &u8| window(*shift) >= flight + segment;
        let is_edge = |shift: &u8| {
            let window = window(*shift);
            (flight..flight + segment).contains(&window) && window >= segment * TELLING_SEGMENTS
        };
        ScaleNeed {
            need: (0..=MAX_SHIFT).find(has_room).unwrap_or(NO_SHIFT),
            edge: (0..=MAX_SHIFT).find(is_edge).unwrap_or(NO_SHIFT),
        }
    }

    #[inline(always)]
    pub fn is_certain(self) -> bool {
        self.need == 0
    }
}

/// Knowledge about the shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    Known(u8),
    AtLeast(u8),
}

/// Time whose item depends on the shift.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// Time by the smallest shift at which the window had room, and by item.
    spent_ns: [[i64; SENDER_STATES]; NEEDS],
    /// Time by the shift at whose window edge the flight ended.
    edge_ns: [i64; NEEDS],
    /// Busy time in the current round, not yet charged to an item.
    busy_ns: i64,
    need: u8,
}

impl Doubt {
    pub const NONE: Doubt = Doubt {
        spent_ns: [[0; SENDER_STATES]; NEEDS],
        edge_ns: [0; NEEDS],
        busy_ns: 0,
        need: 0,
    };

    /// Add a span that belongs to the item if the window had room; None if the end of the round decides the item.
    pub fn add(&mut self, item: Option<SenderState>, room: ScaleNeed, span_ns: i64) {
        let sum = match item {
            Some(item) => &mut self.spent_ns[usize::from(room.need)][item as usize],
            None => &mut self.busy_ns,
        };
        *sum = sum.saturating_add(span_ns);
        let edge = &mut self.edge_ns[usize::from(room.edge)];
        *edge = edge.saturating_add(span_ns);
        self.need = self.need.max(room.need);
    }

    /// Return whether any time in the current round depends on the shift.
    pub fn is_in_round(&self) -> bool {
        self.need > 0
    }

    /// Charge the round to the item if the window had room throughout; `busy_ns` of it does not depend on the shift.
    pub fn end_round(&mut self, item: SenderState, busy_ns: i64) {
        let need = usize::from(std::mem::take(&mut self.need));
        let span_ns = std::mem::take(&mut self.busy_ns).saturating_add(busy_ns);
        let sum = &mut self.spent_ns[need][item as usize];
        *sum = sum.saturating_add(span_ns);
    }

    /// Move the time that was judged by the flight to unknown.
    pub fn forget(&mut self) {
        self.spent_ns.iter_mut().for_each(forget_flight);
        self.edge_ns = [0; NEEDS];
    }

    /// Add the time that the shift decides to its items, and the rest to unknown.
    ///
    /// The window limited the sender if the flight ended at the edge of the smallest possible window for half of the
    /// unknown time, and never exceeded that edge.
    pub fn settle(&self, shift: Shift, into_ns: &mut [i64; SENDER_STATES]) {
        let (Shift::Known(known) | Shift::AtLeast(known)) = shift;
        let mut add = |item: usize, ns: i64| into_ns[item] = into_ns[item].saturating_add(ns);
        let mut left_ns = self.busy_ns;
        for (need, spent_ns) in (0u8..).zip(&self.spent_ns) {
            for (item, ns) in spent_ns.iter().enumerate() {
                if need <= known {
                    add(item, *ns);
                } else {
                    left_ns = left_ns.saturating_add(*ns);
                }
            }
        }
        let is_known = matches!(shift, Shift::Known(_));
        let edge_ns = self.edge_ns[usize::from(known.min(MAX_SHIFT))].min(left_ns);
        let full_ns = match is_known {
            true => left_ns,
            false if edge_ns > left_ns / 2 => edge_ns,
            false => 0,
        };
        add(SenderState::WindowFull as usize, full_ns);
        add(SenderState::Unknown as usize, left_ns - full_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(doubt: &Doubt, shift: Shift) -> [i64; SENDER_STATES] {
        let mut items = [0; SENDER_STATES];
        doubt.settle(shift, &mut items);
        items
    }

    #[test]
    fn room_is_found_by_the_smallest_shift_that_gives_it() {
        assert_eq!(ScaleNeed::of(65_535, 10_000, 1460), ScaleNeed::KNOWN);
        // 500 << 4 = 8,000 has room for 6,540 and a segment; a full window of only five segments proves nothing.
        let room = ScaleNeed::of(500, 6_540, 1460);
        assert_eq!((room.need, room.edge), (4, NO_SHIFT));
        // 500 << 6 = 32,000 is less than a segment above 31,000.
        let room = ScaleNeed::of(500, 31_000, 1460);
        assert_eq!((room.need, room.edge), (7, 6));
        assert_eq!(ScaleNeed::of(1, 1 << 30, 1460).need, NO_SHIFT);
    }

    #[test]
    fn time_is_told_as_far_as_the_shift_is_known() {
        let mut doubt = Doubt::NONE;
        doubt.add(
            Some(SenderState::Application),
            ScaleNeed { need: 3, edge: 15 },
            10,
        );
        doubt.add(None, ScaleNeed { need: 5, edge: 15 }, 70);
        doubt.end_round(SenderState::SlowStart, 20);
        let items = settled(&doubt, Shift::AtLeast(4));
        assert_eq!(items[SenderState::Application as usize], 10);
        assert_eq!(
            items[SenderState::Unknown as usize],
            90,
            "of the whole round"
        );
        let items = settled(&doubt, Shift::AtLeast(5));
        assert_eq!(items[SenderState::SlowStart as usize], 90);
        let items = settled(&doubt, Shift::Known(4));
        assert_eq!(items[SenderState::WindowFull as usize], 90);
        assert_eq!(settled(&doubt, Shift::AtLeast(0)).iter().sum::<i64>(), 100);
    }

    #[test]
    fn a_flight_at_the_edge_of_the_least_window_was_held_back_by_it() {
        let mut doubt = Doubt::NONE;
        doubt.add(None, ScaleNeed { need: 7, edge: 6 }, 60);
        doubt.add(None, ScaleNeed { need: 7, edge: 15 }, 40);
        doubt.end_round(SenderState::Congestion, 0);
        let items = settled(&doubt, Shift::AtLeast(6));
        assert_eq!(items[SenderState::WindowFull as usize], 60);
        assert_eq!(items[SenderState::Unknown as usize], 40);
        assert_eq!(
            settled(&doubt, Shift::AtLeast(5))[SenderState::WindowFull as usize],
            0
        );
    }
}
