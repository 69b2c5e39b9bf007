//! Connections and directions whose fields meet conditions: how rules find what to look at without looking at all.

use crate::connection::state::Connection;
use crate::output::fields::{
    direction_fields, ConnectionField, ConnectionView, DirectionField, DirectionView, Value,
    CONNECTION_FIELDS,
};

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

impl Comparison {
    pub fn parse(sign: &str) -> Option<Self> {
        Some(match sign {
            ">=" => Comparison::AtLeast,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Above,
            "<" => Comparison::Below,
            "==" => Comparison::Equal,
            _ => return None,
        })
    }

    fn holds(self, field: &Value, wanted: &Value) -> bool {
        if let (Value::Text(left), Value::Text(right)) = (field, wanted) {
            return self == Comparison::Equal && left == right;
        }
        let (Some(left), Some(right)) = (number(field), number(wanted)) else {
            return false;
        };
        match self {
            Comparison::AtLeast => left >= right,
            Comparison::AtMost => left <= right,
            Comparison::Above => left > right,
            Comparison::Below => left < right,
            Comparison::Equal => left == right,
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(value) => Some(*value as f64),
        Value::Real(value) => Some(*value),
        Value::None | Value::Text(_) => None,
    }
}

enum Subject {
    Connection(&'static ConnectionField),
    Direction(&'static DirectionField),
}

/// A field that must compare so with a value; a field without a value meets no condition.
pub struct Condition {
    subject: Subject,
    comparison: Comparison,
    wanted: Value,
}

impl Condition {
    /// A condition on a field of the connection, or, where that group is meant, of a direction. None for an unknown name.
    pub fn new(
        of_direction: bool,
        name: &str,
        comparison: Comparison,
        wanted: Value,
    ) -> Option<Self> {
        let subject = match name.strip_prefix("connection.") {
            None if of_direction => {
                Subject::Direction(direction_fields().find(|field| field.name == name)?)
            }
            rest => {
                let name = rest.unwrap_or(name);
                let field = CONNECTION_FIELDS.iter().find(|field| field.name == name)?;
                Subject::Connection(field)
            }
        };
        Some(Condition {
            subject,
            comparison,
            wanted,
        })
    }

    fn holds(&self, id: u32, connection: &Connection, from_initiator: bool) -> bool {
        let value = match &self.subject {
            Subject::Connection(field) => (field.get)(&ConnectionView { id, connection }),
            Subject::Direction(field) => {
                (field.get)(&DirectionView::new(connection, from_initiator))
            }
        };
        self.comparison.holds(&value, &self.wanted)
    }
}

/// Whether a connection, or one direction of it, meets all conditions.
pub fn meets(
    conditions: &[Condition],
    id: u32,
    connection: &Connection,
    from_initiator: bool,
) -> bool {
    conditions
        .iter()
        .all(|condition| condition.holds(id, connection, from_initiator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_as_numbers_and_text_for_equality_only() {
        let five = Value::Int(5);
        assert!(Comparison::AtLeast.holds(&five, &Value::Real(5.0)));
        assert!(!Comparison::Above.holds(&five, &Value::Int(5)));
        assert!(Comparison::Below.holds(&five, &Value::Int(6)));
        assert!(Comparison::Equal.holds(&Value::Bool(true), &Value::Int(1)));
        assert!(Comparison::Equal.holds(&text("open"), &text("open")));
        assert!(!Comparison::AtLeast.holds(&text("open"), &text("open")));
    }

    #[test]
    fn what_has_no_value_meets_nothing() {
        assert!(!Comparison::AtMost.holds(&Value::None, &Value::Int(5)));
        assert!(!Comparison::Equal.holds(&Value::None, &text("")));
    }

    #[test]
    fn an_unknown_field_is_no_condition() {
        let new = |name| Condition::new(true, name, Comparison::AtLeast, Value::Int(0));
        assert!(new("zero_window_ns").is_some());
        assert!(new("connection.duration_ns").is_some());
        assert!(new("duration_ns").is_none());
        assert!(new("nonsense").is_none());
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}
