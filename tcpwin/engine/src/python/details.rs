//! Series, percentiles, events, stalls and rows of followed connections.

use std::collections::HashMap;

use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::columns::{places_to_python, rows_to_python};
use super::event_columns::{
    event_columns, stall_columns, zero_window_columns, EventColumns, StallColumns,
    ZeroWindowColumns,
};
use super::events::{episode_to_python, event_to_python, stall_to_python, NameTuples};
use crate::output::detail::Detail;
use crate::output::series::Bucket;
use crate::output::timeline::Slot;
use crate::output::track::{Track, SERIES};
use crate::tables::budget_item::SENDER_STATES;
use crate::tcp::connection::stalls::Stall;

/// The details that a pass recorded for the connections it followed, by number.
#[pyclass(frozen, module = "tcpwin._engine")]
pub struct Details {
    by_id: HashMap<u32, Box<Detail>>,
    /// Whether the capture is unchanged since the first pass.
    #[pyo3(get)]
    is_same: bool,
}

impl Details {
    pub fn new(by_id: HashMap<u32, Box<Detail>>, is_same: bool) -> Self {
        Details { by_id, is_same }
    }

    fn get(&self, id: u32) -> PyResult<&Detail> {
        self.by_id.get(&id).map(Box::as_ref).ok_or_else(|| {
            PyKeyError::new_err(format!("connection {id} was not followed in this pass"))
        })
    }

    fn track(&self, id: u32, from_initiator: bool) -> PyResult<&Track> {
        let detail = self.get(id)?;
        let track = detail.tracks.get(detail.side(from_initiator));
        track.ok_or_else(|| no_series(id))
    }
}

fn no_series(id: u32) -> PyErr {
    PyKeyError::new_err(format!("only the events of connection {id} were recorded"))
}

#[pymethods]
impl Details {
    fn ids(&self) -> Vec<u32> {
        self.by_id.keys().copied().collect()
    }

