//! RTTs, the retransmission timer, and the delays of messages and answers.

pub mod delays;
pub mod estimator;
pub mod ledger;
pub mod messages;
pub mod missing_acks;
pub mod pipeline;
pub mod schedule;
pub mod sent;
pub mod timestamp_echo;
pub mod waits;
