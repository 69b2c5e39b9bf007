//! What a field of a connection or of a direction is: its name, kind and meaning, and how its value is taken.

use std::borrow::Cow;

use crate::connection::state::Connection;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Cow<'static, str>),
    /// A text too.
    Address([u8; 16]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Real,
    Text,
}

pub struct Field<Get> {
    pub name: &'static str,
    pub kind: Kind,
    /// What it says, with its unit and, where it matters, its source.
    pub doc: &'static str,
    pub get: Get,
}

pub type ConnectionField = Field<for<'a> fn(&ConnectionView<'a>) -> Value>;
pub type DirectionField = Field<for<'a> fn(&DirectionView<'a>) -> Value>;

/// A connection under its number.
pub struct ConnectionView<'a> {
    pub id: u32,
    pub connection: &'a Connection,
}

/// Data from `sender` to the other side, and the other side's acknowledgments and windows.
pub struct DirectionView<'a> {
    pub connection: &'a Connection,
    pub sender: usize,
}

pub(super) fn int(value: impl Into<i64>) -> Value {
    Value::Int(value.into())
}

pub(super) fn count(value: u64) -> Value {
    Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

pub(super) fn optional(value: Option<impl Into<i64>>) -> Value {
    value.map_or(Value::None, |value| Value::Int(value.into()))
}

pub(super) fn text(value: &'static str) -> Value {
    Value::Text(Cow::Borrowed(value))
}

macro_rules! fields {
    ($($name:ident $kind:ident $doc:literal $get:expr;)*) => {
        &[$(crate::output::field::Field {
            name: stringify!($name),
            kind: crate::output::field::Kind::$kind,
            doc: $doc,
            get: $get,
        }),*]
    };
}
pub(super) use fields;
