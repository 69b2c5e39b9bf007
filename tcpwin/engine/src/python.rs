//! The border to Python: sources in, numbers and columns out. No rule of TCP lives here.
//!
//! The GIL is released while a capture is read; it is taken back for progress, signals and Python file objects.

mod changes;
mod columns;
mod details;
mod events;
mod facts;
mod files;
mod headers;
mod picks;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;

use pyo3::exceptions::{PyIndexError, PyKeyError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::IntoPyObjectExt;

use crate::connection::journal::Entry;
use crate::connection::stalls::CAUSES;
use crate::connection::state::Connection;
use crate::event::{Events, NAMES};
use crate::output::address::address_text;
use crate::output::budget_fields::item_names;
use crate::output::columns::{RowColumns, VIEW_COLUMNS};
use crate::output::detail::{Chosen, DetailSink, EventRecord, Extent};
use crate::output::fields::{
    connection_field, direction_field, direction_fields, ConnectionView, DirectionView, Kind,
    Value, CONNECTION_FIELDS,
};
use crate::output::json::write_connection;
use crate::output::pass::{run_with, Findings, NoSink, Sink};
use crate::output::rank::{held_back, worst};
use crate::output::rows::{Format, RowWriter, COLUMNS};
use crate::output::select::{by_responder, pick};
use crate::output::series::Span;
use crate::output::table::{fill_columns, Column};
use crate::output::track::SERIES;
use crate::tracker::Tracker;
use changes::MessageLayout;
use columns::{column_to_python, rows_to_python, ColumnAndMask};
use details::Details;
use events::{event_to_python, journal, NameTuples, EVENT_FIELDS};
use facts::facts_to_python;
use files::{open, raise_if_kept, Opened, PythonOut};
use picks::{question, Asked, Picks};

/// Run a pass without the GIL, with progress and signals now and then.
fn pass<S: Sink + Send>(
    py: Python<'_>,
    opened: Opened,
    tracker: Tracker,
    sink: &mut S,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Findings> {
    let Opened { input, interrupt } = opened;
    let mut failure: Option<PyErr> = None;
    let failed = &mut failure;
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            run_with(input, tracker, sink, |bytes_read| {
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    progress.map_or(Ok(()), |call| call.call1(py, (bytes_read,)).map(drop))
                });
                told.map_err(|error| *failed = Some(error)).is_ok()
            })
        }))
    });
    raise_if_kept(&interrupt)?;
    match (failure, outcome) {
        (Some(error), _) => Err(error),
        (None, Ok(findings)) => Ok(findings),
        (None, Err(_)) => Err(PyRuntimeError::new_err(
            "internal error in the engine; please report this capture",
        )),
    }
}

fn value_to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::None => Ok(py.None()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Int(value) => value.into_py_any(py),
        Value::Real(value) => value.into_py_any(py),
        Value::Text(value) => value.as_ref().into_py_any(py),
        Value::Address(address) => address_text(address).into_py_any(py),
    }
}

/// Sums over the connections that say how far the capture's numbers can be trusted.
#[derive(Default)]
struct Quality {
    super_segments: u64,
    missed_bytes: u64,
    without_syn: u64,
    one_way: u64,
}

/// What a pass found: connections, facts of the captures, details of chosen connections.
#[pyclass(frozen, module = "tcpwin._engine")]
struct Result {
    findings: Findings,
    details: Py<Details>,
}

impl Result {
    fn get(&self, id: u32) -> PyResult<&Connection> {
        self.findings.tracker.connections.get(id).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "no connection {id}: the capture has {}",
                self.__len__()
            ))
        })
    }

    fn side(&self, id: u32, from_initiator: bool) -> PyResult<usize> {
        Ok(DirectionView::new(self.get(id)?, from_initiator).sender)
    }

    fn tracker_again(&self, ids: &HashSet<u32>, shifts: Option<HashMap<u32, [u8; 2]>>) -> Tracker {
        let earlier = &self.findings.tracker.connections;
        Tracker::again(earlier, ids, shifts.unwrap_or_default())
    }

    /// What the connections say of the capture's quality, in one walk over them.
    fn quality(&self) -> Quality {
        let mut quality = Quality::default();
        for connection in self.findings.tracker.connections.iter() {
            let [first, second] = &connection.directions;
            quality.without_syn += u64::from(!first.has_syn && !second.has_syn);
            quality.one_way += u64::from(!second.is_seen && !first.has_only_syn);
            for cold in connection
                .directions
                .iter()
                .filter_map(|direction| direction.cold.as_ref())
            {
                quality.super_segments += u64::from(cold.super_segments);
                quality.missed_bytes = quality.missed_bytes.saturating_add(cold.missed.bytes());
            }
        }
        quality
    }
}

