//! Two captures in; paired connections as columns, changes, clocks, and chunks of packet columns out.

use std::collections::HashMap;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::facts::facts_to_python;
use super::files::{open, raise_pending};
use super::run::watched;
use crate::output::address::address_text;
use crate::pair::{
    Alone, Fate, Lane, NoRows, Outcome, Paired, Piece, ResendCause, Row, Rows, Side,
};

/// Rows passed to Python per call.
const CHUNK_ROWS: usize = 1 << 17;
/// Represents a missing time or delay in the row columns.
const NO_NUMBER: i64 = i64::MIN;

/// Cause of a packet that is not a retransmission.
const NO_CAUSE: u8 = u8::MAX;

pub fn cause_names() -> Vec<&'static str> {
    ResendCause::ALL.map(ResendCause::name).to_vec()
}

pub fn fate_names() -> Vec<&'static str> {
    Fate::ALL.map(Fate::name).to_vec()
}

/// Return B's clock minus A's in nanoseconds, to within the path delay; None if the captures have no packet in common.
#[pyfunction]
#[pyo3(signature = (source_a, source_b, *, names, progress=None))]
pub fn first_offset(
    source_a: &Bound<'_, PyAny>,
    source_b: &Bound<'_, PyAny>,
    names: (String, String),
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<i64>> {
    let py = source_a.py();
    let (a, b) = (open(source_a, &names.0)?, open(source_b, &names.1)?);
    let inputs = [a.input, b.input];
    let found = watched(py, progress.as_ref(), |report| {
        crate::pair::first_offset(inputs, report)
    });
    raise_pending(&a.interrupt)?;
    raise_pending(&b.interrupt)?;
    found
}

/// Pair two captures. `leaves_at_a` maps a connection's first frame in A to whether packets of its first direction pass
/// A first, from `turned` of an earlier run. `take` is called with packet columns, one chunk at a time; without it none
/// are made.
#[pyfunction]
#[pyo3(signature = (source_a, source_b, *, names, first_offset_ns=0, leaves_at_a=None, take=None, progress=None))]
pub fn pair<'py>(
    source_a: &Bound<'py, PyAny>,
    source_b: &Bound<'py, PyAny>,
    names: (String, String),
    first_offset_ns: i64,
    leaves_at_a: Option<HashMap<u64, bool>>,
    take: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = source_a.py();
    let (a, b) = (open(source_a, &names.0)?, open(source_b, &names.1)?);
    let inputs = [a.input, b.input];
    let nearest: HashMap<u64, Side> = leaves_at_a
        .unwrap_or_default()
        .into_iter()
        .map(|(frame, at_a)| (frame, if at_a { Side::A } else { Side::B }))
        .collect();
    let outcome = match take {
        Some(take) => {
            let mut rows = Columns::new(take);
            let outcome = watched(py, progress.as_ref(), |report| {
                let outcome =
                    crate::pair::pair(inputs, first_offset_ns, nearest, &mut rows, report);
                rows.hand_over();
                outcome
            });
            if let Some(failure) = rows.failure {
                return Err(failure);
            }
            outcome
        }
        None => watched(py, progress.as_ref(), |report| {
            crate::pair::pair(inputs, first_offset_ns, nearest, &mut NoRows, report)
        }),
    };
    raise_pending(&a.interrupt)?;
    raise_pending(&b.interrupt)?;
    outcome_to_python(py, &outcome?)
}

/// Collects packet columns into chunks.
struct Columns {
    take: Py<PyAny>,
    rows: Vec<Row>,
    failure: Option<PyErr>,
}

impl Columns {
    fn new(take: Py<PyAny>) -> Self {
        Self {
            take,
            rows: Vec::with_capacity(CHUNK_ROWS),
            failure: None,
        }
    }

    fn hand_over(&mut self) {
        if self.rows.is_empty() || self.failure.is_some() {
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        let handed = Python::attach(|py| {
            let columns = rows_to_python(py, &rows)?;
            self.take.call1(py, (columns,)).map(drop)
        });
        self.failure = handed.err();
    }
}

impl Rows for Columns {
    fn take(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() >= CHUNK_ROWS {
            self.hand_over();
        }
    }
}

fn rows_to_python<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    macro_rules! column {
        ($name:literal, $of:expr) => {
            columns.set_item($name, PyArray1::from_iter(py, rows.iter().map($of)))?
        };
    }
    column!("connection", |row| row.connection);
    column!("direction", |row| row.direction);
    column!("fate", |row| row.fate as u8);
    column!("frame_a", |row| row.frames[0]);
    column!("frame_b", |row| row.frames[1]);
    column!("time_a_ns", |row| row.times_ns[0]);
    column!("time_b_ns", |row| row.times_ns[1]);
    column!("seq", |row| row.seq);
    column!("ack", |row| row.ack);
    column!("length", |row| row.payload_len);
    column!("flags", |row| row.flags);
    column!("is_resend", |row| row.is_resend);
    column!("cause", |row| row
        .resent
        .map_or(NO_CAUSE, |resent| resent.cause as u8));
    column!("lost_frame", |row| row
        .resent
        .map_or(0, |resent| resent.lost_frame));
    column!("pairs_before", |row| row.pairs_before);
    column!("epoch", |row| row.epoch);
    Ok(columns)
}

