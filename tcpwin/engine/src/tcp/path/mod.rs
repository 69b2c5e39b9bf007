//! The path and the sender's use of it, round by round: delivery rates, queues, losses and the response to them.

pub mod bottleneck;
pub mod burst_drops;
pub mod congestion_response;
pub mod history;
pub mod loss_spans;
pub mod pace;
mod packed_records;
mod rate_probe;
pub(super) mod round_queue;
pub mod train;
