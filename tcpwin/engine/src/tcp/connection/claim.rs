//! A sequence number that no window allows, claimed by a single segment until another confirms it.

use crate::sequence::Seq;

/// A place acknowledged, or the data that a segment carries.
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
