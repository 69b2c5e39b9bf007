//! Copy packets, with comments, into a pcapng file. Each packet keeps its exact time, its link type and interface,
//! its length on the wire, and its existing comments.
//!
//! A single pcapng input is copied section by section in its original byte order. All other inputs become one section
//! in native byte order; options whose byte order cannot be converted are dropped, comments are kept.
//! Block layouts: draft-ietf-opsawg-pcapng §4.1 (section), §4.2 (interface), §4.3 (enhanced packet), §3.5 (options).

use std::io::{self, Write};

use super::block::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, HEAD_BYTES, SECTION_HEADER, TAIL_BYTES};
use super::endian::Endian;
use super::options::Options;
use super::originals::{MetadataBlock, Original, Whole};
use super::packet::LinkType;

const INTERFACE: u32 = 1;
const NAME_RESOLUTION: u32 = 4;
const STATISTICS: u32 = 5;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_HASH: u16 = 3;

/// Exponents of `if_tsresol`.
const MICROSECONDS: u8 = 6;
const NANOSECONDS: u8 = 9;

const MAX_OPTION_BYTES: usize = u16::MAX as usize;

/// The metadata blocks to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every block.
    Everything,
    /// Only what the packets need: no keys of other connections, no logs.
    Needed,
}

/// Writes a pcapng file.
pub struct Rewriter<W: Write> {
    out: W,
    extent: Extent,
    /// Whether the input is a single pcapng file, and the output mirrors its sections.
    is_mirror: bool,
    /// Byte order of the current section; `None` before the first.
    endian: Option<Endian>,
    application: String,
    comment: String,
    sources: Vec<Source>,
    /// Interfaces described in the current section.
    interfaces: u32,
    /// Interfaces added for inputs without an interface description: link type, snapshot length, resolution and number.
    added: Vec<(LinkType, u32, u8, u32)>,
    scratch: Vec<u8>,
}

/// Maps a source's interface numbers to those in the new file.
#[derive(Clone, Default)]
struct Source {
    interfaces: Vec<u32>,
}

