//! Connections: four-tuple and epoch, who began it, its handshake and how it closed.

pub mod ace;
pub mod arena;
pub mod claim;
pub mod cold_state;
pub mod cut_size;
pub mod direction;
pub mod ecn;
pub mod end_stall;
pub mod incidents;
pub mod journal;
pub mod marks;
pub mod room;
pub mod stalls;
pub mod state;
pub mod syn;
pub mod table;
pub mod taken_back;
pub mod wanted;
