//! Read an index: find the entries of some connections, in order, without reading the capture.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::entry::{
    Head, IndexEntry, BLOCK, HEAD_BYTES, IS_DUPLICATE, IS_FRAGMENT, NO_ROOT, PLACE_MASK,
};
use super::trailer::{seal, u32_of, Stamp, Start, Trailer, START_BYTES};
use super::unfit::Unfit;
use crate::capture::RecordReader;

/// Entries compared together before the matching one is located.
const RUN: usize = 16;
/// Up to this many roots are compared one by one; more are looked up in a bitmap.
const FEW: usize = 4;

/// A complete index that matches the current state of its capture.
pub struct PacketIndex {
    file: File,
    capture: PathBuf,
    entries_end: u64,
    trailer: Trailer,
}

/// The set of wanted roots.
enum Sieve {
    Few(Vec<u32>),
    Many(Vec<u64>),
}

impl Sieve {
    fn new(mut roots: Vec<u32>) -> Self {
        roots.sort_unstable();
        roots.dedup();
        if roots.len() <= FEW {
            return Sieve::Few(roots);
        }
        let greatest = roots.last().copied().unwrap_or(0) as usize;
        let mut bits = vec![0u64; greatest / 64 + 1];
        for root in roots {
            bits[root as usize / 64] |= 1 << (root % 64);
        }
        Sieve::Many(bits)
    }

    #[inline(always)]
    fn holds(&self, root: u32) -> bool {
        match self {
            Sieve::Few(roots) => roots.iter().fold(false, |is, known| is | (*known == root)),
            Sieve::Many(bits) => bits
                .get(root as usize / 64)
                .is_some_and(|bits| bits >> (root % 64) & 1 == 1),
        }
    }

    /// Return true if any root of a run is wanted. Branchless, so that several are compared at once.
    #[inline(always)]
    fn any(&self, run: &[u8]) -> bool {
        match self {
            Sieve::Few(roots) => roots.iter().any(|root| {
                run.chunks_exact(4)
                    .fold(false, |is, bytes| is | (u32_of(bytes) == *root))
            }),
            Sieve::Many(_) => run.chunks_exact(4).any(|bytes| self.holds(u32_of(bytes))),
        }
    }

    fn touches(&self, head: &Head) -> bool {
        match self {
            Sieve::Few(roots) => roots
                .iter()
                .any(|root| (head.least..=head.greatest).contains(root)),
            Sieve::Many(_) => head.least != NO_ROOT,
        }
    }
}

impl PacketIndex {
    /// Open an index, if it matches the current state of the capture.
    pub fn open(place: &Path, capture: &Path) -> Result<Self, Unfit> {
        let mut file = File::open(place)?;
        let mut bytes = [0; START_BYTES];
        file.read_exact(&mut bytes)?;
        let start = Start::parse(&bytes)?;
        let len = file.metadata()?.len();
        if Stamp::of(&fs::metadata(capture)?) != Some(start.capture)
            || start.trailer_offset.checked_add(start.trailer_len) != Some(len)
        {
            return Err(Unfit);
        }
        let mut bytes = vec![0; usize::try_from(start.trailer_len).map_err(|_| Unfit)?];
        file.seek(SeekFrom::Start(start.trailer_offset))?;
        file.read_exact(&mut bytes)?;
        if seal(&bytes) != start.trailer_seal {
            return Err(Unfit);
        }
        Ok(PacketIndex {
            file,
            capture: capture.to_owned(),
            entries_end: start.trailer_offset,
            trailer: Trailer::parse(&bytes)?,
        })
    }

    /// Number of connections in the capture.
    pub fn connections(&self) -> u32 {
        self.trailer.roots.len() as u32
    }

    /// Return the last frame for which journals recorded an entry before their common limit was reached.
    pub fn journal_until(&self) -> Option<u64> {
        self.trailer.journal_until
    }

    /// Return the time of the capture's last packet.
    pub fn last_time_ns(&self) -> Option<i64> {
        self.trailer.last_time_ns
    }