#[pymethods]
impl Result {
    fn __len__(&self) -> usize {
        self.findings.tracker.connections.len() as usize
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.findings
            .facts
            .iter()
            .map(|facts| facts_to_python(py, facts))
            .collect()
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = &self.findings.counters;
        let dict = PyDict::new(py);
        dict.set_item("segments", counters.segments)?;
        dict.set_item("not_tcp", counters.not_tcp)?;
        dict.set_item("fragments_pending", counters.fragments_pending)?;
        dict.set_item("datagrams_incomplete", counters.datagrams_incomplete)?;
        dict.set_item("quoted_in_icmp", counters.quoted)?;
        dict.set_item("header_cut", counters.header_cut)?;
        dict.set_item("malformed", counters.malformed)?;
        dict.set_item("unknown_link", counters.unknown_link)?;
        dict.set_item("unknown_link_types", counters.unknown_link_types.clone())?;
        dict.set_item("capture_duplicates", self.findings.tracker.duplicates)?;
        dict.set_item("options_cut", self.findings.tracker.options_cut)?;
        let quality = self.quality();
        dict.set_item("super_segments", quality.super_segments)?;
        dict.set_item("missed_bytes", quality.missed_bytes)?;
        dict.set_item("connections_without_syn", quality.without_syn)?;
        dict.set_item("connections_one_way", quality.one_way)?;
        Ok(dict)
    }

    fn connection<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyDict>> {
        let view = ConnectionView {
            id,
            connection: self.get(id)?,
        };
        let dict = PyDict::new(py);
        for field in CONNECTION_FIELDS {
            dict.set_item(field.name, value_to_python(py, &(field.get)(&view))?)?;
        }
        Ok(dict)
    }

