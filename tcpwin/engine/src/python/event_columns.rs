//! Events of a followed connection as columns: no Python object for an event.

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::output::detail::EventRecord;
use crate::recovery::cause::Cause;

/// Time, sequence number, timeout (−1: none), whether the initiator sent it, events as bits, and the cause as its place
/// among the causes that occur (−1: none); then the names of these.
pub type EventColumns<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<i8>>,
    Vec<&'static str>,
);

pub fn event_columns<'py>(py: Python<'py>, events: &[EventRecord]) -> EventColumns<'py> {
    let long = |get: fn(&EventRecord) -> i64| {
        PyArray1::from_vec(py, events.iter().map(get).collect::<Vec<i64>>())
    };
    let mut seen: Vec<Cause> = Vec::new();
    let mut place = |cause: Cause| {
        let known = seen.iter().position(|other| *other == cause);
        known.unwrap_or_else(|| {
            seen.push(cause);
            seen.len() - 1
        }) as i8
    };
    let cause = |event: &EventRecord| event.evidence.as_ref().map(|e| e.verdict.cause);
    let causes: Vec<i8> = events
        .iter()
        .map(|event| cause(event).map_or(-1, &mut place))
        .collect();
    (
        long(|event| event.time_ns),
        long(|event| i64::from(event.seq)),
        long(|event| event.evidence.as_ref().and_then(|e| e.rto_ns).unwrap_or(-1)),
        PyArray1::from_vec(py, events.iter().map(|e| e.is_from_initiator).collect()),
        PyArray1::from_vec(py, events.iter().map(|e| e.events).collect()),
        PyArray1::from_vec(py, causes),
        seen.into_iter().map(Cause::name).collect(),
    )
}
