//! tcpwin's engine: capture bytes → segments → connections → series, events and columns.
//!
//! Stages depend downwards only: `output` → `timing`/`recovery`/`window` → `connection` → `wire` → `capture`.
//! `python` is the only module that knows Python.

pub mod capture;
pub mod wire;
