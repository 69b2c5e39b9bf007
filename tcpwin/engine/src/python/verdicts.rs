//! Verdicts for Python: of one direction as a dictionary, of many connections as columns.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyTuple};

use super::result::Result;
use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tables::limit::{Limit, LIMITS};
use crate::verdict::budget::{self, Items};
use crate::verdict::columns::{verdict_columns as judge_all, NO_CODE};
use crate::verdict::confidence::Confidence;
use crate::verdict::crossing::Crossing;
use crate::verdict::division::{Loss, Times};
use crate::verdict::facts::Facts;
use crate::verdict::gain::{silent_by_limit, Carried, Life};
use crate::verdict::judge::{judge as judge_direction, Claim, Evidence, Finding};
use crate::verdict::opinion;
use crate::verdict::opinion::Kernel;
use crate::verdict::owner::{End, Owner};
use crate::verdict::rank;
use crate::verdict::statement::Statement;
use crate::verdict::traits::{is_answering, is_growing, is_slow};

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(judge, module)?)?;
    module.add_function(wrap_pyfunction!(verdict_columns, module)?)?;
    module.add_function(wrap_pyfunction!(rank_connections, module)?)?;
    module.add_function(wrap_pyfunction!(life, module)?)?;
    module.add_function(wrap_pyfunction!(gain, module)?)?;
    module.add_function(wrap_pyfunction!(corrected_by_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(corrected_by_receiver, module)?)?;
    module.add_function(wrap_pyfunction!(is_worse, module)?)?;
    module.add_function(wrap_pyfunction!(only_stop_ns, module)?)
}

type FindingArgument = (
    Owner,
    Option<End>,
    Confidence,
    bool,
    i64,
    bool,
    bool,
    Option<Limit>,
);
type CarriedArgument = (i64, f64, i64, i64, i64, i64, i64, i64, i64);

/// Converts values of tables by their names in Python.
macro_rules! by_name {
    ($($code:ident $what:literal $name:expr;)*) => {
        $(impl<'py> FromPyObject<'_, 'py> for $code {
            type Error = PyErr;

            fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                let wanted: PyBackedStr = given.extract()?;
                let mut all = $code::ALL.iter();
                let found = all.find(|each| $name(**each) == &*wanted).copied();
                found.ok_or_else(|| PyValueError::new_err(format!("no {} {wanted}", $what)))
            }
        })*
    };
}

by_name! {
    Limit "limit" limit_name;
    SenderState "item" |item: SenderState| item.row().name;
    Owner "owner" Owner::name;
    End "end" End::name;
    Confidence "confidence" Confidence::name;
}

fn limit_name(limit: Limit) -> &'static str {
    limit.row().name
}

fn crossing_of(given: &Bound<'_, PyAny>) -> PyResult<Crossing> {
    macro_rules! crossing {
        ($($name:ident),*) => {
            Crossing { $($name: given.getattr(stringify!($name))?.extract()?),* }
        };
    }
    Ok(crossing!(
        lost,
        retransmissions,
        for_lost,
        for_lost_acks,
        needless,
        for_refused,
        late,
        queue_ns,
        back_queue_ns,
        longest_queue_ns,
        queue_before_loss_ns,
        round_trip_ns,
        is_at_receiver,
        shift_lost
    ))
}

