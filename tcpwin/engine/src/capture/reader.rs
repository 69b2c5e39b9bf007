//! One capture, from a file or a stream: detects compression and format, then returns packets in file order.
//! Damage ends the packets with a warning in the facts, never with an error.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::block::is_pcapng;
use super::buffer::{ByteBuffer, Found, Record, BUFFER_BYTES};
use super::decompress::ahead::ahead;
use super::decompress::decompress;
use super::decompress::input::is_damage;
use super::error::{CaptureError, CaptureErrorKind, Fault, WarningKind};
use super::facts::CaptureFacts;
use super::foreign::name_foreign;
use super::landmarks::Landmarks;
use super::originals::{MetadataBlock, Original, PcapRecord, PcapngBlock};
use super::packet::Packet;
use super::pcap::{is_pcap, Pcap};
use super::pcapng::{Pcapng, Step};

enum Parser {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// Reads one capture. Uses a fixed-size buffer (and a decompressor's window), whatever the file's size.
pub struct CaptureReader {
    buffer: ByteBuffer,
    parser: Parser,
    facts: CaptureFacts,
    /// Frame number of the latest packet.
    frame: u64,
    /// Time of the latest packet that had one.
    time_ns: i64,
    /// Record offset of the latest packet returned by [`CaptureReader::next_packet`].
    offset: u64,
    bytes_on_disk: Arc<AtomicU64>,
}

/// Counters of [`CaptureReader::take_run`], kept in registers until the run ends.
struct Run {
    frame: u64,
    time_ns: i64,
    first_ns: i64,
    /// Maximum time of the packets before the last backward step.
    last_ns: i64,
    snapped: u64,
    backwards: u64,
}

impl Run {
    #[inline(always)]
    fn count(&mut self, found: &Found<'_>) {
        self.frame += 1;
        self.snapped += u64::from(found.captured.len() < found.original_len as usize);
        // The earliest time follows a backward step; the latest precedes one or ends the run.
        if found.time_ns < self.time_ns {
            self.backwards += 1;
            self.first_ns = self.first_ns.min(found.time_ns);
            self.last_ns = self.last_ns.max(self.time_ns);
        }
        self.time_ns = found.time_ns;
    }
}

impl CaptureReader {
    /// Open a file; frames are numbered from 1.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::open_with(path.as_ref(), BUFFER_BYTES)
    }

    /// Read from a stream: standard input, or bytes in memory. `name` replaces the file name in errors and warnings.
    pub fn from_reader(reader: Box<dyn Read + Send>, name: &str) -> Result<Self, CaptureError> {
        Self::from_reader_with(reader, name, BUFFER_BYTES)
    }

    /// Like `from_reader`, but stop after `max_bytes` of decompressed data, with a read-failed warning.
    pub fn from_reader_limited(
        reader: Box<dyn Read + Send>,
        name: &str,
        max_bytes: u64,
    ) -> Result<Self, CaptureError> {
        Self::from_stream(reader, name, BUFFER_BYTES, max_bytes, false)
    }

    pub(super) fn open_with(path: &Path, buffer_bytes: usize) -> Result<Self, CaptureError> {
        let name = path.to_string_lossy();
        match File::open(path) {
            Ok(file) => {
                let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
                Self::from_stream(Box::new(file), &name, buffer_bytes, u64::MAX, is_regular)
            }
            Err(error) => Err(unreadable(&name, &error)),
        }
    }

    pub(super) fn from_reader_with(
        reader: Box<dyn Read + Send>,
        name: &str,
        buffer_bytes: usize,
    ) -> Result<Self, CaptureError> {
        Self::from_stream(reader, name, buffer_bytes, u64::MAX, false)
    }

