//! What several targets share: numbers from the input, captures told by it, and everything that is asked of a capture.

// No target uses all of it.
#![allow(dead_code)]

pub mod everything;
pub mod story;
pub mod tape;
pub mod two;
