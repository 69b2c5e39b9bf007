//! Find connections and directions whose fields meet conditions, so that rules need not look at all of them.

use std::collections::HashMap;
use std::ops::Range;

use crate::output::address::address_text;
use crate::output::field::{
    ConnectionField, ConnectionView, DirectionField, DirectionView, Value, Within,
};
use crate::output::fields::{connection_field, direction_field};
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::state::Connection;

/// From the initiator, and back.
const DIRECTIONS: [bool; 2] = [true, false];
/// Connections processed together: their records fit the L1 cache.
const TOGETHER: usize = 64;
/// Sample size for estimating how selective a condition is.
const SAMPLED: u32 = 256;

/// A comparison operator.
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

/// Compares a field with a value. A missing value satisfies only equality with none.
pub struct Condition {
    subject: Subject,
    comparison: Comparison,
    wanted: Value,
    wanted_number: Option<f64>,
}

impl Condition {
    /// Create a condition on a field of the connection or, if `of_direction`, of a direction. None for an unknown name.
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
        })
    }

    #[inline]
    pub fn holds(&self, id: u32, connection: &Connection, from_initiator: bool) -> bool {
        self.holds_of(match self.subject {
            Subject::Connection(field) => (field.get)(&ConnectionView { id, connection }),
            Subject::Direction(field) => {
                (field.get)(&DirectionView::new(connection, from_initiator))
            }
        })
    }

    #[inline]
    fn holds_of(&self, value: Value) -> bool {
        // Nearly all values are numbers. Branch on the parts: copying a value just written in parts is slow.
        let of_number = |left: f64| {
            self.wanted_number
                .is_some_and(|right| self.comparison.holds_of_numbers(left, right))
        };
        match value {
            Value::Int(value) => of_number(value as f64),
            Value::Real(value) => of_number(value),
            Value::Bool(value) => of_number(f64::from(u8::from(value))),
            value => self.comparison.holds(&value, &self.wanted),
        }
    }

    /// Return the data that the field needs; [`Within::Record`] if a direction without it may match.
    fn within(&self) -> Within {
        match self.subject {
            Subject::Direction(field) if !self.holds_of(Value::Int(0)) => field.within,
            _ => Within::Record,
        }
    }

    fn is_of_connection(&self) -> bool {
        matches!(self.subject, Subject::Connection(_))
    }

    fn field(&self) -> (bool, &'static str) {
        match self.subject {
            Subject::Connection(field) => (false, field.name),
            Subject::Direction(field) => (true, field.name),
        }
    }

    /// Return true if both conditions are the same.
    fn is_same(&self, other: &Condition) -> bool {
        self.field() == other.field()
            && self.comparison == other.comparison
            && self.wanted == other.wanted
    }
}

/// A rule's query: directions or connections that meet all conditions.
pub struct Query {
    pub of_directions: bool,
    pub conditions: Vec<Condition>,
}

/// A connection's number, and whether the direction is the initiator's (true for connections).
pub type Picked = (u32, bool);

/// Run all queries in a single pass. The matches are in connection order.
///
/// Few subjects meet a query's first condition. So it is evaluated for a group of connections, once for all queries
/// that start with it; the remaining conditions are evaluated for the matches.
pub fn pick(mut queries: Vec<Query>, connections: &Arena) -> Vec<Vec<Picked>> {
    strictest_first(&mut queries, connections);
    let (gates, gate_of) = gates(&queries);
    let parts = connections.walk(|some| pick_some(&queries, &gates, &gate_of, connections, some));
    let mut picked = vec![Vec::new(); queries.len()];
    for part in parts {
        for (all, more) in picked.iter_mut().zip(part) {
            all.extend(more);
        }
    }
    picked
}