    /// Return a series as arrays (bucket times, minima, maxima, last values, sums) and the bucket width.
    #[allow(clippy::type_complexity)]
    fn series<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        from_initiator: bool,
        name: &str,
    ) -> PyResult<([Bound<'py, PyArray1<i64>>; 5], i64)> {
        let position = SERIES
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| {
                PyKeyError::new_err(format!(
                    "unknown series {name}: the series are {}",
                    SERIES.join(", ")
                ))
            })?;
        let series = &self.track(id, from_initiator)?.series[position];
        let column = |get: &dyn Fn(&Bucket) -> i64| {
            PyArray1::from_vec(py, series.buckets.iter().map(get).collect())
        };
        let columns = [
            column(&|b| series.time_ns(b)),
            column(&|b| b.min),
            column(&|b| b.max),
            column(&|b| b.last),
            column(&|b| b.sum),
        ];
        Ok((columns, series.width_ns))
    }

    /// Return the position of a sequence number on the axis of the series `sequence`, if it is within 2 GiB of the
    /// axis's end.
    fn place(&self, id: u32, from_initiator: bool, seq: u32) -> PyResult<Option<i64>> {
        Ok(self.track(id, from_initiator)?.place(seq))
    }

    /// Return the time-weighted percentiles of `receive_window`, `flight` or `pipe`, and their resolution in bytes.
    fn percentiles(
        &self,
        id: u32,
        from_initiator: bool,
        name: &str,
        shares: Vec<f64>,
    ) -> PyResult<(Vec<Option<u32>>, u32)> {
        let track = self.track(id, from_initiator)?;
        let histogram = match name {
            "receive_window" => &track.window,
            "flight" => &track.flight,
            "pipe" => &track.pipe,
            _ => return Err(PyValueError::new_err(format!("{name} has no percentiles"))),
        };
        Ok((histogram.percentiles(&shares), histogram.step()))
    }

    /// Return the percentiles of the ACKs' round-trip times, in nanoseconds.
    fn round_trips(
        &self,
        id: u32,
        from_initiator: bool,
        shares: Vec<f64>,
    ) -> PyResult<Vec<Option<i64>>> {
        let track = self.track(id, from_initiator)?;
        let percentile = |share: &f64| track.rtt.percentile_ns(*share);
        Ok(shares.iter().map(percentile).collect())
    }

    /// Return the budget over time: start and end of each interval, and the time spent on each item within it.
    #[allow(clippy::type_complexity)]
    fn budget<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        from_initiator: bool,
    ) -> PyResult<(
        Bound<'py, PyArray1<i64>>,
        Bound<'py, PyArray1<i64>>,
        Vec<Bound<'py, PyArray1<i64>>>,
    )> {
        let detail = self.get(id)?;
        let budget = detail.budgets.get(detail.side(from_initiator));
        let timeline = &budget.ok_or_else(|| no_series(id))?.timeline;
        let column = |get: &dyn Fn(&Slot) -> i64| {
            PyArray1::from_vec(py, timeline.slots().map(get).collect())
        };
        let items = (0..SENDER_STATES).map(|item| column(&|slot| slot.spent_ns[item]));
        Ok((
            column(&|slot| slot.start_ns),
            column(&|slot| slot.end_ns),
            items.collect(),
        ))
    }

    /// Return the events as the values of `EVENT_FIELDS`, and the number of events that were not recorded.
    fn events<'py>(&self, py: Python<'py>, id: u32) -> PyResult<(Vec<Bound<'py, PyTuple>>, u64)> {
        let detail = self.get(id)?;
        let mut names = NameTuples::default();
        let events: PyResult<Vec<_>> = detail
            .events
            .iter()
            .map(|event| event_to_python(py, event, &mut names))
            .collect();
        Ok((events?, detail.events_omitted))
    }

    fn event_columns<'py>(&self, py: Python<'py>, id: u32) -> PyResult<EventColumns<'py>> {
        Ok(event_columns(py, &self.get(id)?.events))
    }

    /// Return the events at these positions, as the values of `EVENT_FIELDS`.
    fn events_at<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        places: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let events = &self.get(id)?.events;
        let mut names = NameTuples::default();
        at_places(events, &places, "event")
            .map(|event| event_to_python(py, event?, &mut names))
            .collect()
    }

    fn stalls<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let detail = self.get(id)?;
        let stalls = detail.stalls.iter();
        stalls
            .map(|(before_frame, stall)| {
                stall_to_python(py, detail.initiator_side, *before_frame, stall)
            })
            .collect()
    }

    fn stall_columns<'py>(&self, py: Python<'py>, id: u32) -> PyResult<StallColumns<'py>> {
        Ok(stall_columns(py, &self.get(id)?.stalls))
    }

    /// Return the stalls at these positions, as dictionaries.
    fn stalls_at<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        places: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let detail = self.get(id)?;
        let stall_at = |found: PyResult<&(u64, Stall)>| {
            let (before_frame, stall) = found?;
            stall_to_python(py, detail.initiator_side, *before_frame, stall)
        };
        at_places(&detail.stalls, &places, "stall")
            .map(stall_at)
            .collect()
    }

    /// Start and end of each zero-window episode of a direction.
    fn zero_window_columns<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        from_initiator: bool,
    ) -> PyResult<ZeroWindowColumns<'py>> {
        let detail = self.get(id)?;
        let episodes = &detail.zero_windows[detail.side(from_initiator)];
        Ok(zero_window_columns(py, episodes))
    }

    /// Return the zero-window episodes at these positions, as dictionaries.
    fn zero_windows_at<'py>(
        &self,
        py: Python<'py>,
        id: u32,
        from_initiator: bool,
        places: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let detail = self.get(id)?;
        let episodes = &detail.zero_windows[detail.side(from_initiator)];
        at_places(episodes, &places, "closed window")
            .map(|episode| episode_to_python(py, episode?))
            .collect()
    }

    /// Return the rows as columns, with their positions on the axes of the series; None if there were more than
    /// requested.
    fn rows<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some((rows, places)) = self.get(id)?.rows.get() else {
            return Ok(None);
        };
        let columns = rows_to_python(py, rows.clone())?;
        places_to_python(py, &columns, places)?;
        Ok(Some(columns))
    }
}

/// Return the records at these positions, or an IndexError.
fn at_places<'a, T>(
    entries: &'a [T],
    places: &'a [usize],
    what: &'a str,
) -> impl Iterator<Item = PyResult<&'a T>> {
    places.iter().map(move |place| {
        let missing = || PyIndexError::new_err(format!("{what} {place} was not recorded"));
        entries.get(*place).ok_or_else(missing)
    })
}
