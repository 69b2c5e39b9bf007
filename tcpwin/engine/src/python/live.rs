//! Live packets: blocks of a packet socket's ring, and growing files.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::capture::{append_records, grown, Layout};

/// Convert a TPACKET_V3 ring block to little-endian pcap records with nanosecond times. Return the records, their
/// number, and the times of the first and the last.
#[pyfunction]
#[pyo3(signature = (block, *, skip_outgoing=false))]
pub fn ring_records<'py>(
    py: Python<'py>,
    block: &[u8],
    skip_outgoing: bool,
) -> (Bound<'py, PyBytes>, u64, i64, i64) {
    let mut records = Vec::with_capacity(block.len());
    let appended = append_records(block, skip_outgoing, &mut records);
    let records = PyBytes::new(py, &records);
    (
        records,
        appended.packets,
        appended.first_ns,
        appended.last_ns,
    )
}

/// Find the complete records of a growing pcap file, from a record's start. Return the end of the last one, their
/// number, the times of the first and the last, and whether the bytes after it are invalid.
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
