//! Attributes of `tcpwin.analysis.Direction` that are fields of the engine, read on first access.

use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::output::field::{DirectionField, DirectionView};
use crate::output::fields::direction_field;
use crate::python::result::Result;
use crate::python::values::value_to_python;

/// Identifies a direction of a result.
#[pyclass(frozen, module = "tcpwin._engine")]
pub struct Place {
    #[pyo3(get)]
    result: Py<Result>,
    #[pyo3(get)]
    id: u32,
    #[pyo3(get)]
    from_initiator: bool,
}

#[pymethods]
impl Place {
    /// Create the identity of a direction; raises IndexError if the result does not contain the connection.
    #[new]
    fn new(result: Py<Result>, id: u32, from_initiator: bool) -> PyResult<Self> {
        result.get().get(id)?;
        Ok(Place {
            result,
            id,
            from_initiator,
        })
    }
}

/// A descriptor for classes whose instances have a [`Place`] in `_place`: a field of that direction. It is read on
/// first access and then cached in the instance's attributes.
#[pyclass(frozen, module = "tcpwin._engine")]
pub struct FieldAttribute {
    field: &'static DirectionField,
    name: Py<PyString>,
}

#[pymethods]
impl FieldAttribute {
    #[new]
    fn new(name: &Bound<'_, PyString>) -> PyResult<Self> {
        let field = direction_field(name.to_cow()?.as_ref())
            .ok_or_else(|| PyKeyError::new_err(format!("a direction has no field {name}")))?;
        let name = PyString::intern(name.py(), field.name).unbind();
        Ok(FieldAttribute { field, name })
    }

    fn __get__(
        slf: &Bound<'_, Self>,
        instance: &Bound<'_, PyAny>,
        _owner: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if instance.is_none() {
            return Ok(slf.clone().into_any().unbind());
        }
        let this = slf.get();
        let values = instance.getattr(intern!(py, "__dict__"))?;
        let values = values.cast::<PyDict>()?;
        let place = values.get_item(intern!(py, "_place"))?.ok_or_else(|| {
            PyAttributeError::new_err(format!("no direction to read {} of", this.field.name))
        })?;
        let place = place.cast::<Place>()?.get();
        let connection = place.result.get().get(place.id)?;
        let view = DirectionView::new(connection, place.from_initiator);
        let value = value_to_python(py, &(this.field.get)(&view))?;
        values.set_item(&this.name, &value)?;
        Ok(value)
    }
}