/// Judge a direction.
///
/// `items_ns`: the corrected budget; `packets_ns`: the budget from the packets alone. `findings`: owner, side,
/// confidence, whether it is a warning, cost, whether it has a remedy, whether it is an error, and the reported fault.
/// `claims`: index of the finding, item, limit and time.
#[pyfunction]
#[pyo3(signature = (result, id, is_back, items_ns, packets_ns, *, kernel_ns=None, findings=vec![], claims=vec![], crossing=None, is_capture_lossy=false))]
#[allow(clippy::too_many_arguments)]
fn judge<'py>(
    py: Python<'py>,
    result: &Bound<'py, Result>,
    id: u32,
    is_back: bool,
    items_ns: Items,
    packets_ns: Items,
    kernel_ns: Option<(i64, i64)>,
    findings: Vec<FindingArgument>,
    claims: Vec<(usize, SenderState, Limit, i64)>,
    crossing: Option<Bound<'py, PyAny>>,
    is_capture_lossy: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let facts = Facts::read(id, result.get().get(id)?, is_back);
    let finding =
        |(owner, side, confidence, is_warning, cost_ns, has_remedy, is_error, fault)| Finding {
            owner,
            side,
            confidence,
            is_warning,
            cost_ns,
            has_remedy,
            is_error,
            fault,
        };
    let findings: Vec<_> = findings.into_iter().map(finding).collect();
    if claims.iter().any(|(place, ..)| *place >= findings.len()) {
        return Err(PyValueError::new_err(
            "a claim refers to an unknown finding",
        ));
    }
    let claim = |(finding, item, limit, ns)| Claim {
        finding,
        item,
        limit,
        ns,
    };
    let claims = claims.into_iter().map(claim).collect();
    let evidence = Evidence {
        items_ns,
        packets_ns,
        kernel: kernel_ns.map(|(window_ns, send_buffer_ns)| Kernel {
            window_ns,
            send_buffer_ns,
        }),
        findings,
        claims,
        crossing: crossing.as_ref().map(crossing_of).transpose()?,
        is_capture_lossy,
    };
    let judged = judge_direction(&facts, &evidence);
    let division = &judged.division;
    let dict = PyDict::new(py);
    macro_rules! set {
        ($($name:literal: $value:expr),* $(,)?) => { $(dict.set_item($name, $value)?;)* };
    }
    set! {
        "limit": limit_name(division.first),
        "second_limit": division.second.map(limit_name),
        "share": judged.share(),
        "cost_ns": judged.cost_ns,
        "cost_low_ns": judged.cost_low_ns,
        "cost_high_ns": judged.cost_high_ns,
        "confidence": judged.confidence.name(),
        "owner": judged.owner.name(),
        "side": judged.side.map(End::name),
        "has_data": facts.has_data(),
        "is_back_limited": judged.is_back_limited,
        "time_ns": division.also.map_or(division.first_ns, |also| division.lost_to_ns[also as usize]),
        "lost_ns": division.loss.lost_ns,
        "lost_share": judged.lost_share(),
        "also": division.also.map(limit_name),
        "also_ns": judged.also_ns,
        "is_problem": judged.is_problem,
        "reason": judged.reason.name(),
        "is_answering": is_answering(&items_ns),
        "is_doubled": judged.is_doubled,
        "reason_finding": judged.reason_finding,
        "fix_finding": judged.fix_finding,
        "times_ns": division.times_ns.as_slice(),
        "total_ns": division.total_ns,
        "statement": statement_to_python(py, &Statement::new(&facts, &judged))?,
    }
    Ok(dict)
}

/// Return everything that a verdict's sentences depend on, in the order of Python's `Statement`.
pub(super) fn statement_to_python<'py>(
    py: Python<'py>,
    said: &Statement,
) -> PyResult<Bound<'py, PyTuple>> {
    let names = (
        limit_name(said.limit),
        said.second.map(limit_name),
        said.also.map(limit_name),
        said.confidence.name(),
        said.standing.name(),
        said.sender.name(),
        said.requester.name(),
        said.meaning.name(),
        said.fix.name(),
        said.witness.name(),
        said.fix_witness.name(),
    )
        .into_pyobject(py)?;
    let [number, other] = said.numbers;
    let numbers = (
        number,
        other,
        said.stop_ns,
        said.is_sender_unscaled,
        said.is_empty,
        said.share,
        said.second_share,
        said.also_ns,
        said.also_share,
    )
        .into_pyobject(py)?;
    names
        .as_sequence()
        .concat(numbers.as_sequence())?
        .to_tuple()
}

/// Judge connections `start` to `stop` (exclusive) by their packets alone: columns of codes and numbers, and
/// statements.
#[pyfunction]
fn verdict_columns<'py>(
    py: Python<'py>,
    result: &Bound<'py, Result>,
    start: u32,
    stop: u32,
    is_capture_lossy: bool,
) -> PyResult<(Bound<'py, PyDict>, Vec<Bound<'py, PyTuple>>)> {
    let connections = result.get().all()?;
    let numbers = start.min(connections.len())..stop.min(connections.len());
    let found = py.detach(|| judge_all(connections, numbers, is_capture_lossy));
    let dict = PyDict::new(py);
    macro_rules! set {
        ($($name:ident),*) => {
            $(dict.set_item(stringify!($name), PyArray1::from_vec(py, found.$name))?;)*
        };
    }
    let statements = found
        .statements
        .iter()
        .map(|said| statement_to_python(py, said));
    let statements = statements.collect::<PyResult<Vec<_>>>()?;
    set!(
        limit,
        second_limit,
        also,
        confidence,
        owner,
        side,
        direction
    );
    set!(
        share,
        cost_ns,
        cost_low_ns,
        cost_high_ns,
        lost_ns,
        named_ns,
        is_problem,
        place
    );
    Ok((dict, statements))
}

