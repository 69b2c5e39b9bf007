//! Round-trip times.

pub mod ack_ids;
pub mod budget;
pub mod charge_log;
pub mod clock_step;
pub mod delays;
pub mod doubt;
pub mod echo;
pub mod estimator;
pub mod idle;
pub mod item;
pub mod ledger;
pub mod pace;
pub mod sender_view;
pub mod sent;
pub mod turns;
