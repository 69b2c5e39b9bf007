//! pcap files (draft-ietf-opsawg-pcap): file header and records → [`Record`]s.
//! Supports both byte orders, micro- and nanoseconds, and Kuznetzov's 24-byte record headers.

use super::buffer::{ByteBuffer, Found, Record, MAX_RECORD_BYTES};
use super::endian::Endian;
use super::error::{Fault, WarningKind};
use super::facts::{CaptureFacts, FileFormat, Interface};
use super::packet::LinkType;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// Adds interface index, protocol and packet type to the standard fields (libpcap's `pcap_sf_patched_pkthdr`).
const MODIFIED_RECORD_HEADER_BYTES: usize = 24;

/// A record that claims more than this is damaged, unless the header's snaplen allows it (libpcap's `MAXIMUM_SNAPLEN`).
const MAX_CAPTURED_BYTES: u32 = 262_144;
/// The link type; the bits above it hold the FCS length and reserved bits, which readers ignore (draft-ietf-opsawg-pcap
/// §4).
const LINK_TYPE_MASK: u32 = 0x0000_ffff;

/// Order of a record's two lengths. libpcap's `sf-pcap.c`: swapped before version 2.3, either way in 2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthOrder {
    CapturedFirst,
    OriginalFirst,
    SmallerIsCaptured,
}

#[derive(Debug)]
pub(super) struct Pcap {
    endian: Endian,
    header_len: usize,
    ns_per_fraction: i64,
    /// A larger fraction is warned about once; then this is raised so that all pass.
    max_fraction: u32,
    max_captured: u32,
    length_order: LengthOrder,
    link_type: LinkType,
    /// Whether the file is little-endian with standard record headers and the captured length first.
    is_standard: bool,
}

struct Fields {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
}

impl Fields {
    /// Read the header with the captured length first.
    #[inline(always)]
    fn read(header: &[u8; RECORD_HEADER_BYTES], endian: Endian) -> Self {
        let [s0, s1, s2, s3, f0, f1, f2, f3, c0, c1, c2, c3, o0, o1, o2, o3] = *header;
        Self {
            seconds: endian.u32([s0, s1, s2, s3]),
            fraction: endian.u32([f0, f1, f2, f3]),
            captured: endian.u32([c0, c1, c2, c3]),
            original: endian.u32([o0, o1, o2, o3]),
        }
    }
}

/// Return true if `head` starts with a pcap magic number.
pub(super) fn is_pcap(head: &[u8]) -> bool {
    magic(head).is_some()
}

/// Return the magic number and the byte order in which it is valid.
fn magic(head: &[u8]) -> Option<(u32, Endian)> {
    let bytes = *head.first_chunk()?;
    let orders = [Endian::Little, Endian::Big].into_iter();
    orders
        .map(|endian| (endian.u32(bytes), endian))
        .find(|(value, _)| {
            matches!(
                *value,
                MAGIC_MICROSECONDS | MAGIC_NANOSECONDS | MAGIC_MODIFIED
            )
        })
}

impl Pcap {
    /// Parse the file header at the start of `buffer` and describe it in `facts`.
    pub fn open(buffer: &mut ByteBuffer, facts: &mut CaptureFacts) -> Result<Self, Fault> {
        buffer.require(FILE_HEADER_BYTES, "the pcap file header", 0)?;
        let header = buffer.window();
        let Some((magic, endian)) = magic(header) else {
            return Err(Fault::damaged(0, "not a pcap file".into()));
        };
        let (major, minor) = (endian.u16_at(header, 4), endian.u16_at(header, 6));
        // libpcap's `sf-pcap.c`: 2.0 to 2.4, and 543.0 by DG/UX's tcpdump.
        let length_order = match (major, minor) {
            (2, 0..=2) | (543, 0) => LengthOrder::OriginalFirst,
            (2, 3) => LengthOrder::SmallerIsCaptured,
            (2, 4) => LengthOrder::CapturedFirst,
            _ => {
                return Err(Fault::damaged(
                    4,
                    format!(
                    "unsupported pcap version {major}.{minor} (2.4 is current); the header may be damaged"
                ),
                ))
            }
        };
        let snaplen = endian.u32_at(header, 16);
        let link_type = endian.u32_at(header, 20) & LINK_TYPE_MASK;
        let nanoseconds = magic == MAGIC_NANOSECONDS;
        let modified = magic == MAGIC_MODIFIED;
        let ticks_per_second = if nanoseconds {
            1_000_000_000
        } else {
            1_000_000
        };

        facts.format = if modified {
            FileFormat::PcapModified
        } else {
            FileFormat::Pcap
        };
        facts.byte_order = endian.into();
        facts.add_interface(Interface {
            link_type,
            snaplen,
            name: None,
            os: None,
            ticks_per_second: u64::from(ticks_per_second),
            received: None,
            drops: None,
        });
        buffer.consume(FILE_HEADER_BYTES);
        Ok(Self {
            endian,
            header_len: if modified {
                MODIFIED_RECORD_HEADER_BYTES
            } else {
                RECORD_HEADER_BYTES
            },
            ns_per_fraction: if nanoseconds { 1 } else { 1000 },
            max_fraction: ticks_per_second - 1,
            max_captured: snaplen.clamp(MAX_CAPTURED_BYTES, MAX_RECORD_BYTES),
            length_order,
            link_type,
            is_standard: endian == Endian::Little
                && !modified
                && length_order == LengthOrder::CapturedFirst,
        })
    }

