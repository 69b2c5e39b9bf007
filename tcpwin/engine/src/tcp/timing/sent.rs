//! A segment in flight.

use crate::sequence::Seq;

/// A segment that was sent once and is not yet acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub time_ns: i64,
    pub end: Seq,
    /// Frame number modulo 2^32; 0 if several segments are joined.
    pub(super) frame: u32,
}

impl Sent {
    /// Join two adjacent segments into one with the older segment's time.
    pub fn joined(self, newer: Sent) -> Sent {
        Sent {
            end: newer.end,
            frame: 0,
            ..self
        }
    }

    /// Return the frame number, given a later frame's number; None if several segments are joined.
    pub fn frame(&self, newest: u64) -> Option<u64> {
        let before = (newest as u32).wrapping_sub(self.frame);
        (self.frame != 0).then(|| newest.saturating_sub(u64::from(before)))
    }
}
