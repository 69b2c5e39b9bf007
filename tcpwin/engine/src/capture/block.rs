//! pcapng blocks (draft-ietf-opsawg-pcapng §3.1): the next block's type, length and byte order, validated
//! before its body is read.

use super::buffer::ByteBuffer;
use super::buffer::MAX_RECORD_BYTES;
use super::endian::Endian;
use super::error::Fault;

/// A block type. Only those listed are interpreted; all others are skipped unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    SectionHeader,
    InterfaceDescription,
    /// Obsolete Packet Block (appendix A).
    Packet,
    SimplePacket,
    InterfaceStatistics,
    EnhancedPacket,
    Other(u32),
}

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const ENHANCED_PACKET: u32 = 6;
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Type and total length precede a block's body; the total length is repeated after it.
pub(super) const HEAD_BYTES: usize = 8;
pub(super) const TAIL_BYTES: usize = 4;
/// Fixed fields of a packet block before its data, including the block header.
pub(super) const PACKET_HEAD_BYTES: usize = HEAD_BYTES + 20;
pub(super) const SIMPLE_PACKET_HEAD_BYTES: usize = HEAD_BYTES + 4;
/// An interpreted block that claims more is treated as damage.
pub(super) const MAX_BLOCK_BYTES: usize = MAX_RECORD_BYTES as usize;

pub(super) const WHAT: &str = "a pcapng block";

impl BlockKind {
    pub fn new(value: u32) -> Self {
        match value {
            SECTION_HEADER => Self::SectionHeader,
            1 => Self::InterfaceDescription,
            2 => Self::Packet,
            3 => Self::SimplePacket,
            5 => Self::InterfaceStatistics,
            ENHANCED_PACKET => Self::EnhancedPacket,
            other => Self::Other(other),
        }
    }

    pub fn value(self) -> u32 {
        match self {
            Self::SectionHeader => SECTION_HEADER,
            Self::InterfaceDescription => 1,
            Self::Packet => 2,
            Self::SimplePacket => 3,
            Self::InterfaceStatistics => 5,
            Self::EnhancedPacket => ENHANCED_PACKET,
            Self::Other(value) => value,
        }
    }

    /// Return the length of the type's fixed fields, including block header and trailing length.
    fn min_len(self) -> usize {
        match self {
            Self::SectionHeader => 28,
            Self::InterfaceDescription => 20,
            Self::Packet | Self::EnhancedPacket => PACKET_HEAD_BYTES + TAIL_BYTES,
            Self::SimplePacket => SIMPLE_PACKET_HEAD_BYTES + TAIL_BYTES,
            Self::InterfaceStatistics => 24,
            Self::Other(_) => HEAD_BYTES + TAIL_BYTES,
        }
    }

    fn name(self) -> String {
        match self {
            Self::SectionHeader => "a section header".into(),
            Self::InterfaceDescription => "an interface description".into(),
            Self::Packet | Self::SimplePacket | Self::EnhancedPacket => "a packet block".into(),
            Self::InterfaceStatistics => "an interface statistics block".into(),
            Self::Other(value) => format!("a block of type {value:#x}"),
        }
    }
}

/// The block at the start of the buffer's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub kind: BlockKind,
    /// The stated length. Some old writers leave out the padding.
    pub declared: u32,
    /// The length including padding.
    pub len: usize,
    /// Offset in the uncompressed stream.
    pub offset: u64,
    pub endian: Endian,
}

/// Return true if `head` starts with the pcapng magic number.
pub(super) fn is_pcapng(head: &[u8]) -> bool {
    head.starts_with(&SECTION_HEADER.to_le_bytes())
}

impl Block {
    /// Peek at the next block of a section with byte order `endian`. `None` is a clean end of file.
    pub fn peek(buffer: &mut ByteBuffer, endian: Endian) -> Result<Option<Self>, Fault> {
        if !buffer.begin(HEAD_BYTES + TAIL_BYTES, WHAT)? {
            return Ok(None);
        }
        let offset = buffer.offset();
        let window = buffer.window();
        // §4.1: the section header's type is a palindrome; the byte-order magic that follows it determines the byte
        // order.
        let endian = if is_pcapng(window) {
            match Endian::Little.u32_at(window, HEAD_BYTES) {
                BYTE_ORDER_MAGIC => Endian::Little,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => Endian::Big,
                magic => {
                    return Err(Fault::damaged(
                        offset,
                        format!("a section header has the byte-order magic {magic:#010x}"),
                    ))
                }
            }
        } else {
            endian
        };
        let kind = BlockKind::new(endian.u32_at(window, 0));
        let declared = endian.u32_at(window, 4);
        let len = u64::from(declared).next_multiple_of(4) as usize;
        let skipped = matches!(kind, BlockKind::Other(_));
        let block = Self {
            kind,
            declared,
            len,
            offset,
            endian,
        };
        if len < kind.min_len() || (!skipped && len > MAX_BLOCK_BYTES) {
            return Err(block.length_fault("which is impossible"));
        }
        // Accept an unpadded length only if the trailing length follows the padding.
        if !block.is_padded() {
            if len <= MAX_BLOCK_BYTES {
                buffer.require(len, WHAT, offset)?;
            }
            if !block.has_tail(buffer.window()) {
                return Err(block.length_fault("not a multiple of 4"));
            }
        }
        Ok(Some(block))
    }

    /// Return true if the stated length includes the padding, as the draft requires.
    pub fn is_padded(self) -> bool {
        self.declared % 4 == 0
    }

    /// Return true if the trailing length repeats the leading one.
    pub fn has_tail(self, window: &[u8]) -> bool {
        let at = self.len.saturating_sub(TAIL_BYTES);
        self.endian.u32_at(window, at) == self.declared
    }

    /// Return the block's bytes from `at`, without the trailing length.
    pub fn body(self, window: &[u8], at: usize) -> &[u8] {
        let end = self.len.saturating_sub(TAIL_BYTES);
        window.get(at..end).unwrap_or_default()
    }

    fn length_fault(self, why: &str) -> Fault {
        Fault::damaged(
            self.offset,
            format!(
                "{} states a length of {} bytes, {why}; reading stopped",
                self.kind.name(),
                self.declared
            ),
        )
    }

    pub fn tail_fault(self) -> Fault {
        Fault::damaged(
            self.offset,
            format!(
                "{} has a length of {} bytes before its body and a different one after it; reading stopped",
                self.kind.name(),
                self.declared
            ),
        )
    }

    /// Skip the block without reading its body.
    pub fn skip(self, buffer: &mut ByteBuffer) -> Result<(), Fault> {
        let before_tail = self.len.saturating_sub(TAIL_BYTES) as u64;
        buffer.skip(before_tail, WHAT, self.offset)?;
        buffer.require(TAIL_BYTES, WHAT, self.offset)?;
        if self.endian.u32_at(buffer.window(), 0) != self.declared {
            return Err(self.tail_fault());
        }
        buffer.consume(TAIL_BYTES);
        Ok(())
    }
}
