//! The trailer of an index, and the start of the file, which locates the trailer and identifies the capture.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use super::unfit::Unfit;
use crate::capture::Landmarks;

/// Identifies the engine version, because another one may separate connections differently.
const MAGIC: &[u8; 16] = b"tcpwin index 3\0\0";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const VERSION_BYTES: usize = 16;
pub const START_BYTES: usize = 96;

/// Identifies a state of the capture file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub size_bytes: u64,
    pub changed_ns: u64,
    /// Inode and change time where available: programs cannot set them.
    pub inode: u64,
    pub status_changed_ns: u64,
}

#[cfg(unix)]
fn unforgeable(status: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;

    let seconds_ns = status.ctime().wrapping_mul(1_000_000_000);
    let changed_ns = seconds_ns.wrapping_add(status.ctime_nsec());
    (status.ino(), changed_ns as u64)
}

#[cfg(not(unix))]
fn unforgeable(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

impl Stamp {
    /// Return the stamp of a file; `None` if it is not a regular file.
    pub fn of(status: &Metadata) -> Option<Self> {
        let changed = status.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let (inode, status_changed_ns) = unforgeable(status);
        status.is_file().then_some(Stamp {
            size_bytes: status.len(),
            changed_ns: changed.as_nanos() as u64,
            inode,
            status_changed_ns,
        })
    }
}

/// The start of an index file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub capture: Stamp,
    /// End of the entries.
    pub trailer_offset: u64,
    pub trailer_len: u64,
    pub trailer_seal: u64,
}

impl Start {
    pub fn to_bytes(self) -> [u8; START_BYTES] {
        let mut bytes = Vec::with_capacity(START_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.bytes().take(VERSION_BYTES));
        bytes.resize(MAGIC.len() + VERSION_BYTES, 0);
        for word in [
            self.capture.size_bytes,
            self.capture.changed_ns,
            self.capture.inode,
            self.capture.status_changed_ns,
            self.trailer_offset,
            self.trailer_len,
            self.trailer_seal,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        let own = seal(&bytes);
        bytes.extend(own.to_le_bytes());
        bytes.try_into().unwrap_or([0; START_BYTES])
    }

    pub fn parse(bytes: &[u8; START_BYTES]) -> Result<Self, Unfit> {
        let words = bytes.get(MAGIC.len() + VERSION_BYTES..).ok_or(Unfit)?;
        let mut numbers = Numbers(words);
        let start = Start {
            capture: Stamp {
                size_bytes: numbers.u64()?,
                changed_ns: numbers.u64()?,
                inode: numbers.u64()?,
                status_changed_ns: numbers.u64()?,
            },
            trailer_offset: numbers.u64()?,
            trailer_len: numbers.u64()?,
            trailer_seal: numbers.u64()?,
        };
        if start.to_bytes() != *bytes {
            return Err(Unfit);
        }
        Ok(start)
    }
}

/// Data that is known once the whole capture has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    pub landmarks: Landmarks,
    pub journal_until: Option<u64>,
    /// Time of the last packet.
    pub last_time_ns: Option<i64>,
    /// Checksum over the entries of fragments.
    pub fragments_seal: u64,
    /// Indexed by connection.
    pub roots: Vec<u32>,
    /// Indexed by connection; set for roots only.
    pub seals: Vec<u64>,
}

impl Trailer {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.roots.len() * 12);
        let mut put = |word: u64| bytes.extend(word.to_le_bytes());
        put(self.journal_until.unwrap_or(u64::MAX));
        put(self.last_time_ns.unwrap_or(i64::MIN) as u64);
        put(self.fragments_seal);
        put(self.landmarks.interfaces.len() as u64);
        self.landmarks.interfaces.iter().copied().for_each(&mut put);
        put(self.roots.len() as u64);
        self.seals.iter().copied().for_each(&mut put);
        bytes.extend(self.roots.iter().flat_map(|root| root.to_le_bytes()));
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, Unfit> {
        let mut numbers = Numbers(bytes);
        let journal_until = numbers.u64()?;
        let last_time_ns = numbers.u64()? as i64;
        let fragments_seal = numbers.u64()?;
        let count = numbers.u64()?;
        let interfaces = numbers.u64s(count)?.collect();
        let count = numbers.u64()?;
        let seals = numbers.u64s(count)?.collect::<Vec<_>>();
        let roots = numbers.0.chunks_exact(4).map(u32_of).collect::<Vec<_>>();
        if roots.len() != seals.len() || numbers.0.len() % 4 != 0 {
            return Err(Unfit);
        }
        Ok(Trailer {
            landmarks: Landmarks { interfaces },
            journal_until: (journal_until != u64::MAX).then_some(journal_until),
            last_time_ns: (last_time_ns != i64::MIN).then_some(last_time_ns),
            fragments_seal,
            roots,
            seals,
        })
    }
}

/// Return a checksum that depends on every byte (FNV-1a over words, with a multiplicative finalizer).
pub fn seal(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.split_at(bytes.len() / 8 * 8);
    let mut state = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    let mut take = |word: u64| {
        state = (state ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        state ^= state >> 32;
    };
    words.chunks_exact(8).map(u64_of).for_each(&mut take);
    rest.iter().map(|byte| u64::from(*byte)).for_each(&mut take);
    state.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

/// Reads numbers in sequence; `Unfit` if there are too few bytes.
struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn u64(&mut self) -> Result<u64, Unfit> {
        self.u64s(1)?.next().ok_or(Unfit)
    }

    fn u64s(&mut self, count: u64) -> Result<impl Iterator<Item = u64> + 'a, Unfit> {
        let len = usize::try_from(count).ok().and_then(|n| n.checked_mul(8));
        let (numbers, rest) = self.0.split_at_checked(len.ok_or(Unfit)?).ok_or(Unfit)?;
        self.0 = rest;
        Ok(numbers.chunks_exact(8).map(u64_of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_round_trip() {
        let start = Start {
            capture: Stamp {
                size_bytes: 5,
                changed_ns: 6,
                inode: 3,
                status_changed_ns: 4,
            },
            trailer_offset: 7,
            trailer_len: 8,
            trailer_seal: 9,
        };
        assert_eq!(Start::parse(&start.to_bytes()), Ok(start));
        let mut damaged = start.to_bytes();
        damaged[40] ^= 1;
        assert_eq!(Start::parse(&damaged), Err(Unfit));
        let trailer = Trailer {
            landmarks: Landmarks {
                interfaces: vec![28, 60],
            },
            journal_until: Some(3),
            last_time_ns: Some(-5),
            fragments_seal: 4,
            roots: vec![0, 1, 0],
            seals: vec![10, 11, 0],
        };
        let bytes = trailer.to_bytes();
        assert_eq!(Trailer::parse(&bytes), Ok(trailer));
        assert_eq!(Trailer::parse(&bytes[..bytes.len() - 1]), Err(Unfit));
        assert_eq!(Trailer::parse(&bytes[..20]), Err(Unfit));
        assert_eq!(Trailer::parse(&[255; 64]), Err(Unfit));
    }

    #[test]
    fn the_seal_depends_on_every_byte() {
        let bytes: Vec<u8> = (0..29).collect();
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 0x80;
            assert_ne!(seal(&other), seal(&bytes), "byte {place}");
        }
    }
}
