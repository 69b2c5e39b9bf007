//! Run a pass without the GIL, reacquiring it for signals and progress.

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::files::{raise_pending, Opened};
use crate::output::index::Frames;
use crate::output::pass::{run_with, Findings, Sink};
use crate::output::shards::run_sharded;
use crate::tcp::tracker::Tracker;

/// Run a pass without the GIL, reporting progress and handling signals periodically.
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

/// Return the number of processors available to this process, by its CPU affinity and cgroup limits.
#[pyfunction]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Run a pass without a sink for segments, on several threads.
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

/// Run a closure without the GIL. It reports progress periodically; signals are handled then. If either raises, the
/// closure is asked to stop and the exception is returned.
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