    /// Open the capture for reading single records.
    pub fn records(&self) -> Result<RecordReader, Unfit> {
        RecordReader::open(&self.capture, &self.trailer.landmarks).map_err(|_| Unfit)
    }

    /// Return the connections that share a four-tuple with these, in order; `None` if one does not exist.
    pub fn relatives(&self, numbers: impl Iterator<Item = u32>) -> Option<Vec<u32>> {
        let roots = &self.trailer.roots;
        let wanted = numbers
            .map(|number| roots.get(number as usize).copied())
            .collect::<Option<Vec<_>>>()?;
        let sieve = Sieve::new(wanted);
        let all = (0..).zip(roots).filter(|(_, root)| sieve.holds(**root));
        Some(all.map(|(number, _)| number).collect())
    }

    /// Visit the entries of these connections, which must include all with their four-tuples, and of all fragments, in
    /// order. The flag is true for a segment of these connections.
    pub fn entries(
        &self,
        numbers: &[u32],
        mut visit: impl FnMut(&IndexEntry, bool) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        let root_of = |number: &u32| self.trailer.roots.get(*number as usize).copied();
        let mut roots = numbers.iter().filter_map(root_of).collect::<Vec<_>>();
        roots.sort_unstable();
        roots.dedup();
        let seals = roots
            .iter()
            .filter_map(|root| self.trailer.seals.get(*root as usize));
        let mut expected = seals.fold(0u64, |sum, seal| sum.wrapping_add(*seal));
        let mut fragments = self.trailer.fragments_seal;
        let sieve = Sieve::new(roots);
        let mut file = &self.file;
        let mut at = file.seek(SeekFrom::Start(START_BYTES as u64))?;
        let mut bytes = vec![0; BLOCK * 8];
        while at < self.entries_end {
            let mut head = [0; HEAD_BYTES];
            file.read_exact(&mut head)?;
            let head = Head::parse(&head)?;
            let len = head.count as usize * 4;
            at += (HEAD_BYTES + 2 * len) as u64;
            if head.fragments == 0 && !sieve.touches(&head) {
                file.seek(SeekFrom::Start(at))?;
                continue;
            }
            let block = bytes.get_mut(..2 * len).ok_or(Unfit)?;
            let (root_bytes, place_bytes) = block.split_at_mut(len);
            file.read_exact(root_bytes)?;
            let mut is_read = head.fragments > 0;
            if is_read {
                file.read_exact(place_bytes)?;
            }
            for (run, run_bytes) in root_bytes.chunks(RUN * 4).enumerate() {
                if head.fragments == 0 && !sieve.any(run_bytes) {
                    continue;
                }
                if !is_read {
                    file.read_exact(place_bytes)?;
                    is_read = true;
                }
                for (position, root) in run_bytes.chunks_exact(4).map(u32_of).enumerate() {
                    let position = run * RUN + position;
                    let place = place_bytes.get(position * 4..).map_or(0, u32_of);
                    let entry = IndexEntry {
                        frame: head.first_frame + position as u64,
                        offset: head.base + u64::from(place & PLACE_MASK),
                        root,
                        is_duplicate: place & IS_DUPLICATE != 0,
                        is_fragment: place & IS_FRAGMENT != 0,
                    };
                    let is_wanted = sieve.holds(root);
                    if !is_wanted && !entry.is_fragment {
                        continue;
                    }
                    if is_wanted {
                        let seal = IndexEntry::seal(entry.frame, entry.offset, entry.is_duplicate);
                        expected = expected.wrapping_sub(seal);
                    }
                    if entry.is_fragment {
                        let seal = IndexEntry::seal(entry.frame, entry.offset, false);
                        fragments = fragments.wrapping_sub(seal);
                    }
                    visit(&entry, is_wanted)?;
                }
            }
            if !is_read {
                file.seek(SeekFrom::Start(at))?;
            }
        }
        if expected != 0 || fragments != 0 {
            return Err(Unfit);
        }
        Ok(())
    }
}
