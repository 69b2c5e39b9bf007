//! Single records of a capture file, read by their offsets in any order: packets that an earlier reading handed out.
//!
//! Comes in: a plain file, and offsets that the reader of the whole told. Goes out: the same packets. It numbers none.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::error::CaptureError;
use super::landmarks::Landmarks;
use super::packet::Packet;
use super::reader::{unreadable, CaptureReader};

/// Room for a few packets of headers: what lies between two wanted ones is not worth reading.
const BUFFER_BYTES: usize = 4096;

/// Reads records of one file.
pub struct RecordReader {
    /// Shares its position with the reader's own handle.
    file: File,
    reader: CaptureReader,
}

impl RecordReader {
    /// Open a file and read what its records refer to.
    pub fn open(path: impl AsRef<Path>, landmarks: &Landmarks) -> Result<Self, CaptureError> {
        let name = path.as_ref().to_string_lossy();
        let cannot = |error: io::Error| unreadable(&name, &error);
        let file = File::open(path.as_ref()).map_err(cannot)?;
        let own = file.try_clone().map_err(cannot)?;
        let reader = CaptureReader::at_records(own, &name, BUFFER_BYTES)?;
        let mut records = Self { file, reader };
        for offset in &landmarks.interfaces {
            records.go_to(*offset).map_err(cannot)?;
            records.reader.describe_interface();
        }
        Ok(records)
    }

    /// The packet whose record begins at `offset`, under the number that it has; `None` where there is none.
    pub fn read(&mut self, offset: u64, frame: u64) -> io::Result<Option<Packet<'_>>> {
        self.go_to(offset)?;
        let Some(record) = self.reader.advance() else {
            return Ok(None);
        };
        if self.reader.offset() != offset {
            return Ok(None);
        }
        Ok(Some(Packet {
            frame,
            ..self.reader.packet(record)
        }))
    }

    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        if !self.reader.go_to(offset) {
            self.file.seek(SeekFrom::Start(offset))?;
        }
        Ok(())
    }
}