fn outcome_to_python<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("pairs", pairs_to_python(py, &outcome.pairs)?)?;
    dict.set_item("lanes", lanes_to_python(py, &outcome.pairs)?)?;
    dict.set_item("changes", changes_to_python(py, &outcome.pairs)?)?;
    dict.set_item("alone", alone_to_python(py, &outcome.alone)?)?;
    let lanes = outcome.pairs.iter().flat_map(|pair| &pair.lanes);
    let frames: Vec<_> = lanes.map(|lane| lane.lost_frames.clone()).collect();
    dict.set_item("lost_frames", frames)?;
    let turned = outcome.pairs.iter().filter_map(|pair| {
        let near = pair.turned?;
        Some((pair.first_frames[0], near == Side::A))
    });
    dict.set_item("turned", turned.collect::<Vec<_>>())?;
    let clock: Vec<_> = outcome
        .clock
        .iter()
        .map(|piece| piece_to_python(py, piece))
        .collect::<PyResult<_>>()?;
    dict.set_item("clock", clock)?;
    dict.set_item("segments", outcome.segments)?;
    dict.set_item("missed", outcome.missed)?;
    dict.set_item("most_waiting", outcome.most_waiting)?;
    let facts = outcome.facts.each_ref().map(|facts| {
        let facts = facts.iter().map(|facts| facts_to_python(py, facts));
        facts.collect::<PyResult<Vec<_>>>()
    });
    let [a, b] = facts;
    dict.set_item("facts", (a?, b?))?;
    Ok(dict)
}

fn pairs_to_python<'py>(py: Python<'py>, pairs: &[Paired]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (side, letter) in ["a", "b"].into_iter().enumerate() {
        for (end, name) in ["first", "second"].into_iter().enumerate() {
            let texts = pairs
                .iter()
                .map(|pair| address_text(&pair.ends[side][end].0));
            columns.set_item(
                format!("{name}_address_{letter}"),
                texts.collect::<Vec<_>>(),
            )?;
            let ports = pairs.iter().map(|pair| pair.ends[side][end].1);
            columns.set_item(
                format!("{name}_port_{letter}"),
                PyArray1::from_iter(py, ports),
            )?;
        }
        let frames = pairs.iter().map(|pair| pair.first_frames[side]);
        columns.set_item(
            format!("first_frame_{letter}"),
            PyArray1::from_iter(py, frames),
        )?;
    }
    Ok(columns)
}

