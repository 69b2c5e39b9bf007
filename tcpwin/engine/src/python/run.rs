//! One reading of a capture without the GIL, which is taken back for signals and progress.

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::files::{raise_pending, Opened};
use crate::output::index::Frames;
use crate::output::pass::{run_with, Findings, Sink};
use crate::output::shards::run_sharded;
use crate::tcp::tracker::Tracker;

/// Run a pass without the GIL, with progress and signals now and then.
pub fn pass<S: Sink + Send, F: Frames + Send>(
    py: Python<'_>,
    opened: Opened,
    tracker: Tracker,
    sink: &mut S,
    frames: &mut F,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Findings> {
    let Opened { input, interrupt } = opened;
    let outcome = watched(py, progress, |report| {
        run_with(input, tracker, sink, frames, report)
    });
    raise_pending(&interrupt)?;
    outcome
}

/// Processors that this process may use, by its affinity and the limits of its control group.
#[pyfunction]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Run a pass that nobody wants segments of, with several threads.
pub fn pass_sharded(
    py: Python<'_>,
    opened: Opened,
    tracker: Tracker,
    threads: usize,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Findings> {
    let Opened { input, interrupt } = opened;
    let outcome = watched(py, progress, |report| {
        run_sharded(input, tracker, threads, report)
    });
    raise_pending(&interrupt)?;
    outcome
}

/// Run something without the GIL. It reports how far it is now and then: signals and progress have their turn then, and
/// where either raises, it is told to stop and what was raised is the outcome.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut (dyn FnMut(u64) -> bool + Send)) -> T + Send,
) -> PyResult<T> {
    let mut failure: Option<PyErr> = None;
    let failed = &mut failure;
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            work(&mut |bytes_read| {
                let called = Python::attach(|py| {
                    py.check_signals()?;
                    progress.map_or(Ok(()), |call| call.call1(py, (bytes_read,)).map(drop))
                });
                called.map_err(|error| *failed = Some(error)).is_ok()
            })
        }))
    });
    match (failure, outcome) {
        (Some(error), _) => Err(error),
        (None, Ok(done)) => Ok(done),
        (None, Err(_)) => Err(PyRuntimeError::new_err(
            "internal error in the engine; please report this capture",
        )),
    }
}
