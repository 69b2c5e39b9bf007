//! Field values as Python objects.

use pyo3::prelude::*;
use pyo3::IntoPyObjectExt;

use crate::output::address::address_text;
use crate::output::field::Value;

pub fn value_to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::None => Ok(py.None()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Int(value) => value.into_py_any(py),
        Value::Real(value) => value.into_py_any(py),
        Value::Text(value) => value.as_ref().into_py_any(py),
        Value::Address(address) => address_text(address).into_py_any(py),
    }
}
