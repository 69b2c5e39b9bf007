//! Analyse some connections of a capture by the index that an earlier analysis wrote.

use std::collections::HashSet;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::details::Details;
use super::result::Result;
use super::second_reading::{invalidate, only_path, SecondPass, ShiftsArgument};
use crate::output::detail::{Chosen, DetailSink, Extent};
use crate::output::index::PacketIndex;
use crate::output::series::Span;

/// Analyse some connections of a capture by its index; None if the index does not fit. The result contains only these
/// connections, and reports the given facts and counts, which come from a complete pass.
#[pyfunction]
#[pyo3(signature = (source, index, ids, *, facts, counters, buckets=1024, rows=0, shifts=None))]
#[allow(clippy::too_many_arguments)]
pub fn reopen(
    source: &Bound<'_, PyAny>,
    index: PathBuf,
    ids: HashSet<u32>,
    facts: Py<PyList>,
    counters: Py<PyDict>,
    buckets: usize,
    rows: usize,
    shifts: Option<ShiftsArgument>,
) -> PyResult<Option<Result>> {
    let py = source.py();
    let Some(capture) = only_path(source) else {
        return Ok(None);
    };
    let Ok(opened) = py.detach(|| PacketIndex::open(&index, &capture)) else {
        return Ok(None);
    };
    if ids.iter().any(|id| *id >= opened.connections()) {
        return Ok(None);
    }
    let request = SecondPass::new(source, "", &ids, shifts, &None, &None);
    let extent = Extent {
        span: Span::ALL,
        buckets,
        rows,
        has_series: true,
    };
    let mut sink = DetailSink::new(Chosen::These(ids.clone()), extent);
    let Ok(findings) = request.read_by(&opened, &mut sink)? else {
        invalidate(&index);
        return Ok(None);
    };
    let details = sink.finish(&findings.tracker);
    let details = Py::new(py, Details::new(details, true))?;
    let whole = (opened.connections(), facts, counters);
    Ok(Some(Result::partial(findings, details, whole)))
}
