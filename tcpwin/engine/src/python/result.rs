//! `Result`: the findings of a pass as numbers, columns and JSON; the details it recorded, and second passes for more.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList};

use super::columns::{column_to_python, exchanges_to_python, rows_to_python, ColumnAndMask};
use super::details::Details;
use super::dictionary::set_fields;
use super::events::episode_to_python;
use super::facts::facts_to_python;
use super::first_events::{Decoded, EventFilter, FirstEvents};
use super::picks::{query, ConditionArgument, Picks};
use super::second_reading::{SecondPass, ShiftsArgument};
use super::values::value_to_python;
use crate::event::NAMES;
use crate::output::address::address_text;
use crate::output::columns::RowColumns;
use crate::output::detail::{Chosen, DetailSink, Extent};
use crate::output::exchanges::{ExchangeSink, Roles};
use crate::output::field::{ConnectionView, DirectionView};
use crate::output::fields::{
    connection_field, direction_field, direction_fields, CONNECTION_FIELDS,
};
use crate::output::json::{write_connection, Layout};
use crate::output::pass::{Findings, Sink};
use crate::output::quality::Quality;
use crate::output::select::{by_responder, pick};
use crate::output::series::Span;
use crate::output::table::{fill_columns, Column};
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::journal::JournalEntry;
use crate::tcp::connection::stalls::{Pause, PAUSES};
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Tracker;

/// The findings of a pass: connections, facts of the captures, details of the followed connections.
#[pyclass(frozen, module = "tcpwin._engine")]
pub struct Result {
    /// Boxed, because it needs a larger alignment than Python's allocator guarantees.
    findings: Box<Findings>,
    details: Py<Details>,
    decoded: Decoded,
    quality: OnceLock<Quality>,
    /// For a partial result: the number of connections, facts and counts of the whole capture.
    whole: Option<Whole>,
}

/// Connection count, facts and counters from a complete pass.
pub type Whole = (u32, Py<PyList>, Py<PyDict>);

impl Result {
    pub fn new(findings: Findings, details: Py<Details>) -> Self {
        Result {
            findings: Box::new(findings),
            details,
            decoded: Decoded::default(),
            quality: OnceLock::new(),
            whole: None,
        }
    }

    /// Create a result of some connections only.
    pub fn partial(findings: Findings, details: Py<Details>, whole: Whole) -> Self {
        Result {
            whole: Some(whole),
            ..Result::new(findings, details)
        }
    }

    pub fn get(&self, id: u32) -> PyResult<&Connection> {
        self.findings.tracker.by_number(id).ok_or_else(|| {
            let count = self.__len__();
            let message = if (id as usize) < count {
                format!("connection {id} was not read")
            } else {
                format!("no connection {id}: the capture has {count} connections")
            };
            PyIndexError::new_err(message)
        })
    }

    /// Return all connections of the capture, or an error if only some were read.
    pub(super) fn all(&self) -> PyResult<&Arena> {
        if self.whole.is_some() {
            return Err(PyValueError::new_err(
                "only some connections of the capture were read",
            ));
        }
        Ok(&self.findings.tracker.connections)
    }

    fn side(&self, id: u32, from_initiator: bool) -> PyResult<usize> {
        Ok(DirectionView::new(self.get(id)?, from_initiator).sender)
    }

    /// Read these connections a second time into a sink. Return whether the capture is unchanged.
    pub(super) fn read<S: Sink + Send>(
        &self,
        request: SecondPass<'_, '_>,
        sink: impl Fn() -> S,
    ) -> PyResult<(S, Findings, bool)> {
        let ids = request.ids;
        let earlier = &self.findings.tracker;
        let (sink, reread) =
            request.read(sink, |shifts| Tracker::rereading(earlier, ids, shifts))?;
        let is_same = self.findings.reads_as(&reread, ids);
        Ok((sink, reread, is_same))
    }

    pub(super) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Return the quality of the capture, computed over all connections on first use.
    fn quality(&self) -> &Quality {
        let connections = &self.findings.tracker.connections;
        self.quality.get_or_init(|| Quality::of(connections))
    }
}