    /// `may_read_ahead`: whether another thread may read from `reader`, which must never wait for a writer, because
    /// the end of this reader waits for that thread.
    fn from_stream(
        reader: Box<dyn Read + Send>,
        name: &str,
        buffer_bytes: usize,
        max_bytes: u64,
        may_read_ahead: bool,
    ) -> Result<Self, CaptureError> {
        let counted = Arc::new(AtomicU64::new(0));
        let (stream, compression) =
            decompress(reader, Arc::clone(&counted)).map_err(|e| unreadable(name, &e))?;
        let (stream, bytes_on_disk) = if may_read_ahead && !compression.is_empty() {
            ahead(stream, counted)
        } else {
            (stream, counted)
        };
        let stream = Box::new(Limited {
            inner: stream,
            left: max_bytes,
            max_bytes,
        });
        let facts = CaptureFacts::new(name.to_owned(), compression);
        let mut reader = Self::over(stream, facts, buffer_bytes, bytes_on_disk)?;
        reader.count_bytes();
        Ok(reader)
    }

    /// Create a reader for single records of a plain file, starting at `file`'s current position.
    pub(super) fn at_records(
        file: File,
        name: &str,
        buffer_bytes: usize,
    ) -> Result<Self, CaptureError> {
        let facts = CaptureFacts::new(name.to_owned(), Vec::new());
        Self::over(Box::new(file), facts, buffer_bytes, Arc::default())
    }

    fn over(
        stream: Box<dyn Read + Send>,
        mut facts: CaptureFacts,
        buffer_bytes: usize,
        bytes_on_disk: Arc<AtomicU64>,
    ) -> Result<Self, CaptureError> {
        let mut buffer = ByteBuffer::new(stream, buffer_bytes);
        let parser = Self::open_parser(&mut buffer, &mut facts)?;
        Ok(Self {
            buffer,
            parser,
            facts,
            frame: 0,
            time_ns: i64::MIN,
            offset: 0,
            bytes_on_disk,
        })
    }

    /// Seek to a record within the buffer. Return false if the file itself must be moved.
    pub(super) fn seek_buffered(&mut self, offset: u64) -> bool {
        self.buffer.seek_buffered(offset)
    }

    /// Read the interface description at the current position.
    pub(super) fn describe_interface(&mut self) {
        if let Parser::Pcapng(pcapng) = &mut self.parser {
            if let Err(fault) = pcapng.describe(&mut self.buffer, &mut self.facts) {
                self.facts.warn(fault);
            }
        }
    }

    fn open_parser(
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<Parser, CaptureError> {
        let name = facts.file.clone();
        let into_error = |fault: Fault| fault.into_error(&name);
        let error = |kind, message: String| CaptureError {
            kind,
            message,
            file: name.clone(),
            byte_offset: 0,
        };
        // Four bytes identify the format; a shorter file is reported below.
        let cut = match buffer.begin(4, "the file header") {
            Ok(true) => None,
            Ok(false) => return Err(error(CaptureErrorKind::Empty, empty_message(facts))),
            Err(fault) => Some(fault),
        };
        let head = buffer.window();
        if is_pcap(head) {
            return Pcap::open(buffer, facts)
                .map(Parser::Pcap)
                .map_err(into_error);
        }
        if is_pcapng(head) {
            return Pcapng::open(buffer, facts)
                .map(Parser::Pcapng)
                .map_err(into_error);
        }
        if let Some(fault) = cut.filter(|f| f.kind != WarningKind::Truncated) {
            return Err(fault.into_error(&name));
        }
        let looks = match name_foreign(head.get(..16).unwrap_or(head)) {
            Some(foreign) => format!("not a pcap or pcapng file: looks like {foreign}"),
            None => {
                let first: Vec<String> = head.iter().take(4).map(|b| format!("{b:02x}")).collect();
                format!(
                    "not a pcap or pcapng file: it starts with the bytes {}",
                    first.join(" ")
                )
            }
        };
        Err(error(CaptureErrorKind::NotACapture, looks))
    }

    /// Number the next packet `frame`, and later ones from there.
    pub fn set_next_frame(&mut self, frame: u64) {
        self.frame = frame.saturating_sub(1);
    }

    /// Return the next packet, or `None` at the end or at damage, which `facts().warnings` then describes.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let record = self.advance()?;
        Some(self.packet(record))
    }

