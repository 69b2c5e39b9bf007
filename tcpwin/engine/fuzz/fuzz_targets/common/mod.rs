//! Shared by several targets: numbers and captures derived from the input, and all queries on a capture.

// No target uses all of it.
#![allow(dead_code)]

pub mod everything;
pub mod story;
pub mod tape;
pub mod two;
