//! Round-trip times.

pub mod ack_ids;
mod backlog;
pub mod budget;
pub mod capacity;
pub mod charge_log;
pub mod clock_step;
pub mod delays;
pub mod doubt;
pub mod echo;
pub mod estimator;
pub mod full_path;
pub mod idle;
pub mod item;
pub mod ledger;
pub mod loss_spans;
pub mod pace;
pub mod path;
mod rate_probe;
pub mod reading;
mod records;
pub mod response;
pub mod round_limit;
pub mod sender_view;
pub mod sent;
pub mod state;
pub mod train;
pub mod turns;
