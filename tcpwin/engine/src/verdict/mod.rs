//! What limited a transfer, what that cost, and who can change it.
//!
//! In: the time budget and the numbers of a direction, and as data what its hosts, rules and the other end's capture say.
//! Out: facts, as codes and numbers, of one connection or of a million alike. It reads no packets and has no sentences.

pub mod budget;
mod codes;
pub mod columns;
pub mod confidence;
pub mod crossing;
pub mod division;
pub mod facts;
pub mod fields;
pub mod gain;
pub mod judge;
pub mod opinion;
pub mod owner;
pub mod rank;
pub mod statement;
pub mod traits;
