//! Packets in, as their files hold them, and a pcapng file out, with comments. Each packet keeps its time to the last
//! tick, its link type and interface, its length on the wire, and its own comments.
//!
//! One pcapng file is copied section by section, in its own byte order. Everything else becomes one section of ours:
//! what is only understood in another byte order is left out there, comments are not.
//! Block layouts: draft-ietf-opsawg-pcapng §4.1 (section), §4.2 (interface), §4.3 (enhanced packet), §3.5 (options).

use std::io::{self, Write};

use super::block::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, HEAD_BYTES, SECTION_HEADER, TAIL_BYTES};
use super::endian::Endian;
use super::options::Options;
use super::originals::{Aside, Original, Whole};
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

/// Ticks of the powers of ten that `if_tsresol` counts.
const MICROSECONDS: u8 = 6;
const NANOSECONDS: u8 = 9;

const MOST_OPTION_BYTES: usize = u16::MAX as usize;

/// What of a file beside its packets is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every block.
    Everything,
    /// What the packets need: no keys of other connections, no logs.
    Needed,
}

/// Writes a pcapng file.
pub struct Rewriter<W: Write> {
    out: W,
    extent: Extent,
    /// There is one pcapng file, whose sections are those of the new one.
    is_mirror: bool,
    /// Of the section being written; none before the first.
    endian: Option<Endian>,
    application: String,
    comment: String,
    sources: Vec<Source>,
    /// Described in the section being written.
    interfaces: u32,
    /// Those that no file described in pcapng, with their snapshot length and resolution.
    own: Vec<(LinkType, u32, u8, u32)>,
    scratch: Vec<u8>,
}

/// What a source's interfaces are called in the new file.
#[derive(Clone, Default)]
struct Source {
    interfaces: Vec<u32>,
}

