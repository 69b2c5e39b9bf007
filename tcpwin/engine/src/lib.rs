//! tcpwin's engine: capture bytes → segments → connections → series, events and columns.
//!
//! Stages depend downwards only: `output` → `tracker` → `connection` → `window`, `recovery`, `timing` → `wire` → `capture`.
//! `pair` takes two captures and stands on `wire`, `capture` and `recovery::ranges` only.
//! `python` is the only module that knows Python. `changes` stands alone: binary messages of any kind. `cache` holds only
//! hints to the processor. `event`, `limit` and `budget_item` are the tables of names that every stage may use.

pub mod budget_item;
pub mod cache;
pub mod capture;
pub mod changes;
pub mod connection;
pub mod event;
pub mod limit;
pub mod output;
pub mod pair;
#[cfg(feature = "python")]
mod python;
pub mod recovery;
pub mod sequence;
pub mod timing;
pub mod tracker;
pub mod verdict;
pub mod window;
pub mod wire;
