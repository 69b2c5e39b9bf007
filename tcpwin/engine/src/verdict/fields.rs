//! The verdict's fields in machine formats.

/// Type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    Limit,
    Confidence,
    Owner,
    Side,
    Direction,
    /// From 0 to 1.
    Share,
    /// Nanoseconds, at least 0.
    Time,
    Text,
    Bool,
}

impl VerdictKind {
    pub const fn name(self) -> &'static str {
        match self {
            VerdictKind::Limit => "limit",
            VerdictKind::Confidence => "confidence",
            VerdictKind::Owner => "owner",
            VerdictKind::Side => "side",
            VerdictKind::Direction => "direction",
            VerdictKind::Share => "share",
            VerdictKind::Time => "time",
            VerdictKind::Text => "text",
            VerdictKind::Bool => "bool",
        }
    }
}

pub struct VerdictField {
    pub name: &'static str,
    pub kind: VerdictKind,
    pub is_nullable: bool,
    pub doc: &'static str,
}

macro_rules! verdict_fields {
    ($($name:ident $kind:ident $presence:ident $doc:literal;)*) => {
        pub const VERDICT_FIELDS: &[VerdictField] = &[$(VerdictField {
            name: stringify!($name),
            kind: VerdictKind::$kind,
            is_nullable: verdict_fields!(@ $presence),
            doc: $doc,
        }),*];
    };
    (@ optional) => { true };
    (@ required) => { false };
}

verdict_fields! {
    limit Limit required "The limit that took the largest share of the connection's duration.";
    second_limit Limit optional "Another limit of similar size, or null.";
    share Share required "The limit's share of the connection's duration.";
    cost_ns Time required "Time that the connection would have saved without this limit.";
    cost_low_ns Time required "Lower bound of the cost; 0 if the limit is only possible.";
    cost_high_ns Time required "Upper bound of the cost.";
    confidence Confidence required "certain: read from the packets or the kernel's counter; likely: judged; possible: one of several readings.";
    owner Owner required "Who can fix it; nobody if nothing is wrong.";
    side Side optional "The end at which to apply the fix, or null.";
    direction Direction optional "Direction of the limited data; null without data.";
    fix Text optional "The recommended change, or null.";
    text Text required "The answer in one line.";
    lost_ns Time required "Time lost to limits that can be fixed, whichever limit is the largest.";
    named_ns Time required "Cost of the limit that `fix` addresses: `also`, or else `limit`.";
    also Limit optional "The largest fixable limit if `limit` cannot be fixed.";
    is_problem Bool required "Whether the lost time is large enough to need attention.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_described_by_a_sentence() {
        assert!(VERDICT_FIELDS.iter().all(|field| field.doc.ends_with('.')));
    }
}