impl<W: Write> Rewriter<W> {
    /// `sources` says how many captures there are; `comment` is of the whole new file.
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
            own: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Blocks of a source that hold no packet.
    pub fn asides(&mut self, source: usize, asides: &[Aside]) -> io::Result<()> {
        for aside in asides {
            let is_kept = aside.kind == NAME_RESOLUTION || self.extent == Extent::Everything;
            match aside.kind {
                SECTION_HEADER => self.section(source, aside)?,
                INTERFACE => self.interface(source, aside)?,
                STATISTICS => self.statistics(source, aside)?,
                kind if is_kept && self.begun()? == aside.endian => {
                    self.block(kind, &[&aside.body])?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A packet, cut to `captured_len` bytes, with further comments. `last_ns` is its time, or that of the one before.
    pub fn packet(
        &mut self,
        whole: &Whole<'_>,
        captured_len: usize,
        last_ns: i64,
        comments: &[impl AsRef<str>],
    ) -> io::Result<()> {
        let endian = self.begun()?;
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
                // A hash is of the bytes before they were cut.
                let is_true =
                    code == COMMENT || (block.endian == endian && !(is_cut && code == EPB_HASH));
                if is_true {
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

    /// Write the last bytes; a file without packets is one, too.
    pub fn finish(mut self) -> io::Result<()> {
        self.begun()?;
        self.out.flush()
    }

    /// Byte order of the section being written, which this begins where none was begun.
    fn begun(&mut self) -> io::Result<Endian> {
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
        // Of the first section only: the comment is of the file.
        if self.endian.is_none() && !self.comment.is_empty() {
            text_option(&mut options, endian, COMMENT, &self.comment);
        }
        if !options.is_empty() {
            option(&mut options, endian, END_OF_OPTIONS, &[]);
        }
        self.endian = Some(endian);
        self.interfaces = 0;
        self.own.clear();
        let mut head = Vec::from(endian.bytes_of_u32(BYTE_ORDER_MAGIC));
        head.extend(endian.bytes_of_u16(1));
        head.extend(endian.bytes_of_u16(0));
        // The section's length is not known before its end.
        head.extend([0xff; 8]);
        self.block(SECTION_HEADER, &[&head, &options])
    }

    fn section(&mut self, source: usize, aside: &Aside) -> io::Result<()> {
        if let Some(known) = self.sources.get_mut(source) {
            known.interfaces.clear();
        }
        if !self.is_mirror {
            return Ok(());
        }
        let mut options = Vec::new();
        for (code, value) in options_after(aside, 16) {
            option(&mut options, aside.endian, code, value);
        }
        self.write_section(aside.endian, options)
    }

    fn interface(&mut self, source: usize, aside: &Aside) -> io::Result<()> {
        let endian = self.begun()?;
        if endian == aside.endian {
            self.block(INTERFACE, &[&aside.body])?;
        } else {
            let head = [
                &endian.bytes_of_u16(aside.endian.u16_at(&aside.body, 0))[..],
                &[0; 2],
                &endian.bytes_of_u32(aside.endian.u32_at(&aside.body, 4)),
            ];
            let mut options = Vec::new();
            for (code, value) in options_after(aside, 8) {
                match code {
                    IF_TSOFFSET => {
                        let turned: Vec<u8> = value.iter().rev().copied().collect();
                        option(&mut options, endian, code, &turned);
                    }
                    // Texts (if_name, if_description) and a number of one octet.
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

    fn statistics(&mut self, source: usize, aside: &Aside) -> io::Result<()> {
        let endian = self.begun()?;
        let id = aside.endian.u32_at(&aside.body, 0) as usize;
        let known = self.sources.get(source);
        let interface = known.and_then(|known| known.interfaces.get(id)).copied();
        match interface {
            Some(interface) if endian == aside.endian => {
                let rest = aside.body.get(4..).unwrap_or_default();
                self.block(STATISTICS, &[&endian.bytes_of_u32(interface), rest])
            }
            _ => Ok(()),
        }
    }

    /// Interface and ticks of a packet in the new file.
    fn place(&mut self, whole: &Whole<'_>, last_ns: i64) -> io::Result<(u32, u64)> {
        // Times before 1970 have no form in this block.
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
                Ok((self.own_interface(link_type, 0, NANOSECONDS)?, ns))
            }
            Original::Pcap(record) if record.ticks_per_second == 1_000_000 => {
                let interface = self.own_interface(link_type, record.snaplen, MICROSECONDS)?;
                Ok((interface, ns / 1000))
            }
            Original::Pcap(record) => {
                let interface = self.own_interface(link_type, record.snaplen, NANOSECONDS)?;
                Ok((interface, ns))
            }
            Original::Simple => Ok((self.own_interface(link_type, 0, NANOSECONDS)?, ns)),
        }
    }

    /// An interface that no file described in pcapng.
    fn own_interface(
        &mut self,
        link_type: LinkType,
        snaplen: u32,
        resolution: u8,
    ) -> io::Result<u32> {
        let endian = self.begun()?;
        let known = self.own.iter().find(|(known, length, exponent, _)| {
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
        self.own.push((link_type, snaplen, resolution, id));
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

fn options_after(aside: &Aside, at: usize) -> Options<'_> {
    Options::new(aside.body.get(at..).unwrap_or_default(), aside.endian)
}

fn option(out: &mut Vec<u8>, endian: Endian, code: u16, value: &[u8]) {
    let value = value.get(..MOST_OPTION_BYTES).unwrap_or(value);
    out.extend(endian.bytes_of_u16(code));
    out.extend(endian.bytes_of_u16(value.len() as u16));
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A text, of which what is too long is cut off between two characters.
fn text_option(out: &mut Vec<u8>, endian: Endian, code: u16, text: &str) {
    let ends = (0..=text.len().min(MOST_OPTION_BYTES)).rev();
    let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
    let most = text.get(..end.unwrap_or(0)).unwrap_or_default();
    option(out, endian, code, most.as_bytes());
}
