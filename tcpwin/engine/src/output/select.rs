//! Connections and directions whose fields meet conditions: how rules find what to look at without looking at all.

use std::collections::HashMap;

use crate::connection::arena::Arena;
use crate::connection::state::Connection;
use crate::output::address::address_text;
use crate::output::field::{ConnectionField, ConnectionView, DirectionField, DirectionView, Value};
use crate::output::fields::{connection_field, direction_field};

/// From the initiator, and back.
const WAYS: [bool; 2] = [true, false];
/// Connections that are looked at together: their records fit the second-level cache.
const TOGETHER: usize = 256;

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
        if *wanted == Value::None {
            return self == Comparison::Equal && *field == Value::None;
        }
        if let (Value::Text(left), Value::Text(right)) = (field, wanted) {
            return self == Comparison::Equal && left == right;
        }
        if let (Value::Address(left), Value::Text(right)) = (field, wanted) {
            return self == Comparison::Equal && address_text(left) == *right;
        }
        let (Some(left), Some(right)) = (number(field), number(wanted)) else {
            return false;
        };
        self.holds_of_numbers(left, right)
    }

    fn holds_of_numbers(self, left: f64, right: f64) -> bool {
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
        Value::None | Value::Text(_) | Value::Address(_) => None,
    }
}

enum Subject {
    Connection(&'static ConnectionField),
    Direction(&'static DirectionField),
}

/// A field that must compare so with a value; a field without a value meets none but that it equals none.
pub struct Condition {
    subject: Subject,
    comparison: Comparison,
    wanted: Value,
    /// `wanted`, where it is a number.
    wanted_number: Option<f64>,
    /// Of its field among those that the questions ask for.
    place: usize,
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
            None if of_direction => Subject::Direction(direction_field(name)?),
            rest => Subject::Connection(connection_field(rest.unwrap_or(name))?),
        };
        Some(Condition {
            subject,
            comparison,
            wanted_number: number(&wanted),
            wanted,
            place: 0,
        })
    }

    fn holds(&self, read: &Read) -> bool {
        match (read, self.wanted_number) {
            (Read::Number(number), Some(wanted)) => {
                self.comparison.holds_of_numbers(*number, wanted)
            }
            (Read::Number(_), None) => false,
            (Read::Other(value), _) => self.comparison.holds(value, &self.wanted),
        }
    }

    /// Its field's value.
    #[inline]
    fn read(&self, id: u32, connection: &Connection, from_initiator: bool) -> Read {
        Read::of(match self.subject {
            Subject::Connection(field) => (field.get)(&ConnectionView { id, connection }),
            Subject::Direction(field) => {
                (field.get)(&DirectionView::new(connection, from_initiator))
            }
        })
    }

    fn field(&self) -> (bool, &'static str) {
        match self.subject {
            Subject::Connection(field) => (false, field.name),
            Subject::Direction(field) => (true, field.name),
        }
    }
}

/// What a rule picks: directions or connections that meet all conditions.
pub struct Question {
    pub of_directions: bool,
    pub conditions: Vec<Condition>,
}

/// A connection's number, and whether the direction is the initiator's; true for connections.
pub type Picked = (u32, bool);

/// A field's value: nearly all are numbers, or none.
enum Read {
    Number(f64),
    Other(Value),
}

impl Read {
    #[inline]
    fn of(value: Value) -> Self {
        // One part after the other: a value that was just written in parts is slow to copy as a whole.
        match value {
            Value::Int(value) => Read::Number(value as f64),
            Value::Real(value) => Read::Number(value),
            Value::Bool(value) => Read::Number(f64::from(u8::from(value))),
            value => Read::Other(value),
        }
    }
}

/// Values of one field for the directions of some connections: of each the initiator's first.
struct Column {
    values: Vec<Read>,
    /// Of which connections they are: the number of the first one.
    first: Option<u32>,
}

impl Column {
    /// The values of a condition's field.
    fn fill(
        &mut self,
        condition: &Condition,
        first: u32,
        connections: &[Connection],
        ways: &[bool],
    ) {
        if self.first == Some(first) {
            return;
        }
        self.first = Some(first);
        self.values.clear();
        for (id, connection) in (first..).zip(connections) {
            for from_initiator in ways {
                let value = condition.read(id, connection, *from_initiator);
                self.values.push(value);
            }
        }
    }
}

