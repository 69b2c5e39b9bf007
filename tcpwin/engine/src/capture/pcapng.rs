//! pcapng files (draft-ietf-opsawg-pcapng): blocks → [`Record`]s. Several sections of either byte order and several
//! interfaces; blocks without packets or interfaces are skipped unread.

use super::buffer::{ByteBuffer, Record};
use super::error::{Fault, WarningKind};
use super::facts::{ByteOrder, CaptureFacts, FileFormat, Interface};
use super::options::Options;
use super::pcap::MAX_RECORD_BYTES;
use super::time_scale::{ticks_per_second, TimeScale};
use super::LinkType;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete Packet Block, appendix A.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_OS: u16 = 12;
const IF_TSOFFSET: u16 = 14;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Type and total length before a block's body, and total length after it.
const BLOCK_HEAD_BYTES: usize = 8;
const BLOCK_TAIL_BYTES: usize = 4;
const BLOCK_FRAME_BYTES: usize = BLOCK_HEAD_BYTES + BLOCK_TAIL_BYTES;
/// Fixed fields of a packet block before the data, the block's head included.
const PACKET_HEAD_BYTES: usize = BLOCK_HEAD_BYTES + 20;
const SIMPLE_PACKET_HEAD_BYTES: usize = BLOCK_HEAD_BYTES + 4;
/// A block that is interpreted and claims more is damage.
const MAX_BLOCK_BYTES: usize = MAX_RECORD_BYTES as usize;
/// Interfaces that one section may describe; those beyond count as not described.
const MAX_SECTION_INTERFACES: usize = 65_536;
const MAX_TEXT_BYTES: usize = 256;

/// What reading packets needs of an interface.
#[derive(Clone, Copy, Debug)]
struct Described {
    link_type: LinkType,
    snaplen: u32,
    time: TimeScale,
    /// In `CaptureFacts::interfaces`.
    fact: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Pcapng {
    swapped: bool,
    /// Of the section being read.
    interfaces: Vec<Described>,
    sections: u64,
    noted_undefined: bool,
    noted_overrun: bool,
    noted_unpadded: bool,
    /// Found in the block whose packet was just handed out.
    pending: Option<Fault>,
}

pub(super) enum Step {
    Packet(Record),
    /// A packet that cannot be handed out, its interface being unknown.
    Skipped,
    End,
}

/// A block's place: `len` includes the padding that `declared` may leave out.
#[derive(Clone, Copy)]
struct Block {
    kind: u32,
    declared: u32,
    len: usize,
    offset: u64,
}

/// Whether `head` begins as a pcapng file.
pub(super) fn is_pcapng(head: &[u8]) -> bool {
    head.starts_with(&SECTION_HEADER.to_le_bytes())
}

impl Pcapng {
    /// Parse the section header at the start of `buffer` and describe it in `facts`.
    pub fn open(buffer: &mut ByteBuffer, facts: &mut CaptureFacts) -> Result<Self, Fault> {
        facts.format = FileFormat::Pcapng;
        let mut parser = Self::default();
        if let Some(block) = parser.next_block(buffer, facts)? {
            buffer.require(block.len, "the pcapng section header")?;
            let intact = parser.has_tail(buffer, block);
            parser.read_section_header(buffer.window(), block, facts)?;
            if !intact {
                return Err(tail_fault(block));
            }
            buffer.consume(block.len);
        }
        Ok(parser)
    }

    /// The next packet if an Enhanced Packet Block is whole in the buffer and nothing about it is odd.
    #[inline(always)]
    pub fn take(&self, buffer: &mut ByteBuffer) -> Option<Record> {
        let window = buffer.window();
        let head = window.first_chunk::<PACKET_HEAD_BYTES>()?;
        let [k0, k1, k2, k3, l0, l1, l2, l3, i0, i1, i2, i3, h0, h1, h2, h3, t0, t1, t2, t3, c0, c1, c2, c3, o0, o1, o2, o3] =
            *head;
        if self.order([k0, k1, k2, k3]) != ENHANCED_PACKET {
            return None;
        }
        let len = self.order([l0, l1, l2, l3]) as usize;
        let captured = self.order([c0, c1, c2, c3]);
        let room = len.checked_sub(PACKET_HEAD_BYTES + BLOCK_TAIL_BYTES)?;
        if len % 4 != 0 || len > MAX_BLOCK_BYTES || captured as usize > room {
            return None;
        }
        let tail = window.get(len - BLOCK_TAIL_BYTES..)?.first_chunk::<4>()?;
        if *tail != [l0, l1, l2, l3] {
            return None;
        }
        let id = self.order([i0, i1, i2, i3]) as usize;
        let interface = self.interfaces.get(id)?;
        let ticks =
            u64::from(self.order([h0, h1, h2, h3])) << 32 | u64::from(self.order([t0, t1, t2, t3]));
        let record = Record {
            start: buffer.position() + PACKET_HEAD_BYTES,
            captured_len: captured,
            original_len: self.order([o0, o1, o2, o3]).max(captured),
            link_type: interface.link_type,
            time_ns: Some(interface.time.to_ns(ticks)),
        };
        buffer.consume(len);
        Some(record)
    }

