//! Second passes over connections of an analysis, limited to their packets if an index is available.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

use super::files::open;
use super::run::{pass, watched};
use crate::capture::MergedReader;
use crate::output::index::{reread, IndexWriter, NoIndex, PacketIndex, Unfit};
use crate::output::pass::{Findings, Sink};
use crate::tcp::tracker::Tracker;
use crate::tcp::window::scale::{GivenShift, GivenShifts};

/// Window scale shifts from elsewhere, by connection number: the first segment's sender and the other side, each with
/// whether it was set by hand.
pub type ShiftsArgument = HashMap<u32, [Option<(u8, bool)>; 2]>;

pub fn given_shifts(shifts: Option<ShiftsArgument>) -> GivenShifts {
    let each = |given: Option<(u8, bool)>| {
        given.map(|(shift, is_by_hand)| GivenShift { shift, is_by_hand })
    };
    let shifts = shifts.unwrap_or_default().into_iter();
    shifts
        .map(|(number, pair)| (number, pair.map(each)))
        .collect()
}

pub struct SecondPass<'a, 'py> {
    source: &'a Bound<'py, PyAny>,
    name: &'a str,
    pub ids: &'a HashSet<u32>,
    shifts: GivenShifts,
    index: Option<&'a Path>,
    progress: Option<&'a Py<PyAny>>,
}

impl<'a, 'py> SecondPass<'a, 'py> {
    pub fn new(
        source: &'a Bound<'py, PyAny>,
        name: &'a str,
        ids: &'a HashSet<u32>,
        shifts: Option<ShiftsArgument>,
        index: &'a Option<PathBuf>,
        progress: &'a Option<Py<PyAny>>,
    ) -> Self {
        Self {
            source,
            name,
            ids,
            shifts: given_shifts(shifts),
            index: index.as_deref(),
            progress: progress.as_ref(),
        }
    }

    /// Read into a sink: the packets listed in the index or, if none fits, the whole capture with the tracker.
    pub fn read<S: Sink + Send>(
        self,
        sink: impl Fn() -> S,
        tracker: impl FnOnce(GivenShifts) -> Tracker,
    ) -> PyResult<(S, Findings)> {
        let py = self.source.py();
        if let (Some(index), Some(capture)) = (self.index, only_path(self.source)) {
            let mut sink = sink();
            if let Ok(opened) = py.detach(|| PacketIndex::open(index, &capture)) {
                match self.read_by(&opened, &mut sink)? {
                    Ok(findings) => return Ok((sink, findings)),
                    Err(Unfit) => invalidate(index),
                }
            }
        }
        let mut sink = sink();
        let input = open(self.source, self.name)?;
        let tracker = tracker(self.shifts);
        let findings = pass(py, input, tracker, &mut sink, &mut NoIndex, self.progress)?;
        Ok((sink, findings))
    }

    /// Read the packets listed in the index.
    pub(super) fn read_by<S: Sink + Send>(
        &self,
        index: &PacketIndex,
        sink: &mut S,
    ) -> PyResult<std::result::Result<Findings, Unfit>> {
        let (ids, shifts) = (self.ids, self.shifts.clone());
        // No byte count to report.
        watched(self.source.py(), None, |report| {
            reread(index, ids, shifts, sink, || report(0))
        })
    }
}

/// Truncate a damaged index, so that the next complete pass with an index rewrites it.
pub(super) fn invalidate(index: &Path) {
    drop(File::create(index));
}

/// Start an index of the capture, if one is requested, possible and missing.
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

/// Return the path if the source is a single one.
pub(super) fn only_path(source: &Bound<'_, PyAny>) -> Option<PathBuf> {
    let paths: Vec<PathBuf> = source.extract().ok()?;
    <[PathBuf; 1]>::try_from(paths).ok().map(|[path]| path)
}