/// Return the columns of all directions, two per pair.
fn lanes_to_python<'py>(py: Python<'py>, pairs: &[Paired]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let set = |name: &str, of: &dyn Fn(&Lane) -> i64| {
        let values = pairs.iter().flat_map(|pair| pair.lanes.iter().map(of));
        columns.set_item(name, PyArray1::from_iter(py, values))
    };
    set("leaves_at_b", &|lane| i64::from(lane.near == Side::B))?;
    set("sent", &|lane| lane.sent() as i64)?;
    set("delivered", &|lane| lane.delivered() as i64)?;
    set("lost", &|lane| lane.lost() as i64)?;
    set("late", &|lane| lane.late() as i64)?;
    set("duplicated", &|lane| lane.duplicated() as i64)?;
    set("unknown", &|lane| lane.unknown() as i64)?;
    for fate in Fate::ALL {
        set(&format!("fate_{}", fate.name()), &|lane| {
            lane.count(fate) as i64
        })?;
    }
    set("doubtful", &|lane| lane.doubtful() as i64)?;
    set("hole_is_proof", &|lane| i64::from(lane.is_hole_proof()))?;
    for cause in ResendCause::ALL {
        let of = |lane: &Lane| lane.resent_by_cause[cause as usize] as i64;
        set(&format!("resent_{}", cause.name()), &of)?;
    }
    set("in_neither", &|lane| lane.in_neither as i64)?;
    set("resent", &|lane| lane.resent as i64)?;
    set("bytes", &|lane| lane.bytes as i64)?;
    set("altered", &|lane| lane.altered as i64)?;
    for (side, letter) in ["a", "b"].into_iter().enumerate() {
        set(&format!("first_frame_{letter}"), &|lane| {
            lane.first_frames[side] as i64
        })?;
    }
    set("is_resegmented", &|lane| i64::from(lane.is_resegmented))?;
    set("near_has_gaps", &|lane| i64::from(lane.near_has_gaps))?;
    set("far_has_gaps", &|lane| i64::from(lane.far_has_gaps))?;
    set("sequence_shift", &|lane| i64::from(lane.sequence_shift))?;
    let hops = |lane: &Lane, most: bool| {
        let range = lane.hops.map(|range| if most { range.1 } else { range.0 });
        range.map_or(NO_NUMBER, i64::from)
    };
    set("least_hops", &|lane| hops(lane, false))?;
    set("most_hops", &|lane| hops(lane, true))?;
    set("least_delay_ns", &|lane| {
        lane.delay.map_or(NO_NUMBER, |delay| delay.least_ns)
    })?;
    set("mean_delay_ns", &|lane| {
        lane.delay.map_or(NO_NUMBER, |delay| delay.mean_ns)
    })?;
    set("most_delay_ns", &|lane| {
        lane.delay.map_or(NO_NUMBER, |delay| delay.most_ns)
    })?;
    set("delay_before_loss_ns", &|lane| {
        lane.delay_before_loss
            .map_or(NO_NUMBER, |delay| delay.mean_ns)
    })?;
    Ok(columns)
}

/// Return each change as (pair, direction, field, packets, frame in A, frame in B, value on leaving, value on arrival).
fn changes_to_python<'py>(py: Python<'py>, pairs: &[Paired]) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let mut changes = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        for (direction, lane) in pair.lanes.iter().enumerate() {
            for change in &lane.changes {
                let [a, b] = change.frames;
                let name = change.field.name();
                let place = (number, direction, name, change.count);
                let (number, direction, name, count) = place;
                let tuple = (
                    number,
                    direction,
                    name,
                    count,
                    a,
                    b,
                    change.near,
                    change.far,
                );
                changes.push(tuple.into_pyobject(py)?);
            }
        }
    }
    Ok(changes)
}

fn alone_to_python<'py>(py: Python<'py>, alone: &[Alone]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (end, name) in ["first", "second"].into_iter().enumerate() {
        let texts = alone.iter().map(|flow| address_text(&flow.ends[end].0));
        columns.set_item(format!("{name}_address"), texts.collect::<Vec<_>>())?;
        let ports = alone.iter().map(|flow| flow.ends[end].1);
        columns.set_item(format!("{name}_port"), PyArray1::from_iter(py, ports))?;
        let packets = alone.iter().map(|flow| flow.packets[end]);
        columns.set_item(format!("{name}_packets"), PyArray1::from_iter(py, packets))?;
        let bytes = alone.iter().map(|flow| flow.bytes[end]);
        columns.set_item(format!("{name}_bytes"), PyArray1::from_iter(py, bytes))?;
        let syns = alone.iter().map(|flow| flow.has_syn[end]);
        columns.set_item(format!("{name}_syn"), PyArray1::from_iter(py, syns))?;
    }
    let in_b = alone.iter().map(|flow| flow.side == Side::B);
    columns.set_item("in_b", PyArray1::from_iter(py, in_b))?;
    let frames = alone.iter().map(|flow| flow.first_frame);
    columns.set_item("first_frame", PyArray1::from_iter(py, frames))?;
    let first = alone.iter().map(|flow| flow.first_ns);
    columns.set_item("first_ns", PyArray1::from_iter(py, first))?;
    let last = alone.iter().map(|flow| flow.last_ns);
    columns.set_item("last_ns", PyArray1::from_iter(py, last))?;
    Ok(columns)
}

fn piece_to_python<'py>(py: Python<'py>, piece: &Piece) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("from_ns", piece.from_ns)?;
    dict.set_item("until_ns", piece.until_ns)?;
    dict.set_item("pairs_before", piece.pairs_before)?;
    dict.set_item("epoch", piece.epoch)?;
    dict.set_item("offset_ns", piece.offset_ns)?;
    dict.set_item("drift_ppm", piece.drift_ppm)?;
    dict.set_item("uncertainty_ns", piece.uncertainty_ns)?;
    dict.set_item("drift_uncertainty_ppm", piece.drift_uncertainty_ppm)?;
    Ok(dict)
}
