//! Where a connection stands in the tracker.

/// Number of a connection as the table has it now; of none while there is none.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub(super) u32);

impl Place {
    pub const UNKNOWN: Place = Place(u32::MAX);
}