impl<W: Write> Rewriter<W> {
    /// Create a writer. `sources` is the number of captures; `comment` applies to the whole new file.
    pub fn new(out: W, sources: usize, extent: Extent, application: &str, comment: &str) -> Self {
        Self {
            out,
            extent,
            is_mirror: sources == 1,
            endian: None,
            application: application.to_owned(),
            comment: comment.to_owned(),
            sources: vec![Source::default(); sources],
            interfaces: 0,
            added: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Copy metadata blocks of a source.
    pub fn metadata(&mut self, source: usize, blocks: &[MetadataBlock]) -> io::Result<()> {
        for block in blocks {
            let is_copied = block.kind == NAME_RESOLUTION || self.extent == Extent::Everything;
            match block.kind {
                SECTION_HEADER => self.section(source, block)?,
                INTERFACE => self.interface(source, block)?,
                STATISTICS => self.statistics(source, block)?,
                kind if is_copied && self.ensure_section()? == block.endian => {
                    self.block(kind, &[&block.body])?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Write a packet, cut to `captured_len` bytes, with additional comments. `last_ns` is its time, or the previous
    /// packet's.
    pub fn packet(
        &mut self,
        whole: &Whole<'_>,
        captured_len: usize,
        last_ns: i64,
        comments: &[impl AsRef<str>],
    ) -> io::Result<()> {
        let endian = self.ensure_section()?;
        let packet = &whole.packet;
        let (interface, ticks) = self.place(whole, last_ns)?;
        let data = packet
            .captured
            .get(..captured_len)
            .unwrap_or(packet.captured);
        let mut options = std::mem::take(&mut self.scratch);
        options.clear();
        if let Original::Pcapng(block) = whole.original {
            let is_cut = data.len() < packet.captured.len();
            for (code, value) in Options::new(block.options, block.endian) {
                // A hash covers the bytes before they were cut.
                let is_hash_valid =
                    code == COMMENT || (block.endian == endian && !(is_cut && code == EPB_HASH));
                if is_hash_valid {
                    option(&mut options, endian, code, value);
                }
            }
        }
        for comment in comments {
            text_option(&mut options, endian, COMMENT, comment.as_ref());
        }
        if !options.is_empty() {
            option(&mut options, endian, END_OF_OPTIONS, &[]);
        }
        let fields = [
            interface,
            (ticks >> 32) as u32,
            ticks as u32,
            data.len() as u32,
            packet.original_len,
        ];
        let mut head = [0; 20];
        for (place, field) in head.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&endian.bytes_of_u32(field));
        }
        let padding = data.len().next_multiple_of(4) - data.len();
        let padding = [0; 4].get(..padding).unwrap_or_default().to_owned();
        let written = self.block(ENHANCED_PACKET, &[&head, data, &padding, &options]);
        self.scratch = options;
        written
    }

    /// Flush the output; a file without packets still gets its section header.
    pub fn finish(mut self) -> io::Result<()> {
        self.ensure_section()?;
        self.out.flush()
    }

    /// Return the current section's byte order, starting a section if necessary.
    fn ensure_section(&mut self) -> io::Result<Endian> {
        if let Some(endian) = self.endian {
            return Ok(endian);
        }
        let endian = Endian::Little;
        let mut options = Vec::new();
        text_option(&mut options, endian, SHB_USERAPPL, &self.application);
        self.write_section(endian, options)?;
        Ok(endian)
    }

    fn write_section(&mut self, endian: Endian, mut options: Vec<u8>) -> io::Result<()> {
        // In the first section only, as the comment applies to the whole file.
        if self.endian.is_none() && !self.comment.is_empty() {
            text_option(&mut options, endian, COMMENT, &self.comment);
        }
        if !options.is_empty() {
            option(&mut options, endian, END_OF_OPTIONS, &[]);
        }
        self.endian = Some(endian);
        self.interfaces = 0;
        self.added.clear();
        let mut head = Vec::from(endian.bytes_of_u32(BYTE_ORDER_MAGIC));
        head.extend(endian.bytes_of_u16(1));
        head.extend(endian.bytes_of_u16(0));
        // Section length unknown (§4.1).
        head.extend([0xff; 8]);
        self.block(SECTION_HEADER, &[&head, &options])
    }

    fn section(&mut self, source: usize, block: &MetadataBlock) -> io::Result<()> {
        if let Some(known) = self.sources.get_mut(source) {
            known.interfaces.clear();
        }
        if !self.is_mirror {
            return Ok(());
        }
        let mut options = Vec::new();
        for (code, value) in options_after(block, 16) {
            option(&mut options, block.endian, code, value);
        }
        self.write_section(block.endian, options)
    }

    fn interface(&mut self, source: usize, block: &MetadataBlock) -> io::Result<()> {
        let endian = self.ensure_section()?;
        if endian == block.endian {
            self.block(INTERFACE, &[&block.body])?;
        } else {
            let head = [
                &endian.bytes_of_u16(block.endian.u16_at(&block.body, 0))[..],
                &[0; 2],
                &endian.bytes_of_u32(block.endian.u32_at(&block.body, 4)),
            ];
            let mut options = Vec::new();
            for (code, value) in options_after(block, 8) {
                match code {
                    IF_TSOFFSET => {
                        let turned: Vec<u8> = value.iter().rev().copied().collect();
                        option(&mut options, endian, code, &turned);
                    }
                    // Text options (if_name, if_description) and a single-octet one.
                    COMMENT | 2 | 3 | IF_TSRESOL => option(&mut options, endian, code, value),
                    _ => {}
                }
            }
            option(&mut options, endian, END_OF_OPTIONS, &[]);
            self.block(INTERFACE, &[&head.concat(), &options])?;
        }
        if let Some(known) = self.sources.get_mut(source) {
            known.interfaces.push(self.interfaces);
        }
        self.interfaces += 1;
        Ok(())
    }

    fn statistics(&mut self, source: usize, block: &MetadataBlock) -> io::Result<()> {
        let endian = self.ensure_section()?;
        let id = block.endian.u32_at(&block.body, 0) as usize;
        let known = self.sources.get(source);
        let interface = known.and_then(|known| known.interfaces.get(id)).copied();
        match interface {
            Some(interface) if endian == block.endian => {
                let rest = block.body.get(4..).unwrap_or_default();
                self.block(STATISTICS, &[&endian.bytes_of_u32(interface), rest])
            }
            _ => Ok(()),
        }
    }

    /// Return the packet's interface number and ticks in the new file.
    fn place(&mut self, whole: &Whole<'_>, last_ns: i64) -> io::Result<(u32, u64)> {
        // This block cannot represent times before 1970.
        let ns = last_ns.max(0) as u64;
        let link_type = whole.packet.link_type;
        match whole.original {
            Original::Pcapng(block) => {
                let known = self.sources.get(whole.source);
                let interface =
                    known.and_then(|known| known.interfaces.get(block.interface as usize));
                if let Some(interface) = interface {
                    return Ok((*interface, block.ticks));
                }
                Ok((self.added_interface(link_type, 0, NANOSECONDS)?, ns))
            }
            Original::Pcap(record) if record.ticks_per_second == 1_000_000 => {
                let interface = self.added_interface(link_type, record.snaplen, MICROSECONDS)?;
                Ok((interface, ns / 1000))
            }
            Original::Pcap(record) => {
                let interface = self.added_interface(link_type, record.snaplen, NANOSECONDS)?;
                Ok((interface, ns))
            }
            Original::Simple => Ok((self.added_interface(link_type, 0, NANOSECONDS)?, ns)),
        }
    }

    /// Return the number of an interface added for a file that describes none.
    fn added_interface(
        &mut self,
        link_type: LinkType,
        snaplen: u32,
        resolution: u8,
    ) -> io::Result<u32> {
        let endian = self.ensure_section()?;
        let known = self.added.iter().find(|(known, length, exponent, _)| {
            (*known, *length, *exponent) == (link_type, snaplen, resolution)
        });
        if let Some((.., id)) = known {
            return Ok(*id);
        }
        let mut body = Vec::from(endian.bytes_of_u16(link_type as u16));
        body.extend([0; 2]);
        body.extend(endian.bytes_of_u32(snaplen));
        option(&mut body, endian, IF_TSRESOL, &[resolution]);
        option(&mut body, endian, END_OF_OPTIONS, &[]);
        self.block(INTERFACE, &[&body])?;
        let id = self.interfaces;
        self.interfaces += 1;
        self.added.push((link_type, snaplen, resolution, id));
        Ok(id)
    }

    fn block(&mut self, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
        let endian = self.endian.unwrap_or_default();
        let body: usize = parts.iter().map(|part| part.len()).sum();
        let padding = body.next_multiple_of(4) - body;
        let len = endian.bytes_of_u32((HEAD_BYTES + body + padding + TAIL_BYTES) as u32);
        self.out.write_all(&endian.bytes_of_u32(kind))?;
        self.out.write_all(&len)?;
        for part in parts {
            self.out.write_all(part)?;
        }
        self.out
            .write_all([0; 4].get(..padding).unwrap_or_default())?;
        self.out.write_all(&len)
    }
}

fn options_after(block: &MetadataBlock, at: usize) -> Options<'_> {
    Options::new(block.body.get(at..).unwrap_or_default(), block.endian)
}

fn option(out: &mut Vec<u8>, endian: Endian, code: u16, value: &[u8]) {
    let value = value.get(..MAX_OPTION_BYTES).unwrap_or(value);
    out.extend(endian.bytes_of_u16(code));
    out.extend(endian.bytes_of_u16(value.len() as u16));
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Append a text option, truncated at a character boundary if it is too long.
fn text_option(out: &mut Vec<u8>, endian: Endian, code: u16, text: &str) {
    let ends = (0..=text.len().min(MAX_OPTION_BYTES)).rev();
    let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
    let most = text.get(..end.unwrap_or(0)).unwrap_or_default();
    option(out, endian, code, most.as_bytes());
}
