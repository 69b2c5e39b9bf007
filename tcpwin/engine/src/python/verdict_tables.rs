//! The tables of limits, budget items and verdict fields, from which Python takes its lists.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::tables::budget_item::{Group, ItemTrait, SenderState};
use crate::tables::limit::Limit;
use crate::verdict::confidence::Confidence;
use crate::verdict::division::{CHATTY_EXCHANGES, MIN_COST_NS, MIN_SHARE, ORDER};
use crate::verdict::fields::VERDICT_FIELDS;
use crate::verdict::owner::{End, Owner};

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CONFIDENCES", Confidence::ALL.map(Confidence::name))?;
    let owners = Owner::ALL.iter().map(|owner| owner.name());
    module.add("OWNERS", owners.collect::<Vec<_>>())?;
    module.add("ENDS", End::ALL.map(End::name))?;
    let order = ORDER.map(|limit| limit.row().name);
    module.add("LIMIT_ORDER", order)?;
    module.add("CHATTY_EXCHANGES", CHATTY_EXCHANGES)?;
    module.add("MIN_COST_NS", MIN_COST_NS)?;
    module.add("MIN_SHARE", MIN_SHARE)?;
    module.add_function(wrap_pyfunction!(limits, module)?)?;
    module.add_function(wrap_pyfunction!(budget_items, module)?)?;
    module.add_function(wrap_pyfunction!(budget_groups, module)?)?;
    module.add_function(wrap_pyfunction!(verdict_fields, module)?)
}

/// A dictionary of names and values.
macro_rules! row {
    ($py:expr, $($name:literal: $value:expr),* $(,)?) => {{
        let row = PyDict::new($py);
        $(row.set_item($name, $value)?;)*
        Ok(row)
    }};
}

#[pyfunction]
fn limits(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |limit: &Limit| {
        let row = limit.row();
        let held_by: Vec<_> = row.held_by.iter().map(|item| item.row().name).collect();
        row!(py,
            "name": row.name,
            "label": row.label,
            "phrase": row.phrase,
            "group": row.group.name(),
            "is_mendable": row.is_mendable,
            "is_fault": limit.is_fault(),
            "is_reportable": limit.is_reportable(),
            "held_by": held_by,
        )
    };
    Limit::ALL.iter().map(row).collect()
}

#[pyfunction]
fn budget_items(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |item: SenderState| {
        let row = item.row();
        row!(py,
            "name": row.name,
            "label": row.label,
            "group": row.group.name(),
            "limit": row.limit.row().name,
            "slow_limit": item.limit(true).row().name,
            "is_window": item.has(ItemTrait::Window),
            "is_recovery": item.has(ItemTrait::Recovery),
            "is_silent": item.has(ItemTrait::Silent),
            "basis": row.basis,
            "doc": row.doc,
        )
    };
    SenderState::ALL.into_iter().map(row).collect()
}

/// Return the groups of the items, by name and label.
#[pyfunction]
fn budget_groups() -> Vec<(&'static str, &'static str)> {
    let groups = Group::ALL.iter();
    groups.map(|group| (group.name(), group.label())).collect()
}

#[pyfunction]
fn verdict_fields(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |field: &crate::verdict::fields::VerdictField| {
        row!(py,
            "name": field.name,
            "kind": field.kind.name(),
            "is_nullable": field.is_nullable,
            "doc": field.doc,
        )
    };
    VERDICT_FIELDS.iter().map(row).collect()
}
