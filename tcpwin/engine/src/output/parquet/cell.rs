//! Types of cells, and the distinct values of a column.

use std::hash::{BuildHasher, RandomState};

use crate::output::address::address_text;
use crate::output::rows::{direction_name, event_names};

/// A value as parquet.thrift names it: its physical type, and the `ConvertedType` that readers see.
pub trait Cell: Copy + Ord {
    const PHYSICAL: i32;
    const CONVERTED: i32;
    const IS_NUMBER: bool = true;

    /// Bits that differ between any two values.
    fn bits(self) -> u128;
    /// Append the value in plain encoding.
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($kind:ident as $wide:ident $physical:literal $converted:literal;)*) => {
        $(impl Cell for $kind {
            const PHYSICAL: i32 = $physical;
            const CONVERTED: i32 = $converted;

            fn bits(self) -> u128 {
                self as u128
            }

            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(self as $wide).to_le_bytes());
            }
        })*
    };
}

numbers! {
    u8 as u32 1 11;
    u16 as u32 1 12;
    u32 as u32 1 13;
    u64 as u64 2 14;
    i64 as i64 2 18;
}

/// Whether the initiator sent a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Side(pub bool);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventSet(pub u32);

macro_rules! texts {
    ($($kind:ty: $bits:expr, $text:expr;)*) => {
        $(impl Cell for $kind {
            const PHYSICAL: i32 = 6;
            const CONVERTED: i32 = 0;
            const IS_NUMBER: bool = false;

            fn bits(self) -> u128 {
                $bits(self)
            }

            fn put(self, out: &mut Vec<u8>) {
                let text = $text(self);
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        })*
    };
}

texts! {
    [u8; 16]: u128::from_ne_bytes, |address| address_text(&address);
    Side: |side: Side| side.0.into(), |side: Side| direction_name(side.0);
    EventSet: |set: EventSet| set.0.into(), |set: EventSet| event_names(set.0);
}

const SLOT_BITS: u32 = 14;
/// With more distinct values, codes save little.
const MOST_DISTINCT: usize = 1 << (SLOT_BITS - 2);
const EMPTY: u32 = u32::MAX;

/// Finds the distinct values of a column. Its hash is seeded, because captures are untrusted.
pub struct Interner {
    multiplier: u128,
    slots: Vec<u32>,
}

impl Default for Interner {
    fn default() -> Self {
        let [high, low] = [0, 1].map(|half: u8| u128::from(RandomState::new().hash_one(half)));
        Interner {
            multiplier: high << 64 | low | 1,
            slots: vec![EMPTY; 1 << SLOT_BITS],
        }
    }
}

impl Interner {
    /// Return the distinct values in order of appearance, and each value's index among them; None if there are many.
    pub fn intern<T: Cell>(&mut self, values: &[T]) -> Option<(Vec<T>, Vec<u32>)> {
        self.slots.fill(EMPTY);
        let mut distinct: Vec<T> = Vec::new();
        let mut codes = Vec::with_capacity(values.len());
        for value in values {
            let hash = value.bits().wrapping_mul(self.multiplier);
            let mut place = (hash >> (u128::BITS - SLOT_BITS)) as usize;
            let code = loop {
                let code = self.slots[place];
                if code == EMPTY {
                    if distinct.len() == MOST_DISTINCT {
                        return None;
                    }
                    self.slots[place] = distinct.len() as u32;
                    distinct.push(*value);
                    break distinct.len() as u32 - 1;
                }
                if distinct[code as usize] == *value {
                    break code;
                }
                place = (place + 1) % self.slots.len();
            };
            codes.push(code);
        }
        Some((distinct, codes))
    }
}
