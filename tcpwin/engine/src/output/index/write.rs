//! Write the index while a capture is read, block by block.
//!
//! Memory: a few blocks, and twelve bytes per connection. An error (a full disk, a packet without a time) abandons the
//! index but not the pass.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::entry::{Head, IndexEntry, BLOCK, IS_DUPLICATE, IS_FRAGMENT, NO_ROOT, PLACE_MASK};
use super::trailer::{seal, Stamp, Start, Trailer, START_BYTES};
use crate::capture::MergedReader;
use crate::tcp::tracker::Tracker;

/// Maximum blocks that wait for their segments. A capture with a smaller share of segments gets no index.
const MAX_WAITING: usize = 16;

/// Receives what a pass learns about each frame.
pub trait Frames {
    /// If false, the pass skips the calls.
    const IS_WANTED: bool = true;

    /// Record the next frame and the offset of its record; the frame may turn out to be a segment.
    fn frame(&mut self, frame: u64, offset: u64, is_fragment: bool, has_time: bool);

    /// Record that an earlier frame is a segment of the connections with this root.
    fn segment(&mut self, frame: u64, root: u32, is_duplicate: bool);

    /// Complete the frames so far: all segments among them have been reported.
    fn settle(&mut self);

    /// Complete the index: the whole capture has been read.
    fn finish(&mut self, input: &MergedReader, tracker: &Tracker);
}

/// For passes without an index.
pub struct NoIndex;

impl Frames for NoIndex {
    const IS_WANTED: bool = false;

    #[inline(always)]
    fn frame(&mut self, _: u64, _: u64, _: bool, _: bool) {}

    #[inline(always)]
    fn segment(&mut self, _: u64, _: u32, _: bool) {}

    #[inline(always)]
    fn settle(&mut self) {}

    fn finish(&mut self, _: &MergedReader, _: &Tracker) {}
}

struct Block {
    first_frame: u64,
    base: u64,
    fragments: u32,
    len: usize,
    roots: Box<[u32; BLOCK]>,
    places: Box<[u32; BLOCK]>,
}

impl Block {
    fn new(first_frame: u64, base: u64) -> Self {
        Block {
            first_frame,
            base,
            fragments: 0,
            len: 0,
            roots: Box::new([NO_ROOT; BLOCK]),
            places: Box::new([0; BLOCK]),
        }
    }

    /// Append the next frame; false if it belongs in another block.
    #[inline(always)]
    fn push(&mut self, frame: u64, offset: u64) -> bool {
        let place = offset.wrapping_sub(self.base);
        let is_next = frame.wrapping_sub(self.first_frame) == self.len as u64;
        match self.places.get_mut(self.len) {
            Some(known) if is_next && place <= u64::from(PLACE_MASK) => *known = place as u32,
            _ => return false,
        }
        self.len += 1;
        true
    }

    /// Return the position of an earlier frame's entry in the block.
    #[inline(always)]
    fn position(&self, frame: u64) -> Option<usize> {
        let position = frame.wrapping_sub(self.first_frame);
        (position < self.len as u64).then_some(position as usize)
    }

    /// Mark an entry as a segment and return its seal.
    #[inline(always)]
    fn note(&mut self, position: usize, frame: u64, root: u32, is_duplicate: bool) -> u64 {
        let position = position % BLOCK;
        self.roots[position] = root;
        let place = &mut self.places[position];
        let offset = self.base + u64::from(*place & PLACE_MASK);
        *place |= u32::from(is_duplicate) * IS_DUPLICATE;
        IndexEntry::seal(frame, offset, is_duplicate)
    }

    fn write(&self, out: &mut impl Write, bytes: &mut Vec<u8>) -> io::Result<()> {
        // Offset by one, so that "no root" wraps around to the smallest value.
        let roots = self.roots.get(..self.len).unwrap_or_default();
        let places = self.places.get(..self.len).unwrap_or_default();
        let ranks = roots.iter().map(|root| root.wrapping_add(1));
        let greatest = ranks.fold(0, u32::max).saturating_sub(1);
        let least = roots.iter().copied().fold(NO_ROOT, u32::min);
        let head = Head {
            count: self.len as u32,
            fragments: self.fragments,
            first_frame: self.first_frame,
            base: self.base,
            least,
            greatest,
        };
        bytes.clear();
        bytes.extend(head.to_bytes());
        for values in [roots, places] {
            let begin = bytes.len();
            bytes.resize(begin + values.len() * 4, 0);
            let places = bytes.get_mut(begin..).unwrap_or_default();
            for (place, value) in places.chunks_exact_mut(4).zip(values) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        out.write_all(bytes)
    }
}

/// Writes the index of a capture.
pub struct IndexWriter {
    place: PathBuf,
    new: PathBuf,
    capture: PathBuf,
    stamp: Stamp,
    /// None after an error.
    file: Option<File>,
    newest: Block,
    /// Previous blocks, whose last segments may still be reported.
    older: VecDeque<Block>,
    fragments_seal: u64,
    seals: Vec<u64>,
    bytes: Vec<u8>,
}

impl IndexWriter {
    /// Start the index of a plain capture file. It is written next to `place` until it is complete. Nothing may have
    /// been read from the capture yet.
    pub fn begin(place: &Path, capture: &Path) -> io::Result<Self> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let new = place.with_file_name(format!("{name}.{}", std::process::id()));
        let stamp = Stamp::of(&fs::metadata(capture)?)
            .ok_or_else(|| io::Error::other("the capture is not a regular file"))?;
        let mut file = File::create(&new)?;
        file.write_all(&[0; START_BYTES])?;
        Ok(IndexWriter {
            place: place.to_owned(),
            new,
            capture: capture.to_owned(),
            stamp,
            file: Some(file),
            newest: Block::new(1, 0),
            older: VecDeque::new(),
            fragments_seal: 0,
            seals: Vec::new(),
            bytes: Vec::new(),
        })
    }

