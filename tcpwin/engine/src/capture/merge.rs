//! Merge several captures in time order: always the earliest next packet; ties go to the file named first.
//! Frames are numbered over the merged packets. Files not yet reached are closed, so that a long series of rotated
//! captures uses one buffer and one file descriptor at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use super::buffer::Record;
use super::error::{CaptureError, Fault, WarningKind};
use super::facts::CaptureFacts;
use super::originals::{MetadataBlock, Whole};
use super::packet::Packet;
use super::reader::CaptureReader;
use super::selection::{Selection, Wanted};

/// Used to peek at a file's first packet, and for files that are read alternately.
const MERGE_BUFFER_BYTES: usize = 64 * 1024;

/// Reads one capture, or several merged by time; all packets, or a selection.
pub struct MergedReader {
    inputs: Inputs,
    selection: Option<Box<Selection>>,
}

enum Inputs {
    Single(Box<CaptureReader>),
    Several(Merge),
}

impl MergedReader {
    /// Open files. Each is opened and its first packet is read before this returns, so an unreadable file is an error
    /// here.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, CaptureError> {
        if let [path] = paths {
            return CaptureReader::open(path).map(Self::from);
        }
        let mut merge = Merge::default();
        for path in paths {
            let path = path.as_ref();
            let mut reader = CaptureReader::open_with(path, MERGE_BUFFER_BYTES)?;
            // A pipe cannot be rewound.
            if path.is_file() {
                let first_ns = reader.advance().map(|_| reader.time_ns());
                let facts = reader.into_facts();
                let source = match first_ns {
                    Some(_) => MergedFile::Closed(path.to_owned(), facts),
                    None => MergedFile::Finished(facts),
                };
                merge.add(source, first_ns, None);
            } else {
                merge.add_open(reader);
            }
        }
        Ok(Self::of(Inputs::Several(merge)))
    }

    /// Merge readers that are already open and from which nothing has been read yet.
    pub fn from_readers(mut readers: Vec<CaptureReader>) -> Self {
        if readers.len() == 1 {
            if let Some(reader) = readers.pop() {
                return Self::from(reader);
            }
        }
        let mut merge = Merge::default();
        for reader in readers {
            merge.add_open(reader);
        }
        Self::of(Inputs::Several(merge))
    }

    fn of(inputs: Inputs) -> Self {
        Self {
            inputs,
            selection: None,
        }
    }

    /// Return only the selected packets, numbered as they are in the whole capture.
    pub fn select(&mut self, selection: Selection) {
        self.selection = Some(Box::new(selection));
    }

    /// Return true if a selection is active.
    pub fn is_selective(&self) -> bool {
        self.selection.is_some()
    }

    /// Take the selection out, for a caller that applies it itself: from now on, all packets are returned.
    pub fn take_selection(&mut self) -> Option<Box<Selection>> {
        self.selection.take()
    }

    /// Return the next packet in time order, or `None` at the end of all captures.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let (at, record) = self.inputs.next_selected(self.selection.as_deref_mut())?;
        self.inputs.packet(at, record)
    }

    /// Return the next packet and the offset of its record in the uncompressed stream (0 if several captures are
    /// merged). Ignores the selection.
    #[inline]
    pub fn next_packet_at(&mut self) -> Option<(Packet<'_>, u64)> {
        match &mut self.inputs {
            Inputs::Single(reader) => {
                let record = reader.advance()?;
                Some((reader.packet(record), reader.offset()))
            }
            Inputs::Several(merge) => Some((merge.next_packet()?, 0)),
        }
    }

    /// Keep metadata blocks, for [`MergedReader::next_whole`].
    pub fn keep_metadata(&mut self) {
        match &mut self.inputs {
            Inputs::Single(reader) => reader.keep_metadata(),
            Inputs::Several(merge) => {
                merge.keeps_asides = true;
                for source in &mut merge.sources {
                    if let MergedFile::Open(reader) = source {
                        reader.keep_metadata();
                    }
                }
            }
        }
    }

    /// Return the next packet together with the metadata blocks read since the previous one.
    pub fn next_whole(&mut self) -> Option<Whole<'_>> {
        let (source, record) = self.inputs.next_selected(self.selection.as_deref_mut())?;
        let frame = self.inputs.packet(source, record)?.frame;
        let reader = self.inputs.open_at(source)?;
        let metadata = reader.take_metadata();
        Some(Whole {
            source,
            metadata,
            packet: Packet {
                frame,
                ..reader.packet(record)
            },
            original: reader.original(record),
        })
    }

    /// Return the metadata blocks after each source's last packet, with the source's index.
    pub fn take_rest(&mut self) -> Vec<(usize, Vec<MetadataBlock>)> {
        match &mut self.inputs {
            Inputs::Single(reader) => vec![(0, reader.take_metadata())],
            Inputs::Several(merge) => std::mem::take(&mut merge.rest),
        }
    }

    /// Return the reader if there is only one capture.
    pub fn single(&self) -> Option<&CaptureReader> {
        match &self.inputs {
            Inputs::Single(reader) => Some(reader),
            Inputs::Several(_) => None,
        }
    }

    /// Pass packets to `take` like [`CaptureReader::take_run`]; none if several captures are merged. Ignores the
    /// selection.
    #[inline(always)]
    pub fn take_run(&mut self, take: impl FnMut(Packet<'_>, u64) -> bool) {
        if let Inputs::Single(reader) = &mut self.inputs {
            reader.take_run(take);
        }
    }

    /// Return the number of bytes read from the files themselves, comparable to the sum of their sizes.
    pub fn bytes_read(&self) -> u64 {
        match &self.inputs {
            Inputs::Single(reader) => reader.bytes_read(),
            Inputs::Several(merge) => merge.sources.iter().map(MergedFile::bytes_read).sum(),
        }
    }

    /// Return the facts known so far about each capture, in the order given.
    pub fn facts(&self) -> Vec<&CaptureFacts> {
        match &self.inputs {
            Inputs::Single(reader) => vec![reader.facts()],
            Inputs::Several(merge) => merge.sources.iter().map(MergedFile::facts).collect(),
        }
    }

    /// Return the time of the latest packet so far, selected or not.
    pub fn last_time_ns(&self) -> Option<i64> {
        self.facts()
            .iter()
            .filter_map(|facts| facts.last_time_ns)
            .max()
    }

    pub fn into_facts(self) -> Vec<CaptureFacts> {
        match self.inputs {
            Inputs::Single(reader) => vec![reader.into_facts()],
            Inputs::Several(merge) => merge
                .sources
                .into_iter()
                .map(MergedFile::into_facts)
                .collect(),
        }
    }
}

