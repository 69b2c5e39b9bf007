//! What a file says beside its packets, for whoever copies it: of a pcapng file the blocks between packets (section,
//! interfaces, statistics, names …), and of a packet the options of its block.
//!
//! Nothing is kept unless somebody asks; then no more than [`MAX_KEPT_BYTES`] between two packets.

use super::block::{Block, BlockKind, HEAD_BYTES, MAX_BLOCK_BYTES};
use super::endian::Endian;
use super::packet::Packet;

/// Bytes of blocks that are kept until the next packet; further ones are left out.
const MAX_KEPT_BYTES: usize = 64 << 20;
/// A longer section header is not kept before somebody asks: a comment of that size is none.
const MAX_FIRST_BYTES: usize = 1 << 20;

/// A block that holds no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    pub(super) kind: u32,
    pub(super) endian: Endian,
    /// Without its head and its tail.
    pub(super) body: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    is_on: bool,
    /// The section header, which is read before anybody could ask.
    first: Option<Aside>,
    asides: Vec<Aside>,
    bytes: usize,
}

impl Kept {
    /// Keep blocks from here on, and the section header before them.
    pub fn begin(&mut self) {
        self.is_on = true;
        self.asides.extend(self.first.take());
    }

    pub fn keep_first(&mut self, block: Block, window: &[u8]) {
        self.first = (block.len <= MAX_FIRST_BYTES).then(|| aside(block, window));
    }

    /// Whether a block is to be kept.
    pub fn wants(&self, block: Block) -> bool {
        let room = MAX_KEPT_BYTES.saturating_sub(self.bytes);
        self.is_on && block.len <= MAX_BLOCK_BYTES.min(room)
    }

    pub fn keep(&mut self, block: Block, window: &[u8]) {
        if self.wants(block) {
            self.bytes += block.len;
            self.asides.push(aside(block, window));
        }
    }

    /// Those before the packet that was handed out last, or before the end.
    pub fn take(&mut self) -> Vec<Aside> {
        self.bytes = 0;
        std::mem::take(&mut self.asides)
    }
}

fn aside(block: Block, window: &[u8]) -> Aside {
    Aside {
        kind: block.kind.value(),
        endian: block.endian,
        body: block.body(window, HEAD_BYTES).to_vec(),
    }
}

/// How a packet stood in its file.
#[derive(Clone, Copy, Debug)]
pub enum Original<'a> {
    Pcap(PcapRecord),
    Pcapng(PcapngBlock<'a>),
    /// A pcapng block without time and options.
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
    /// Of a whole block, whose captured bytes end at `data_end`; none of a Simple Packet Block.
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

/// A packet with all that its file said since the one before.
#[derive(Debug)]
pub struct Whole<'a> {
    /// Of the captures, in the order given.
    pub source: usize,
    pub asides: Vec<Aside>,
    pub packet: Packet<'a>,
    pub original: Original<'a>,
}
