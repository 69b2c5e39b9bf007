//! Round-trip times.

pub mod echo;
pub mod rtt;
