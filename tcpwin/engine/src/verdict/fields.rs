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
    /// Whether only tables have it: in objects it follows from other fields.
    pub is_column_only: bool,
    pub doc: &'static str,
}

macro_rules! verdict_fields {
    ($($name:ident $kind:ident $presence:ident $doc:literal;)*) => {
        pub const VERDICT_FIELDS: &[VerdictField] = &[$(VerdictField {
            name: stringify!($name),
            kind: VerdictKind::$kind,
            is_nullable: verdict_fields!(@ $presence optional),
            is_column_only: verdict_fields!(@ $presence column),
            doc: $doc,
        }),*];
    };
    (@ optional optional) => { true };
    (@ column column) => { true };
    (@ $presence:ident $wanted:ident) => { false };
}

verdict_fields! {
    limit Limit required "What limited it: the limit with most of the connection's life.";
    second_limit Limit optional "Another limit of like size; null where there is none.";
    share Share required "The limit's share of the connection's duration.";
    cost_ns Time required "By how much sooner it would have ended with the limit alone lifted.";
    cost_low_ns Time required "Lower bound of the cost; 0 where the limit is only possible.";
    cost_high_ns Time required "Upper bound of the cost.";
    confidence Confidence required "certain: read off the packets or the kernel's count; likely: judged; possible: one of several readings.";
    owner Owner required "Who can change it; nobody where nothing is wrong.";
    side Side optional "The end at which to change something; null where it is no end.";
    direction Direction optional "Whose data was limited; null without data.";
    fix Text optional "What to change; null where there is nothing to change.";
    text Text required "The answer in a line.";
    lost_ns Time required "Time lost to limits that somebody can mend, whatever the largest limit is.";
    also Limit optional "The largest limit of that time, where limit is none that can be mended.";
    is_problem Bool required "Whether so much was lost that somebody should look.";
    named_ns Time column "Cost of the limit that fix is about.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_fields_are_columns_only() {
        let columns = VERDICT_FIELDS.iter().filter(|field| field.is_column_only);
        assert_eq!(
            columns.map(|field| field.name).collect::<Vec<_>>(),
            ["named_ns"]
        );
        assert!(VERDICT_FIELDS.iter().all(|field| field.doc.ends_with('.')));
    }
}
