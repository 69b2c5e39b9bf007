//! Round-trip times.

pub mod ack_ids;
pub mod budget;
pub mod delays;
pub mod echo;
pub mod estimator;
pub mod idle;
pub mod ledger;
pub mod pace;
pub mod sender_view;
pub mod turns;
