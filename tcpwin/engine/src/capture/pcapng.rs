//! pcapng files (draft-ietf-opsawg-pcapng): blocks → [`Record`]s. Supports several sections of either byte order and
//! several interfaces; other block types are skipped unread.

use super::block::{
    Block, BlockKind, ENHANCED_PACKET, HEAD_BYTES, MAX_BLOCK_BYTES, PACKET_HEAD_BYTES,
    SIMPLE_PACKET_HEAD_BYTES, TAIL_BYTES, WHAT,
};
use super::buffer::{ByteBuffer, Found, Record};
use super::endian::Endian;
use super::error::{Fault, WarningKind};
use super::facts::{ByteOrder, CaptureFacts, FileFormat, Interface};
use super::options::Options;
use super::originals::MetadataBuffer;
use super::packet::LinkType;
use super::time_scale::{ticks_per_second, TimeScale};

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_OS: u16 = 12;
const IF_TSOFFSET: u16 = 14;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Maximum interfaces in one section; further ones are treated as undescribed.
const MAX_SECTION_INTERFACES: usize = 65_536;
const MAX_TEXT_BYTES: usize = 256;

/// The properties of an interface that are needed to read packets.
#[derive(Clone, Copy, Debug)]
struct Described {
    link_type: LinkType,
    snaplen: u32,
    time: TimeScale,
    /// Index in `CaptureFacts::interfaces`.
    fact: Option<usize>,
    /// Offset of its block in the stream.
    offset: u64,
}

#[derive(Debug, Default)]
pub(super) struct Pcapng {
    endian: Endian,
    /// Interfaces of the current section.
    interfaces: Vec<Described>,
    sections: u64,
    noted_undefined: bool,
    noted_overrun: bool,
    noted_unpadded: bool,
    noted_time: bool,
    /// Found in the block of the packet just returned.
    pending: Option<Fault>,
    /// Blocks between the packets, for copying the file.
    pub metadata: MetadataBuffer,
}

pub(super) enum Step {
    Packet(Record),
    /// A packet that cannot be returned because its interface is unknown.
    Skipped,
    End,
}

impl Pcapng {
    /// Parse the section header at the start of `buffer` and describe it in `facts`.
    pub fn open(buffer: &mut ByteBuffer, facts: &mut CaptureFacts) -> Result<Self, Fault> {
        facts.format = FileFormat::Pcapng;
        let mut parser = Self::default();
        if let Some(block) = parser.peek_block(buffer, facts)? {
            buffer.require(block.len, "the pcapng section header", block.offset)?;
            parser.read_section_header(buffer.window(), block, facts)?;
            if !block.has_tail(buffer.window()) {
                return Err(block.tail_fault());
            }
            parser.metadata.keep_section_header(block, buffer.window());
            buffer.consume(block.len);
        }
        Ok(parser)
    }

