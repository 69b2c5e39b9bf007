//! Verdicts: which limit held a transfer back, its cost, and who can change it.
//!
//! In: a direction's time budget and statistics, and as data the evidence of its hosts, rules and the other end's capture.
//! Out: facts as codes and numbers, for one connection or for a million. Reads no packets and contains no sentences.

pub mod budget;
mod codes;
pub mod columns;
pub mod confidence;
pub mod crossing;
pub mod division;
pub mod facts;
pub mod fields;
pub mod gain;
pub mod json;
pub mod judge;
pub mod opinion;
pub mod owner;
pub mod rank;
pub mod statement;
pub mod traits;