#[pymethods]
impl Result {
    fn __len__(&self) -> usize {
        let whole = self.whole.as_ref().map(|(count, ..)| *count);
        whole.unwrap_or(self.findings.tracker.connections.len()) as usize
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if let Some((_, facts, _)) = &self.whole {
            return Ok(facts.bind(py).clone());
        }
        let facts = self.findings.facts.iter();
        let facts = facts.map(|facts| facts_to_python(py, facts));
        PyList::new(py, facts.collect::<PyResult<Vec<_>>>()?)
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Some((.., counters)) = &self.whole {
            return Ok(counters.bind(py).clone());
        }
        let counters = &self.findings.counters;
        let dict = PyDict::new(py);
        set_fields!(
            dict,
            counters,
            segments,
            not_tcp,
            fragments_pending,
            datagrams_incomplete
        );
        dict.set_item("unread", counters.unread)?;
        let kinds = counters.unread_kinds.iter();
        let kinds: Vec<_> = kinds
            .map(|(kind, count)| (kind.to_string(), *count))
            .collect();
        dict.set_item("unread_kinds", kinds)?;
        dict.set_item("sampled_segments", counters.sampled)?;
        dict.set_item("quoted_in_icmp", counters.quoted)?;
        set_fields!(
            dict,
            counters,
            header_cut,
            malformed,
            unknown_link,
            unknown_link_types
        );
        dict.set_item("capture_duplicates", self.findings.tracker.duplicates)?;
        dict.set_item("options_cut", self.findings.tracker.options_cut)?;
        let quality = self.quality();
        set_fields!(dict, quality, super_segments, missed_bytes);
        dict.set_item("connections_without_syn", quality.without_syn)?;
        dict.set_item("connections_one_way", quality.one_way)?;
        dict.set_item("connections_sampled", quality.sampled)?;
        dict.set_item("packets_left_out", self.findings.left_out)?;
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
            .map(|episode| episode_to_python(py, episode))
            .collect()
    }

