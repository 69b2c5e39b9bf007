//! The index while a capture is read: what each frame is, written block by block.
//!
//! Memory is a few blocks and twelve bytes a connection. What goes wrong (a full disk, a packet without a time) ends the
//! index, never the reading.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::entry::{Entry, Head, BLOCK, IS_DUPLICATE, IS_FRAGMENT, NO_ROOT, PLACE_MASK};
use super::trailer::{seal, Stamp, Start, Trailer, START_BYTES};
use crate::capture::MergedReader;
use crate::tracker::Tracker;

/// Blocks that wait for their segments to be told: of a capture with fewer segments among its packets there is no index.
const MOST_WAITING: usize = 16;

/// Takes what a pass learns of each frame.
pub trait Frames {
    /// False lets the pass leave it out.
    const IS_WANTED: bool = true;

    /// The next frame handed out, and where its record begins; it may turn out to be a segment.
    fn frame(&mut self, frame: u64, offset: u64, is_fragment: bool, has_time: bool);

    /// A frame told before is a segment of the connections with this root.
    fn segment(&mut self, frame: u64, root: u32, is_duplicate: bool);

    /// All segments among the frames told so far were told.
    fn settle(&mut self);

    /// The capture was read to its end.
    fn finish(&mut self, input: &MergedReader, tracker: &Tracker);
}

/// For passes that write none.
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
    roots: Vec<u32>,
    places: Vec<u32>,
}

impl Block {
    fn new(first_frame: u64, base: u64) -> Self {
        Block {
            first_frame,
            base,
            fragments: 0,
            roots: Vec::with_capacity(BLOCK),
            places: Vec::with_capacity(BLOCK),
        }
    }

