//! Targets of HTTP requests, read from the payload of their frames.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::files::{open, raise_pending};
use super::run::watched;
use crate::output::request_targets as targets;

/// Return the targets of HTTP requests whose first segments are these frames, in ascending order: for each frame an
/// index into the list of words, or one past its end if unknown; and the words.
#[pyfunction]
#[pyo3(signature = (source, frames, *, name="stream", progress=None))]
pub fn request_targets<'py>(
    source: &Bound<'py, PyAny>,
    frames: Vec<u64>,
    name: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Vec<String>)> {
    let py = source.py();
    let mut opened = open(source, name)?;
    let input = &mut opened.input;
    let found = watched(py, progress.as_ref(), |report| {
        targets::request_targets(input, &frames, report)
    })?;
    raise_pending(&opened.interrupt)?;
    Ok((PyArray1::from_vec(py, found.codes), found.words))
}
