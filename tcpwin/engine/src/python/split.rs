//! Split a capture that was taken at two points into one file per point.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::facts::facts_to_python;
use super::files::{open, raise_pending};
use super::run::watched;
use crate::output::split;

/// Packets of each point, and the facts of the capture.
type Split<'py> = (u64, u64, Vec<Bound<'py, PyDict>>);

/// Write the packets of each of two capture points to a separate new file. Return their counts and the capture's facts,
/// or None if the capture has a single point. `reopen` is called for a second source after the first read.
#[pyfunction]
#[pyo3(signature = (source, reopen, outs, *, name, progress=None))]
pub fn split_points<'py>(
    source: &Bound<'py, PyAny>,
    reopen: &Bound<'py, PyAny>,
    outs: (PathBuf, PathBuf),
    name: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<Split<'py>>> {
    let py = source.py();
    let opened = open(source, name)?;
    let input = opened.input;
    let learnt = watched(py, progress.as_ref(), |report| split::learn(input, report));
    raise_pending(&opened.interrupt)?;
    let Some(points) = learnt? else {
        return Ok(None);
    };
    let opened = open(&reopen.call0()?, name)?;
    let file = |path: &PathBuf| -> io::Result<BufWriter<File>> {
        Ok(BufWriter::with_capacity(1 << 18, File::create_new(path)?))
    };
    let (mut a, mut b) = (file(&outs.0)?, file(&outs.1)?);
    let input = opened.input;
    let counts = watched(py, progress.as_ref(), |report| {
        split::split(input, points, [&mut a, &mut b], report)
    });
    raise_pending(&opened.interrupt)?;
    let ([a, b], facts) = counts?.map_err(|error| PyOSError::new_err(error.to_string()))?;
    let facts = facts.iter().map(|facts| facts_to_python(py, facts));
    Ok(Some((a, b, facts.collect::<PyResult<_>>()?)))
}
