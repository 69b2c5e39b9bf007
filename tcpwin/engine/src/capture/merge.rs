//! Several captures as one, in time order: always the earliest next packet, the file named first on a tie.
//! Frames are numbered over the merged packets. Files whose turn has not come are closed, so that a long rotation
//! of captures costs one buffer and one file descriptor at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use super::buffer::Record;
use super::error::{CaptureError, Fault, WarningKind};
use super::facts::CaptureFacts;
use super::originals::{Aside, Whole};
use super::packet::Packet;
use super::reader::CaptureReader;
use super::selection::{Selection, Wanted};

/// For the look at a file's first packet, and for files that are read in turns.
const MERGE_BUFFER_BYTES: usize = 64 * 1024;

/// Reads one capture, or several merged by time; all packets, or those that are selected.
pub struct MergedReader {
    inputs: Inputs,
    selection: Option<Box<Selection>>,
}

enum Inputs {
    Single(Box<CaptureReader>),
    Several(Merge),
}

impl MergedReader {
    /// Open files. Each is opened and its first packet read before this returns, so a bad one is an error here.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, CaptureError> {
        if let [path] = paths {
            return CaptureReader::open(path).map(Self::from);
        }
        let mut merge = Merge::default();
        for path in paths {
            let path = path.as_ref();
            let mut reader = CaptureReader::open_with(path, MERGE_BUFFER_BYTES)?;
            // A pipe cannot be read from its start again.
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

    /// Merge readers that are already open and of which nothing was read yet.
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

    /// Hand out these packets only, under the numbers that they have among all.
    pub fn select(&mut self, selection: Selection) {
        self.selection = Some(Box::new(selection));
    }

    /// Whether packets may be left out.
    pub fn is_selective(&self) -> bool {
        self.selection.is_some()
    }

    /// Which packets are wanted, for one who asks by himself: from here on all are handed out.
    pub fn take_selection(&mut self) -> Option<Box<Selection>> {
        self.selection.take()
    }

    /// The next packet in time order, or `None` when all captures are at their end.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let (at, record) = self.inputs.next_selected(self.selection.as_deref_mut())?;
        self.inputs.packet(at, record)
    }

    /// The next packet, and where its record begins in the uncompressed stream: 0 where several captures are merged.
    /// Not selected.
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

    /// Keep what the files say beside their packets, for [`MergedReader::next_whole`].
    pub fn keep_asides(&mut self) {
        match &mut self.inputs {
            Inputs::Single(reader) => reader.keep_asides(),
            Inputs::Several(merge) => {
                merge.keeps_asides = true;
                for source in &mut merge.sources {
                    if let MergedFile::Open(reader) = source {
                        reader.keep_asides();
                    }
                }
            }
        }
    }

    /// The next packet with all that its file said since the one before.
    pub fn next_whole(&mut self) -> Option<Whole<'_>> {
        let (source, record) = self.inputs.next_selected(self.selection.as_deref_mut())?;
        let frame = self.inputs.packet(source, record)?.frame;
        let reader = self.inputs.open_at(source)?;
        let asides = reader.take_asides();
        Some(Whole {
            source,
            asides,
            packet: Packet {
                frame,
                ..reader.packet(record)
            },
            original: reader.original(record),
        })
    }

    /// What the files said after their last packets, with the source of each.
    pub fn take_rest(&mut self) -> Vec<(usize, Vec<Aside>)> {
        match &mut self.inputs {
            Inputs::Single(reader) => vec![(0, reader.take_asides())],
            Inputs::Several(merge) => std::mem::take(&mut merge.rest),
        }
    }

    /// The reader, where there is one capture only.
    pub fn single(&self) -> Option<&CaptureReader> {
        match &self.inputs {
            Inputs::Single(reader) => Some(reader),
            Inputs::Several(_) => None,
        }
    }

    /// Hand packets to `take` as [`CaptureReader::take_run`] does; none where several captures are merged. Not selected.
    #[inline(always)]
    pub fn take_run(&mut self, take: impl FnMut(Packet<'_>, u64) -> bool) {
        if let Inputs::Single(reader) = &mut self.inputs {
            reader.take_run(take);
        }
    }

    /// Bytes read from the files themselves, to be compared with the sum of their sizes.
    pub fn bytes_read(&self) -> u64 {
        match &self.inputs {
            Inputs::Single(reader) => reader.bytes_read(),
            Inputs::Several(merge) => merge.sources.iter().map(MergedFile::bytes_read).sum(),
        }
    }

    /// What is known so far of each capture, in the order given.
    pub fn facts(&self) -> Vec<&CaptureFacts> {
        match &self.inputs {
            Inputs::Single(reader) => vec![reader.facts()],
            Inputs::Several(merge) => merge.sources.iter().map(MergedFile::facts).collect(),
        }
    }

    /// Time of the latest packet so far, selected or not.
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
    /// The next record, with its source.
    #[inline]
    fn next_record(&mut self) -> Option<(usize, Record)> {
        match self {
            Self::Single(reader) => Some((0, reader.advance()?)),
            Self::Several(merge) => merge.next_record(),
        }
    }

    /// The next record that is wanted.
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

    /// The packet of the record that came last.
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
    /// Has packets, of which the first was looked at.
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

/// When a source has its turn: the time of its next packet, then the order in which the sources were given.
type Turn = Reverse<(i64, usize)>;

#[derive(Default)]
struct Merge {
    sources: Vec<MergedFile>,
    /// The next record of each open source but the current one.
    heads: Vec<Option<Record>>,
    /// Frame of each source's packet handed out last.
    frames: Vec<u64>,
    /// One for each source with packets left but the current one.
    turns: BinaryHeap<Turn>,
    /// The source whose packet was handed out last.
    current: Option<usize>,
    frame: u64,
    keeps_asides: bool,
    /// What the sources that are done said after their last packets.
    rest: Vec<(usize, Vec<Aside>)>,
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

    /// The packet of the record that came last.
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

    /// The source of the next packet, and its record there; counts its frame.
    #[inline]
    fn next_record(&mut self) -> Option<(usize, Record)> {
        let (at, record) = match self.advance_current() {
            Some(next) => next,
            None => self.next_turn()?,
        };
        // Packets that the source skipped keep their numbers here as well.
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

    /// The current source's next record, if it is still that source's turn.
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
        // A packet without a time goes with the one before it.
        let turn = (reader.time_ns(), at);
        if self.turns.peek().is_none_or(|Reverse(next)| turn < *next) {
            return Some((at, record));
        }
        *self.heads.get_mut(at)? = Some(record);
        self.turns.push(Reverse(turn));
        self.current = None;
        None
    }

    /// Make the source with the earliest packet the current one.
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

    /// Open a closed source at its first packet. A file that has gone since is a warning.
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
                    reader.keep_asides();
                }
                *head = reader.advance();
                *source = MergedFile::Open(Box::new(reader));
            }
            Err(error) => facts.warn(Fault {
                kind: WarningKind::ReadFailed,
                byte_offset: error.byte_offset,
                message: format!(
                    "could not be opened again when its turn came: {}",
                    error.message
                ),
            }),
        }
    }

    /// Give up a source's buffer and file.
    fn close(&mut self, at: usize) {
        if let Some(source) = self.sources.get_mut(at) {
            if let (true, MergedFile::Open(reader)) = (self.keeps_asides, &mut *source) {
                self.rest.push((at, reader.take_asides()));
            }
            *source = MergedFile::Finished(source.facts().clone());
        }
    }
}
