//! Why an index is of no use.

/// The index cannot be used, and the capture must be read as a whole: there is none, it is damaged, or not of this
/// capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

impl From<std::io::Error> for Unfit {
    fn from(_: std::io::Error) -> Self {
        Unfit
    }
}
