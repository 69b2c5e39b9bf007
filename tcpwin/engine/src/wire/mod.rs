//! Link, tunnel, IP and TCP headers: packet bytes → [`Segment`]. Knows nothing of files.

mod atm;
mod capwap;
mod erf;
mod ethernet;
mod fast;
mod fragments;
mod gre;
mod icmp;
mod ip;
mod ip_facts;
mod ip_tunnel;
mod ipcomp;
mod juniper;
mod link;
mod outcome;
mod parser;
mod ppp;
mod segment;
mod sflow;
mod tcp;
mod udp;
mod view;
mod walk;
mod wifi;

#[cfg(test)]
mod tests;

pub use icmp::IcmpError;
pub use outcome::{Outcome, Unread};
pub use parser::{ParseCounters, SegmentParser};
pub use segment::{
    capture_flag, Options, Segment, ACK, AE, CWR, ECE, FIN, NO_IP_ID, PSH, RST, SYN, URG,
};
