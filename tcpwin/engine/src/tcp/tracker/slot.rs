//! The slot of a connection in the tracker.

/// Index of the table's current connection for a tag, or [`Slot::UNKNOWN`].
#[derive(Clone, Copy, Debug)]
pub struct Slot(pub(super) u32);

impl Slot {
    pub const UNKNOWN: Slot = Slot(u32::MAX);
}
