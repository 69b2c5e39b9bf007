//! What leaves the engine: one pass over a capture, rows, connection fields, series and percentiles.

pub mod address;
pub mod budget_fields;
mod budget_track;
pub mod columns;
pub mod detail;
pub mod event_fields;
pub mod field;
pub mod fields;
pub mod headers;
pub mod histogram;
pub mod index;
pub mod json;
pub mod light;
mod loss_fields;
pub mod never;
pub mod pass;
mod place;
pub mod rows;
mod seen;
pub mod select;
pub mod series;
pub mod split;
pub mod table;
mod time_fields;
pub mod timeline;
pub mod track;