    /// Return the byte order of the current section.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Return the whole block of a packet.
    pub fn block_at<'b>(&self, buffer: &'b ByteBuffer, record: Record) -> &'b [u8] {
        let head = buffer.slice(record.begin, HEAD_BYTES);
        let len = u64::from(self.endian.u32_at(head, 4)).next_multiple_of(4);
        buffer.slice(record.begin, len as usize)
    }

    /// Offsets of the interface descriptions that packets refer to; `None` if a later section replaced them.
    pub fn interface_offsets(&self) -> Option<Vec<u64>> {
        (self.sections <= 1).then(|| self.interfaces.iter().map(|each| each.offset).collect())
    }

    /// Read the interface description at the buffer's position.
    pub fn describe(
        &mut self,
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<(), Fault> {
        if let Some(block) = self.peek_block(buffer, facts)? {
            buffer.require(block.len, WHAT, block.offset)?;
            if block.kind == BlockKind::InterfaceDescription {
                self.read_interface(buffer.window(), block, facts);
            }
            buffer.consume(block.len);
        }
        Ok(())
    }

    /// Take the next packet if a complete, ordinary Enhanced Packet Block is buffered.
    #[inline(always)]
    pub fn take(&self, buffer: &mut ByteBuffer) -> Option<Record> {
        let window = buffer.window();
        let (found, rest) = self.find_in(window, self.endian)?;
        let record = Record {
            begin: buffer.position(),
            start: buffer.position() + PACKET_HEAD_BYTES,
            captured_len: found.captured.len() as u32,
            original_len: found.original_len,
            link_type: found.link_type,
            time_ns: Some(found.time_ns),
        };
        let consumed = window.len() - rest.len();
        buffer.consume(consumed);
        Some(record)
    }

    /// Return the packet that [`Pcapng::take`] would return in a little-endian section, and the rest of `window` after
    /// it.
    #[inline(always)]
    pub fn find<'w>(&self, window: &'w [u8]) -> Option<(Found<'w>, &'w [u8])> {
        match self.endian {
            Endian::Little => self.find_in(window, Endian::Little),
            Endian::Big => None,
        }
    }

    #[inline(always)]
    fn find_in<'w>(&self, window: &'w [u8], endian: Endian) -> Option<(Found<'w>, &'w [u8])> {
        let head = window.first_chunk::<PACKET_HEAD_BYTES>()?;
        let [k0, k1, k2, k3, l0, l1, l2, l3, i0, i1, i2, i3, h0, h1, h2, h3, t0, t1, t2, t3, c0, c1, c2, c3, o0, o1, o2, o3] =
            *head;
        let len = endian.u32([l0, l1, l2, l3]) as usize;
        if endian.u32([k0, k1, k2, k3]) != ENHANCED_PACKET || len % 4 != 0 || len > MAX_BLOCK_BYTES
        {
            return None;
        }
        let (block, rest) = window.split_at_checked(len)?;
        let (body, tail) = block.split_last_chunk::<TAIL_BYTES>()?;
        let captured_len = endian.u32([c0, c1, c2, c3]);
        let captured = body
            .get(PACKET_HEAD_BYTES..)?
            .get(..captured_len as usize)?;
        if *tail != [l0, l1, l2, l3] {
            return None;
        }
        let id = endian.u32([i0, i1, i2, i3]) as usize;
        let interface = self.interfaces.get(id)?;
        let ticks =
            u64::from(endian.u32([h0, h1, h2, h3])) << 32 | u64::from(endian.u32([t0, t1, t2, t3]));
        let time_ns = interface.time.to_ns(ticks);
        if time_ns == i64::MAX && !self.noted_time {
            return None;
        }
        let found = Found {
            time_ns,
            captured,
            original_len: endian.u32([o0, o1, o2, o3]).max(captured_len),
            link_type: interface.link_type,
        };
        Some((found, rest))
    }

    /// Read the next packet if [`Pcapng::take`] could not: other blocks, refills, anomalies, or the end.
    #[cold]
    pub fn next(
        &mut self,
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<Step, Fault> {
        if let Some(fault) = self.pending.take() {
            return Err(fault);
        }
        while let Some(block) = self.peek_block(buffer, facts)? {
            if matches!(block.kind, BlockKind::Other(_)) && !self.metadata.wants(block) {
                block.skip(buffer)?;
                continue;
            }
            buffer.require(block.len, WHAT, block.offset)?;
            let window = buffer.window();
            let intact = block.has_tail(window);
            let mut step = None;
            match block.kind {
                BlockKind::SectionHeader => self.read_section_header(window, block, facts)?,
                BlockKind::InterfaceDescription => self.read_interface(window, block, facts),
                BlockKind::InterfaceStatistics => self.read_statistics(window, block, facts),
                BlockKind::Other(_) => {}
                _ => step = Some(self.read_packet(window, buffer.position(), block, facts)?),
            }
            if step.is_none() && intact {
                self.metadata.keep(block, window);
            }
            buffer.consume(block.len);
            match (step, intact) {
                (Some(step), true) => return Ok(step),
                (Some(step), false) => {
                    buffer.stop();
                    self.pending = Some(block.tail_fault());
                    return Ok(step);
                }
                (None, true) => {}
                (None, false) => return Err(block.tail_fault()),
            }
            if let Some(record) = self.take(buffer) {
                return Ok(Step::Packet(record));
            }
        }
        Ok(Step::End)
    }

    fn peek_block(
        &mut self,
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<Option<Block>, Fault> {
        let block = Block::peek(buffer, self.endian)?;
        if let Some(block) = block.filter(|block| !block.is_padded() && !self.noted_unpadded) {
            self.noted_unpadded = true;
            facts.warn(Fault {
                kind: WarningKind::UnpaddedBlockLength,
                byte_offset: block.offset,
                message: format!(
                    "a block has a length of {} bytes without its padding; read anyway (reported once)",
                    block.declared
                ),
            });
        }
        Ok(block)
    }

    fn read_section_header(
        &mut self,
        window: &[u8],
        block: Block,
        facts: &mut CaptureFacts,
    ) -> Result<(), Fault> {
        let endian = block.endian;
        let (major, minor) = (endian.u16_at(window, 12), endian.u16_at(window, 14));
        // §4.1: 1.0 is current; 1.2 was written by mistake and is identical; readers must stop at other versions.
        if major != 1 || (minor != 0 && minor != 2) {
            return Err(Fault::damaged(
                block.offset,
                format!("unsupported pcapng version {major}.{minor} (1.0 is current)"),
            ));
        }
        let order = ByteOrder::from(endian);
        if self.sections == 0 {
            facts.byte_order = order;
        } else if facts.byte_order != order {
            facts.byte_order = ByteOrder::Mixed;
        }
        self.endian = endian;
        self.sections += 1;
        self.interfaces.clear();
        Ok(())
    }

    fn read_interface(&mut self, window: &[u8], block: Block, facts: &mut CaptureFacts) {
        if self.interfaces.len() >= MAX_SECTION_INTERFACES {
            facts.interfaces_omitted += 1;
            return;
        }
        let link_type = LinkType::from(self.endian.u16_at(window, 8));
        let snaplen = self.endian.u32_at(window, 12);
        let (mut resolution, mut offset_seconds) = (TimeScale::DEFAULT_RESOLUTION, 0);
        let (mut name, mut os) = (None, None);
        let mut options = Options::new(block.body(window, 16), self.endian);
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
            offset: block.offset,
        });
    }

    fn read_statistics(&mut self, window: &[u8], block: Block, facts: &mut CaptureFacts) {
        let id = self.endian.u32_at(window, 8) as usize;
        let (mut received, mut drops) = (None, None);
        let mut options = Options::new(block.body(window, 20), self.endian);
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
            BlockKind::EnhancedPacket => self.endian.u32_at(window, 8) as usize,
            BlockKind::Packet => usize::from(self.endian.u16_at(window, 8)),
            // §4.4: packets of simple blocks belong to the first interface.
            _ => 0,
        };
        let Some(interface) = self.interfaces.get(id).copied() else {
            if !self.noted_undefined {
                self.noted_undefined = true;
                facts.warn(Fault {
                    kind: WarningKind::UndefinedInterface,
                    byte_offset: block.offset,
                    message: format!(
                        "a packet refers to interface {id}, which its section does not describe; such packets are skipped (reported once)"
                    ),
                });
            }
            return Ok(Step::Skipped);
        };
        let (head, captured, original, time_ns) = if block.kind == BlockKind::SimplePacket {
            let original = self.endian.u32_at(window, 8);
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
            let ticks = u64::from(self.endian.u32_at(window, 12)) << 32
                | u64::from(self.endian.u32_at(window, 16));
            (
                PACKET_HEAD_BYTES,
                self.endian.u32_at(window, 20),
                self.endian.u32_at(window, 24),
                Some(interface.time.to_ns(ticks)),
            )
        };
        if time_ns == Some(i64::MAX) && !self.noted_time {
            self.noted_time = true;
            facts.warn(Fault {
                kind: WarningKind::TimeOutOfRange,
                byte_offset: block.offset,
                message:
                    "a packet's time is after the year 2262; such times are clamped (reported once)"
                        .into(),
            });
        }
        let space = block.body(window, head).len();
        if captured as usize > space {
            return Err(Fault::damaged(
                block.offset,
                format!("a packet claims {captured} captured bytes in a block with space for {space}; reading stopped"),
            ));
        }
        Ok(Step::Packet(Record {
            begin: position,
            start: position + head,
            captured_len: captured,
            original_len: original.max(captured),
            link_type: interface.link_type,
            time_ns,
        }))
    }

    /// Return a 64-bit option value, or `None` if it is shorter.
    fn u64_value(&self, value: &[u8]) -> Option<u64> {
        value.first_chunk().map(|bytes| self.endian.u64(*bytes))
    }

    fn note_overrun(&mut self, overrun: bool, block: Block, facts: &mut CaptureFacts) {
        if overrun && !self.noted_overrun {
            self.noted_overrun = true;
            facts.warn(Fault {
                kind: WarningKind::OptionOverrun,
                byte_offset: block.offset,
                message: "an option runs past its block; the block's remaining options were ignored (reported once)".into(),
            });
        }
    }
}

fn text(value: &[u8]) -> String {
    let most = value.get(..MAX_TEXT_BYTES).unwrap_or(value);
    let before_nul = most.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(before_nul).into_owned()
}