impl From<CaptureReader> for MergedReader {
    fn from(reader: CaptureReader) -> Self {
        Self::of(Inputs::Single(Box::new(reader)))
    }
}

impl Inputs {
    /// Return the next record and its source.
    #[inline]
    fn next_record(&mut self) -> Option<(usize, Record)> {
        match self {
            Self::Single(reader) => Some((0, reader.advance()?)),
            Self::Several(merge) => merge.next_record(),
        }
    }

    #[inline]
    fn next_selected(&mut self, selection: Option<&mut Selection>) -> Option<(usize, Record)> {
        let Some(selection) = selection else {
            return self.next_record();
        };
        loop {
            let (at, record) = self.next_record()?;
            match selection.wants(&self.packet(at, record)?) {
                Wanted::Yes => return Some((at, record)),
                Wanted::No => {}
                Wanted::Over => return None,
            }
        }
    }

    /// Return the packet of the latest record.
    #[inline]
    fn packet(&self, at: usize, record: Record) -> Option<Packet<'_>> {
        match self {
            Self::Single(reader) => Some(reader.packet(record)),
            Self::Several(merge) => merge.packet(at, record),
        }
    }

    fn open_at(&mut self, at: usize) -> Option<&mut CaptureReader> {
        match self {
            Self::Single(reader) => Some(reader),
            Self::Several(merge) => merge.open_at(at),
        }
    }
}

enum MergedFile {
    Open(Box<CaptureReader>),
    /// Has packets; the first one has been read.
    Closed(PathBuf, CaptureFacts),
    Finished(CaptureFacts),
}

impl MergedFile {
    fn facts(&self) -> &CaptureFacts {
        match self {
            Self::Open(reader) => reader.facts(),
            Self::Closed(_, facts) | Self::Finished(facts) => facts,
        }
    }

    fn into_facts(self) -> CaptureFacts {
        match self {
            Self::Open(reader) => reader.into_facts(),
            Self::Closed(_, facts) | Self::Finished(facts) => facts,
        }
    }

    fn bytes_read(&self) -> u64 {
        match self {
            Self::Open(reader) => reader.bytes_read(),
            Self::Closed(..) => 0,
            Self::Finished(facts) => facts.bytes_on_disk,
        }
    }
}

/// Merge key: the time of a source's next packet, then the order in which the sources were given.
type Turn = Reverse<(i64, usize)>;

