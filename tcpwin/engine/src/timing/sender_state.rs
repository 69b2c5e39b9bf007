//! Time that a sender's flight decided, where that flight turns out to be unknown. It decides nothing.

pub use crate::budget_item::{SenderState, SENDER_STATES};

use crate::budget_item::ItemTrait;

/// Give the time of items judged by the flight to what is unknown.
pub fn forget_flight(spent_ns: &mut [i64; SENDER_STATES]) {
    for item in SenderState::ALL {
        if item.has(ItemTrait::Flight) {
            let ns = std::mem::take(&mut spent_ns[item as usize]);
            let unknown = &mut spent_ns[SenderState::Unknown as usize];
            *unknown = unknown.saturating_add(ns);
        }
    }
}
