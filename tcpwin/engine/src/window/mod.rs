//! Window scale, receive window, bytes in flight and zero-window episodes of one direction.

pub mod flight;
pub mod receive;
pub mod scale;
pub mod zero;
