//! Python paths and file objects as inputs and outputs of the engine.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyException;
use pyo3::import_exception;
use pyo3::prelude::*;

use super::selection::Selected;
use crate::capture::{CaptureError as ReadError, CaptureReader, MergedReader};

import_exception!(tcpwin.errors, CaptureError);

fn capture_error(error: &ReadError) -> PyErr {
    CaptureError::new_err((error.message.clone(), error.file.clone(), error.byte_offset))
}

/// An interrupt raised by a Python file while it was read: a request to stop rather than a failed read.
pub type Interrupt = Arc<Mutex<Option<PyErr>>>;

/// A Python object with `read(size) -> bytes`.
struct PythonFile {
    file: Py<PyAny>,
    interrupt: Interrupt,
}

impl Read for PythonFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let data = self
                .file
                .call_method1(py, "read", (buffer.len(),))
                .map_err(|error| {
                    if !error.is_instance_of::<PyException>(py) {
                        store_interrupt(&self.interrupt, error.clone_ref(py));
                    }
                    io::Error::other(error)
                })?;
            let bytes: &[u8] = data
                .extract(py)
                .map_err(|_| io::Error::other("read() returned no bytes"))?;
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        })
    }
}

pub fn store_interrupt(interrupt: &Interrupt, error: PyErr) {
    *interrupt.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
}

pub fn raise_pending(interrupt: &Interrupt) -> PyResult<()> {
    let pending = interrupt
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    pending.map_or(Ok(()), Err)
}

/// The opened captures.
pub struct Opened {
    pub input: MergedReader,
    pub interrupt: Interrupt,
}

/// Open an object with `read`, limited to `max_bytes` of decompressed data.
pub fn open_limited(source: &Bound<'_, PyAny>, name: &str, max_bytes: u64) -> PyResult<Opened> {
    let py = source.py();
    let interrupt = Interrupt::default();
    let file = Box::new(PythonFile {
        file: source.clone().unbind(),
        interrupt: Arc::clone(&interrupt),
    });
    let opened = py.detach(|| CaptureReader::from_reader_limited(file, name, max_bytes));
    raise_pending(&interrupt)?;
    let reader = opened.map_err(|error| capture_error(&error))?;
    Ok(Opened {
        input: MergedReader::from_readers(vec![reader]),
        interrupt,
    })
}

/// Open a list of paths or an object with `read`, or a selection of their packets.
pub fn open(source: &Bound<'_, PyAny>, name: &str) -> PyResult<Opened> {
    let py = source.py();
    if let Ok(selected) = source.cast::<Selected>() {
        let selected = selected.get();
        let mut opened = open(selected.source.bind(py), name)?;
        let selection = selected.selection(py, &opened.interrupt);
        opened.input.select(selection);
        return Ok(opened);
    }
    let interrupt = Interrupt::default();
    let opened = if source.hasattr("read")? {
        let file = Box::new(PythonFile {
            file: source.clone().unbind(),
            interrupt: Arc::clone(&interrupt),
        });
        let name = name.to_owned();
        py.detach(move || CaptureReader::from_reader(file, &name))
            .map(|reader| MergedReader::from_readers(vec![reader]))
    } else {
        let paths: Vec<PathBuf> = source.extract()?;
        py.detach(|| MergedReader::open(&paths))
    };
    raise_pending(&interrupt)?;
    let input = opened.map_err(|error| capture_error(&error))?;
    Ok(Opened { input, interrupt })
}

/// A Python object with `write(bytes)`, and the slot for an interrupt that it raises.
pub struct PythonOut {
    pub file: Py<PyAny>,
    pub interrupt: Interrupt,
}

impl Write for PythonOut {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            self.file
                .call_method1(py, "write", (buffer,))
                .map(|_| buffer.len())
                .map_err(|error| {
                    // A buffered file runs Python's signal handlers while it writes.
                    if !error.is_instance_of::<PyException>(py) {
                        store_interrupt(&self.interrupt, error.clone_ref(py));
                    }
                    let is_pipe = error.is_instance_of::<pyo3::exceptions::PyBrokenPipeError>(py);
                    io::Error::new(
                        if is_pipe {
                            io::ErrorKind::BrokenPipe
                        } else {
                            io::ErrorKind::Other
                        },
                        error,
                    )
                })
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| {
            self.file
                .call_method0(py, "flush")
                .map(drop)
                .map_err(io::Error::other)
        })
    }
}
