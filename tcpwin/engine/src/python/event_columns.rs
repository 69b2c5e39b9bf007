//! Events, stalls and zero-window episodes of a followed connection as columns, without a Python object for each.

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::output::detail::EventRecord;
use crate::tcp::connection::stalls::Stall;
use crate::tcp::recovery::cause::RetransmissionCause;
use crate::tcp::window::zero::Episode;

/// Time, sequence number, timeout (−1: none), whether the initiator sent it, event bits, and cause as an index into
/// the list of causes that occur (−1: none); then that list.
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
    let new = || Vec::with_capacity(events.len());
    let (mut times, mut sequence, mut timeouts) = (new(), new(), new());
    let mut from_initiator = Vec::with_capacity(events.len());
    let mut names = Vec::with_capacity(events.len());
    let mut causes = Vec::with_capacity(events.len());
    let mut distinct: Vec<RetransmissionCause> = Vec::new();
    // One pass over the records, which are far larger than the columns.
    for event in events {
        let evidence = event.evidence.as_ref();
        times.push(event.time_ns);
        sequence.push(i64::from(event.seq));
        timeouts.push(evidence.and_then(|e| e.rto_ns).unwrap_or(-1));
        from_initiator.push(event.is_from_initiator);
        names.push(event.events);
        causes.push(evidence.map_or(-1, |e| cause_index(&mut distinct, e.diagnosis.cause)));
    }
    (
        PyArray1::from_vec(py, times),
        PyArray1::from_vec(py, sequence),
        PyArray1::from_vec(py, timeouts),
        PyArray1::from_vec(py, from_initiator),
        PyArray1::from_vec(py, names),
        PyArray1::from_vec(py, causes),
        distinct
            .into_iter()
            .map(RetransmissionCause::name)
            .collect(),
    )
}

/// Return the index of a cause, adding it if it is new.
fn cause_index(distinct: &mut Vec<RetransmissionCause>, cause: RetransmissionCause) -> i8 {
    let known = distinct.iter().position(|other| *other == cause);
    known.unwrap_or_else(|| {
        distinct.push(cause);
        distinct.len() - 1
    }) as i8
}

/// Start and end of each stall, and its cause as an index into [`CAUSES`].
///
/// [`CAUSES`]: crate::tcp::connection::stalls::CAUSES
pub type StallColumns<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u8>>,
);

pub fn stall_columns<'py>(py: Python<'py>, stalls: &[(u64, Stall)]) -> StallColumns<'py> {
    let long = |get: fn(&Stall) -> i64| {
        PyArray1::from_vec(py, stalls.iter().map(|(_, stall)| get(stall)).collect())
    };
    let cause = |(_, stall): &(u64, Stall)| stall.cause as u8;
    (
        long(|stall| stall.start_ns),
        long(|stall| stall.end_ns),
        PyArray1::from_vec(py, stalls.iter().map(cause).collect()),
    )
}

/// Start and end of each zero-window episode.
pub type ZeroWindowColumns<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

pub fn zero_window_columns<'py>(py: Python<'py>, episodes: &[Episode]) -> ZeroWindowColumns<'py> {
    let long =
        |get: fn(&Episode) -> i64| PyArray1::from_vec(py, episodes.iter().map(get).collect());
    (
        long(|episode| episode.start_ns),
        long(|episode| episode.end_ns),
    )
}