    fn write_trailer(&mut self, input: &MergedReader, tracker: &Tracker) -> io::Result<()> {
        let none = || io::Error::other("no index possible");
        let mut file = self.file.take().ok_or_else(none)?;
        let landmarks = input.single().and_then(|reader| reader.landmarks());
        let now = Stamp::of(&fs::metadata(&self.capture)?);
        let roots = (0..tracker.connections.len()).map(|index| tracker.root(index));
        let trailer = Trailer {
            landmarks: landmarks.ok_or_else(none)?,
            journal_until: tracker.journal_until(),
            last_time_ns: input.last_time_ns(),
            fragments_seal: self.fragments_seal,
            roots: roots.collect::<Option<_>>().ok_or_else(none)?,
            seals: {
                self.seals.resize(tracker.connections.len() as usize, 0);
                std::mem::take(&mut self.seals)
            },
        };
        if now != Some(self.stamp) {
            return Err(none());
        }
        let trailer_offset = file.stream_position()?;
        let bytes = trailer.to_bytes();
        file.write_all(&bytes)?;
        file.seek(SeekFrom::Start(0))?;
        let start = Start {
            capture: self.stamp,
            trailer_offset,
            trailer_len: bytes.len() as u64,
            trailer_seal: seal(&bytes),
        };
        file.write_all(&start.to_bytes())
    }

    fn write_older(&mut self) {
        while let (Some(block), Some(file)) = (self.older.pop_front(), &mut self.file) {
            if block.write(file, &mut self.bytes).is_err() {
                self.give_up();
            }
        }
    }

    #[cold]
    fn give_up(&mut self) {
        self.file = None;
        self.older.clear();
        // The file may not exist yet.
        drop(fs::remove_file(&self.new));
    }

    /// Handle a frame that does not follow the newest block: the reader skipped packets before it, or it starts a new
    /// block.
    #[cold]
    #[inline(never)]
    fn push_otherwise(&mut self, frame: u64, offset: u64) {
        let mut next = self.newest.first_frame + self.newest.len as u64;
        while next <= frame && self.file.is_some() {
            if !self.newest.push(next, offset) {
                if self.older.len() >= MAX_WAITING {
                    self.give_up();
                }
                let full = std::mem::replace(&mut self.newest, Block::new(next, offset));
                if full.len > 0 {
                    self.older.push_back(full);
                }
                self.newest.push(next, offset);
            }
            next += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn note_fragment(&mut self, frame: u64, offset: u64) {
        if let Some(position) = self.newest.position(frame) {
            self.newest.places[position] |= IS_FRAGMENT;
            self.newest.fragments += 1;
        }
        let seal = IndexEntry::seal(frame, offset, false);
        self.fragments_seal = self.fragments_seal.wrapping_add(seal);
    }

    #[cold]
    #[inline(never)]
    fn note_in_older(&mut self, frame: u64, root: u32, is_duplicate: bool) -> u64 {
        let noted = self.older.iter_mut().find_map(|block| {
            let position = block.position(frame)?;
            Some(block.note(position, frame, root, is_duplicate))
        });
        noted.unwrap_or_default()
    }
}

impl Frames for IndexWriter {
    #[inline(always)]
    fn frame(&mut self, frame: u64, offset: u64, is_fragment: bool, has_time: bool) {
        if !has_time {
            self.give_up();
        }
        if !self.newest.push(frame, offset) {
            self.push_otherwise(frame, offset);
        }
        if is_fragment {
            self.note_fragment(frame, offset);
        }
    }

    #[inline(always)]
    fn segment(&mut self, frame: u64, root: u32, is_duplicate: bool) {
        let seal = match self.newest.position(frame) {
            Some(position) => self.newest.note(position, frame, root, is_duplicate),
            None => self.note_in_older(frame, root, is_duplicate),
        };
        let root = root as usize;
        if root >= self.seals.len() {
            self.seals.resize(root + 1, 0);
        }
        if let Some(sum) = self.seals.get_mut(root) {
            *sum = sum.wrapping_add(seal);
        }
    }

    #[inline(always)]
    fn settle(&mut self) {
        if !self.older.is_empty() {
            self.write_older();
        }
    }

    /// Move the index into place if the capture can be read with it.
    fn finish(&mut self, input: &MergedReader, tracker: &Tracker) {
        let last = std::mem::replace(&mut self.newest, Block::new(0, 0));
        if last.len > 0 {
            self.older.push_back(last);
        }
        self.write_older();
        let written = self.write_trailer(input, tracker);
        if written.is_err() || fs::rename(&self.new, &self.place).is_err() {
            self.give_up();
        }
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        // The pass ended early.
        if self.file.is_some() {
            self.give_up();
        }
    }
}