    /// Pass the ordinary packets in the buffer to `take`, in order and with each record's offset in the uncompressed
    /// stream, until it returns false. A faster equivalent of [`CaptureReader::next_packet`], which handles whatever
    /// else stops the run.
    #[inline(always)]
    pub fn take_run(&mut self, mut take: impl FnMut(Packet<'_>, u64) -> bool) {
        // `count` records the first packet's time.
        let (Some(first_ns), Some(last_ns)) = (self.facts.first_time_ns, self.facts.last_time_ns)
        else {
            return;
        };
        let mut run = Run {
            frame: self.frame,
            time_ns: self.time_ns,
            first_ns,
            last_ns,
            snapped: 0,
            backwards: 0,
        };
        let window = self.buffer.window();
        let window_offset = self.buffer.offset();
        let mut rest = window;
        loop {
            // One loop for both formats, so that `take` is inlined once.
            let found = match &self.parser {
                Parser::Pcap(pcap) => pcap.find(rest),
                Parser::Pcapng(pcapng) => pcapng.find(rest),
            };
            let Some((found, after)) = found else { break };
            let offset = window_offset + (window.len() - rest.len()) as u64;
            rest = after;
            run.count(&found);
            let packet = Packet {
                frame: run.frame,
                time_ns: Some(found.time_ns),
                captured: found.captured,
                original_len: found.original_len,
                link_type: found.link_type,
            };
            let is_wanted = take(packet, offset);
            if !is_wanted {
                break;
            }
        }
        let consumed = window.len() - rest.len();
        self.buffer.consume(consumed);
        self.note_run(run);
    }

    fn note_run(&mut self, run: Run) {
        let facts = &mut self.facts;
        facts.packets += run.frame - self.frame;
        facts.packets_snapped += run.snapped;
        facts.time_backwards += run.backwards;
        facts.first_time_ns = Some(run.first_ns);
        facts.last_time_ns = Some(run.last_ns.max(run.time_ns));
        self.frame = run.frame;
        self.time_ns = run.time_ns;
    }

    /// Advance to the next packet. The record stays valid until the next call.
    #[inline]
    pub(super) fn advance(&mut self) -> Option<Record> {
        let consumed = match &self.parser {
            Parser::Pcap(pcap) => pcap.take(&mut self.buffer),
            Parser::Pcapng(pcapng) => pcapng.take(&mut self.buffer),
        };
        let record = match consumed {
            Some(record) => record,
            None => self.advance_slowly()?,
        };
        self.offset = self.buffer.offset_of(record.begin);
        self.count(&record);
        Some(record)
    }

    /// Record offset, in the uncompressed stream, of the latest packet returned by [`CaptureReader::next_packet`].
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Return the context needed to reread single records by offset; `None` if offsets alone are not sufficient.
    pub fn landmarks(&self) -> Option<Landmarks> {
        if !self.facts.compression.is_empty() {
            return None;
        }
        let interfaces = match &self.parser {
            Parser::Pcap(_) => Vec::new(),
            Parser::Pcapng(pcapng) => pcapng.interface_offsets()?,
        };
        Some(Landmarks { interfaces })
    }

    #[inline(always)]
    pub(super) fn packet(&self, record: Record) -> Packet<'_> {
        Packet {
            frame: self.frame,
            time_ns: record.time_ns,
            captured: self
                .buffer
                .slice(record.start, record.captured_len as usize),
            original_len: record.original_len,
            link_type: record.link_type,
        }
    }

    /// Keep metadata blocks from here on.
    pub(super) fn keep_metadata(&mut self) {
        if let Parser::Pcapng(pcapng) = &mut self.parser {
            pcapng.metadata.begin();
        }
    }

    /// Return the metadata blocks before the latest packet, or before the end.
    pub(super) fn take_metadata(&mut self) -> Vec<MetadataBlock> {
        match &mut self.parser {
            Parser::Pcap(_) => Vec::new(),
            Parser::Pcapng(pcapng) => pcapng.metadata.take(),
        }
    }