fn pick_some(
    queries: &[Query],
    gates: &[Option<&Condition>],
    gate_of: &[usize],
    connections: &Arena,
    some: Range<u32>,
) -> Vec<Vec<Picked>> {
    let mut met: Vec<Vec<(u32, bool)>> = vec![Vec::new(); gates.len()];
    let mut picked = vec![Vec::new(); queries.len()];
    let is_of_directions = queries.iter().any(|query| query.of_directions);
    let directions = if is_of_directions {
        &DIRECTIONS[..]
    } else {
        &DIRECTIONS[..1]
    };
    let mut subjects = Subjects::default();
    for (first, some) in connections.chunks(some, TOGETHER) {
        subjects.take(&some, directions);
        for (gate, met) in gates.iter().zip(&mut met) {
            met.clear();
            let within = gate.map_or(Within::Record, Condition::within);
            let mut last = None;
            let may_meet = subjects.of(within).iter().filter(|(nth, from_initiator)| {
                let (Some(gate), Some(connection)) = (gate, some.get(*nth as usize)) else {
                    return true;
                };
                // A connection field has the same value for both directions.
                match last {
                    Some((shared, holds)) if shared == *nth && gate.is_of_connection() => holds,
                    _ => {
                        let holds = gate.holds(first + nth, connection, *from_initiator);
                        last = Some((*nth, holds));
                        holds
                    }
                }
            });
            met.extend(may_meet);
        }
        for ((query, gate), picked) in queries.iter().zip(gate_of).zip(&mut picked) {
            let others = query.conditions.get(1..).unwrap_or_default();
            let subjects = met.get(*gate).into_iter().flatten();
            // For a connection as a whole, only the first direction is evaluated.
            for (nth, from_initiator) in
                subjects.filter(|(_, is_first)| query.of_directions || *is_first)
            {
                let Some(connection) = some.get(*nth as usize) else {
                    continue;
                };
                let id = first + nth;
                if others
                    .iter()
                    .all(|condition| condition.holds(id, connection, *from_initiator))
                {
                    picked.push((id, *from_initiator));
                }
            }
        }
    }
    picked
}

/// Directions of a group of connections, by index: all, and those with data outside the main record.
#[derive(Default)]
struct Subjects {
    all: Vec<(u32, bool)>,
    cold_state: Vec<(u32, bool)>,
    incidents: Vec<(u32, bool)>,
    pace: Vec<(u32, bool)>,
}

impl Subjects {
    fn take(&mut self, connections: &[&Connection], directions: &[bool]) {
        for within in [
            &mut self.all,
            &mut self.cold_state,
            &mut self.incidents,
            &mut self.pace,
        ] {
            within.clear();
        }
        for (nth, connection) in (0u32..).zip(connections) {
            for from_initiator in directions {
                let (view, subject) = (
                    DirectionView::new(connection, *from_initiator),
                    (nth, *from_initiator),
                );
                self.all.push(subject);
                if view.data().cold_state.is_some() {
                    self.cold_state.push(subject);
                }
                if connection.incidents.is_some() {
                    self.incidents.push(subject);
                }
                if view.data().pace().is_some() {
                    self.pace.push(subject);
                }
            }
        }
    }

    fn of(&self, within: Within) -> &[(u32, bool)] {
        match within {
            Within::Record => &self.all,
            Within::ColdState => &self.cold_state,
            Within::Incidents => &self.incidents,
            Within::Pace => &self.pace,
        }
    }
}

/// Put each query's most selective condition first, judging by a sample; among equals, the one that most queries share.
fn strictest_first(queries: &mut [Query], connections: &Arena) {
    let mut shared: HashMap<(bool, &str), usize> = HashMap::new();
    for condition in queries.iter().flat_map(|query| &query.conditions) {
        *shared.entry(condition.field()).or_default() += 1;
    }
    let step = connections.len() / SAMPLED;
    let sample = || {
        let places = (0..SAMPLED).map(|place| place * step);
        places
            .filter(|_| step > 1)
            .filter_map(|id| Some((id, connections.get(id)?)))
    };
    for query in queries {
        query.conditions.sort_by_cached_key(|condition| {
            let meets = |(id, connection): (u32, &Connection)| {
                let holds = |direction: &&bool| condition.holds(id, connection, **direction);
                DIRECTIONS.iter().filter(holds).count()
            };
            let met: usize = sample().map(meets).sum();
            let is_of_all = condition.within() == Within::Record;
            (
                met,
                is_of_all,
                std::cmp::Reverse(shared.get(&condition.field())),
            )
        });
    }
}

/// Return the distinct first conditions of the queries, and the index of each query's.
fn gates(queries: &[Query]) -> (Vec<Option<&Condition>>, Vec<usize>) {
    let mut gates: Vec<Option<&Condition>> = Vec::new();
    let gate_of = queries.iter().map(|query| {
        let first = query.conditions.first();
        let is_same = |known: &Option<&Condition>| match (known, first) {
            (Some(known), Some(first)) => known.is_same(first),
            (known, first) => known.is_none() && first.is_none(),
        };
        gates.iter().position(is_same).unwrap_or_else(|| {
            gates.push(first);
            gates.len() - 1
        })
    });
    let gate_of = gate_of.collect();
    (gates, gate_of)
}

