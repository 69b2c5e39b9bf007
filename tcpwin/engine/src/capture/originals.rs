//! Metadata of a file, for copying it: the pcapng blocks between packets (sections, interfaces, statistics, names …)
//! and the options of packet blocks.
//!
//! Nothing is stored unless a caller asks for it, and then at most [`MAX_METADATA_BYTES`] between two packets.

use super::block::{Block, BlockKind, HEAD_BYTES, MAX_BLOCK_BYTES};
use super::endian::Endian;
use super::packet::Packet;

/// Maximum size of the blocks stored before the next packet; further ones are dropped.
const MAX_METADATA_BYTES: usize = 64 << 20;
/// A longer section header is not stored in advance: no real comment is that long.
const MAX_SECTION_HEADER_BYTES: usize = 1 << 20;

/// A block that contains no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataBlock {
    pub(super) kind: u32,
    pub(super) endian: Endian,
    /// Without its header and trailing length.
    pub(super) body: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct MetadataBuffer {
    is_on: bool,
    /// The section header, which is read before a caller could ask for metadata.
    first: Option<MetadataBlock>,
    blocks: Vec<MetadataBlock>,
    bytes: usize,
}

impl MetadataBuffer {
    /// Store blocks from here on, and the section header before them.
    pub fn begin(&mut self) {
        self.is_on = true;
        self.blocks.extend(self.first.take());
    }

    pub fn keep_section_header(&mut self, block: Block, window: &[u8]) {
        self.first = (block.len <= MAX_SECTION_HEADER_BYTES).then(|| metadata_block(block, window));
    }

    /// Return true if the block should be stored.
    pub fn wants(&self, block: Block) -> bool {
        let space = MAX_METADATA_BYTES.saturating_sub(self.bytes);
        self.is_on && block.len <= MAX_BLOCK_BYTES.min(space)
    }

    pub fn keep(&mut self, block: Block, window: &[u8]) {
        if self.wants(block) {
            self.bytes += block.len;
            self.blocks.push(metadata_block(block, window));
        }
    }

    /// Return the blocks before the latest packet, or before the end.
    pub fn take(&mut self) -> Vec<MetadataBlock> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks)
    }
}

fn metadata_block(block: Block, window: &[u8]) -> MetadataBlock {
    MetadataBlock {
        kind: block.kind.value(),
        endian: block.endian,
        body: block.body(window, HEAD_BYTES).to_vec(),
    }
}

/// The record or block of a packet in its original file.
#[derive(Clone, Copy, Debug)]
pub enum Original<'a> {
    Pcap(PcapRecord),
    Pcapng(PcapngBlock<'a>),
    /// A Simple Packet Block, which has neither a time nor options.
    Simple,
}

#[derive(Clone, Copy, Debug)]
pub struct PcapRecord {
    pub(super) snaplen: u32,
    pub(super) ticks_per_second: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct PcapngBlock<'a> {
    pub(super) endian: Endian,
    pub(super) interface: u32,
    pub(super) ticks: u64,
    pub(super) options: &'a [u8],
}

impl<'a> PcapngBlock<'a> {
    /// Parse a packet block whose captured bytes end at `data_end`; `None` for a Simple Packet Block.
    pub(super) fn read(block: &'a [u8], endian: Endian, data_end: usize) -> Option<Self> {
        let interface = match BlockKind::new(endian.u32_at(block, 0)) {
            BlockKind::EnhancedPacket => endian.u32_at(block, 8),
            BlockKind::Packet => u32::from(endian.u16_at(block, 8)),
            _ => return None,
        };
        let high = u64::from(endian.u32_at(block, 12));
        let end = block.len().saturating_sub(super::block::TAIL_BYTES);
        Some(Self {
            endian,
            interface,
            ticks: high << 32 | u64::from(endian.u32_at(block, 16)),
            options: block
                .get(data_end.next_multiple_of(4)..end)
                .unwrap_or_default(),
        })
    }
}

/// A packet together with the metadata blocks since the previous one.
#[derive(Debug)]
pub struct Whole<'a> {
    /// Index of the capture in the order given.
    pub source: usize,
    pub metadata: Vec<MetadataBlock>,
    pub packet: Packet<'a>,
    pub original: Original<'a>,
}
