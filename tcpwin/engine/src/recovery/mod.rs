//! Retransmission, order, SACK and the capture's own duplicates.

pub mod duplicate;
pub mod ranges;
pub mod resent;