#[derive(Default)]
struct Merge {
    sources: Vec<MergedFile>,
    /// The next record of each open source except the current one.
    heads: Vec<Option<Record>>,
    /// The frame number of each source's latest packet.
    frames: Vec<u64>,
    /// One entry for each source with packets left, except the current one.
    turns: BinaryHeap<Turn>,
    /// The source of the latest packet.
    current: Option<usize>,
    frame: u64,
    keeps_asides: bool,
    /// Metadata blocks after the last packet of each finished source.
    rest: Vec<(usize, Vec<MetadataBlock>)>,
}

impl Merge {
    fn add_open(&mut self, mut reader: CaptureReader) {
        let head = reader.advance();
        let first_ns = head.map(|_| reader.time_ns());
        self.add(MergedFile::Open(Box::new(reader)), first_ns, head);
    }

    fn add(&mut self, source: MergedFile, first_ns: Option<i64>, head: Option<Record>) {
        if let Some(time_ns) = first_ns {
            self.turns.push(Reverse((time_ns, self.sources.len())));
        }
        self.sources.push(source);
        self.heads.push(head);
        self.frames.push(0);
    }

    #[inline]
    fn next_packet(&mut self) -> Option<Packet<'_>> {
        let (at, record) = self.next_record()?;
        self.packet(at, record)
    }

    /// Return the packet of the latest record.
    #[inline]
    fn packet(&self, at: usize, record: Record) -> Option<Packet<'_>> {
        match self.sources.get(at) {
            Some(MergedFile::Open(reader)) => Some(Packet {
                frame: self.frame,
                ..reader.packet(record)
            }),
            _ => None,
        }
    }

    /// Return the next packet's source and record, and count its frame.
    #[inline]
    fn next_record(&mut self) -> Option<(usize, Record)> {
        let (at, record) = match self.advance_current() {
            Some(next) => next,
            None => self.next_turn()?,
        };
        // Skipped packets keep their frame numbers in the merged capture as well.
        let frame = self.open_at(at)?.frame();
        let last = self.frames.get_mut(at)?;
        self.frame += frame - *last;
        *last = frame;
        Some((at, record))
    }

    #[inline]
    fn open_at(&mut self, at: usize) -> Option<&mut CaptureReader> {
        match self.sources.get_mut(at) {
            Some(MergedFile::Open(reader)) => Some(reader),
            _ => None,
        }
    }

    /// Return the current source's next record if it is still the earliest.
    #[inline]
    fn advance_current(&mut self) -> Option<(usize, Record)> {
        let at = self.current?;
        let Some(MergedFile::Open(reader)) = self.sources.get_mut(at) else {
            return None;
        };
        let Some(record) = reader.advance() else {
            self.current = None;
            self.close(at);
            return None;
        };
        // A packet without a time keeps its place after the one before it.
        let turn = (reader.time_ns(), at);
        if self.turns.peek().is_none_or(|Reverse(next)| turn < *next) {
            return Some((at, record));
        }
        *self.heads.get_mut(at)? = Some(record);
        self.turns.push(Reverse(turn));
        self.current = None;
        None
    }

    /// Switch to the source with the earliest packet.
    fn next_turn(&mut self) -> Option<(usize, Record)> {
        while let Some(Reverse((_, at))) = self.turns.pop() {
            self.reopen(at);
            if let Some(record) = self.heads.get_mut(at).and_then(Option::take) {
                self.current = Some(at);
                return Some((at, record));
            }
            self.close(at);
        }
        None
    }

    /// Reopen a closed source at its first packet. A file that has disappeared in the meantime is a warning.
    fn reopen(&mut self, at: usize) {
        let (Some(source), Some(head)) = (self.sources.get_mut(at), self.heads.get_mut(at)) else {
            return;
        };
        let MergedFile::Closed(path, facts) = source else {
            return;
        };
        match CaptureReader::open_with(path, MERGE_BUFFER_BYTES) {
            Ok(mut reader) => {
                if self.keeps_asides {
                    reader.keep_metadata();
                }
                *head = reader.advance();
                *source = MergedFile::Open(Box::new(reader));
            }
            Err(error) => facts.warn(Fault {
                kind: WarningKind::ReadFailed,
                byte_offset: error.byte_offset,
                message: format!("could not be reopened for merging: {}", error.message),
            }),
        }
    }

    /// Release a source's buffer and file.
    fn close(&mut self, at: usize) {
        if let Some(source) = self.sources.get_mut(at) {
            if let (true, MergedFile::Open(reader)) = (self.keeps_asides, &mut *source) {
                self.rest.push((at, reader.take_metadata()));
            }
            *source = MergedFile::Finished(source.facts().clone());
        }
    }
}
