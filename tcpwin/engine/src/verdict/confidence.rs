//! The confidence of a verdict.

/// Confidence, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Confidence {
    /// One of several readings.
    Possible,
    /// Judged: the likely alternatives are ruled out.
    Likely,
    /// Read directly from the packets or the kernel's counter.
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

    /// Return the next lower level.
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
    fn every_level_but_the_lowest_has_a_lower_one() {
        assert_eq!(
            [Certain, Likely, Possible].map(|each| each.lower()),
            [Likely, Possible, Possible]
        );
        assert_eq!(Certain.min(Possible), Possible);
    }
}
