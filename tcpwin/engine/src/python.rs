//! The Python boundary: sources in, numbers and columns out. Contains no TCP logic.
//!
//! The GIL is released while a capture is read; it is reacquired for progress, signals and Python file objects.

mod changes;
mod columns;
mod copy;
mod details;
mod dictionary;
mod event_columns;
mod events;
mod facts;
mod field_attribute;
mod files;
mod first_events;
mod headers;
mod icmp_errors;
mod json_writer;
mod live;
mod pair;
mod pass;
mod picks;
mod reopen;
mod request_targets;
mod result;
mod row_chunks;
mod run;
mod second_reading;
mod selection;
mod split;
mod values;
mod verdict_tables;
mod verdicts;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::PyClass;

use crate::event::NAMES;
use crate::output::columns::VIEW_COLUMNS;
use crate::output::event_fields::{event_field_names, event_schema};
use crate::output::field::{Field, Kind, MARKS};
use crate::output::fields::{direction_fields, CONNECTION_FIELDS};
use crate::output::groups::{connection_groups, direction_groups, MEMBERS};
use crate::output::rows::COLUMNS;
use crate::output::track::SERIES;
use crate::tables::budget_item::SenderState;
use crate::tcp::connection::stalls::CAUSES;
use crate::tcp::recovery::cause::RetransmissionCause;
use crate::tcp::recovery::evidence::PARTS;
use changes::MessageLayout;
use details::Details;
use field_attribute::{FieldAttribute, Place};
use first_events::FirstEvents;
use json_writer::JsonWriter;
use picks::Picks;
use result::Result;
use selection::Selected;

/// A row of a field table: name, kind, marks, choices and documentation.
type FieldRow = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

fn field_row<Get>(field: &Field<Get>) -> FieldRow {
    let kind = match field.kind {
        Kind::Bool => "bool",
        Kind::Int => "int",
        Kind::Real => "float",
        Kind::Text => "str",
    };
    (field.name, kind, field.marks, field.choices, field.doc)
}

/// Return the table of a group's fields, from which types, schema and column sets are generated.
#[pyfunction]
fn field_table(group: &str) -> Vec<FieldRow> {
    if group == "connection" {
        CONNECTION_FIELDS.iter().map(field_row).collect()
    } else {
        direction_fields().map(field_row).collect()
    }
}

/// Return the fields of a group as (name, kind, documentation).
#[pyfunction]
fn fields(group: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    field_table(group)
        .into_iter()
        .map(|(name, kind, _, _, doc)| (name, kind, doc))
        .collect()
}

/// Return the groups of a connection's or a direction's fields: name, documentation, and names of fields.
#[pyfunction]
fn field_groups(group: &str) -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    fn names<Get>(fields: Vec<&'static Field<Get>>) -> Vec<&'static str> {
        fields.into_iter().map(|field| field.name).collect()
    }
    if group == "connection" {
        let groups = connection_groups().into_iter();
        groups
            .map(|(it, fields)| (it.name, it.doc, names(fields)))
            .collect()
    } else {
        let groups = direction_groups().into_iter();
        groups
            .map(|(it, fields)| (it.name, it.doc, names(fields)))
            .collect()
    }
}

/// Alignment of objects from Python's allocator on 64-bit systems (`ALIGNMENT` in CPython's Objects/obmalloc.c).
const PYTHON_ALIGNMENT: usize = 16;

fn add_class<T: PyClass>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const { assert!(align_of::<T>() <= PYTHON_ALIGNMENT) }
    module.add_class::<T>()
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_class::<Result>(module)?;
    add_class::<Picks>(module)?;
    add_class::<Place>(module)?;
    add_class::<FieldAttribute>(module)?;
    add_class::<FirstEvents>(module)?;
    add_class::<MessageLayout>(module)?;
    add_class::<Details>(module)?;
    add_class::<Selected>(module)?;
    add_class::<JsonWriter>(module)?;
    module.add_function(wrap_pyfunction!(pass::analyze, module)?)?;
    module.add_function(wrap_pyfunction!(run::cores, module)?)?;
    module.add_function(wrap_pyfunction!(reopen::reopen, module)?)?;
    module.add_function(wrap_pyfunction!(pass::write_rows, module)?)?;
    module.add_function(wrap_pyfunction!(pass::row_columns, module)?)?;
    module.add_function(wrap_pyfunction!(pass::row_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(icmp_errors::icmp_errors, module)?)?;
    module.add_function(wrap_pyfunction!(pass::header_columns, module)?)?;
    module.add_function(wrap_pyfunction!(fields, module)?)?;
    module.add_function(wrap_pyfunction!(field_table, module)?)?;
    module.add_function(wrap_pyfunction!(field_groups, module)?)?;
    module.add_function(wrap_pyfunction!(copy::copy_packets, module)?)?;
    module.add_function(wrap_pyfunction!(copy::frames_around, module)?)?;
    module.add_function(wrap_pyfunction!(copy::frames_of_parts, module)?)?;
    module.add_function(wrap_pyfunction!(headers::write_headers, module)?)?;
    module.add_function(wrap_pyfunction!(request_targets::request_targets, module)?)?;
    module.add_function(wrap_pyfunction!(live::ring_records, module)?)?;
    module.add_function(wrap_pyfunction!(live::grown_records, module)?)?;
    module.add_function(wrap_pyfunction!(pair::first_offset, module)?)?;
    module.add_function(wrap_pyfunction!(pair::pair, module)?)?;
    module.add_function(wrap_pyfunction!(split::split_points, module)?)?;
    module.add("PAIR_FATES", pair::fate_names())?;
    module.add("PAIR_CAUSES", pair::cause_names())?;
    module.add("ROW_COLUMNS", COLUMNS)?;
    module.add("VIEW_COLUMNS", VIEW_COLUMNS)?;
    module.add("EVENT_NAMES", NAMES)?;
    module.add("FIELD_MARKS", MARKS.to_vec())?;
    module.add("FIELD_MEMBERS", MEMBERS.to_vec())?;
    module.add("SERIES_NAMES", SERIES)?;
    module.add("BUDGET_ITEMS", SenderState::ALL.map(|item| item.row().name))?;
    verdict_tables::add(module)?;
    verdicts::add(module)?;
    module.add("STALL_CAUSES", CAUSES)?;
    let event_fields = PyTuple::new(module.py(), event_field_names())?;
    module.add("EVENT_FIELDS", event_fields)?;
    module.add("EVENT_SCHEMA", event_schema())?;
    let evidence = PARTS.map(|part| (part.name, part.heading, part.kind.name()));
    module.add("EVENT_EVIDENCE", evidence.to_vec())?;
    module.add(
        "CAUSES",
        RetransmissionCause::ALL.map(RetransmissionCause::name),
    )?;
    Ok(())
}
