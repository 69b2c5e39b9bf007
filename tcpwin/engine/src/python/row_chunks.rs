//! Rows as columns in chunks: each full chunk is passed to a Python function.

use pyo3::prelude::*;

use super::columns::rows_to_python;
use crate::output::columns::RowColumns;
use crate::output::pass::Sink;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::Segment;

const CHUNK_ROWS: usize = 1 << 15;

pub struct RowChunks {
    take: Py<PyAny>,
    rows: RowColumns,
    failure: Option<PyErr>,
}

impl RowChunks {
    /// Pass chunks of rows to `take`. `only` restricts the rows to one connection.
    pub fn new(take: Py<PyAny>, only: Option<u32>) -> Self {
        RowChunks {
            take,
            rows: RowColumns::of(only),
            failure: None,
        }
    }

    /// Pass the last chunk, and return the exception that the function raised, if any.
    pub fn finish(mut self) -> PyResult<()> {
        if self.failure.is_none() && !self.rows.is_empty() {
            self.hand_over();
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn hand_over(&mut self) -> bool {
        let next = RowColumns::of(self.rows.only);
        let rows = std::mem::replace(&mut self.rows, next);
        let handed = Python::attach(|py| {
            let columns = rows_to_python(py, rows)?;
            self.take.call1(py, (columns,)).map(drop)
        });
        self.failure = handed.err();
        self.failure.is_none()
    }
}

impl Sink for RowChunks {
    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
    ) -> bool {
        self.rows.take(segment, annotation, connection);
        self.rows.len() < CHUNK_ROWS || self.hand_over()
    }
}
