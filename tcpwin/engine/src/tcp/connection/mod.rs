//! Connections: four-tuple and epoch, initiator, handshake and close.

pub mod ace;
pub mod arena;
pub mod claim;
pub mod clock;
pub mod cold_state;
pub mod cut_size;
pub mod direction;
pub mod ecn;
pub mod end_stall;
pub mod incidents;
pub mod journal;
pub mod large_pages;
pub mod marks;
pub mod stalls;
pub mod state;
pub mod syn;
pub mod table;
pub mod wanted;
pub mod withdrawn_window;
