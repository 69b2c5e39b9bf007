//! A stream of a capture in, a file of its headers out.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::facts::facts_to_python;
use super::files::{open_limited, raise_if_kept};
use crate::output::headers;

/// Write the headers of a capture, read from an object with `read`, to a new file; return packets, packets cut, facts.
#[pyfunction]
#[pyo3(signature = (source, out, *, name="stream", whole=false, max_bytes=u64::MAX, progress=None))]
pub fn write_headers<'py>(
    source: &Bound<'py, PyAny>,
    out: PathBuf,
    name: &str,
    whole: bool,
    max_bytes: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, Bound<'py, PyDict>)> {
    let py = source.py();
    let mut opened = open_limited(source, name, max_bytes)?;
    let file = File::create_new(&out)?;
    let mut failure: Option<PyErr> = None;
    let failed = &mut failure;
    let input = &mut opened.input;
    let written = py.detach(|| {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        headers::write_headers(input, &mut out, whole, |bytes_read| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress
                    .as_ref()
                    .map_or(Ok(()), |call| call.call1(py, (bytes_read,)).map(drop))
            });
            told.map_err(|error| *failed = Some(error)).is_ok()
        })
    });
    raise_if_kept(&opened.interrupt)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let cut = written.map_err(|error| match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    })?;
    let facts = opened.input.into_facts();
    let facts = facts
        .first()
        .ok_or_else(|| io::Error::other("no capture"))?;
    Ok((cut.packets, cut.packets_cut, facts_to_python(py, facts)?))
}