    fn write(&self, out: &mut impl Write, bytes: &mut Vec<u8>) -> io::Result<()> {
        // One more than a root, so that what is none wraps around to the least.
        let ranks = self.roots.iter().map(|root| root.wrapping_add(1));
        let greatest = ranks.fold(0, u32::max).saturating_sub(1);
        let least = self.roots.iter().copied().fold(NO_ROOT, u32::min);
        let head = Head {
            count: self.roots.len() as u32,
            fragments: self.fragments,
            first_frame: self.first_frame,
            base: self.base,
            least,
            greatest,
        };
        bytes.clear();
        bytes.extend(head.to_bytes());
        for values in [&self.roots, &self.places] {
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

/// Writes the index of one capture.
pub struct IndexWriter {
    place: PathBuf,
    new: PathBuf,
    capture: PathBuf,
    stamp: Stamp,
    /// None once something went wrong.
    file: Option<File>,
    blocks: VecDeque<Block>,
    /// Of the last frame told.
    frame: u64,
    fragments_seal: u64,
    seals: Vec<u64>,
    bytes: Vec<u8>,
}

impl IndexWriter {
    /// Begin the index of a plain capture file at `place`, beside which it is written until it is whole. The capture must
    /// not have been read yet.
    pub fn begin(place: &Path, capture: &Path) -> io::Result<Self> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let new = place.with_file_name(format!("{name}.{}", std::process::id()));
        let stamp = Stamp::of(&fs::metadata(capture)?)
            .ok_or_else(|| io::Error::other("the capture is no file"))?;
        let mut file = File::create(&new)?;
        file.write_all(&[0; START_BYTES])?;
        Ok(IndexWriter {
            place: place.to_owned(),
            new,
            capture: capture.to_owned(),
            stamp,
            file: Some(file),
            blocks: VecDeque::new(),
            frame: 0,
            fragments_seal: 0,
            seals: Vec::new(),
            bytes: Vec::new(),
        })
    }

    fn write_trailer(&mut self, input: &MergedReader, tracker: &Tracker) -> io::Result<()> {
        let none = || io::Error::other("no index");
        let mut file = self.file.take().ok_or_else(none)?;
        let landmarks = input.single().and_then(|reader| reader.landmarks());
        let now = Stamp::of(&fs::metadata(&self.capture)?);
        let roots = (0..tracker.connections.len()).map(|index| tracker.root(index));
        let trailer = Trailer {
            landmarks: landmarks.ok_or_else(none)?,
            journal_until: tracker.journal_until(),
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

    /// Write all blocks but the newest `kept`.
    fn write_blocks(&mut self, kept: usize) {
        while self.blocks.len() > kept {
            let (Some(block), Some(file)) = (self.blocks.pop_front(), &mut self.file) else {
                return;
            };
            if block.write(file, &mut self.bytes).is_err() {
                self.give_up();
            }
        }
    }

    #[cold]
    fn give_up(&mut self) {
        self.file = None;
        self.blocks.clear();
        // What was not written need not be there.
        drop(fs::remove_file(&self.new));
    }

    #[cold]
    #[inline(never)]
    fn begin_block(&mut self, frame: u64, offset: u64) {
        if self.file.is_none() {
            return;
        }
        if self.blocks.len() >= MOST_WAITING {
            self.give_up();
            return;
        }
        self.blocks.push_back(Block::new(frame, offset));
    }

    #[inline(always)]
    fn push(&mut self, frame: u64, offset: u64, is_fragment: bool) {
        let has_room = self.blocks.back().is_some_and(|block| {
            block.roots.len() < BLOCK && offset.wrapping_sub(block.base) <= u64::from(PLACE_MASK)
        });
        if !has_room {
            self.begin_block(frame, offset);
        }
        if let Some(block) = self.blocks.back_mut() {
            let flag = if is_fragment { IS_FRAGMENT } else { 0 };
            block.fragments += u32::from(is_fragment);
            block.roots.push(NO_ROOT);
            block.places.push((offset - block.base) as u32 | flag);
        }
    }
}

impl Frames for IndexWriter {
    #[inline(always)]
    fn frame(&mut self, frame: u64, offset: u64, is_fragment: bool, has_time: bool) {
        if !has_time {
            self.give_up();
        }
        // Packets that the reader left out are frames too.
        while self.frame + 1 < frame && self.file.is_some() {
            self.frame += 1;
            self.push(self.frame, offset, false);
        }
        self.frame = frame;
        self.push(frame, offset, is_fragment);
        if is_fragment {
            self.fragments_seal = self
                .fragments_seal
                .wrapping_add(Entry::seal(frame, offset, false));
        }
    }

    #[inline(always)]
    fn segment(&mut self, frame: u64, root: u32, is_duplicate: bool) {
        let mut blocks = self.blocks.iter_mut().rev();
        let Some(block) = blocks.find(|block| block.first_frame <= frame) else {
            return;
        };
        let at = (frame - block.first_frame) as usize;
        let (Some(known), Some(place)) = (block.roots.get_mut(at), block.places.get_mut(at)) else {
            return;
        };
        *known = root;
        if is_duplicate {
            *place |= IS_DUPLICATE;
        }
        let offset = block.base + u64::from(*place & PLACE_MASK);
        let root = root as usize;
        if root >= self.seals.len() {
            self.seals.resize(root + 1, 0);
        }
        if let Some(seal) = self.seals.get_mut(root) {
            *seal = seal.wrapping_add(Entry::seal(frame, offset, is_duplicate));
        }
    }

    #[inline(always)]
    fn settle(&mut self) {
        if self.blocks.len() > 1 {
            self.write_blocks(1);
        }
    }

    /// Put the index in place, if the capture can be read by it.
    fn finish(&mut self, input: &MergedReader, tracker: &Tracker) {
        self.write_blocks(0);
        let written = self.write_trailer(input, tracker);
        if written.is_err() || fs::rename(&self.new, &self.place).is_err() {
            self.give_up();
        }
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        // The reading ended before its end.
        if self.file.is_some() {
            self.give_up();
        }
    }
}
