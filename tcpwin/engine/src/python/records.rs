//! Events and stalls as dictionaries.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::connection::stalls::Stall;
use crate::output::detail::EventRecord;
use crate::output::rows::event_names;

pub fn event_to_python<'py>(py: Python<'py>, event: &EventRecord) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("frame", event.frame)?;
    dict.set_item("time_ns", event.time_ns)?;
    dict.set_item("direction", if event.is_from_initiator { "a" } else { "b" })?;
    dict.set_item("names", event_names(event.events))?;
    dict.set_item("seq", event.seq)?;
    dict.set_item("ack", event.ack)?;
    dict.set_item("length", event.length)?;
    dict.set_item("window_raw", event.window_raw)?;
    let evidence = event.evidence.as_ref();
    let verdict = evidence.map(|evidence| evidence.verdict);
    dict.set_item("cause", verdict.map(|verdict| verdict.cause.name()))?;
    dict.set_item("reason", verdict.map(|verdict| verdict.reason))?;
    let confidence = verdict.map(|verdict| verdict.confidence.name());
    dict.set_item("confidence", confidence)?;
    dict.set_item("original_frame", evidence.and_then(|e| e.original_frame))?;
    dict.set_item("trigger_frame", evidence.and_then(|e| e.trigger_frame))?;
    dict.set_item("age_ns", evidence.and_then(|e| e.age_ns))?;
    dict.set_item("rto_ns", evidence.and_then(|e| e.rto_ns))?;
    Ok(dict)
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
