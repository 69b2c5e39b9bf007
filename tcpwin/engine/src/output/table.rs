//! Columns of all connections, filled in a single pass.
//!
//! In: names of fields. Out: a typed column for each; text columns hold codes into a list of distinct texts. Knows
//! nothing of Python.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::output::field::{
    ConnectionField, ConnectionView, DirectionField, DirectionView, Kind, Value,
};
use crate::output::fields::{connection_field, direction_field};
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::state::Connection;

/// All columns are filled for this many connections at a time, which stay in the cache.
const BLOCK: usize = 64;

enum ColumnField {
    Connection(&'static ConnectionField),
    /// For the direction from the initiator (true), or the other.
    Direction(&'static DirectionField, bool),
}

/// The cells of a column. A missing value is false, zero, NaN, or [`Texts::NONE`].
pub enum Cells {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<u32>, Texts),
}

pub struct Column {
    source: ColumnField,
    pub cells: Cells,
    /// Rows without a value; empty if all have one.
    pub absent: Vec<bool>,
}

impl Column {
    /// Create the column of a field in the group `connection`, `a_to_b` or `b_to_a`; None if there is no such field.
    pub fn new(group: &str, name: &str) -> Option<Self> {
        let (source, kind) = match group {
            "connection" => {
                let field = connection_field(name)?;
                (ColumnField::Connection(field), field.kind)
            }
            "a_to_b" | "b_to_a" => {
                let field = direction_field(name)?;
                (ColumnField::Direction(field, group == "a_to_b"), field.kind)
            }
            _ => return None,
        };
        let cells = match kind {
            Kind::Bool => Cells::Bool(Vec::new()),
            Kind::Int => Cells::Int(Vec::new()),
            Kind::Real => Cells::Real(Vec::new()),
            Kind::Text => Cells::Text(Vec::new(), Texts::default()),
        };
        Some(Column {
            source,
            cells,
            absent: Vec::new(),
        })
    }

    fn reserve(&mut self, rows: usize) {
        match &mut self.cells {
            Cells::Bool(cells) => cells.reserve_exact(rows),
            Cells::Int(cells) => cells.reserve_exact(rows),
            Cells::Real(cells) => cells.reserve_exact(rows),
            Cells::Text(cells, _) => cells.reserve_exact(rows),
        }
    }

    fn take(&mut self, first: u32, connections: &[&Connection]) {
        match self.source {
            ColumnField::Connection(field) => {
                let views = (first..)
                    .zip(connections.iter().copied())
                    .map(|(id, connection)| ConnectionView { id, connection });
                self.extend(views.map(|view| (field.get)(&view)));
            }
            ColumnField::Direction(field, from_initiator) => {
                let views = connections
                    .iter()
                    .map(|connection| DirectionView::new(connection, from_initiator));
                self.extend(views.map(|view| (field.get)(&view)));
            }
        }
    }

    fn extend(&mut self, values: impl Iterator<Item = Value>) {
        let absent = &mut self.absent;
        match &mut self.cells {
            Cells::Bool(cells) => fill(cells, absent, values, |value| match value {
                Value::Bool(value) => Ok(value),
                _ => Err(false),
            }),
            Cells::Int(cells) => fill(cells, absent, values, |value| match value {
                Value::Int(value) => Ok(value),
                _ => Err(0),
            }),
            Cells::Real(cells) => fill(cells, absent, values, |value| match value {
                Value::Real(value) => Ok(value),
                _ => Err(f64::NAN),
            }),
            Cells::Text(cells, texts) => fill(cells, absent, values, |value| {
                texts.code(value).ok_or(Texts::NONE)
            }),
        }
    }

    fn finish(&mut self, rows: usize) {
        if !self.absent.is_empty() {
            self.absent.resize(rows, false);
        }
    }
}

/// Append the values of a column, replacing errors by the placeholder for missing values.
#[inline(always)]
fn fill<T>(
    cells: &mut Vec<T>,
    absent: &mut Vec<bool>,
    values: impl Iterator<Item = Value>,
    mut get: impl FnMut(Value) -> Result<T, T>,
) {
    for value in values {
        let cell = get(value);
        if cell.is_err() {
            absent.resize(cells.len(), false);
            absent.push(true);
        }
        cells.push(match cell {
            Ok(cell) | Err(cell) => cell,
        });
    }
}

pub fn fill_columns(columns: &mut [Column], connections: &Arena, numbers: Range<u32>) {
    let rows = numbers.len();
    for column in &mut *columns {
        column.reserve(rows);
    }
    for (first, some) in connections.chunks(numbers, BLOCK) {
        for column in &mut *columns {
            column.take(first, &some);
        }
    }
    for column in columns {
        column.finish(rows);
    }
}

/// The distinct texts of a column. An address is formatted only when it is needed.
#[derive(Default)]
pub struct Texts {
    distinct: Vec<Value>,
    /// String literals, found by address: a field has only a few.
    literals: Vec<(&'static str, u32)>,
    others: HashMap<Cow<'static, str>, u32>,
    addresses: HashMap<[u8; 16], u32>,
    last_address: Option<([u8; 16], u32)>,
}

impl Texts {
    /// The code for a missing text.
    pub const NONE: u32 = u32::MAX;