    fn direction<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        from_initiator: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let view = DirectionView::new(self.get(id)?, from_initiator);
        let dict = PyDict::new(py);
        for field in direction_fields() {
            dict.set_item(field.name, value_to_python(py, &(field.get)(&view))?)?;
        }
        dict.set_item("window_scale_evidence", view.scale_evidence())?;
        Ok(dict)
    }

    fn episodes<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        from_initiator: bool,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        DirectionView::new(self.get(id)?, from_initiator)
            .episodes()
            .iter()
            .map(|episode| {
                let dict = PyDict::new(py);
                dict.set_item("start_ns", episode.start_ns)?;
                dict.set_item("end_ns", episode.end_ns)?;
                dict.set_item("start_frame", episode.start_frame)?;
                dict.set_item("end_frame", episode.end_frame)?;
                dict.set_item("probes", episode.probes)?;
                dict.set_item("first_probe_after_ns", episode.first_probe_after_ns)?;
                dict.set_item("last_probe_interval_ns", episode.last_probe_interval_ns)?;
                dict.set_item("ended_by", episode.ended_by.name())?;
                Ok(dict)
            })
            .collect()
    }

    /// Fields of all connections, each by its group, `connection`, `a_to_b` or `b_to_a`, and its name: values and mask.
    fn columns<'py>(
        &self,
        py: Python<'py>,
        names: Vec<(String, String)>,
    ) -> PyResult<Vec<ColumnAndMask<'py>>> {
        let new = |(group, name): &(String, String)| {
            let column = Column::new(group, name);
            column.ok_or_else(|| PyKeyError::new_err(format!("no column {name} in {group}")))
        };
        let mut columns = names.iter().map(new).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| fill_columns(&mut columns, &self.findings.tracker.connections));
        columns
            .into_iter()
            .map(|column| column_to_python(py, column))
            .collect()
    }

    /// Connections `start` to `stop` as JSON objects, separated by commas.
    fn json(&self, py: Python<'_>, start: u32, stop: u32) -> String {
        py.detach(|| {
            let mut out = String::new();
            for id in start..stop.min(self.findings.tracker.connections.len()) {
                if let Some(connection) = self.findings.tracker.connections.get(id) {
                    if !out.is_empty() {
                        out.push(',');
                    }
                    write_connection(&mut out, id, connection);
                }
            }
            out
        })
    }

    fn worst(&self, limit: usize) -> Vec<u32> {
        worst(&self.findings.tracker.connections, limit)
    }

    fn held_back(&self, cost_ns: i64, share: f64) -> Vec<u32> {
        held_back(&self.findings.tracker.connections, cost_ns, share)
    }

    /// What each question picks: connections, or their directions, that meet all conditions. One walk over the
    /// connections answers all.
    fn select(
        &self,
        py: Python<'_>,
        questions: Vec<(bool, Vec<Asked<'_>>)>,
    ) -> PyResult<Vec<Picks>> {
        let asked = questions
            .iter()
            .map(|(of_directions, conditions)| question(*of_directions, conditions))
            .collect::<PyResult<Vec<_>>>()?;
        let picked = py.detach(|| pick(asked, &self.findings.tracker.connections));
        Ok(questions
            .iter()
            .zip(picked)
            .map(|((of_directions, _), picked)| Picks {
                picked,
                of_directions: *of_directions,
            })
            .collect())
    }

    /// How many connections to each address and port meet all conditions: themselves, or their direction from the
    /// initiator.
    fn responders(
        &self,
        py: Python<'_>,
        of_directions: bool,
        conditions: Vec<Asked<'_>>,
    ) -> PyResult<HashMap<(String, u16), usize>> {
        let question = question(of_directions, &conditions)?;
        let found = py.detach(|| by_responder(question, &self.findings.tracker.connections));
        Ok(found
            .into_iter()
            .map(|((address, port), count)| ((address_text(&address), port), count))
            .collect())
    }

    /// One field of a connection.
    fn connection_value(&self, py: Python<'_>, id: u32, name: &str) -> PyResult<Py<PyAny>> {
        let field = connection_field(name)
            .ok_or_else(|| PyKeyError::new_err(format!("no field {name} of a connection")))?;
        let connection = self.get(id)?;
        value_to_python(py, &(field.get)(&ConnectionView { id, connection }))
    }

    /// One field of a direction.
    fn direction_value(
        &self,
        py: Python<'_>,
        id: u32,
        from_initiator: bool,
        name: &str,
    ) -> PyResult<Py<PyAny>> {
        let field = direction_field(name)
            .ok_or_else(|| PyKeyError::new_err(format!("no field {name} of a direction")))?;
        let view = DirectionView::new(self.get(id)?, from_initiator);
        value_to_python(py, &(field.get)(&view))
    }

    /// How the scale of a direction's windows is known, in words.
    fn scale_evidence(&self, id: u32, from_initiator: bool) -> PyResult<Vec<String>> {
        Ok(DirectionView::new(self.get(id)?, from_initiator).scale_evidence())
    }

    /// Whether the sender of the connection's first segment is the initiator.
    fn began_with_initiator(&self, id: u32) -> PyResult<bool> {
        Ok(self.side(id, true)? == 0)
    }

    /// What was kept of the connections followed in this pass.
    fn details(&self, py: Python<'_>) -> Py<Details> {
        self.details.clone_ref(py)
    }

    /// Read the capture again for details of these connections, within a span of time.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (source, ids, *, name="stream", buckets=1024, rows=0, start_ns=i64::MIN, end_ns=i64::MAX, shifts=None, progress=None))]
    fn follow(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        ids: HashSet<u32>,
        name: &str,
        buckets: usize,
        rows: usize,
        start_ns: i64,
        end_ns: i64,
        shifts: Option<HashMap<u32, [u8; 2]>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Details> {
        let extent = Extent {
            span: Span { start_ns, end_ns },
            buckets,
            rows,
        };
        let tracker = self.tracker_again(&ids, shifts);
        let mut sink = DetailSink::new(Chosen::These(ids.clone()), extent);
        let input = open(source, name)?;
        let again = pass(py, input, tracker, &mut sink, progress.as_ref())?;
        let is_same = self.findings.reads_as(&again, &ids);
        Ok(Details::new(sink.finish(&again.tracker), is_same))
    }

    /// Read the capture again for the per-segment table of one connection, as [`row_columns`], and whether it is still
    /// what it was.
    #[pyo3(signature = (source, only, *, name="stream", shifts=None, progress=None))]
    fn segments<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        only: u32,
        name: &str,
        shifts: Option<HashMap<u32, [u8; 2]>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, bool)> {
        let ids = HashSet::from([only]);
        let tracker = self.tracker_again(&ids, shifts);
        let mut rows = RowColumns {
            only: Some(only),
            ..RowColumns::default()
        };
        let input = open(source, name)?;
        let again = pass(py, input, tracker, &mut rows, progress.as_ref())?;
        let is_same = self.findings.reads_as(&again, &ids);
        Ok((rows_to_python(py, rows)?, is_same))
    }

    /// Places, among the first events kept of any connection, of those that one side sent (None: both), that have any
    /// of the names (without: all), and one of the causes (without: any or none).
    fn first_events(
        &self,
        id: u32,
        from_initiator: Option<bool>,
        names: Vec<String>,
        causes: Vec<String>,
    ) -> PyResult<Vec<usize>> {
        let connection = self.get(id)?;
        let wanted = NAMES
            .iter()
            .enumerate()
            .filter(|(_, name)| names.iter().any(|wanted| wanted == *name))
            .fold(0, |wanted: Events, (bit, _)| wanted | 1 << bit);
        let initiator = connection.initiator_side();
        let is_wanted = |entry: &Entry| {
            let is_from_initiator = usize::from(entry.side) == initiator;
            let cause = entry.evidence.as_ref().map(|e| e.verdict.cause.name());
            from_initiator.is_none_or(|wanted| wanted == is_from_initiator)
                && (names.is_empty() || entry.events & wanted != 0)
                && (causes.is_empty() || causes.iter().any(|wanted| Some(wanted.as_str()) == cause))
        };
        let entries = journal(connection);
        Ok(entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| is_wanted(entry))
            .map(|(place, _)| place)
            .collect())
    }

    /// How many of the first events kept of a connection, at these places, name the frame of an original.
    fn count_originals(&self, id: u32, places: Vec<usize>) -> PyResult<usize> {
        let entries = journal(self.get(id)?);
        let has_original = |place: &&usize| {
            let evidence = entries.get(**place).and_then(|e| e.evidence.as_ref());
            evidence.is_some_and(|evidence| evidence.original_frame.is_some())
        };
        Ok(places.iter().filter(has_original).count())
    }

    /// The events at these places among the first events kept of a connection.
    fn first_events_at<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        places: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let connection = self.get(id)?;
        let entries = journal(connection);
        let mut names = NameTuples::default();
        let event_at = |place: usize| {
            let entry = entries
                .get(place)
                .ok_or_else(|| PyIndexError::new_err(format!("no event {place} was kept")))?;
            let event = EventRecord::of(entry, connection.initiator_side());
            event_to_python(py, &event, &mut names)
        };
        places.into_iter().map(event_at).collect()
    }
}

