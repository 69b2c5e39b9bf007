//! tcpwin's engine: capture bytes → segments → connections → series, events and columns.
//!
//! Stages depend downwards only: `output` → `tracker` → `connection` → `window`, `recovery`, `timing` → `wire` → `capture`.
//! `python` is the only module that knows Python. `changes` stands alone: binary messages of any kind.

pub mod capture;
pub mod changes;
pub mod connection;
pub mod event;
pub mod output;
#[cfg(feature = "python")]
mod python;
pub mod recovery;
pub mod sequence;
pub mod timing;
pub mod tracker;
pub mod window;
pub mod wire;
