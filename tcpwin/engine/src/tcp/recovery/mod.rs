//! Retransmission, ordering, SACK and the capture's own duplicates.

pub mod answers;
pub mod cause;
pub mod copies;
pub mod duplicate;
pub mod episode;
pub mod evidence;
pub mod holes;
pub mod missed;
pub mod ranges;
pub mod resent;
