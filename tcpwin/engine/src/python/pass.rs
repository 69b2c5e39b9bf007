//! Passes over a capture: for an analysis, or for the per-segment table of all connections.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::columns::rows_to_python;
use super::details::Details;
use super::facts::facts_to_python;
use super::files::{open, raise_pending, Opened, PythonOut};
use super::result::Result;
use super::row_chunks::RowChunks;
use super::run::{pass, pass_sharded};
use super::second_reading::{begin_index, given_shifts, ShiftsArgument};
use crate::output::columns::RowColumns;
use crate::output::detail::{Chosen, DetailSink, Extent};
use crate::output::header_columns::{HeaderRow, HeaderRows};
use crate::output::index::NoIndex;
use crate::output::parquet::ParquetWriter;
use crate::output::pass::NoSink;
use crate::output::rows::{ChosenColumns, Format, RowSink, RowWriter};
use crate::output::series::Span;
use crate::tcp::tracker::Tracker;
use crate::wire::NO_IP_ID;

/// Analyse a capture. `follow` selects the connections whose series, events and up to `rows` rows are recorded: None,
/// "all" or numbers; "events" records the events and stalls of all. `shifts` are window scale shifts from elsewhere, by
/// connection number: the first segment's sender, then the other side. `index` is a file of packet offsets by
/// connection, which is written if it is missing or stale. With neither, `threads` threads track connections in
/// parallel; the result is the same.
#[pyfunction]
#[pyo3(signature = (source, *, name="stream", follow=None, buckets=1024, rows=0, shifts=None, index=None, threads=1, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn analyze(
    source: &Bound<'_, PyAny>,
    name: &str,
    follow: Option<&Bound<'_, PyAny>>,
    buckets: usize,
    rows: usize,
    shifts: Option<ShiftsArgument>,
    index: Option<PathBuf>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Result> {
    let py = source.py();
    let input = open(source, name)?;
    let tracker = Tracker::with_shifts(given_shifts(shifts));
    let progress = progress.as_ref();
    let mut details = follow
        .map(|follow| detail_sink(follow, buckets, rows))
        .transpose()?;
    let findings = match (&mut details, begin_index(source, &input.input, index)) {
        (None, None) => pass_sharded(py, input, tracker, threads, progress)?,
        (None, Some(mut writer)) => pass(py, input, tracker, &mut NoSink, &mut writer, progress)?,
        (Some(sink), None) => pass(py, input, tracker, sink, &mut NoIndex, progress)?,
        (Some(sink), Some(mut writer)) => pass(py, input, tracker, sink, &mut writer, progress)?,
    };
    let details = details.map_or_else(HashMap::new, |sink| sink.finish(&findings.tracker));
    let details = Py::new(py, Details::new(details, true))?;
    Ok(Result::new(findings, details))
}

fn detail_sink(follow: &Bound<'_, PyAny>, buckets: usize, rows: usize) -> PyResult<DetailSink> {
    let word = follow.extract::<String>().ok();
    let chosen = match word {
        Some(_) => Chosen::All,
        None => Chosen::These(follow.extract()?),
    };
    let extent = Extent {
        span: Span::ALL,
        buckets,
        rows,
        has_series: word.as_deref() != Some("events"),
    };
    Ok(DetailSink::new(chosen, extent))
}

/// Write the per-segment table to an object with `write`, as csv, jsonl or parquet. Return the number of rows and
/// connections, and the capture's facts.
#[pyfunction]
#[pyo3(signature = (source, out, *, format="csv", name="stream", only=None, columns=None, shifts=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn write_rows<'py>(
    source: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    format: &str,
    name: &str,
    only: Option<u32>,
    columns: Option<Vec<String>>,
    shifts: Option<ShiftsArgument>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, usize, Vec<Bound<'py, PyDict>>)> {
    let py = source.py();
    let input = open(source, name)?;
    let target = PythonOut {
        file: out.clone().unbind(),
        interrupt: input.interrupt.clone(),
    };
    let chosen = match &columns {
        Some(names) => ChosenColumns::of(names.iter().map(String::as_str))
            .ok_or_else(|| PyValueError::new_err("unknown column"))?,
        None => ChosenColumns::ALL,
    };
    let tracker = Tracker::with_shifts(given_shifts(shifts)).of_one(only);
    let text = match format {
        "csv" => Format::Csv,
        "jsonl" => Format::JsonLines,
        "parquet" => {
            let rows = ParquetWriter::new(target, only, chosen)?;
            return write_all(py, input, tracker, rows, progress);
        }
        other => return Err(PyValueError::new_err(format!("unknown format {other}"))),
    };
    let rows = RowWriter::new(target, text, only, chosen)?;
    write_all(py, input, tracker, rows, progress)
}

