//! Events and stalls as Python values: tuples and dictionaries.

use std::collections::HashMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::dictionary::set_fields;
use crate::event::{Events, NAMES};
use crate::output::detail::EventRecord;
use crate::tcp::connection::stalls::Stall;
use crate::tcp::recovery::evidence::{Evidence, PARTS};
use crate::tcp::window::zero::Episode;

/// Caches the tuple of names of each set of events.
#[derive(Default)]
pub struct NameTuples(HashMap<Events, Py<PyTuple>>);

impl NameTuples {
    fn of<'py>(&mut self, py: Python<'py>, events: Events) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(known) = self.0.get(&events) {
            return Ok(known.bind(py).clone());
        }
        let bits = (0..NAMES.len()).filter(|bit| events & (1 << bit) != 0);
        let names = PyTuple::new(py, bits.map(|bit| NAMES[bit]).collect::<Vec<_>>())?;
        self.0.insert(events, names.clone().unbind());
        Ok(names)
    }
}

/// Convert an event to its values in the order of [`event_field_names`].
///
/// [`event_field_names`]: crate::output::event_fields::event_field_names
pub fn event_to_python<'py>(
    py: Python<'py>,
    event: &EventRecord,
    names: &mut NameTuples,
) -> PyResult<Bound<'py, PyTuple>> {
    let side = if event.is_from_initiator {
        intern!(py, "a")
    } else {
        intern!(py, "b")
    };
    let segment = (
        event.frame,
        event.time_ns,
        side,
        names.of(py, event.events)?,
        event.seq,
        event.ack,
        event.length,
        event.window_raw,
    );
    let evidence = event.evidence.as_ref();
    let diagnosis = evidence.map(|evidence| evidence.diagnosis);
    let diagnosis = (
        diagnosis.map(|diagnosis| diagnosis.cause.name()),
        diagnosis.map(|diagnosis| diagnosis.reason),
        diagnosis.map(|diagnosis| diagnosis.confidence.name()),
    );
    let parts = evidence.map_or([None; PARTS.len()], Evidence::parts);
    let values = segment.into_pyobject(py)?.add(diagnosis)?;
    let values = values.add(PyTuple::new(py, parts)?)?;
    Ok(values.cast_into::<PyTuple>()?)
}

pub fn stall_to_python<'py>(
    py: Python<'py>,
    initiator_side: usize,
    before_frame: u64,
    stall: &Stall,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let is_initiator = usize::from(stall.waiting) == initiator_side;
    dict.set_item("start_ns", stall.start_ns)?;
    dict.set_item("end_ns", stall.end_ns)?;
    dict.set_item("before_frame", before_frame)?;
    dict.set_item("after_frame", stall.after_frame)?;
    dict.set_item("cause", stall.cause.name())?;
    dict.set_item("sender", if is_initiator { "a" } else { "b" })?;
    dict.set_item("flight_bytes", stall.flight_bytes)?;
    dict.set_item("window_bytes", stall.window_bytes)?;
    Ok(dict)
}

/// Convert a zero-window episode to a dictionary.
pub fn episode_to_python<'py>(py: Python<'py>, episode: &Episode) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    set_fields!(
        dict,
        episode,
        start_ns,
        end_ns,
        start_frame,
        end_frame,
        probes,
        first_probe_after_ns,
        last_probe_interval_ns
    );
    dict.set_item("ended_by", episode.ended_by.name())?;
    Ok(dict)
}