    /// Return the values that the codes refer to: texts and addresses.
    pub fn distinct(&self) -> &[Value] {
        &self.distinct
    }

    fn code(&mut self, value: Value) -> Option<u32> {
        match value {
            Value::Text(Cow::Borrowed(text)) => {
                let is_same = |known: &&(&'static str, u32)| std::ptr::eq(known.0, text);
                if let Some((_, code)) = self.literals.iter().find(is_same) {
                    return Some(*code);
                }
                let code = self.code_of_text(Cow::Borrowed(text));
                self.literals.push((text, code));
                Some(code)
            }
            Value::Text(text) => Some(self.code_of_text(text)),
            Value::Address(address) => Some(self.code_of_address(address)),
            _ => None,
        }
    }

    fn code_of_text(&mut self, text: Cow<'static, str>) -> u32 {
        let distinct = &mut self.distinct;
        *self.others.entry(text).or_insert_with_key(|text| {
            distinct.push(Value::Text(text.clone()));
            distinct.len() as u32 - 1
        })
    }

    fn code_of_address(&mut self, address: [u8; 16]) -> u32 {
        if let Some((_, code)) = self.last_address.filter(|(last, _)| *last == address) {
            return code;
        }
        let distinct = &mut self.distinct;
        let code = *self.addresses.entry(address).or_insert_with(|| {
            distinct.push(Value::Address(address));
            distinct.len() as u32 - 1
        });
        self.last_address = Some((address, code));
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::fields::{direction_fields, CONNECTION_FIELDS};
    use crate::wire::Segment;

    fn connections(count: usize) -> Arena {
        let mut arena = Arena::default();
        for number in 0..count {
            let mut segment = Segment::EMPTY;
            segment.src[15] = (number % 3) as u8;
            segment.src_port = number as u16;
            let mut connection = Connection::new(&segment, 0);
            if number % 2 == 1 {
                connection.marks.close(0);
            }
            arena.push(connection);
        }
        arena
    }

    #[test]
    fn each_column_matches_its_field() {
        let arena = connections(2 * BLOCK + 1);
        let names = CONNECTION_FIELDS
            .iter()
            .map(|field| ("connection", field.name));
        let names = names.chain(direction_fields().map(|field| ("b_to_a", field.name)));
        let mut columns: Vec<Column> = names
            .map(|(group, name)| Column::new(group, name).unwrap())
            .collect();
        fill_columns(&mut columns, &arena, 0..arena.len());
        for column in &columns {
            for (id, connection) in (0u32..).zip(arena.iter()) {
                let value = match column.source {
                    ColumnField::Connection(field) => {
                        (field.get)(&ConnectionView { id, connection })
                    }
                    ColumnField::Direction(field, from_initiator) => {
                        (field.get)(&DirectionView::new(connection, from_initiator))
                    }
                };
                let row = id as usize;
                let is_absent = column.absent.get(row).copied().unwrap_or(false);
                assert_eq!(is_absent, value == Value::None);
                let cell = match &column.cells {
                    _ if is_absent => Value::None,
                    Cells::Bool(cells) => Value::Bool(cells[row]),
                    Cells::Int(cells) => Value::Int(cells[row]),
                    Cells::Real(cells) => Value::Real(cells[row]),
                    Cells::Text(cells, texts) => texts.distinct()[cells[row] as usize].clone(),
                };
                assert_eq!(cell, value);
            }
        }
    }

    #[test]
    fn each_text_is_stored_once() {
        let arena = connections(600);
        let mut columns = [
            Column::new("connection", "b_address").unwrap(),
            Column::new("connection", "close").unwrap(),
            Column::new("connection", "closed_first").unwrap(),
        ];
        fill_columns(&mut columns, &arena, 0..arena.len());
        let distinct = columns.each_ref().map(|column| match &column.cells {
            Cells::Text(cells, texts) => (cells.len(), texts.distinct().len()),
            _ => (0, 0),
        });
        assert_eq!(distinct, [(600, 1), (600, 1), (600, 1)]);
        assert_eq!(
            columns[2].absent.iter().filter(|absent| **absent).count(),
            300
        );
    }

    #[test]
    fn an_unknown_field_gives_no_column() {
        assert!(Column::new("connection", "nonsense").is_none());
        assert!(Column::new("nonsense", "segments").is_none());
    }
}
