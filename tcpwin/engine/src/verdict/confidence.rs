//! How sure a verdict is.

/// Confidence, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Confidence {
    /// One of several readings.
    Possible,
    /// Judged; the likely alternatives are ruled out.
    Likely,
    /// Read off the packets or the kernel's count.
    Certain,
}

impl Confidence {
    pub const ALL: [Confidence; 3] = [
        Confidence::Possible,
        Confidence::Likely,
        Confidence::Certain,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Possible => "possible",
            Confidence::Likely => "likely",
            Confidence::Certain => "certain",
        }
    }

    /// The next lower one.
    pub const fn lower(self) -> Confidence {
        match self {
            Confidence::Certain => Confidence::Likely,
            _ => Confidence::Possible,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Confidence::{Certain, Likely, Possible};

    #[test]
    fn each_has_a_lower_one_but_the_lowest() {
        assert_eq!(
            [Certain, Likely, Possible].map(|each| each.lower()),
            [Likely, Possible, Possible]
        );
        assert_eq!(Certain.min(Possible), Possible);
    }
}
