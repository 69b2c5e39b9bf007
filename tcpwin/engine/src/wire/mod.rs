//! Link, tunnel, IP and TCP headers: packet bytes → [`Segment`]. Knows nothing of files.

mod segment;

pub use segment::{capture_flag, Options, Segment, ACK, FIN, NO_IP_ID, PSH, RST, SYN, URG};
