//! ICMP errors with the connections whose segments they quote.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::dictionary::set_fields;
use super::result::Result;
use crate::output::address::address_text;
use crate::wire::IcmpError;

type Endpoint = ([u8; 16], u16);
type Pair = (Endpoint, Endpoint);

/// Return the ICMP errors about segments, in order, each with the newest connection that it may quote, or None.
#[pyfunction]
pub fn icmp_errors<'py>(
    py: Python<'py>,
    result: &Bound<'py, Result>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let findings = result.get().findings();
    let errors = &findings.counters.icmp_errors;
    let mut begun: HashMap<Pair, Vec<(u32, i64, bool)>> = HashMap::new();
    for error in errors {
        begun.insert(quoted(error), Vec::new());
    }
    if !errors.is_empty() {
        for (id, connection) in (0..).zip(findings.tracker.connections.iter()) {
            let [one, other] = connection.endpoints.each_ref();
            let ends = ((one.address, one.port), (other.address, other.port));
            if let Some(found) = begun.get_mut(&ordered(ends.0, ends.1)) {
                let initiator = [ends.0, ends.1][connection.marks.initiator_side()];
                let is_lower = initiator == ordered(ends.0, ends.1).0;
                found.push((id, connection.start_ns, is_lower));
            }
        }
    }
    let row = |error: &IcmpError| {
        let pair = quoted(error);
        let mut candidates = begun.get(&pair).into_iter().flatten();
        let newest = candidates.rfind(|(_, start_ns, _)| *start_ns <= error.time_ns);
        let is_from_lower = (error.src, error.src_port) == pair.0;
        let dict = PyDict::new(py);
        set_fields!(dict, error, frame, time_ns, version, kind, code, mtu, seq, ip_len);
        dict.set_item("reporter", address_text(&error.reporter))?;
        dict.set_item("connection", newest.map(|(id, ..)| *id))?;
        let is_from_initiator = newest.map(|(.., is_lower)| *is_lower == is_from_lower);
        dict.set_item("is_from_initiator", is_from_initiator)?;
        Ok(dict)
    };
    errors.iter().map(row).collect()
}

fn quoted(error: &IcmpError) -> Pair {
    ordered((error.src, error.src_port), (error.dst, error.dst_port))
}

fn ordered(one: Endpoint, other: Endpoint) -> Pair {
    (one.min(other), one.max(other))
}