fn write_all<S: RowSink + Send>(
    py: Python<'_>,
    input: Opened,
    tracker: Tracker,
    mut rows: S,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, usize, Vec<Bound<'_, PyDict>>)> {
    let interrupt = input.interrupt.clone();
    let findings = pass(
        py,
        input,
        tracker,
        &mut rows,
        &mut NoIndex,
        progress.as_ref(),
    );
    // Even if the pass failed, no thread may be left that calls Python.
    let finished = py.detach(|| rows.finish());
    let findings = findings?;
    raise_pending(&interrupt)?;
    let count = finished?;
    let facts = findings.facts.iter();
    let facts = facts.map(|facts| facts_to_python(py, facts));
    Ok((
        count,
        findings.tracker.connections.len() as usize,
        facts.collect::<PyResult<_>>()?,
    ))
}

/// Return the per-segment table as columns: name → (values, mask or None). Addresses are codes into `address_names`.
#[pyfunction]
#[pyo3(signature = (source, *, name="stream", shifts=None, progress=None))]
pub fn row_columns<'py>(
    source: &Bound<'py, PyAny>,
    name: &str,
    shifts: Option<ShiftsArgument>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = source.py();
    let input = open(source, name)?;
    let mut rows = RowColumns::default();
    let tracker = Tracker::with_shifts(given_shifts(shifts));
    pass(
        py,
        input,
        tracker,
        &mut rows,
        &mut NoIndex,
        progress.as_ref(),
    )?;
    rows_to_python(py, rows)
}

/// Return header fields of chosen connections, at most `most` rows: name → values. Absent values are -1.
#[pyfunction]
#[pyo3(signature = (source, ids, most, *, name="stream", shifts=None))]
pub fn header_columns<'py>(
    source: &Bound<'py, PyAny>,
    ids: BTreeSet<u32>,
    most: usize,
    name: &str,
    shifts: Option<ShiftsArgument>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = source.py();
    let input = open(source, name)?;
    let mut sink = HeaderRows::of(ids, most);
    let tracker = Tracker::with_shifts(given_shifts(shifts));
    pass(py, input, tracker, &mut sink, &mut NoIndex, None)?;
    let dict = PyDict::new(py);
    macro_rules! columns {
        ($($name:literal: $value:expr;)*) => {
            $({
                let value: fn(&HeaderRow) -> i64 = $value;
                let values: Vec<i64> = sink.rows.iter().map(value).collect();
                dict.set_item($name, PyArray1::from_vec(py, values))?;
            })*
        };
    }
    columns! {
        "connection": |row| row.connection.into();
        "is_from_initiator": |row| row.is_from_initiator.into();
        "frame": |row| row.segment.frame as i64;
        "time_ns": |row| row.segment.time_ns;
        "seq": |row| row.segment.seq.into();
        "ack": |row| row.segment.ack.into();
        "length": |row| row.segment.payload_len.into();
        "flags": |row| row.segment.flags.into();
        "window_raw": |row| row.segment.window.into();
        "ttl": |row| row.segment.ttl.into();
        "ip_id": |row| if row.segment.ip_id == NO_IP_ID { -1 } else { row.segment.ip_id.into() };
        "tsval": |row| row.segment.options.timestamps.map_or(-1, |it| it.0.into());
        "tsecr": |row| row.segment.options.timestamps.map_or(-1, |it| it.1.into());
        "mss": |row| row.segment.options.mss.map_or(-1, i64::from);
        "window_scale": |row| row.segment.options.window_scale.map_or(-1, i64::from);
        "sack_blocks": |row| row.segment.options.sack_blocks().len() as i64;
        "sack_left": |row| row.segment.options.sack_blocks().first().map_or(-1, |it| it.0.into());
        "sack_right": |row| row.segment.options.sack_blocks().first().map_or(-1, |it| it.1.into());
        "events": |row| row.events as i64;
    }
    Ok(dict)
}

/// Like `row_columns`, but pass a chunk of rows at a time to `take`. Return the number of connections and the capture's
/// facts.
#[pyfunction]
#[pyo3(signature = (source, take, *, name="stream", only=None, shifts=None, progress=None))]
pub fn row_chunks<'py>(
    source: &Bound<'py, PyAny>,
    take: Py<PyAny>,
    name: &str,
    only: Option<u32>,
    shifts: Option<ShiftsArgument>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(usize, Vec<Bound<'py, PyDict>>)> {
    let py = source.py();
    let input = open(source, name)?;
    let mut chunks = RowChunks::new(take, only);
    let tracker = Tracker::with_shifts(given_shifts(shifts)).of_one(only);
    let findings = pass(
        py,
        input,
        tracker,
        &mut chunks,
        &mut NoIndex,
        progress.as_ref(),
    )?;
    chunks.finish()?;
    let facts = findings.facts.iter();
    let facts = facts.map(|facts| facts_to_python(py, facts));
    Ok((
        findings.tracker.connections.len() as usize,
        facts.collect::<PyResult<_>>()?,
    ))
}
