//! A source restricted to some of its packets.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::files::{store_interrupt, Interrupt};
use crate::capture::{Compile, Moment, Program, Pulse, Raw, Selection};

/// Kind of moment, and nanoseconds.
type MomentArgument = (String, i64);

/// Paths, or an object with `read`, of which only some packets are used. `compile` is called with a link type and
/// returns the filter's program, as (code, jt, jf, k) tuples.
#[pyclass(frozen)]
pub struct Selected {
    pub source: Py<PyAny>,
    compile: Option<Py<PyAny>>,
    ends: (Option<Moment>, Option<Moment>),
}

#[pymethods]
impl Selected {
    #[new]
    #[pyo3(signature = (source, *, compile=None, start=None, end=None))]
    fn new(
        source: Py<PyAny>,
        compile: Option<Py<PyAny>>,
        start: Option<MomentArgument>,
        end: Option<MomentArgument>,
    ) -> PyResult<Self> {
        let ends = (start.map(moment).transpose()?, end.map(moment).transpose()?);
        Ok(Self {
            source,
            compile,
            ends,
        })
    }
}

fn moment((kind, ns): MomentArgument) -> PyResult<Moment> {
    match kind.as_str() {
        "at" => Ok(Moment::At(ns)),
        "after" => Ok(Moment::After(ns)),
        "time_of_day" => Ok(Moment::TimeOfDay(ns)),
        other => Err(PyValueError::new_err(format!(
            "unknown kind of time {other}"
        ))),
    }
}

impl Selected {
    /// Create the selection for one pass. An exception in the compiler ends the pass, as a signal does.
    pub fn selection(&self, py: Python<'_>, interrupt: &Interrupt) -> Selection {
        let compile = self.compile.as_ref().map(|compile| {
            let (compile, interrupt) = (compile.clone_ref(py), Arc::clone(interrupt));
            Box::new(move |link_type| {
                Python::attach(|py| {
                    let compiled = compile
                        .call1(py, (link_type,))
                        .and_then(|raw| raw.extract::<Vec<Raw>>(py))
                        .and_then(|raw| {
                            let refuse = || PyValueError::new_err("the filter's program loops");
                            Program::new(&raw).ok_or_else(refuse)
                        });
                    compiled
                        .map_err(|error| store_interrupt(&interrupt, error))
                        .ok()
                })
            }) as Compile
        });
        let interrupt = Arc::clone(interrupt);
        let pulse: Pulse = Box::new(move || {
            let checked = Python::attach(|py| py.check_signals());
            checked
                .map_err(|error| store_interrupt(&interrupt, error))
                .is_ok()
        });
        Selection::new(self.ends, compile, pulse)
    }
}
