//! The error of an unusable index.

/// The index is missing, damaged, or belongs to another capture; the whole capture must be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

impl From<std::io::Error> for Unfit {
    fn from(_: std::io::Error) -> Self {
        Unfit
    }
}
