//! `FirstEvents`: the first events of a connection, which the first pass recorded, and queries on them.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyTuple;

use super::events::{event_to_python, NameTuples};
use crate::event::{Events, NAMES};
use crate::output::detail::EventRecord;
use crate::tcp::connection::journal::JournalEntry;
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::cause::RetransmissionCause;

/// Caches the latest decoded events: rules query one connection several times in a row.
#[derive(Default)]
pub struct Decoded(Mutex<Option<(u32, Arc<[JournalEntry]>)>>);

impl Decoded {
    pub fn entries(&self, id: u32, connection: &Connection) -> Arc<[JournalEntry]> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, entries)) = last.as_ref() {
            if *of == id {
                return entries.clone();
            }
        }
        let entries: Arc<[JournalEntry]> = connection.journal().into();
        *last = Some((id, entries.clone()));
        entries
    }
}

pub struct EventFilter {
    from_initiator: Option<bool>,
    names: Option<Events>,
    causes: Option<Vec<RetransmissionCause>>,
}

impl EventFilter {
    pub fn new(
        from_initiator: Option<bool>,
        names: &[PyBackedStr],
        causes: &[PyBackedStr],
    ) -> Self {
        let is_named = |name: &&str| names.iter().any(|wanted| **wanted == **name);
        let bits = NAMES.iter().enumerate();
        let wanted = bits
            .filter(|(_, name)| is_named(name))
            .fold(0, |wanted: Events, (bit, _)| wanted | 1 << bit);
        let is_cause =
            |cause: &RetransmissionCause| causes.iter().any(|wanted| **wanted == *cause.name());
        EventFilter {
            from_initiator,
            names: (!names.is_empty()).then_some(wanted),
            causes: (!causes.is_empty()).then(|| {
                RetransmissionCause::ALL
                    .into_iter()
                    .filter(is_cause)
                    .collect()
            }),
        }
    }

    fn matches(&self, entry: &JournalEntry, initiator: usize) -> bool {
        let is_from_initiator = usize::from(entry.side) == initiator;
        let cause = entry.evidence.as_ref().map(|e| e.diagnosis.cause);
        self.from_initiator
            .is_none_or(|from| from == is_from_initiator)
            && self.names.is_none_or(|names| entry.events & names != 0)
            && self
                .causes
                .as_ref()
                .is_none_or(|causes| cause.is_some_and(|cause| causes.contains(&cause)))
    }
}

#[pyclass(frozen, module = "tcpwin._engine")]
pub struct FirstEvents {
    entries: Arc<[JournalEntry]>,
    initiator: usize,
    places: Vec<u32>,
}

impl FirstEvents {
    pub fn new(entries: Arc<[JournalEntry]>, initiator: usize, wanted: &EventFilter) -> Self {
        let numbered = (0u32..).zip(entries.iter());
        let places = numbered
            .filter(|(_, entry)| wanted.matches(entry, initiator))
            .map(|(place, _)| place)
            .collect();
        FirstEvents {
            entries,
            initiator,
            places,
        }
    }

    fn matching(&self) -> impl Iterator<Item = &JournalEntry> {
        let entries = &self.entries;
        let places = self.places.iter();
        places.filter_map(move |place| entries.get(*place as usize))
    }
}

#[pymethods]
impl FirstEvents {
    fn __len__(&self) -> usize {
        self.places.len()
    }

    /// Return the values of `EVENT_FIELDS` of one event.
    fn values<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyTuple>> {
        let place = self.places.get(index);
        let entry = place
            .and_then(|place| self.entries.get(*place as usize))
            .ok_or_else(|| PyIndexError::new_err("event index out of range"))?;
        let event = EventRecord::of(entry, self.initiator);
        event_to_python(py, &event, &mut NameTuples::default())
    }

    /// Number of events that name an original's frame.
    fn originals(&self) -> usize {
        let evidence = self.matching().filter_map(|entry| entry.evidence.as_ref());
        evidence
            .filter(|evidence| evidence.original_frame.is_some())
            .count()
    }

    /// Return the frames of the first `count` events, each preceded by its original's.
    fn pairs(&self, count: usize) -> Vec<u64> {
        let mut frames = Vec::with_capacity(2 * count);
        for entry in self.matching().take(count) {
            let original = entry.evidence.as_ref().and_then(|e| e.original_frame);
            frames.extend(original.into_iter().chain([entry.frame]));
        }
        frames
    }

    /// Return the times of the first and the last event.
    fn span_ns(&self) -> Option<(i64, i64)> {
        let mut matching = self.matching();
        let first = matching.next()?;
        Some((first.time_ns, matching.last().unwrap_or(first).time_ns))
    }
}
