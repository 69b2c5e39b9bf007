//! Copy an analysed capture, read a second time, to a pcapng file with comments.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter};

use pyo3::exceptions::{PyBrokenPipeError, PyOSError, PyValueError};
use pyo3::prelude::*;

use super::files::{open, raise_pending, PythonOut};
use super::result::Result;
use super::run::{pass, watched};
use super::second_reading::{given_shifts, SecondPass, ShiftsArgument};
use crate::capture::{Extent, Rewriter};
use crate::event::NAMES;
use crate::output::comment::Words;
use crate::output::copy::{Choice, Copier, CopyRequest, Notes};
use crate::output::index::NoIndex;
use crate::output::parts;
use crate::output::series::Span;
use crate::output::surround::Surround;
use crate::tcp::tracker::Tracker;

/// The packets to copy: connections (with frames that hold fragments of their segments), or frames; all if neither is
/// given.
#[derive(FromPyObject)]
pub struct Chosen {
    #[pyo3(attribute)]
    connections: Option<HashSet<u32>>,
    #[pyo3(attribute)]
    parts: Vec<u64>,
    #[pyo3(attribute)]
    frames: Option<Vec<u64>>,
    #[pyo3(attribute)]
    start_ns: i64,
    #[pyo3(attribute)]
    end_ns: i64,
    #[pyo3(attribute)]
    headers_only: bool,
}

/// The contents of the comments.
#[derive(FromPyObject)]
pub struct CommentTexts {
    #[pyo3(attribute)]
    causes: Vec<String>,
    #[pyo3(attribute)]
    events: Vec<String>,
    #[pyo3(attribute)]
    quiet: Vec<String>,
    #[pyo3(attribute)]
    stalls: Vec<String>,
    #[pyo3(attribute)]
    texts: Vec<String>,
    #[pyo3(attribute)]
    marks: Vec<(u64, u32)>,
    /// Called with a connection's number.
    #[pyo3(attribute)]
    verdict: Py<PyAny>,
}

/// Packets written, truncated, newly commented, and dropped because their interface is not described; and whether the
/// capture is unchanged.
type Copied = (u64, u64, u64, u64, bool);

/// Write packets of an analysed capture to a file. `sources` is the same capture twice, one for each reader.
#[pyfunction]
#[pyo3(signature = (result, sources, out, chosen, comments, *, name="stream", everything=false, about=("", ""), shifts=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn copy_packets<'py>(
    result: &Bound<'py, Result>,
    sources: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    out: &Bound<'py, PyAny>,
    chosen: Chosen,
    comments: Option<CommentTexts>,
    name: &str,
    everything: bool,
    about: (&str, &str),
    shifts: Option<ShiftsArgument>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Copied> {
    let py = out.py();
    let earlier = result.get().findings();
    let span = Span {
        start_ns: chosen.start_ns,
        end_ns: chosen.end_ns,
    };
    let tracker = match &chosen.connections {
        Some(ids) => Tracker::rereading(&earlier.tracker, ids, given_shifts(shifts)),
        None => Tracker::with_shifts(given_shifts(shifts)),
    };
    let checked = chosen.connections.clone().unwrap_or_default();
    let choice = match (chosen.frames, chosen.connections) {
        (Some(frames), _) => Choice::Frames(frames),
        (None, Some(ids)) => Choice::Connections {
            ids,
            parts: chosen.parts,
        },
        (None, None) => Choice::All,
    };
    let tracked = open(&sources.0, name)?;
    let copied = open(&sources.1, name)?;
    let (interrupt, copied_interrupt) = (tracked.interrupt.clone(), copied.interrupt.clone());
    let target = PythonOut {
        file: out.clone().unbind(),
        interrupt: interrupt.clone(),
    };
    let extent = if everything {
        Extent::Everything
    } else {
        Extent::Needed
    };
    let count = copied.input.facts().len();
    let target = BufWriter::with_capacity(1 << 18, target);
    let rewriter = Rewriter::new(target, count, extent, about.0, about.1);
    let mut failure: Option<PyErr> = None;
    let failed = &mut failure;
    let (notes, verdict) = match comments {
        Some(comments) => {
            let (notes, verdict) = comments.split()?;
            (Some(notes), Some(verdict))
        }
        None => (None, None),
    };
    let ask = move |id: u32| -> Option<String> {
        let call = verdict.as_ref().filter(|_| failed.is_none())?;
        let answer = Python::attach(|py| call.call1(py, (id,))?.extract::<Option<String>>(py));
        answer.unwrap_or_else(|error| {
            *failed = Some(error);
            None
        })
    };
    let request = CopyRequest {
        choice,
        span,
        is_cut: chosen.headers_only,
        notes,
    };
    let mut copier = Copier::new(copied.input, rewriter, request, ask);
    let findings = pass(
        py,
        tracked,
        tracker,
        &mut copier,
        &mut NoIndex,
        progress.as_ref(),
    )?;
    let done = py.detach(|| copier.finish());
    raise_pending(&interrupt)?;
    raise_pending(&copied_interrupt)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let copied = done.map_err(as_python)?;
    Ok((
        copied.packets,
        copied.packets_cut,
        copied.packets_commented,
        copied.skipped,
        earlier.reads_as(&findings, &checked),
    ))
}

