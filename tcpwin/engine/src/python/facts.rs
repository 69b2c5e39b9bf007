//! Facts of a capture as a dictionary.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

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
    dict.set_item("packets", facts.packets)?;
    dict.set_item("packets_skipped", facts.packets_skipped)?;
    dict.set_item("packets_snapped", facts.packets_snapped)?;
    dict.set_item("time_backwards", facts.time_backwards)?;
    dict.set_item("first_time_ns", facts.first_time_ns)?;
    dict.set_item("last_time_ns", facts.last_time_ns)?;
    dict.set_item("bytes", facts.bytes)?;
    dict.set_item("bytes_on_disk", facts.bytes_on_disk)?;
    dict.set_item("interface_drops", facts.drops())?;
    dict.set_item("warnings_omitted", facts.warnings_omitted)?;
    let interfaces = PyList::empty(py);
    for interface in &facts.interfaces {
        let entry = PyDict::new(py);
        entry.set_item("link_type", interface.link_type)?;
        entry.set_item("snaplen_bytes", interface.snaplen)?;
        entry.set_item("name", &interface.name)?;
        entry.set_item("ticks_per_second", interface.ticks_per_second)?;
        entry.set_item("drops", interface.drops)?;
        entry.set_item("received", interface.received)?;
        interfaces.append(entry)?;
    }
    dict.set_item("interfaces", interfaces)?;
    let warnings = PyList::empty(py);
    for warning in &facts.warnings {
        let entry = PyDict::new(py);
        entry.set_item("kind", warning.kind.as_str())?;
        entry.set_item("message", &warning.message)?;
        entry.set_item("file", &warning.file)?;
        entry.set_item("byte_offset", warning.byte_offset)?;
        warnings.append(entry)?;
    }
    dict.set_item("warnings", warnings)?;
    Ok(dict)
}
