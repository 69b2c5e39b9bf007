//! State of the walk through one frame.

use super::fragments::FragmentTable;
use super::icmp::IcmpError;
use super::ip_facts::IpFacts;
use super::segment::Segment;
/// State of the walk through one frame.
pub(super) struct Walk<'p> {
    pub fragments: &'p mut FragmentTable,
    pub out: &'p mut Segment,
    pub frame: u64,
    pub time_ns: i64,
    pub(super) layers_left: u32,
    /// Whether the walk is inside an ICMP error.
    pub quoted: bool,
    /// Fields of the ICMP error.
    pub report: Option<IcmpError>,
    /// Whether a payload has already been inflated: doing so once per frame bounds the work.
    pub inflated: bool,
    /// Bits of `capture_flag` that apply to any segment found further in.
    pub frame_flags: u8,
    pub ip: IpFacts,
}
