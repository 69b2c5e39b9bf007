//! What limited a transfer, what that cost, and who can change it.
//!
//! In: the time budget and the numbers of a direction. Out: facts, as codes and numbers. It reads no packets and has no
//! sentences.

pub mod confidence;
pub mod fields;
pub mod owner;
