//! Write the headers of a streamed capture to a file, with its hash.

use std::fs::{remove_file, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sha2::{Digest, Sha256};

use super::facts::facts_to_python;
use super::files::{open_limited, raise_pending};
use crate::output::headers;

/// A file written sequentially and hashed on the way, which saves reading it again.
struct Hashed {
    file: File,
    hash: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A new file that is deleted on drop unless it is complete.
struct Unfinished<'a>(Option<&'a Path>);

impl Unfinished<'_> {
    fn complete(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            drop(remove_file(path));
        }
    }
}

/// Write the headers of a capture, read from an object with `read`, to a new file. Return the packets written, the
/// packets truncated, the SHA-256 of the file, and the capture's facts.
#[pyfunction]
#[pyo3(signature = (source, out, *, name="stream", whole=false, max_bytes=u64::MAX, progress=None))]
pub fn write_headers<'py>(
    source: &Bound<'py, PyAny>,
    out: PathBuf,
    name: &str,
    whole: bool,
    max_bytes: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, String, Bound<'py, PyDict>)> {
    let py = source.py();
    let mut opened = open_limited(source, name, max_bytes)?;
    let mut file = Hashed {
        file: File::create_new(&out)?,
        hash: Sha256::new(),
    };
    let unfinished = Unfinished(Some(&out));
    let target = &mut file;
    let mut failure: Option<PyErr> = None;
    let failed = &mut failure;
    let input = &mut opened.input;
    let written = py.detach(|| {
        let mut out = BufWriter::with_capacity(1 << 18, target);
        headers::write_headers(input, &mut out, whole, |bytes_read| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                progress
                    .as_ref()
                    .map_or(Ok(()), |call| call.call1(py, (bytes_read,)).map(drop))
            });
            called.map_err(|error| *failed = Some(error)).is_ok()
        })
    });
    raise_pending(&opened.interrupt)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let cut = written.map_err(|error| match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    })?;
    let facts = opened.input.into_facts();
    let facts = facts.first().ok_or_else(|| io::Error::other("no input"))?;
    unfinished.complete();
    let hash = file.hash.finalize();
    let sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let facts = facts_to_python(py, facts)?;
    Ok((cut.packets, cut.packets_cut, sha256, facts))
}
