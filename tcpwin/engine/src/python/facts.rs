//! The facts of a capture as a dictionary.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::dictionary::set_fields;
use crate::capture::CaptureFacts;

pub fn facts_to_python<'py>(py: Python<'py>, facts: &CaptureFacts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("file", &facts.file)?;
    dict.set_item("format", facts.format.as_str())?;
    dict.set_item("byte_order", facts.byte_order.as_str())?;
    dict.set_item(
        "compression",
        facts
            .compression
            .iter()
            .map(|c| c.as_str())
            .collect::<Vec<_>>(),
    )?;
    dict.set_item("ticks_per_second", facts.ticks_per_second())?;
    set_fields!(
        dict,
        facts,
        packets,
        packets_skipped,
        packets_snapped,
        time_backwards,
        first_time_ns,
        last_time_ns,
        bytes,
        bytes_on_disk
    );
    dict.set_item("interface_drops", facts.drops())?;
    dict.set_item("warnings_omitted", facts.warnings_omitted)?;
    let interfaces = PyList::empty(py);
    for interface in &facts.interfaces {
        let entry = PyDict::new(py);
        entry.set_item("link_type", interface.link_type)?;
        entry.set_item("snaplen_bytes", interface.snaplen)?;
        set_fields!(entry, interface, name, ticks_per_second, drops, received);
        interfaces.append(entry)?;
    }
    dict.set_item("interfaces", interfaces)?;
    let warnings = PyList::empty(py);
    for warning in &facts.warnings {
        let entry = PyDict::new(py);
        entry.set_item("kind", warning.kind.as_str())?;
        set_fields!(entry, warning, message, file, byte_offset);
        warnings.append(entry)?;
    }
    dict.set_item("warnings", warnings)?;
    Ok(dict)
}
