//! Packets as they come: blocks of a packet socket's ring, and files that grow.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::capture::{append_records, grown, Layout};

/// A block of a ring of TPACKET_V3 as records of a pcap file with nanoseconds, little-endian: the records, how many, and
/// the times of the first and the last.
#[pyfunction]
#[pyo3(signature = (block, *, leaves_out_outgoing=false))]
pub fn ring_records<'py>(
    py: Python<'py>,
    block: &[u8],
    leaves_out_outgoing: bool,
) -> (Bound<'py, PyBytes>, u64, i64, i64) {
    let mut records = Vec::with_capacity(block.len());
    let taken = append_records(block, leaves_out_outgoing, &mut records);
    let records = PyBytes::new(py, &records);
    (records, taken.packets, taken.first_ns, taken.last_ns)
}

/// Of the bytes of a pcap file that grows, from the beginning of a record on: where the last whole one ends, how many there
/// are, the times of the first and the last, and whether what follows is none.
#[pyfunction]
#[pyo3(signature = (data, *, is_big_endian=false, is_nanoseconds=false))]
pub fn grown_records(
    data: &[u8],
    is_big_endian: bool,
    is_nanoseconds: bool,
) -> (usize, u64, i64, i64, bool) {
    let layout = Layout {
        is_big_endian,
        is_nanoseconds,
    };
    let grown = grown(data, layout);
    (
        grown.end,
        grown.records,
        grown.first_ns,
        grown.last_ns,
        grown.is_damaged,
    )
}