    /// Return the fields of all connections, or of those from `start` to `stop`: values and mask. Each field is named
    /// by its group (`connection`, `a_to_b` or `b_to_a`) and name.
    #[pyo3(signature = (names, start=0, stop=None))]
    fn columns<'py>(
        &self,
        py: Python<'py>,
        names: Vec<(String, String)>,
        start: u32,
        stop: Option<u32>,
    ) -> PyResult<Vec<ColumnAndMask<'py>>> {
        let new = |(group, name): &(String, String)| {
            let column = Column::new(group, name);
            column.ok_or_else(|| PyKeyError::new_err(format!("no column {name} in {group}")))
        };
        let mut columns = names.iter().map(new).collect::<PyResult<Vec<_>>>()?;
        let connections = self.all()?;
        let stop = stop.unwrap_or(u32::MAX).min(connections.len());
        py.detach(|| fill_columns(&mut columns, connections, start.min(stop)..stop));
        columns
            .into_iter()
            .map(|column| column_to_python(py, column))
            .collect()
    }

    /// All fields of a connection as a JSON object.
    fn json(&self, id: u32) -> PyResult<String> {
        let connection = self.get(id)?;
        let budgets =
            [true, false].map(|is_from_a| DirectionView::new(connection, is_from_a).budget());
        let mut out = String::new();
        write_connection(&mut out, Layout::everything(), id, connection, &budgets);
        out.push('}');
        Ok(out)
    }

    /// Return the time budgets of the connections from `start` to `stop`, flattened: a_to_b before b_to_a for each
    /// connection, and for each direction the time of every item in the order of `BUDGET_ITEMS`.
    fn budgets<'py>(
        &self,
        py: Python<'py>,
        start: u32,
        stop: u32,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let connections = self.all()?;
        let spent = py.detach(|| {
            let mut spent = Vec::new();
            for id in start..stop.min(connections.len()) {
                if let Some(connection) = self.findings.tracker.by_number(id) {
                    for from_initiator in [true, false] {
                        spent.extend(DirectionView::new(connection, from_initiator).budget());
                    }
                }
            }
            spent
        });
        Ok(PyArray1::from_vec(py, spent))
    }

    /// Return the budgets of one connection: data from the initiator, and back.
    fn budget(&self, id: u32) -> PyResult<[Vec<i64>; 2]> {
        let connection = self.get(id)?;
        let budget = |from_initiator| DirectionView::new(connection, from_initiator).budget();
        Ok([true, false].map(|from_initiator| budget(from_initiator).to_vec()))
    }

    /// Return the payload bytes of all connections. Acknowledged bytes count even if they are missing from the capture.
    /// Raises IndexError if a connection was not read.
    fn carried_bytes(&self) -> PyResult<u64> {
        if self.whole.is_some() {
            for id in 0..self.__len__() as u32 {
                self.get(id)?;
            }
        }
        Ok(self.quality().carried_bytes)
    }

    /// Return the connections, or directions, that each query selects. All queries are answered in a single pass over
    /// the connections.
    fn select(
        &self,
        py: Python<'_>,
        questions: Vec<(bool, Vec<ConditionArgument<'_>>)>,
    ) -> PyResult<Vec<Picks>> {
        let queries = questions
            .iter()
            .map(|(of_directions, conditions)| query(*of_directions, conditions))
            .collect::<PyResult<Vec<_>>>()?;
        let connections = self.all()?;
        let picked = py.detach(|| pick(queries, connections));
        Ok(questions
            .iter()
            .zip(picked)
            .map(|((of_directions, _), picked)| Picks {
                picked,
                of_directions: *of_directions,
            })
            .collect())
    }

    /// Count, per responding address and port, the connections that meet all conditions, or whose direction from the
    /// initiator does.
    fn responders(
        &self,
        py: Python<'_>,
        of_directions: bool,
        conditions: Vec<ConditionArgument<'_>>,
    ) -> PyResult<HashMap<(String, u16), usize>> {
        let query = query(of_directions, &conditions)?;
        let connections = self.all()?;
        let found = py.detach(|| by_responder(&query, connections));
        Ok(found
            .into_iter()
            .map(|((address, port), count)| ((address_text(&address), port), count))
            .collect())
    }

    fn connection_value(&self, py: Python<'_>, id: u32, name: &str) -> PyResult<Py<PyAny>> {
        let field = connection_field(name)
            .ok_or_else(|| PyKeyError::new_err(format!("a connection has no field {name}")))?;
        let connection = self.get(id)?;
        value_to_python(py, &(field.get)(&ConnectionView { id, connection }))
    }

    fn direction_value(
        &self,
        py: Python<'_>,
        id: u32,
        from_initiator: bool,
        name: &str,
    ) -> PyResult<Py<PyAny>> {
        let field = direction_field(name)
            .ok_or_else(|| PyKeyError::new_err(format!("a direction has no field {name}")))?;
        let view = DirectionView::new(self.get(id)?, from_initiator);
        value_to_python(py, &(field.get)(&view))
    }

    /// Return the evidence for the scale of a direction's windows, in words.
    fn scale_evidence(&self, id: u32, from_initiator: bool) -> PyResult<Vec<String>> {
        Ok(DirectionView::new(self.get(id)?, from_initiator).scale_evidence())
    }

    /// Return true if the initiator sent the connection's first segment.
    fn began_with_initiator(&self, id: u32) -> PyResult<bool> {
        Ok(self.side(id, true)? == 0)
    }

    fn details(&self, py: Python<'_>) -> Py<Details> {
        self.details.clone_ref(py)
    }

    /// Read the capture again for details of these connections within a time span. If an index fits, only their packets
    /// are read.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (source, ids, *, name="stream", buckets=1024, rows=0, start_ns=i64::MIN, end_ns=i64::MAX, shifts=None, index=None, progress=None))]
    fn follow(
        &self,
        source: &Bound<'_, PyAny>,
        ids: HashSet<u32>,
        name: &str,
        buckets: usize,
        rows: usize,
        start_ns: i64,
        end_ns: i64,
        shifts: Option<ShiftsArgument>,
        index: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Details> {
        let extent = Extent {
            span: Span { start_ns, end_ns },
            buckets,
            rows,
            has_series: true,
        };
        let request = SecondPass::new(source, name, &ids, shifts, &index, &progress);
        let new = || DetailSink::new(Chosen::These(ids.clone()), extent);
        let (sink, reread, is_same) = self.read(request, new)?;
        Ok(Details::new(sink.finish(&reread.tracker), is_same))
    }

    /// Read the capture again for the per-segment table of one connection, in the format of `row_columns`. Also return
    /// whether the capture is unchanged.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (source, only, *, name="stream", shifts=None, index=None, progress=None))]
    fn segments<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        only: u32,
        name: &str,
        shifts: Option<ShiftsArgument>,
        index: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, bool)> {
        let ids = HashSet::from([only]);
        let request = SecondPass::new(source, name, &ids, shifts, &index, &progress);
        let new = || RowColumns {
            only: Some(only),
            ..RowColumns::default()
        };
        let (rows, _, is_same) = self.read(request, new)?;
        Ok((rows_to_python(py, rows)?, is_same))
    }

    /// Read the capture again for the exchanges of connections, at most `most`, as columns. Also return the number of
    /// exchanges left out, and whether the capture is unchanged.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (source, ids, most, *, name="stream", shifts=None, index=None, progress=None))]
    fn exchanges<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        ids: HashSet<u32>,
        most: usize,
        name: &str,
        shifts: Option<ShiftsArgument>,
        index: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, u64, bool)> {
        let roles = ids
            .iter()
            .map(|id| Ok(Roles::of(self.get(*id)?).map(|roles| (*id, roles))))
            .collect::<PyResult<Vec<_>>>()?;
        let request = SecondPass::new(source, name, &ids, shifts, &index, &progress);
        let new = || ExchangeSink::new(roles.iter().flatten().copied(), most);
        let (sink, _, is_same) = self.read(request, new)?;
        let (found, omitted) = sink.finish();
        Ok((exchanges_to_python(py, &found)?, omitted, is_same))
    }

    /// Return the longest pauses in which a side had nothing to send, at most three, longest first: start, end, and
    /// frame of the segment that ended it.
    fn pauses(&self, id: u32, from_initiator: bool) -> PyResult<Vec<(i64, i64, u64)>> {
        let side = self.side(id, from_initiator)?;
        let stalls = self.get(id)?.stalls();
        let pauses = stalls.map_or([None; PAUSES], |stalls| stalls.pauses[side]);
        let columns = |pause: Pause| (pause.start_ns, pause.end_ns, pause.after_frame);
        Ok(pauses.into_iter().flatten().map(columns).collect())
    }

    /// Return the frames of the data that ended a direction's longest idle gaps, at most three, longest first.
    fn idle_frames(&self, id: u32, from_initiator: bool) -> PyResult<Vec<u64>> {
        let direction = &self.get(id)?.directions[self.side(id, from_initiator)?];
        let idle = direction.pace().and_then(|pace| pace.idle.as_deref());
        let longest = idle.map_or(&[][..], |idle| &idle.longest);
        let frames = longest.iter().map(|(_, frame)| *frame);
        Ok(frames.filter(|frame| *frame > 0).collect())
    }

    /// Return the frame of the first RST of a connection that carried data.
    fn reset_frame(&self, id: u32) -> PyResult<Option<u64>> {
        Ok(self.get(id)?.reset_frame())
    }

    /// Count a connection's recorded first events of one name, sent by one side.
    fn count_first_events(&self, id: u32, from_initiator: bool, name: &str) -> PyResult<usize> {
        let connection = self.get(id)?;
        let bit = NAMES.iter().position(|known| *known == name);
        let wanted = bit.map_or(0, |bit| 1 << bit);
        let initiator = connection.initiator_side();
        let is_wanted = |entry: &&JournalEntry| {
            entry.events & wanted != 0 && (usize::from(entry.side) == initiator) == from_initiator
        };
        Ok(self
            .decoded
            .entries(id, connection)
            .iter()
            .filter(is_wanted)
            .count())
    }

    /// Return a connection's recorded first events, filtered by sender (None: both), by name (empty: all) and by cause
    /// (empty: any or none).
    fn first_events(
        &self,
        id: u32,
        from_initiator: Option<bool>,
        names: Vec<PyBackedStr>,
        causes: Vec<PyBackedStr>,
    ) -> PyResult<FirstEvents> {
        let connection = self.get(id)?;
        let entries = self.decoded.entries(id, connection);
        let wanted = EventFilter::new(from_initiator, &names, &causes);
        Ok(FirstEvents::new(
            entries,
            connection.initiator_side(),
            &wanted,
        ))
    }
}
