//! Evidence for the diagnosis of a retransmitted or late segment: the table of facts that may accompany it.
//!
//! The journal, Python and the schema are generated from this table.

use crate::tcp::recovery::cause::Diagnosis;

/// The kind of a fact's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Number of a frame of the capture.
    Frame,
    /// Nanoseconds, possibly negative.
    Interval,
    /// Nanoseconds, never negative.
    Duration,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Frame => "frame",
            Kind::Interval => "interval",
            Kind::Duration => "duration",
        }
    }

    /// Return the minimum value.
    pub fn least(self) -> Option<u32> {
        match self {
            Kind::Frame => Some(1),
            Kind::Interval => None,
            Kind::Duration => Some(0),
        }
    }

    /// Return whether it is a time between two packets of the connection; a timer may be longer than the connection.
    pub fn is_within_life(self) -> bool {
        match self {
            Kind::Interval => true,
            Kind::Frame | Kind::Duration => false,
        }
    }
}

type Frame = u64;
type Interval = i64;
type Duration = i64;

/// A kind of evidence.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub name: &'static str,
    /// Column heading in tables: at most 8 characters, for terminals of 80 columns.
    pub heading: &'static str,
    pub kind: Kind,
    pub doc: &'static str,
}

/// Defines each part by its name, heading, kind and documentation.
macro_rules! evidence {
    ($($part:ident $heading:literal $kind:ident $text:literal,)*) => {
        /// A diagnosis with its evidence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Evidence {
            pub diagnosis: Diagnosis,
            $(#[doc = $text] pub $part: Option<$kind>,)*
        }

        pub const PARTS: [Part; [$($text),*].len()] = [
            $(Part { name: stringify!($part), heading: $heading, kind: Kind::$kind, doc: $text },)*
        ];

        impl Evidence {
            /// Create a diagnosis without evidence.
            pub fn of(diagnosis: Diagnosis) -> Self {
                Evidence { diagnosis, $($part: None,)* }
            }

            /// Return the known values, in the order of [`PARTS`].
            pub fn parts(&self) -> [Option<i64>; PARTS.len()] {
                [$(self.$part.map(|value| value as i64),)*]
            }

            /// Create evidence from the values of [`Evidence::parts`].
            pub fn from_parts(diagnosis: Diagnosis, parts: [Option<i64>; PARTS.len()]) -> Self {
                let [$($part),*] = parts;
                Evidence { diagnosis, $($part: $part.map(|value| value as $kind),)* }
            }
        }
    };
}

evidence! {
    original_frame "original" Frame "Newest earlier frame with the first byte of the segment, from which age_ns is counted; none if unknown, as for acknowledged data. For a late segment: frame of the segment that overtook it.",
    trigger_frame "by ACK" Frame "Frame of the ACK that triggered the retransmission.",
    age_ns "age" Interval "Time since the bytes were last sent, as far as the capture shows.",
    rto_ns "RTO" Duration "The sender's retransmission timeout, including back-off.",
}
