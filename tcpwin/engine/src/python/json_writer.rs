//! Writes many connections with their verdicts as JSON text.

use std::collections::hash_map::{Entry, HashMap};
use std::ops::Range;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::result::Result;
use super::verdicts::statement_to_python;
use crate::output::field::DirectionView;
use crate::output::json::{write_connection, Layout};
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::state::Connection;
use crate::verdict::budget::Items;
use crate::verdict::columns::{verdict_columns, Columns};
use crate::verdict::facts::AlgorithmFacts;
use crate::verdict::json::{write_algorithms, write_budgets, write_verdict, Sentences};
use crate::verdict::statement::StatementKey;

/// Maximum number of texts kept for later connections: a crafted capture can make each text different.
const MOST_TEXTS: usize = 20_000;
/// Number of connections that justifies another thread.
const WORTH_A_THREAD: u32 = 500;

/// End of the member for a connection without known congestion control.
const NO_ALGORITHMS: &str = r#""a_to_b": null, "b_to_a": null}"#;

/// Identifies a congestion control: name, confidence, cuts, bits of the mean cut, probes.
type AlgorithmKey = (&'static str, &'static str, i64, Option<u64>, i64);

/// Verdict, budget and congestion control of a connection that was judged individually, as members of an object.
type Members = (String, String, String);

/// The judgement of some connections, by their packets.
struct Judged {
    first: u32,
    columns: Columns,
    algorithms: Vec<[Option<AlgorithmKey>; 2]>,
}

impl Judged {
    fn of(connections: &Arena, some: Range<u32>, is_capture_lossy: bool) -> Judged {
        let algorithms = connections.range(some.clone()).map(|connection| {
            [true, false].map(|is_from_a| algorithm_key(&DirectionView::new(connection, is_from_a)))
        });
        Judged {
            first: some.start,
            algorithms: algorithms.collect(),
            columns: verdict_columns(connections, some, is_capture_lossy),
        }
    }
}

fn algorithm_key(view: &DirectionView) -> Option<AlgorithmKey> {
    let shown = AlgorithmFacts::read(view);
    (!shown.sender_algorithm.is_empty()).then(|| {
        (
            shown.sender_algorithm,
            shown.sender_algorithm_confidence,
            shown.window_cuts,
            shown.window_cut_mean.map(f64::to_bits),
            shown.rate_probes,
        )
    })
}

/// Writes connections as JSON objects.
#[pyclass(module = "tcpwin._engine")]
pub struct JsonWriter {
    result: Py<Result>,
    layout: Layout,
    is_capture_lossy: bool,
    describe_statement: Py<PyAny>,
    describe_algorithm: Py<PyAny>,
    sentences: HashMap<StatementKey, Sentences>,
    algorithms: HashMap<AlgorithmKey, String>,
    /// Expected length of a connection in bytes: that of earlier ones, with some to spare.
    length: usize,
}

#[pymethods]
impl JsonWriter {
    /// `fields`: names of fields and groups to write; None writes everything that occurred, "all" writes everything.
    /// `describe_statement` returns text and fix of a statement as JSON, `describe_algorithm` a congestion control.
    #[new]
    fn new(
        result: Py<Result>,
        fields: Option<Vec<String>>,
        is_capture_lossy: bool,
        describe_statement: Py<PyAny>,
        describe_algorithm: Py<PyAny>,
    ) -> PyResult<Self> {
        let layout = match fields {
            None => Layout::whole(true),
            Some(names) if names.iter().any(|name| name == "all") => Layout::whole(false),
            Some(names) => Layout::chosen(&names).map_err(PyKeyError::new_err)?,
        };
        Ok(JsonWriter {
            result,
            layout,
            is_capture_lossy,
            describe_statement,
            describe_algorithm,
            sentences: HashMap::new(),
            algorithms: HashMap::new(),
            length: 0,
        })
    }

