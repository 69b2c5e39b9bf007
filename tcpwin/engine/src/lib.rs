//! tcpwin's engine: capture bytes → segments → connections → series, events and columns.
//!
//! Folders depend downwards only, without cycles: `python` → `output` → `pair`, `verdict`, `tcp` → `wire` → `capture`.
//! Every stage may use the files at the top: the tables of names (`event`, `tables`), `sequence` numbers and
//! `cache` hints to the processor. Only `python` knows Python. `changes` encodes binary messages of any kind.

pub mod cache;
pub mod capture;
pub mod changes;
pub mod event;
pub mod output;
pub mod pair;
#[cfg(feature = "python")]
mod python;
pub mod sequence;
pub mod tables;
pub mod tcp;
pub mod verdict;
pub mod wire;