/// Read a capture. `follow` chooses the connections of which series, events and up to `rows` rows are kept: None, "all"
/// or numbers. `shifts` are window scale shifts from elsewhere, by number of the connection: of the first segment's
/// sender, and the other.
#[pyfunction]
#[pyo3(signature = (source, *, name="stream", follow=None, buckets=1024, rows=0, shifts=None, progress=None))]
fn analyze(
    source: &Bound<'_, PyAny>,
    name: &str,
    follow: Option<&Bound<'_, PyAny>>,
    buckets: usize,
    rows: usize,
    shifts: Option<HashMap<u32, [u8; 2]>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Result> {
    let py = source.py();
    let input = open(source, name)?;
    let tracker = Tracker::with_shifts(shifts.unwrap_or_default());
    let (findings, details) = if let Some(follow) = follow {
        let chosen = if follow.is_instance_of::<PyString>() {
            Chosen::All
        } else {
            Chosen::These(follow.extract()?)
        };
        let extent = Extent {
            span: Span::ALL,
            buckets,
            rows,
        };
        let mut sink = DetailSink::new(chosen, extent);
        let findings = pass(py, input, tracker, &mut sink, progress.as_ref())?;
        let details = sink.finish(&findings.tracker);
        (findings, details)
    } else {
        let findings = pass(py, input, tracker, &mut NoSink, progress.as_ref())?;
        (findings, HashMap::new())
    };
    Ok(Result {
        findings,
        details: Py::new(py, Details::new(details, true))?,
    })
}

/// Write the per-segment table as text to a path, or to a file descriptor; return the rows and the capture's facts.
#[pyfunction]
#[pyo3(signature = (source, out, *, format="csv", name="stream", only=None, progress=None))]
fn write_rows<'py>(
    source: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    format: &str,
    name: &str,
    only: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, usize, Vec<Bound<'py, PyDict>>)> {
    let py = source.py();
    let format = match format {
        "csv" => Format::Csv,
        "jsonl" => Format::JsonLines,
        other => return Err(PyValueError::new_err(format!("no text format {other}"))),
    };
    let input = open(source, name)?;
    let target: Box<dyn Write + Send> = match out.extract::<PathBuf>() {
        Ok(path) => Box::new(File::create(path)?),
        Err(_) => Box::new(PythonOut(out.clone().unbind())),
    };
    let fail = |error: &io::Error| match error.kind() {
        io::ErrorKind::BrokenPipe => {
            pyo3::exceptions::PyBrokenPipeError::new_err(error.to_string())
        }
        _ => PyOSError::new_err(error.to_string()),
    };
    let mut writer = RowWriter::new(BufWriter::with_capacity(1 << 18, target), format, only)
        .map_err(|e| fail(&e))?;
    let tracker = only.map_or_else(Tracker::new, Tracker::only);
    let findings = pass(py, input, tracker, &mut writer, progress.as_ref())?;
    let flushed = py.detach(|| writer.flush());
    if let Some(error) = writer.error.as_ref().or(flushed.as_ref().err()) {
        return Err(fail(error));
    }
    let facts = findings
        .facts
        .iter()
        .map(|facts| facts_to_python(py, facts))
        .collect::<PyResult<_>>()?;
    Ok((
        writer.rows,
        findings.tracker.connections.len() as usize,
        facts,
    ))
}

