//! The hand-written lists of limits and of the time budget's items; Python, schemas and documents take theirs from here.

pub mod budget_item;
pub mod limit;
