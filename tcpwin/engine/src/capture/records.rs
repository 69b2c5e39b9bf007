//! Reread single records of a capture file by offset, in any order.
//!
//! In: a plain file, and record offsets from an earlier complete read. Out: the same packets, numbered by the caller.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::error::CaptureError;
use super::landmarks::Landmarks;
use super::packet::Packet;
use super::reader::{unreadable, CaptureReader};

/// Holds the headers of a few packets: reading further ahead would only fetch packets that are not wanted.
const BUFFER_BYTES: usize = 4096;

/// Reads single records of one file.
pub struct RecordReader {
    /// Shares its file position with the reader's own handle.
    file: File,
    reader: CaptureReader,
}

impl RecordReader {
    /// Open a file and read the interface descriptions that its records refer to.
    pub fn open(path: impl AsRef<Path>, landmarks: &Landmarks) -> Result<Self, CaptureError> {
        let name = path.as_ref().to_string_lossy();
        let cannot = |error: io::Error| unreadable(&name, &error);
        let file = File::open(path.as_ref()).map_err(cannot)?;
        let own = file.try_clone().map_err(cannot)?;
        let reader = CaptureReader::at_records(own, &name, BUFFER_BYTES)?;
        let mut records = Self { file, reader };
        for offset in &landmarks.interfaces {
            records.seek(*offset).map_err(cannot)?;
            records.reader.describe_interface();
        }
        Ok(records)
    }

    /// Return the packet whose record starts at `offset`, numbered `frame`, or `None`.
    pub fn read(&mut self, offset: u64, frame: u64) -> io::Result<Option<Packet<'_>>> {
        self.seek(offset)?;
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

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        if !self.reader.seek_buffered(offset) {
            self.file.seek(SeekFrom::Start(offset))?;
        }
        Ok(())
    }
}
