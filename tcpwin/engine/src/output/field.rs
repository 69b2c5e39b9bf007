//! A field of a connection or a direction: name, kind, documentation, and accessor.

use std::borrow::Cow;

use crate::tcp::connection::state::Connection;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Cow<'static, str>),
    /// Formatted as text.
    Address([u8; 16]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Real,
    Text,
}

/// The data that a value is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Any data.
    Record,
    /// Only data stored outside the direction's main record (cold state or pace) or the connection's (incidents); without
    /// it, the value is 0.
    ColdState,
    Incidents,
    Pace,
}

/// Words that may follow a field's kind in a table, and what each means.
///
/// Without any, a number is never null and never below zero.
pub const MARKS: &[(&str, &str)] = &[
    ("nullable", "null where the capture cannot say"),
    ("signed", "may be below zero"),
    ("positive", "at least 1"),
    ("port", "at most 65535"),
    ("octet", "at most 255"),
    (
        "shift",
        "at most 14, the largest window scale (RFC 7323 section 2.3)",
    ),
    ("list", "shown in the dashboard's lists of connections"),
    ("brief", "part of the short answers given to agents"),
    (
        "composed",
        "in Python part of an object: the connection's number, an endpoint, or the window scale",
    ),
];

pub struct Field<Get> {
    pub name: &'static str,
    pub kind: Kind,
    /// Facts about its values and the surfaces that show it: see [`MARKS`].
    pub marks: &'static [&'static str],
    /// The only values it takes; empty where any of its kind is possible.
    pub choices: &'static [&'static str],
    pub within: Within,
    /// Meaning, with unit and, where relevant, source.
    pub doc: &'static str,
    pub get: Get,
}

pub type ConnectionField = Field<for<'a> fn(&ConnectionView<'a>) -> Value>;
pub type DirectionField = Field<for<'a> fn(&DirectionView<'a>) -> Value>;

/// A connection and its number.
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

/// Defines fields with an accessor on a view; or, after `@` and the name of an optional part of the record, an accessor
/// on that part, whose value is 0 if the part is absent.
macro_rules! fields {
    ($($name:ident $kind:ident $($mark:ident)* $([$($choice:literal)|+])? $doc:literal $(@ $part:ident)? $get:expr;)*) => {
        &[$(crate::output::field::Field {
            name: stringify!($name),
            kind: crate::output::field::Kind::$kind,
            marks: &[$(stringify!($mark)),*],
            choices: &[$($($choice),+)?],
            within: crate::output::field::within!($($part)?),
            doc: $doc,
            get: crate::output::field::getter!($(@ $part)? $get),
        }),*]
    };
}
macro_rules! getter {
    (@ sent $events:expr) => {
        |v| v.sent_count($events)
    };
    (@ answered $events:expr) => {
        |v| v.answer_count($events)
    };
    (@ cold_state $get:expr) => {
        |v| v.rare_int($get)
    };
    (@ episode $get:expr) => {
        |v| v.of_episode($get)
    };
    (@ zero $get:expr) => {
        |v| v.zero_int($get)
    };
    (@ pace $get:expr) => {
        |v| v.of_pace($get)
    };
    (@ idle $get:expr) => {
        |v| v.idle($get)
    };
    ($get:expr) => {
        $get
    };
}
macro_rules! within {
    () => {
        crate::output::field::Within::Record
    };
    (sent) => {
        crate::output::field::Within::Incidents
    };
    (answered) => {
        crate::output::field::Within::Incidents
    };
    (pace) => {
        crate::output::field::Within::Pace
    };
    (idle) => {
        crate::output::field::Within::Pace
    };
    ($part:ident) => {
        crate::output::field::Within::ColdState
    };
}
pub(super) use {fields, getter, within};