    /// Write connections `start` to `stop` (exclusive), separated by `between`. `closely`: members of the connections
    /// that were judged individually; if these are all, others need not have been read.
    fn write<'py>(
        &mut self,
        py: Python<'py>,
        start: u32,
        stop: u32,
        between: &str,
        closely: HashMap<u32, Members>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let result = self.result.clone_ref(py);
        let result = result.get();
        if (start..stop).all(|id| closely.contains_key(&id)) {
            let mut out = String::new();
            for id in start..stop {
                if id > start {
                    out.push_str(between);
                }
                self.write_one(&mut out, id, result.get(id)?, None, closely.get(&id));
            }
            return Ok(PyBytes::new(py, out.as_bytes()));
        }
        let connections = result.all()?;
        let numbers = start.min(connections.len())..stop.min(connections.len());
        let is_lossy = self.is_capture_lossy;
        let judged = py.detach(|| {
            connections.walk_in(numbers.clone(), WORTH_A_THREAD, |some| {
                Judged::of(connections, some, is_lossy)
            })
        });
        self.describe(py, &judged)?;
        let writer = &*self;
        let texts = py.detach(|| {
            connections.walk_in(numbers, WORTH_A_THREAD, |some| {
                let mut out = String::with_capacity(writer.length * some.len());
                let judged = judged.iter().find(|judged| judged.first == some.start);
                for (row, id) in some.enumerate() {
                    if row > 0 {
                        out.push_str(between);
                    }
                    if let Some((connection, judged)) = connections.get(id).zip(judged) {
                        writer.write_one(
                            &mut out,
                            id,
                            connection,
                            Some((judged, row)),
                            closely.get(&id),
                        );
                    }
                }
                out
            })
        });
        let length: usize = texts.iter().map(String::len).sum();
        let parts = texts.len().saturating_sub(1) * between.len();
        let count: usize = judged.iter().map(|judged| judged.algorithms.len()).sum();
        self.length = length / count.max(1) * 5 / 4;
        PyBytes::new_with(py, length + parts, |mut bytes| {
            for (nth, text) in texts.iter().enumerate() {
                let separator = if nth > 0 { between } else { "" };
                for piece in [separator, text] {
                    let (here, rest) = bytes.split_at_mut(piece.len());
                    here.copy_from_slice(piece.as_bytes());
                    bytes = rest;
                }
            }
            Ok(())
        })
    }
}

impl JsonWriter {
    /// Write the sentences and algorithms that have not been written yet.
    fn describe(&mut self, py: Python<'_>, judged: &[Judged]) -> PyResult<()> {
        if self.sentences.len() + self.algorithms.len() > MOST_TEXTS {
            self.sentences.clear();
            self.algorithms.clear();
        }
        for said in judged.iter().flat_map(|judged| &judged.columns.statements) {
            if let Entry::Vacant(vacant) = self.sentences.entry(said.key()) {
                let written = statement_to_python(py, said)?;
                let (text, fix) = self.describe_statement.bind(py).call1(written)?.extract()?;
                vacant.insert(Sentences { text, fix });
            }
        }
        let keys = judged.iter().flat_map(|judged| &judged.algorithms);
        for key in keys.flatten().flatten() {
            if let Entry::Vacant(vacant) = self.algorithms.entry(*key) {
                let (name, confidence, cuts, left, probes) = *key;
                let left = left.map(f64::from_bits);
                let shown = (name, confidence, cuts, left, probes);
                vacant.insert(self.describe_algorithm.bind(py).call1(shown)?.extract()?);
            }
        }
        Ok(())
    }

    fn write_one(
        &self,
        out: &mut String,
        id: u32,
        connection: &Connection,
        judged: Option<(&Judged, usize)>,
        closely: Option<&Members>,
    ) {
        let layout = &self.layout;
        let budgets =
            [true, false].map(|is_from_a| DirectionView::new(connection, is_from_a).budget());
        write_connection(out, layout, id, connection, &budgets);
        self.write_judgement(out, &budgets, judged, closely);
        out.push('}');
    }

    fn write_judgement(
        &self,
        out: &mut String,
        budgets: &[Items; 2],
        judged: Option<(&Judged, usize)>,
        closely: Option<&Members>,
    ) {
        let layout = &self.layout;
        if let Some((verdict, budget, algorithm)) = closely {
            let is_absent = layout.omits_absent && algorithm.ends_with(NO_ALGORITHMS);
            for (is_wanted, member) in [
                (layout.has_verdict, verdict),
                (layout.has_budget, budget),
                (layout.has_algorithm && !is_absent, algorithm),
            ] {
                if is_wanted {
                    out.push_str(", ");
                    out.push_str(member);
                }
            }
            return;
        }
        let Some((judged, row)) = judged else { return };
        let columns = &judged.columns;
        let said = &columns.statements[columns.place[row] as usize];
        if let (true, Some(sentences)) = (layout.has_verdict, self.sentences.get(&said.key())) {
            out.push_str(", ");
            write_verdict(out, columns, row, sentences);
        }
        if layout.has_budget {
            out.push_str(", ");
            write_budgets(out, budgets);
        }
        let shown = judged.algorithms[row];
        if layout.has_algorithm && !(layout.omits_absent && shown == [None, None]) {
            out.push_str(", ");
            let text = |key: Option<AlgorithmKey>| Some(self.algorithms.get(&key?)?.as_str());
            write_algorithms(out, shown.map(text));
        }
    }
}