    #[inline(always)]
    fn order(&self, bytes: [u8; 4]) -> u32 {
        let value = u32::from_le_bytes(bytes);
        if self.swapped {
            value.swap_bytes()
        } else {
            value
        }
    }

    fn u32_at(&self, bytes: &[u8], at: usize) -> u32 {
        let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        chunk.map_or(0, |chunk| self.order(*chunk))
    }

    fn u16_at(&self, bytes: &[u8], at: usize) -> u16 {
        let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
        match chunk {
            Some(chunk) if self.swapped => u16::from_be_bytes(*chunk),
            Some(chunk) => u16::from_le_bytes(*chunk),
            None => 0,
        }
    }

    /// A 64-bit option value in the section's byte order.
    fn u64_value(&self, value: &[u8]) -> Option<u64> {
        let bytes = *value.first_chunk::<8>()?;
        Some(if self.swapped {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    /// The next packet when [`Pcapng::take`] had none: other blocks, refills, what is odd, or the end.
    #[cold]
    pub fn next(
        &mut self,
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<Step, Fault> {
        if let Some(fault) = self.pending.take() {
            return Err(fault);
        }
        while let Some(block) = self.next_block(buffer, facts)? {
            if !is_read(block.kind) {
                let before_tail = (block.len - BLOCK_TAIL_BYTES) as u64;
                buffer.skip(before_tail, "a pcapng block", block.offset)?;
                if !buffer.require(BLOCK_TAIL_BYTES, "a pcapng block")? {
                    return Err(Fault {
                        kind: WarningKind::Truncated,
                        byte_offset: block.offset,
                        message:
                            "the file ends inside a pcapng block: its last 4 bytes are missing"
                                .into(),
                    });
                }
                if self.u32_at(buffer.window(), 0) != block.declared {
                    return Err(tail_fault(block));
                }
                buffer.consume(BLOCK_TAIL_BYTES);
                continue;
            }
            buffer.require(block.len, "a pcapng block")?;
            let intact = self.has_tail(buffer, block);
            let window = buffer.window();
            let step = match block.kind {
                SECTION_HEADER => {
                    self.read_section_header(window, block, facts)?;
                    None
                }
                INTERFACE_DESCRIPTION => {
                    self.read_interface(window, block, facts);
                    None
                }
                INTERFACE_STATISTICS => {
                    self.read_statistics(window, block, facts);
                    None
                }
                _ => Some(self.read_packet(window, buffer.position(), block, facts)?),
            };
            buffer.consume(block.len);
            match (step, intact) {
                (Some(step), true) => return Ok(step),
                (Some(step), false) => {
                    buffer.stop();
                    self.pending = Some(tail_fault(block));
                    return Ok(step);
                }
                (None, true) => {}
                (None, false) => return Err(tail_fault(block)),
            }
            if let Some(record) = self.take(buffer) {
                return Ok(Step::Packet(record));
            }
        }
        Ok(Step::End)
    }

    /// Type and length of the block at the start of the window, its length checked. `None` is a clean end.
    fn next_block(
        &mut self,
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<Option<Block>, Fault> {
        if !buffer.require(BLOCK_FRAME_BYTES, "a pcapng block")? {
            return Ok(None);
        }
        let offset = buffer.offset();
        let window = buffer.window();
        // The section header's type reads the same in both byte orders; its body says which it is (§4.1).
        if is_pcapng(window) {
            self.swapped = false;
            match self.u32_at(window, BLOCK_HEAD_BYTES) {
                BYTE_ORDER_MAGIC => {}
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => self.swapped = true,
                magic => {
                    return Err(Fault::damaged(
                        offset,
                        format!("a section header has the byte-order magic {magic:#010x}"),
                    ))
                }
            }
        }
        let kind = self.u32_at(window, 0);
        let declared = self.u32_at(window, 4);
        let len = (declared as usize).next_multiple_of(4);
        if len < least_len(kind) || (is_read(kind) && len > MAX_BLOCK_BYTES) {
            return Err(Fault::damaged(
                offset,
                format!("a block of type {kind:#x} states a length of {declared} bytes, which cannot be; reading stopped"),
            ));
        }
        let block = Block {
            kind,
            declared,
            len,
            offset,
        };
        if declared % 4 != 0 {
            self.accept_unpadded(buffer, block, facts)?;
        }
        Ok(Some(block))
    }

    /// Old writers left the padding out of the length. Believed where the trailing length stands after the padding.
    fn accept_unpadded(
        &mut self,
        buffer: &mut ByteBuffer,
        block: Block,
        facts: &mut CaptureFacts,
    ) -> Result<(), Fault> {
        let whole = block.len <= MAX_BLOCK_BYTES && buffer.require(block.len, "a pcapng block")?;
        if !whole || !self.has_tail(buffer, block) {
            return Err(Fault::damaged(
                block.offset,
                format!(
                    "a block of type {:#x} states a length of {} bytes, no multiple of 4; reading stopped",
                    block.kind, block.declared
                ),
            ));
        }
        if !self.noted_unpadded {
            self.noted_unpadded = true;
            facts.warn(Fault {
                kind: WarningKind::UnpaddedBlockLength,
                byte_offset: block.offset,
                message: format!(
                    "a block states a length of {} bytes, its padding left out; read all the same (noted once)",
                    block.declared
                ),
            });
        }
        Ok(())
    }

    /// Whether the length after the block's body repeats the one before it.
    fn has_tail(&self, buffer: &ByteBuffer, block: Block) -> bool {
        let tail = block.len - BLOCK_TAIL_BYTES;
        self.u32_at(buffer.window(), tail) == block.declared
    }

    fn read_section_header(
        &mut self,
        window: &[u8],
        block: Block,
        facts: &mut CaptureFacts,
    ) -> Result<(), Fault> {
        let (major, minor) = (self.u16_at(window, 12), self.u16_at(window, 14));
        // §4.1: 1.0 is current, 1.2 was written by mistake and is the same; readers stop at others.
        if major != 1 || (minor != 0 && minor != 2) {
            return Err(Fault::damaged(
                block.offset,
                format!("a section of pcapng version {major}.{minor}, which is not known: 1.0 is"),
            ));
        }
        let order = if self.swapped {
            ByteOrder::Big
        } else {
            ByteOrder::Little
        };
        if self.sections == 0 {
            facts.byte_order = order;
        } else if facts.byte_order != order {
            facts.byte_order = ByteOrder::Mixed;
        }
        self.sections += 1;
        self.interfaces.clear();
        Ok(())
    }

    fn read_interface(&mut self, window: &[u8], block: Block, facts: &mut CaptureFacts) {
        if self.interfaces.len() >= MAX_SECTION_INTERFACES {
            facts.interfaces_omitted += 1;
            return;
        }
        let link_type = LinkType::from(self.u16_at(window, 8));
        let snaplen = self.u32_at(window, 12);
        let (mut resolution, mut offset_seconds) = (TimeScale::DEFAULT, 0);
        let (mut name, mut os) = (None, None);
        let mut options = self.options(window, block, 16);
        for (code, value) in options.by_ref() {
            match (code, value) {
                (IF_TSRESOL, [octet, ..]) => resolution = *octet,
                (IF_TSOFFSET, _) => {
                    // Two's complement, as if_tsoffset is signed.
                    offset_seconds = self.u64_value(value).unwrap_or(0) as i64;
                }
                (IF_NAME, _) => name = Some(text(value)),
                (IF_OS, _) => os = Some(text(value)),
                _ => {}
            }
        }
        let overrun = options.overrun;
        self.note_overrun(overrun, block, facts);
        let fact = facts.add_interface(Interface {
            link_type,
            snaplen,
            name,
            os,
            ticks_per_second: ticks_per_second(resolution),
            received: None,
            drops: None,
        });
        self.interfaces.push(Described {
            link_type,
            snaplen,
            time: TimeScale::new(resolution, offset_seconds),
            fact,
        });
    }

    fn read_statistics(&mut self, window: &[u8], block: Block, facts: &mut CaptureFacts) {
        let id = self.u32_at(window, 8) as usize;
        let (mut received, mut drops) = (None, None);
        let mut options = self.options(window, block, 20);
        for (code, value) in options.by_ref() {
            match code {
                ISB_IFRECV => received = self.u64_value(value),
                ISB_IFDROP => drops = self.u64_value(value),
                _ => {}
            }
        }
        let overrun = options.overrun;
        self.note_overrun(overrun, block, facts);
        let fact = self.interfaces.get(id).and_then(|i| i.fact);
        if let Some(interface) = fact.and_then(|at| facts.interfaces.get_mut(at)) {
            interface.received = received.or(interface.received);
            interface.drops = drops.or(interface.drops);
        }
    }

    fn read_packet(
        &mut self,
        window: &[u8],
        position: usize,
        block: Block,
        facts: &mut CaptureFacts,
    ) -> Result<Step, Fault> {
        let id = match block.kind {
            ENHANCED_PACKET => self.u32_at(window, 8) as usize,
            PACKET => usize::from(self.u16_at(window, 8)),
            // §4.4: packets of simple blocks are of the first interface.
            _ => 0,
        };
        let Some(interface) = self.interfaces.get(id).copied() else {
            if !self.noted_undefined {
                self.noted_undefined = true;
                facts.warn(Fault {
                    kind: WarningKind::UndefinedInterface,
                    byte_offset: block.offset,
                    message: format!(
                        "a packet of interface {id}, which its section does not describe; such packets are skipped (noted once)"
                    ),
                });
            }
            return Ok(Step::Skipped);
        };
        let (head, captured, original, time_ns) = if block.kind == SIMPLE_PACKET {
            let original = self.u32_at(window, 8);
            let limit = match interface.snaplen {
                0 => u32::MAX,
                snaplen => snaplen,
            };
            (
                SIMPLE_PACKET_HEAD_BYTES,
                original.min(limit),
                original,
                None,
            )
        } else {
            let ticks =
                u64::from(self.u32_at(window, 12)) << 32 | u64::from(self.u32_at(window, 16));
            (
                PACKET_HEAD_BYTES,
                self.u32_at(window, 20),
                self.u32_at(window, 24),
                Some(interface.time.to_ns(ticks)),
            )
        };
        let room = block.len - head - BLOCK_TAIL_BYTES;
        if captured as usize > room {
            return Err(Fault::damaged(
                block.offset,
                format!("a packet of {captured} captured bytes in a block that has room for {room}; reading stopped"),
            ));
        }
        Ok(Step::Packet(Record {
            start: position + head,
            captured_len: captured,
            original_len: original.max(captured),
            link_type: interface.link_type,
            time_ns,
        }))
    }

    fn options<'a>(&self, window: &'a [u8], block: Block, fixed_bytes: usize) -> Options<'a> {
        let body = window.get(fixed_bytes..block.len - BLOCK_TAIL_BYTES);
        Options::new(body.unwrap_or_default(), self.swapped)
    }

    fn note_overrun(&mut self, overrun: bool, block: Block, facts: &mut CaptureFacts) {
        if overrun && !self.noted_overrun {
            self.noted_overrun = true;
            facts.warn(Fault {
                kind: WarningKind::OptionOverrun,
                byte_offset: block.offset,
                message: "an option runs past its block; the block's other options were ignored (noted once)".into(),
            });
        }
    }
}

/// Whether blocks of this type are interpreted.
fn is_read(kind: u32) -> bool {
    matches!(
        kind,
        SECTION_HEADER
            | INTERFACE_DESCRIPTION
            | PACKET
            | SIMPLE_PACKET
            | INTERFACE_STATISTICS
            | ENHANCED_PACKET
    )
}

/// Bytes of the type's fixed fields, block head and tail included.
fn least_len(kind: u32) -> usize {
    match kind {
        SECTION_HEADER => 28,
        INTERFACE_DESCRIPTION => 20,
        PACKET | ENHANCED_PACKET => PACKET_HEAD_BYTES + BLOCK_TAIL_BYTES,
        SIMPLE_PACKET => SIMPLE_PACKET_HEAD_BYTES + BLOCK_TAIL_BYTES,
        INTERFACE_STATISTICS => 24,
        _ => BLOCK_FRAME_BYTES,
    }
}

fn tail_fault(block: Block) -> Fault {
    Fault::damaged(
        block.offset,
        format!(
            "a block of type {:#x} states a length of {} bytes before its body and another after it; reading stopped",
            block.kind, block.declared
        ),
    )
}

fn text(value: &[u8]) -> String {
    let kept = value.get(..MAX_TEXT_BYTES).unwrap_or(value);
    let kept = kept.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(kept).into_owned()
}