/// The per-segment table as columns: name → (values, mask or None). Addresses are codes into `address_names`.
#[pyfunction]
#[pyo3(signature = (source, *, name="stream", shifts=None, progress=None))]
fn row_columns<'py>(
    source: &Bound<'py, PyAny>,
    name: &str,
    shifts: Option<HashMap<u32, [u8; 2]>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = source.py();
    let input = open(source, name)?;
    let mut rows = RowColumns::default();
    let tracker = Tracker::with_shifts(shifts.unwrap_or_default());
    pass(py, input, tracker, &mut rows, progress.as_ref())?;
    rows_to_python(py, rows)
}

/// Fields of a group as (name, kind, documentation).
#[pyfunction]
fn fields(group: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let kind = |kind: Kind| match kind {
        Kind::Bool => "bool",
        Kind::Int => "int",
        Kind::Real => "float",
        Kind::Text => "str",
    };
    if group == "connection" {
        CONNECTION_FIELDS
            .iter()
            .map(|field| (field.name, kind(field.kind), field.doc))
            .collect()
    } else {
        direction_fields()
            .map(|field| (field.name, kind(field.kind), field.doc))
            .collect()
    }
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Result>()?;
    module.add_class::<Picks>()?;
    module.add_class::<MessageLayout>()?;
    module.add_class::<Details>()?;
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_function(wrap_pyfunction!(write_rows, module)?)?;
    module.add_function(wrap_pyfunction!(row_columns, module)?)?;
    module.add_function(wrap_pyfunction!(fields, module)?)?;
    module.add_function(wrap_pyfunction!(headers::write_headers, module)?)?;
    module.add("ROW_COLUMNS", COLUMNS)?;
    module.add("VIEW_COLUMNS", VIEW_COLUMNS)?;
    module.add("EVENT_NAMES", NAMES)?;
    module.add("SERIES_NAMES", SERIES)?;
    module.add("BUDGET_ITEMS", item_names().collect::<Vec<_>>())?;
    module.add("STALL_CAUSES", CAUSES)?;
    module.add("EVENT_FIELDS", PyTuple::new(module.py(), EVENT_FIELDS)?)?;
    Ok(())
}
