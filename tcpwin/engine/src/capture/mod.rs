//! File formats: bytes of a capture → packets. Knows nothing of TCP.

mod packet;

pub use packet::{LinkType, Packet};
