//! `MessageLayout`: the layout of a binary message, and the differences between two such messages.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::changes::{Change, Field, Flag, Layout, Number};

type NamedNumber = (String, usize, usize, u64, bool, u64);

fn field((name, at, size, factor, zero, most): NamedNumber) -> Field {
    let number = Number { at, size };
    Field {
        name,
        number,
        factor,
        zero,
        most,
    }
}

fn ranges(pairs: Vec<(usize, usize)>) -> Vec<Range<usize>> {
    pairs.into_iter().map(|(start, end)| start..end).collect()
}

#[pyclass(frozen, module = "tcpwin._engine")]
pub struct MessageLayout(Layout);

#[pymethods]
impl MessageLayout {
    #[new]
    #[pyo3(signature = (length, *, steady, measured, watched, fields, flags, running))]
    fn new(
        length: usize,
        steady: Vec<(usize, usize)>,
        measured: Vec<(usize, usize)>,
        watched: Vec<(usize, usize)>,
        fields: Vec<NamedNumber>,
        flags: Vec<(String, usize, u8)>,
        running: Vec<NamedNumber>,
    ) -> PyResult<Self> {
        let layout = Layout {
            length,
            steady: ranges(steady),
            measured: measured
                .into_iter()
                .map(|(at, size)| Number { at, size })
                .collect(),
            watched: ranges(watched),
            fields: fields.into_iter().map(field).collect(),
            flags: flags
                .into_iter()
                .map(|(name, at, mask)| Flag { name, at, mask })
                .collect(),
            running: running.into_iter().map(field).collect(),
        };
        if layout.is_sound() {
            Ok(Self(layout))
        } else {
            Err(PyValueError::new_err("the layout exceeds the message"))
        }
    }

    /// Return None if the whole message must be sent, "" if no watched part changed.
    fn changes(&self, before: &[u8], after: &[u8]) -> Option<String> {
        match self.0.changes(before, after) {
            Change::Whole => None,
            Change::None => Some(String::new()),
            Change::Members(text) => Some(text),
        }
    }
}
