//! Where a connection stands in the tracker.

/// Number of a connection as the table has it now; of none while there is none.
#[derive(Clone, Copy, Debug)]
pub struct Slot(pub(super) u32);

impl Slot {
    pub const UNKNOWN: Slot = Slot(u32::MAX);
}
