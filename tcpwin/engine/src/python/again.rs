//! Second readings: of connections that an analysis knows, and, where an index says where their packets are, of those only.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::details::Details;
use super::files::open;
use super::pass::{pass, watched};
use super::result::Result;
use crate::capture::MergedReader;
use crate::output::detail::{Chosen, DetailSink, Extent};
use crate::output::index::{read_again, IndexWriter, NoIndex, PacketIndex, Unfit};
use crate::output::pass::{Findings, Sink};
use crate::output::series::Span;
use crate::tracker::Tracker;

/// What is to be read again.
pub struct Wish<'a, 'py> {
    pub source: &'a Bound<'py, PyAny>,
    pub name: &'a str,
    pub index: Option<&'a Path>,
    pub ids: &'a HashSet<u32>,
    pub shifts: HashMap<u32, [u8; 2]>,
    pub progress: Option<&'a Py<PyAny>>,
}

impl Wish<'_, '_> {
    /// Read into a sink: the packets that the index names, or, without one that fits, the whole capture with the tracker.
    pub fn read<S: Sink + Send>(
        self,
        sink: impl Fn() -> S,
        tracker: impl FnOnce(HashMap<u32, [u8; 2]>) -> Tracker,
    ) -> PyResult<(S, Findings)> {
        let py = self.source.py();
        if let (Some(index), Some(capture)) = (self.index, only_path(self.source)) {
            let mut sink = sink();
            if let Ok(opened) = py.detach(|| PacketIndex::open(index, &capture)) {
                match self.read_by(&opened, &mut sink)? {
                    Ok(findings) => return Ok((sink, findings)),
                    Err(Unfit) => spoil(index),
                }
            }
        }
        let mut sink = sink();
        let input = open(self.source, self.name)?;
        let tracker = tracker(self.shifts);
        let findings = pass(py, input, tracker, &mut sink, &mut NoIndex, self.progress)?;
        Ok((sink, findings))
    }

    /// Read the packets that the index names.
    fn read_by<S: Sink + Send>(
        &self,
        index: &PacketIndex,
        sink: &mut S,
    ) -> PyResult<std::result::Result<Findings, Unfit>> {
        let (ids, shifts) = (self.ids, self.shifts.clone());
        // There are no bytes to tell of.
        watched(self.source.py(), None, |report| {
            read_again(index, ids, shifts, sink, || report(0))
        })
    }
}

/// Empty an index that turned out to be damaged: the next whole reading that is asked for one writes it anew.
fn spoil(index: &Path) {
    drop(File::create(index));
}

/// Begin an index of the capture, if one is wanted, possible and not there yet.
pub fn begin_index(
    source: &Bound<'_, PyAny>,
    input: &MergedReader,
    index: Option<PathBuf>,
) -> Option<IndexWriter> {
    let (place, capture) = (index?, only_path(source)?);
    input.single()?.landmarks()?;
    if PacketIndex::open(&place, &capture).is_ok() {
        return None;
    }
    IndexWriter::begin(&place, &capture).ok()
}

/// The path, where the source is only one.
fn only_path(source: &Bound<'_, PyAny>) -> Option<PathBuf> {
    let paths: Vec<PathBuf> = source.extract().ok()?;
    <[PathBuf; 1]>::try_from(paths).ok().map(|[path]| path)
}

/// Read some connections of a capture by its index; None where that does not fit. The result knows no others. What it says
/// of the capture are these facts and counts, which a whole reading gave.
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
    shifts: Option<HashMap<u32, [u8; 2]>>,
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
    let wish = Wish {
        source,
        name: "",
        index: None,
        ids: &ids,
        shifts: shifts.unwrap_or_default(),
        progress: None,
    };
    let extent = Extent {
        span: Span::ALL,
        buckets,
        rows,
    };
    let mut sink = DetailSink::new(Chosen::These(ids.clone()), extent);
    let Ok(findings) = wish.read_by(&opened, &mut sink)? else {
        spoil(&index);
        return Ok(None);
    };
    let details = sink.finish(&findings.tracker);
    let details = Py::new(py, Details::new(details, true))?;
    let whole = (opened.connections(), facts, counters);
    Ok(Some(Result::partial(findings, details, whole)))
}