    /// Return the packet's original record or block.
    pub(super) fn original(&self, record: Record) -> Original<'_> {
        let Parser::Pcapng(pcapng) = &self.parser else {
            let interface = self.facts.interfaces.first();
            return Original::Pcap(PcapRecord {
                snaplen: interface.map_or(0, |known| known.snaplen),
                ticks_per_second: interface.map_or(0, |known| known.ticks_per_second),
            });
        };
        let block = pcapng.block_at(&self.buffer, record);
        let data_end = record.start - record.begin + record.captured_len as usize;
        PcapngBlock::read(block, pcapng.endian(), data_end)
            .map_or(Original::Simple, Original::Pcapng)
    }

    #[inline(always)]
    fn count(&mut self, record: &Record) {
        self.frame += 1;
        self.facts.packets += 1;
        self.facts.packets_snapped += u64::from(record.captured_len < record.original_len);
        if let Some(time_ns) = record.time_ns {
            self.facts.time_backwards += u64::from(time_ns < self.time_ns);
            self.time_ns = time_ns;
            let facts = &mut self.facts;
            facts.first_time_ns = Some(facts.first_time_ns.map_or(time_ns, |t| t.min(time_ns)));
            facts.last_time_ns = Some(facts.last_time_ns.map_or(time_ns, |t| t.max(time_ns)));
        }
    }

    #[cold]
    #[inline(never)]
    fn advance_slowly(&mut self) -> Option<Record> {
        let step = loop {
            let step = match &mut self.parser {
                Parser::Pcap(pcap) => pcap
                    .next(&mut self.buffer, &mut self.facts)
                    .map(|record| record.map_or(Step::End, Step::Packet)),
                Parser::Pcapng(pcapng) => pcapng.next(&mut self.buffer, &mut self.facts),
            };
            match step {
                Ok(Step::Packet(record)) => break Some(record),
                Ok(Step::Skipped) => {
                    self.frame += 1;
                    self.facts.packets_skipped += 1;
                }
                Ok(Step::End) => break None,
                Err(fault) => {
                    self.buffer.stop();
                    self.facts.warn(fault);
                    break None;
                }
            }
        };
        self.count_bytes();
        step
    }

    fn count_bytes(&mut self) {
        self.facts.bytes = self.buffer.bytes_read();
        self.facts.bytes_on_disk = self.bytes_read();
    }

    /// Return the number of bytes read from the file itself, comparable to its size.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_on_disk.load(Ordering::Relaxed)
    }

    /// Return the facts known so far.
    pub fn facts(&self) -> &CaptureFacts {
        &self.facts
    }

    pub fn into_facts(self) -> CaptureFacts {
        self.facts
    }

    pub(super) fn frame(&self) -> u64 {
        self.frame
    }

    /// Return the time of the latest packet that had one; before the first packet, the minimum value.
    pub(super) fn time_ns(&self) -> i64 {
        self.time_ns
    }

    #[cfg(test)]
    pub(super) fn buffer_capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// A stream limited to a number of bytes.
struct Limited {
    inner: Box<dyn Read + Send>,
    left: u64,
    max_bytes: u64,
}

impl Read for Limited {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(std::io::Error::other(format!(
                    "more than the {} bytes allowed",
                    self.max_bytes
                ))),
            };
        }
        let room = usize::try_from(self.left).map_or(out.len(), |left| out.len().min(left));
        let count = self.inner.read(out.get_mut(..room).unwrap_or_default())?;
        self.left -= count as u64;
        Ok(count)
    }
}

fn empty_message(facts: &CaptureFacts) -> String {
    match facts.compression.first() {
        None => "empty file".into(),
        Some(outer) => format!("empty file (nothing inside the {})", outer.as_str()),
    }
}

pub(super) fn unreadable(name: &str, error: &std::io::Error) -> CaptureError {
    CaptureError {
        kind: if is_damage(error) {
            CaptureErrorKind::BadCompression
        } else {
            CaptureErrorKind::Unreadable(error.kind())
        },
        message: error.to_string(),
        file: name.to_owned(),
        byte_offset: 0,
    }
}
