//! Integers in a file's byte order, read from slices without panicking.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    #[default]
    Little,
    Big,
}

impl Endian {
    #[inline(always)]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline(always)]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline(always)]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    pub fn bytes_of_u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub fn bytes_of_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Read the integer at an offset; 0 past the end.
    pub fn u16_at(self, bytes: &[u8], at: usize) -> u16 {
        let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk());
        chunk.map_or(0, |chunk| self.u16(*chunk))
    }

    /// Read the integer at an offset; 0 past the end.
    pub fn u32_at(self, bytes: &[u8], at: usize) -> u32 {
        let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk());
        chunk.map_or(0, |chunk| self.u32(*chunk))
    }
}