/// Lost time, payload bytes and number of a connection.
type RankedRow = (i64, u64, u32);
/// The same of a connection with a problem, and before its number the code of the limit that cost the most.
type ProblemRow = (i64, u64, u8, u32);

/// Return the `most` connections that lost the most time, and all with a problem, worst first, by their packets alone.
#[pyfunction]
fn rank_connections(
    py: Python<'_>,
    result: &Bound<'_, Result>,
    most: usize,
) -> PyResult<(Vec<RankedRow>, Vec<ProblemRow>)> {
    let connections = result.get().all()?;
    let ranking = py.detach(|| rank::rank(connections, most));
    let worst = ranking.worst.into_iter();
    let problems = ranking.problems.into_iter();
    Ok((
        worst
            .map(|(lost_ns, payload_bytes, id)| (lost_ns, payload_bytes, id.0))
            .collect(),
        problems
            .map(|((lost_ns, payload_bytes, id), limit)| {
                (lost_ns, payload_bytes, limit as u8, id.0)
            })
            .collect(),
    ))
}

/// Return properties of a direction: whether its reader is slow and its window growing, the time of each limit in which
/// nothing got through, and what it carried.
#[pyfunction]
fn life(
    result: &Bound<'_, Result>,
    id: u32,
    is_back: bool,
    items_ns: Items,
    packets_ns: Items,
) -> PyResult<(bool, bool, Vec<i64>, CarriedArgument)> {
    let facts = Facts::read(id, result.get().get(id)?, is_back);
    let is_slow = is_slow(&facts.data, &packets_ns);
    let silent_ns = silent_by_limit(&items_ns, is_slow);
    let carried = Carried::of(&facts);
    let carried = (
        carried.bytes,
        carried.path_bps,
        carried.window_bytes,
        carried.first_window_bytes,
        carried.first_flight_bytes,
        carried.round_trip_ns,
        carried.paused_ns,
        carried.exchanges,
        carried.overlapped_ns,
    );
    Ok((is_slow, is_growing(&items_ns), silent_ns.to_vec(), carried))
}

/// Return the gain of lifting a limit alone: likely, minimum, maximum, and the bytes carried in the limit's time.
#[pyfunction]
fn gain(
    limit: Limit,
    times_ns: Times,
    silent_ns: Times,
    carried: CarriedArgument,
    is_growing: bool,
) -> PyResult<(i64, i64, i64, f64)> {
    let (
        bytes,
        path_bps,
        window_bytes,
        first_window_bytes,
        first_flight_bytes,
        round_trip_ns,
        paused_ns,
        exchanges,
        overlapped_ns,
    ) = carried;
    let carried = Carried {
        bytes,
        path_bps,
        window_bytes,
        first_window_bytes,
        first_flight_bytes,
        round_trip_ns,
        paused_ns,
        exchanges,
        overlapped_ns,
    };
    let life = Life {
        times_ns: &times_ns,
        silent_ns: &silent_ns,
        carried,
        is_growing,
    };
    let gain = life.gain(limit);
    Ok((
        gain.likely_ns,
        gain.low_ns,
        gain.high_ns,
        gain.carried_bytes,
    ))
}

/// Correct a budget's items by the times that the sender's kernel waited for the window and for the send buffer.
#[pyfunction]
fn corrected_by_kernel(items_ns: Items, window_ns: i64, buffer_ns: i64) -> [i64; SENDER_STATES] {
    budget::corrected_by_kernel(&items_ns, window_ns, buffer_ns)
}

/// Correct a budget's items by those of the receiver's capture.
#[pyfunction]
fn corrected_by_receiver(items_ns: Items, shown_ns: Items) -> [i64; SENDER_STATES] {
    budget::corrected_by_receiver(&items_ns, &shown_ns)
}

/// Return whether the connection's verdict is about the other direction. `own`, `other`: lost time, and whether it is a
/// problem.
#[pyfunction]
fn is_worse(own: (i64, bool), other: (i64, bool), is_other_main: bool) -> bool {
    let loss = |(lost_ns, is_problem)| Loss {
        lost_ns,
        busy_ns: 0,
        is_problem,
    };
    loss(own).is_less_than(&loss(other), is_other_main)
}

/// Return the duration of the receiver's only stop, if that was nearly all of the sender's wait for it; else 0.
#[pyfunction]
fn only_stop_ns(episodes: i64, zero_window_ns: i64, window_limited_ns: i64) -> i64 {
    opinion::only_stop_ns(episodes, zero_window_ns, window_limited_ns)
}

const _: () = assert!(LIMITS < NO_CODE as usize);
