//! Round-trip times.

pub mod rtt;
