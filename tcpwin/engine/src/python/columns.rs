//! Columns of connections, and rows as columns: (values, mask or None). Row addresses are codes into `address_names`,
//! row events codes into `event_sets`.

use std::collections::HashMap;
use std::hash::Hash;

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::IntoPyObjectExt;

use crate::output::address::address_text;
use crate::output::columns::{RowColumns, VIEW_COLUMNS};
use crate::output::exchanges::Exchange;
use crate::output::table::{Cells, Column};
use crate::python::values::value_to_python;

/// An array, and its mask of missing values or None. For text, the array contains codes, and the mask is replaced by
/// the list of texts that they index, None last.
pub type ColumnAndMask<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

pub fn column_to_python(py: Python<'_>, column: Column) -> PyResult<ColumnAndMask<'_>> {
    let none = py.None().into_bound(py);
    let values = match column.cells {
        Cells::Bool(cells) => PyArray1::from_vec(py, cells).into_any(),
        Cells::Int(cells) => PyArray1::from_vec(py, cells).into_any(),
        Cells::Real(cells) => PyArray1::from_vec(py, cells).into_any(),
        Cells::Text(mut codes, texts) => {
            let distinct = texts.distinct().iter();
            let mut words = distinct
                .map(|value| value_to_python(py, value))
                .collect::<PyResult<Vec<_>>>()?;
            let none = words.len() as u32;
            words.push(py.None());
            codes.iter_mut().for_each(|code| *code = none.min(*code));
            let words = PyList::new(py, words)?.into_any();
            return Ok((PyArray1::from_vec(py, codes).into_any(), words));
        }
    };
    let mask = match column.absent {
        absent if absent.is_empty() => none,
        absent => PyArray1::from_vec(py, absent).into_bound_py_any(py)?,
    };
    Ok((values, mask))
}

pub fn rows_to_python(py: Python<'_>, rows: RowColumns) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    macro_rules! plain {
        ($name:literal, $values:expr) => {
            dict.set_item($name, (PyArray1::from_vec(py, $values), py.None()))?
        };
    }
    let mut addresses = Codes::default();
    let src: Vec<u32> = rows
        .endpoints
        .iter()
        .map(|row| addresses.code(&row.0))
        .collect();
    let dst: Vec<u32> = rows
        .endpoints
        .iter()
        .map(|row| addresses.code(&row.2))
        .collect();
    let names: Vec<String> = addresses.distinct.iter().map(address_text).collect();
    let mut sets = Codes::default();
    let events: Vec<u32> = rows.events.iter().map(|set| sets.code(set)).collect();
    plain!("frame", rows.frame);
    plain!("time_ns", rows.time_ns);
    plain!("connection", rows.connection);
    plain!("direction", rows.is_from_initiator);
    plain!("src", src);
    plain!("sport", rows.endpoints.iter().map(|row| row.1).collect());
    plain!("dst", dst);
    plain!("dport", rows.endpoints.iter().map(|row| row.3).collect());
    plain!("seq", rows.seq);
    plain!("ack", rows.ack);
    plain!("length", rows.length);
    plain!("flags", rows.flags);
    plain!("window_raw", rows.window_raw);
    dict.set_item("window", optional(py, &rows.window))?;
    dict.set_item("shift", optional(py, &rows.shift))?;
    dict.set_item("bytes_in_flight", optional(py, &rows.bytes_in_flight))?;
    dict.set_item("pipe", optional(py, &rows.pipe))?;
    dict.set_item("rtt_ns", optional(py, &rows.rtt_ns))?;
    plain!("events", events);
    plain!("cause", rows.cause);
    dict.set_item("event_sets", sets.distinct)?;
    dict.set_item("address_names", names)?;
    Ok(dict)
}

pub fn exchanges_to_python<'py>(
    py: Python<'py>,
    exchanges: &[Exchange],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    macro_rules! columns {
        ($($name:ident),*) => {$(
            let values = exchanges.iter().map(|each| each.$name).collect();
            dict.set_item(stringify!($name), PyArray1::from_vec(py, values))?;
        )*};
    }
    columns!(
        connection,
        request_frame,
        request_end_frame,
        answer_frame,
        answer_end_frame,
        start_ns,
        think_ns,
        request_ns,
        path_ns,
        work_ns,
        transfer_ns,
        request_bytes,
        answer_bytes
    );
    Ok(dict)
}

/// Encodes repeated values as indices into the list of distinct ones.
struct Codes<T> {
    distinct: Vec<T>,
    codes: HashMap<T, u32>,
    /// Most lookups hit one of the last two values, because a connection's two sides alternate.
    last: [Option<(T, u32)>; 2],
}

impl<T> Default for Codes<T> {
    fn default() -> Self {
        Codes {
            distinct: Vec::new(),
            codes: HashMap::new(),
            last: [None, None],
        }
    }
}

impl<T: Copy + Eq + Hash> Codes<T> {
    #[inline(always)]
    fn code(&mut self, value: &T) -> u32 {
        for (known, code) in self.last.iter().flatten() {
            if known == value {
                return *code;
            }
        }
        let code = *self.codes.entry(*value).or_insert_with(|| {
            self.distinct.push(*value);
            self.distinct.len() as u32 - 1
        });
        self.last = [Some((*value, code)), self.last[0]];
        code
    }
}

/// Add the columns of a view: the rows' positions on the axes of the figure.
pub fn places_to_python(
    py: Python<'_>,
    columns: &Bound<'_, PyDict>,
    places: &[Vec<Option<i64>>],
) -> PyResult<()> {
    for (name, values) in VIEW_COLUMNS.iter().zip(places) {
        columns.set_item(*name, optional(py, values))?;
    }
    Ok(())
}

type Masked<'py, T> = (Bound<'py, PyArray1<T>>, Bound<'py, PyArray1<bool>>);

fn optional<'py, T: Element + Copy + Default>(
    py: Python<'py>,
    values: &[Option<T>],
) -> Masked<'py, T> {
    let mask = values.iter().map(Option::is_none).collect();
    let values = values
        .iter()
        .map(|value| value.unwrap_or_default())
        .collect();
    (PyArray1::from_vec(py, values), PyArray1::from_vec(py, mask))
}