/// What each question picks, in order of the connections, in one walk over them.
///
/// Few meet the condition that a question asks first. So that is asked of some connections at a time, whose values are
/// read once for all questions that begin with the same field; the others are asked of what is left.
pub fn pick(mut questions: Vec<Question>, connections: &Arena) -> Vec<Vec<Picked>> {
    let places = place(&mut questions);
    shared_first(&mut questions, places);
    let new_column = || Column {
        values: Vec::new(),
        first: None,
    };
    let mut columns: Vec<Column> = (0..places).map(|_| new_column()).collect();
    let mut picked = vec![Vec::new(); questions.len()];
    let is_of_directions = questions.iter().any(|question| question.of_directions);
    let ways = if is_of_directions {
        &WAYS[..]
    } else {
        &WAYS[..1]
    };
    let mut first = 0u32;
    for some in connections
        .blocks()
        .flat_map(|block| block.chunks(TOGETHER))
    {
        for (question, picked) in questions.iter().zip(&mut picked) {
            let every = if question.of_directions {
                1
            } else {
                ways.len()
            };
            let (gate, others) = match question.conditions.split_first() {
                Some((gate, others)) => (Some(gate), others),
                None => (None, Default::default()),
            };
            let mut values: &[Read] = &[];
            if let Some(gate) = gate {
                columns[gate.place].fill(gate, first, some, ways);
                values = &columns[gate.place].values;
            }
            for place in (0..some.len() * ways.len()).step_by(every) {
                if gate
                    .is_some_and(|gate| !values.get(place).is_some_and(|value| gate.holds(value)))
                {
                    continue;
                }
                let (nth, from_initiator) = (place / ways.len(), ways[place % ways.len()]);
                let (id, connection) = (first + nth as u32, &some[nth]);
                let holds = |condition: &Condition| {
                    condition.holds(&condition.read(id, connection, from_initiator))
                };
                if others.iter().all(holds) {
                    picked.push((id, from_initiator));
                }
            }
        }
        first += some.len() as u32;
    }
    picked
}

/// Ask each question first what most others ask as well: that is read anyway, and mostly answers it.
fn shared_first(questions: &mut [Question], places: usize) {
    let mut asked = vec![0; places];
    for condition in questions.iter().flat_map(|question| &question.conditions) {
        asked[condition.place] += 1;
    }
    for question in questions {
        let conditions = &mut question.conditions;
        conditions.sort_by_key(|condition| std::cmp::Reverse(asked[condition.place]));
    }
}

/// How many connections to each address and port meet a question, themselves or in the initiator's direction.
pub fn by_responder(question: Question, connections: &Arena) -> HashMap<([u8; 16], u16), usize> {
    let mut found = HashMap::new();
    for (id, from_initiator) in pick(vec![question], connections).concat() {
        if let Some(connection) = connections.get(id).filter(|_| from_initiator) {
            let responder = &connection.endpoints[1 - connection.initiator_side()];
            *found
                .entry((responder.address, responder.port))
                .or_insert(0) += 1;
        }
    }
    found
}

/// Give each field that is asked for a place of its own; return how many there are.
fn place(questions: &mut [Question]) -> usize {
    let mut fields: Vec<(bool, &str)> = Vec::new();
    let conditions = questions
        .iter_mut()
        .flat_map(|question| &mut question.conditions);
    for condition in conditions {
        let field = condition.field();
        let known = fields.iter().position(|known| *known == field);
        condition.place = known.unwrap_or(fields.len());
        if known.is_none() {
            fields.push(field);
        }
    }
    fields.len()
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
        let address = Value::Address([0; 16]);
        assert!(Comparison::Equal.holds(&address, &text("::")));
        assert!(!Comparison::AtMost.holds(&address, &text("::")));
        assert!(!Comparison::Equal.holds(&address, &text("::1")));
    }

    #[test]
    fn what_has_no_value_meets_nothing() {
        assert!(!Comparison::AtMost.holds(&Value::None, &Value::Int(5)));
        assert!(!Comparison::Equal.holds(&Value::None, &text("")));
    }

    #[test]
    fn only_what_has_no_value_equals_none() {
        assert!(Comparison::Equal.holds(&Value::None, &Value::None));
        assert!(!Comparison::AtMost.holds(&Value::None, &Value::None));
        assert!(!Comparison::Equal.holds(&Value::Int(0), &Value::None));
        assert!(!Comparison::Equal.holds(&text(""), &Value::None));
    }

    #[test]
    fn a_field_has_one_place_among_those_of_all_questions() {
        fn question(names: &[&str]) -> Question {
            let condition =
                |name: &&str| Condition::new(true, name, Comparison::AtLeast, Value::Int(0));
            Question {
                of_directions: true,
                conditions: names.iter().filter_map(condition).collect(),
            }
        }
        let mut questions = [
            question(&["segments", "connection.duration_ns"]),
            question(&["connection.duration_ns", "fin"]),
        ];
        assert_eq!(place(&mut questions), 3);
        let places = |question: &Question| {
            let conditions = question.conditions.iter();
            conditions
                .map(|condition| condition.place)
                .collect::<Vec<_>>()
        };
        assert_eq!(questions.each_ref().map(places), [vec![0, 1], vec![1, 2]]);
    }

    #[test]
    fn an_unknown_field_is_no_condition() {
        let new = |name| Condition::new(true, name, Comparison::AtLeast, Value::Int(0));
        assert!(new("zero_window_ns").is_some());
        assert!(new("connection.duration_ns").is_some());
        assert!(new("duration_ns").is_none());
        assert!(new("nonsense").is_none());
    }

    fn text(value: &'static str) -> Value {
        Value::Text(value.into())
    }
}