/// Count, per responding address and port, the connections that match a query, or whose initiator's direction does.
pub fn by_responder(query: &Query, connections: &Arena) -> HashMap<([u8; 16], u16), usize> {
    let parts = connections.walk(|some| {
        let mut found = HashMap::new();
        for (id, connection) in some.clone().zip(connections.range(some)) {
            let mut conditions = query.conditions.iter();
            if conditions.all(|condition| condition.holds(id, connection, true)) {
                let responder = &connection.endpoints[1 - connection.initiator_side()];
                *found
                    .entry((responder.address, responder.port))
                    .or_insert(0) += 1;
            }
        }
        found
    });
    let mut found = HashMap::new();
    for (responder, count) in parts.into_iter().flatten() {
        *found.entry(responder).or_insert(0) += count;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Segment;

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
    fn a_missing_value_meets_no_condition() {
        assert!(!Comparison::AtMost.holds(&Value::None, &Value::Int(5)));
        assert!(!Comparison::Equal.holds(&Value::None, &text("")));
    }

    #[test]
    fn only_a_missing_value_equals_none() {
        assert!(Comparison::Equal.holds(&Value::None, &Value::None));
        assert!(!Comparison::AtMost.holds(&Value::None, &Value::None));
        assert!(!Comparison::Equal.holds(&Value::Int(0), &Value::None));
        assert!(!Comparison::Equal.holds(&text(""), &Value::None));
    }

    fn query(conditions: &[(&str, Comparison, i64)]) -> Query {
        let condition = |(name, comparison, wanted): &(&str, Comparison, i64)| {
            Condition::new(true, name, *comparison, Value::Int(*wanted))
        };
        Query {
            of_directions: true,
            conditions: conditions.iter().filter_map(condition).collect(),
        }
    }

    #[test]
    fn a_shared_first_condition_is_evaluated_once() {
        let least = Comparison::AtLeast;
        let queries = [
            query(&[("segments", least, 1), ("fin", least, 1)]),
            query(&[("segments", least, 2)]),
            query(&[]),
            query(&[("segments", least, 1)]),
            query(&[]),
        ];
        let (gates, gate_of) = gates(&queries);
        assert_eq!((gates.len(), gate_of), (3, vec![0, 1, 2, 0, 2]));
    }

    #[test]
    fn the_most_selective_condition_is_first_and_order_does_not_matter() {
        let mut arena = Arena::default();
        for number in 0..SAMPLED * 3 {
            let mut connection = Connection::new(&Segment::EMPTY, 0);
            connection.directions[0].segments = number;
            connection.directions[1].segments = 1;
            connection.directions[1].data_segments = number % 2;
            arena.push(connection);
        }
        let least = Comparison::AtLeast;
        let few = ("segments", least, 700);
        let ask = || query(&[("data_segments", Comparison::Below, 1), few]);
        let mut queries = [ask(), query(&[("data_segments", least, 0)])];
        strictest_first(&mut queries, &arena);
        assert_eq!(queries[0].conditions[0].field(), (true, "segments"));
        let picked = pick(vec![ask(), query(&[]), query(&[few])], &arena);
        let numbers: Vec<_> = picked[0].iter().map(|(id, _)| *id).collect();
        assert_eq!(numbers, (700..SAMPLED * 3).collect::<Vec<_>>());
        assert_eq!(picked[0], picked[2]);
        assert_eq!(picked[1].len(), 2 * SAMPLED as usize * 3);
    }

    #[test]
    fn an_unknown_field_is_no_condition() {
        let new = |name| Condition::new(true, name, Comparison::AtLeast, Value::Int(0));
        assert!(new("zero_window_ns").is_some());
        assert!(new("connection.duration_ns").is_some());
        assert!(new("duration_ns").is_none());
        assert!(new("nonsense").is_none());
    }

    #[test]
    fn directions_without_extra_data_are_skipped_unless_zero_matches() {
        let mut arena = Arena::default();
        for number in 0..3 {
            let mut connection = Connection::new(&Segment::EMPTY, 0);
            if number == 1 {
                connection.directions[1].cold_state().resent_segments = 2;
            }
            arena.push(connection);
        }
        let resent = |comparison, wanted| {
            let of_rare = query(&[("resent_segments", comparison, wanted)]);
            assert_eq!(pick(vec![query(&[])], &arena)[0].len(), 6);
            pick(vec![of_rare], &arena)[0].len()
        };
        assert_eq!(resent(Comparison::AtLeast, 1), 1);
        assert_eq!(resent(Comparison::Below, 2), 5);
        assert_eq!(resent(Comparison::Equal, 0), 5);
    }

    fn text(value: &'static str) -> Value {
        Value::Text(value.into())
    }
}
