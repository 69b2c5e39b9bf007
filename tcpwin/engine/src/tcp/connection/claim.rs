//! A sequence number beyond every window, from a single segment that no other has confirmed yet.

use crate::sequence::Seq;

/// An acknowledged position, or the range of a segment's data.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub left: Seq,
    pub right: Seq,
}

impl Claim {
    pub fn len(self) -> u32 {
        self.left.to(self.right).max(0) as u32
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}
