//! Evidence for a diagnosis of a retransmitted or late segment: the table of facts that may accompany it.
//!
//! Every user of evidence is generated from this table: the journal, Python, the schema.

use crate::tcp::recovery::cause::Diagnosis;

/// The kind of value of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Number of a frame of the capture.
    Frame,
    /// Nanoseconds, of either sign.
    Interval,
    /// Nanoseconds, none of them negative.
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

    /// Return whether it is a time between two packets of the connection. A timer may be longer than the connection.
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

/// A kind of evidence, without a value.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub name: &'static str,
    /// Above its column in tables: at most 8 characters, for terminals of 80 columns.
    pub heading: &'static str,
    pub kind: Kind,
    pub doc: &'static str,
}

/// Each part with its name, its kind and its description for users.
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
    original_frame "original" Frame "Newest frame before it that held its first byte, which age_ns counts from; none where that is not known, as of what was acknowledged. Of a late one: frame of the segment that overtook it.",
    trigger_frame "by ACK" Frame "Frame of the ACK that set it off.",
    age_ns "age" Interval "Since the bytes were last sent, as far as the capture shows.",
    rto_ns "RTO" Duration "The retransmission timeout that the sender had, back-off included.",
}