    /// Take the next record if it is complete in the buffer and ordinary.
    #[inline(always)]
    pub fn take(&self, buffer: &mut ByteBuffer) -> Option<Record> {
        let window = buffer.window();
        let fields = self.fields(window.first_chunk()?);
        if !self.is_ordinary(&fields) {
            return None;
        }
        let record_len = self.header_len + fields.captured as usize;
        if window.len() < record_len {
            return None;
        }
        let begin = buffer.position();
        let start = begin + self.header_len;
        buffer.consume(record_len);
        Some(Record {
            begin,
            start,
            captured_len: fields.captured,
            original_len: fields.original.max(fields.captured),
            link_type: self.link_type,
            time_ns: Some(self.time_ns(&fields)),
        })
    }

    /// Return the packet that [`Pcap::take`] would return in a standard file, and the rest of `window` after it.
    #[inline(always)]
    pub fn find<'w>(&self, window: &'w [u8]) -> Option<(Found<'w>, &'w [u8])> {
        let (header, rest) = window.split_first_chunk()?;
        let fields = Fields::read(header, Endian::Little);
        if !self.is_standard || !self.is_ordinary(&fields) {
            return None;
        }
        let (captured, rest) = rest.split_at_checked(fields.captured as usize)?;
        let found = Found {
            time_ns: self.time_ns(&fields),
            captured,
            original_len: fields.original.max(fields.captured),
            link_type: self.link_type,
        };
        Some((found, rest))
    }

    #[inline(always)]
    fn is_ordinary(&self, fields: &Fields) -> bool {
        fields.captured <= self.max_captured && fields.fraction <= self.max_fraction
    }

    #[inline(always)]
    fn time_ns(&self, fields: &Fields) -> i64 {
        i64::from(fields.seconds) * 1_000_000_000
            + i64::from(fields.fraction) * self.ns_per_fraction
    }

    #[inline(always)]
    fn fields(&self, header: &[u8; RECORD_HEADER_BYTES]) -> Fields {
        let fields = Fields::read(header, self.endian);
        let (first, second) = (fields.captured, fields.original);
        let (captured, original) = match self.length_order {
            LengthOrder::CapturedFirst => (first, second),
            LengthOrder::OriginalFirst => (second, first),
            LengthOrder::SmallerIsCaptured => (first.min(second), first.max(second)),
        };
        Fields {
            captured,
            original,
            ..fields
        }
    }

    /// Read the next record if [`Pcap::take`] could not: refill, note anomalies, or end. `Ok(None)` is a clean end.
    #[cold]
    pub fn next(
        &mut self,
        buffer: &mut ByteBuffer,
        facts: &mut CaptureFacts,
    ) -> Result<Option<Record>, Fault> {
        if !buffer.begin(self.header_len, "a record header")? {
            return Ok(None);
        }
        let offset = buffer.offset();
        let Some(header) = buffer.window().first_chunk() else {
            return Ok(None);
        };
        let fields = self.fields(header);
        if fields.captured > self.max_captured {
            return Err(Fault::damaged(
                offset,
                format!(
                    "a record claims {} captured bytes, but at most {} are possible; reading stopped",
                    fields.captured, self.max_captured
                ),
            ));
        }
        if fields.fraction > self.max_fraction {
            facts.warn(Fault {
                kind: WarningKind::TimeOutOfRange,
                byte_offset: offset,
                message: format!(
                    "a record's fraction of a second is {}, above {}; added anyway (reported once)",
                    fields.fraction, self.max_fraction
                ),
            });
            self.max_fraction = u32::MAX;
        }
        let record_len = self.header_len + fields.captured as usize;
        buffer.require(record_len, "a packet", offset)?;
        Ok(self.take(buffer))
    }
}
