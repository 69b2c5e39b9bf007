//! Selections for rules: conditions from Python in, a sequence of matches out.

use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::output::field::Value;
use crate::output::select::{Comparison, Condition, Picked, Query};

/// Field name, operator, value.
pub type ConditionArgument<'py> = (String, String, Bound<'py, PyAny>);

/// Build the query for directions, or connections, that meet all conditions.
pub fn query(of_directions: bool, conditions: &[ConditionArgument]) -> PyResult<Query> {
    let conditions = conditions
        .iter()
        .map(|(name, sign, value)| condition(of_directions, name, sign, value));
    Ok(Query {
        of_directions,
        conditions: conditions.collect::<PyResult<_>>()?,
    })
}

fn condition(
    of_direction: bool,
    name: &str,
    sign: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Condition> {
    let comparison = Comparison::parse(sign)
        .ok_or_else(|| PyValueError::new_err(format!("unknown operator {sign}")))?;
    let wanted = if value.is_none() {
        Value::None
    } else if let Ok(value) = value.extract::<bool>() {
        Value::Bool(value)
    } else if let Ok(value) = value.extract::<f64>() {
        Value::Real(value)
    } else {
        Value::Text(value.extract::<String>()?.into())
    };
    Condition::new(of_direction, name, comparison, wanted)
        .ok_or_else(|| PyKeyError::new_err(format!("unknown field {name}")))
}

/// The matches of one query: a sequence of connection number and direction name (None for connections).
#[pyclass(frozen, module = "tcpwin._engine")]
pub struct Picks {
    pub picked: Vec<Picked>,
    pub of_directions: bool,
}

#[pymethods]
impl Picks {
    fn __len__(&self) -> usize {
        self.picked.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: usize,
    ) -> PyResult<(u32, Option<&Bound<'py, PyString>>)> {
        let (id, from_initiator) = *self
            .picked
            .get(index)
            .ok_or_else(|| PyIndexError::new_err("index out of range"))?;
        let direction = match (self.of_directions, from_initiator) {
            (false, _) => None,
            (true, true) => Some(intern!(py, "a_to_b")),
            (true, false) => Some(intern!(py, "b_to_a")),
        };
        Ok((id, direction))
    }
}
