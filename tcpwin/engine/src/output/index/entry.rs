//! The index entry of a frame, and the encoding of a block of entries.

use super::unfit::Unfit;

/// Entries per block.
pub const BLOCK: usize = 1 << 14;
/// Root of a frame that is not a segment.
pub const NO_ROOT: u32 = u32::MAX;
pub const HEAD_BYTES: usize = 32;

/// The segment is a duplicate made by the capture.
pub const IS_DUPLICATE: u32 = 1 << 31;
/// An IP fragment, which later fragments depend on.
pub const IS_FRAGMENT: u32 = 1 << 30;
/// The remaining bits hold the position within a block.
pub const PLACE_MASK: u32 = IS_FRAGMENT - 1;

/// The index data of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub frame: u64,
    /// Offset of its record in the file.
    pub offset: u64,
    pub root: u32,
    pub is_duplicate: bool,
    pub is_fragment: bool,
}

impl IndexEntry {
    /// Return the checksum term of an entry. The sum over a root's entries proves that all are present and unchanged.
    #[inline(always)]
    pub fn seal(frame: u64, offset: u64, is_duplicate: bool) -> u64 {
        let place = offset << 1 | u64::from(is_duplicate);
        let both = frame.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ place.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31);
        both ^ (both >> 29)
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub count: u32,
    pub fragments: u32,
    pub first_frame: u64,
    /// Positions are relative to this offset.
    pub base: u64,
    /// Smallest and largest root of the segments; without segments, the smallest is greater than the largest.
    pub least: u32,
    pub greatest: u32,
}

impl Head {
    pub fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let words = [
            u64::from(self.count) | u64::from(self.fragments) << 32,
            self.first_frame,
            self.base,
            u64::from(self.least) | u64::from(self.greatest) << 32,
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> Result<Self, Unfit> {
        let mut words = bytes.chunks_exact(8).map(|word| {
            let word = word.first_chunk().copied().unwrap_or_default();
            u64::from_le_bytes(word)
        });
        let mut next = || words.next().unwrap_or_default();
        let (counts, first_frame, base, roots) = (next(), next(), next(), next());
        let head = Head {
            count: counts as u32,
            fragments: (counts >> 32) as u32,
            first_frame,
            base,
            least: roots as u32,
            greatest: (roots >> 32) as u32,
        };
        if head.count as usize > BLOCK || head.count == 0 {
            return Err(Unfit);
        }
        Ok(head)
    }
}