/// Return the exception that Python's file raised, if that is the cause.
fn as_python(error: io::Error) -> PyErr {
    let text = error.to_string();
    let is_pipe = error.kind() == io::ErrorKind::BrokenPipe;
    let raised = error
        .into_inner()
        .and_then(|inner| inner.downcast::<PyErr>().ok());
    match raised {
        Some(raised) => *raised,
        None if is_pipe => PyBrokenPipeError::new_err(text),
        None => PyOSError::new_err(text),
    }
}

impl CommentTexts {
    fn split(self) -> PyResult<(Notes, Py<PyAny>)> {
        let mut quiet = 0;
        for name in &self.quiet {
            let bit = NAMES.iter().position(|known| known == name);
            let missing = || PyValueError::new_err(format!("unknown event {name}"));
            quiet |= 1 << bit.ok_or_else(missing)?;
        }
        let words = Words {
            causes: self.causes,
            events: self.events,
            quiet,
            stalls: self.stalls,
        };
        let notes = Notes {
            words,
            texts: self.texts,
            marks: self.marks,
        };
        Ok((notes, self.verdict))
    }
}

/// Return the frames of connections and of some segments around each, in order; and whether the capture is unchanged.
#[pyfunction]
#[pyo3(signature = (result, source, wanted, around, *, name="stream", shifts=None, index=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn frames_around(
    result: &Bound<'_, Result>,
    source: &Bound<'_, PyAny>,
    wanted: HashMap<u32, Vec<u64>>,
    around: usize,
    name: &str,
    shifts: Option<ShiftsArgument>,
    index: Option<std::path::PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<u64>, bool)> {
    let ids = wanted.keys().copied().collect();
    let request = SecondPass::new(source, name, &ids, shifts, &index, &progress);
    let new = || Surround::new(wanted.clone(), around);
    let (sink, _, is_same) = result.get().read(request, new)?;
    Ok((sink.finish(), is_same))
}

/// Return the frames of the IP fragments of these connections' segments, in order.
#[pyfunction]
#[pyo3(signature = (result, source, ids, *, name="stream", progress=None))]
pub fn frames_of_parts(
    result: &Bound<'_, Result>,
    source: &Bound<'_, PyAny>,
    ids: HashSet<u32>,
    name: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<u64>> {
    let py = source.py();
    let opened = open(source, name)?;
    let tracker = &result.get().findings().tracker;
    let connections = ids.iter().filter_map(|id| tracker.by_number(*id));
    let frames = watched(py, progress.as_ref(), |report| {
        parts::frames_of_parts(opened.input, connections, report)
    });
    raise_pending(&opened.interrupt)?;
    frames
}
