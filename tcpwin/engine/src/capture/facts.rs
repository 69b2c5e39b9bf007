//! Metadata of a capture: format, interfaces, counts, times, warnings.
//! Updated while reading: it describes what has been read so far.

use super::endian::Endian;
use super::error::{Fault, Warning};
use super::packet::LinkType;

/// Maximum number of warnings stored; further ones are only counted.
const MAX_WARNINGS: usize = 100;
/// Maximum number of interfaces stored; a concatenation of many sections repeats the same ones.
const MAX_INTERFACES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    Pcap,
    /// pcap with Kuznetzov's 24-byte record headers.
    PcapModified,
    Pcapng,
}

impl FileFormat {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapModified => "modified pcap",
            Self::Pcapng => "pcapng",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
    /// pcapng sections of both orders.
    Mixed,
}

impl ByteOrder {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Little => "little-endian",
            Self::Big => "big-endian",
            Self::Mixed => "mixed",
        }
    }
}

impl From<Endian> for ByteOrder {
    fn from(endian: Endian) -> Self {
        match endian {
            Endian::Little => Self::Little,
            Endian::Big => Self::Big,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Zstd,
    Lz4,
}

impl Compression {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }
}

/// A capture interface. A pcap file has exactly one; a pcapng file lists those of all its sections in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub link_type: LinkType,
    /// Maximum bytes captured per packet; 0 if the file states no limit.
    pub snaplen: u32,
    pub name: Option<String>,
    pub os: Option<String>,
    /// Timestamp resolution; saturated if it does not fit.
    pub ticks_per_second: u64,
    /// Packets received by the interface, from the last statistics block (`isb_ifrecv`).
    pub received: Option<u64>,
    /// Packets dropped for lack of resources, from the last statistics block (`isb_ifdrop`).
    pub drops: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFacts {
    /// The path as opened, or the name given by the caller.
    pub file: String,
    pub format: FileFormat,
    pub byte_order: ByteOrder,
    /// Outermost first; empty for a plain file.
    pub compression: Vec<Compression>,
    pub interfaces: Vec<Interface>,
    /// Interfaces beyond those stored in `interfaces`.
    pub interfaces_omitted: u64,
    /// Packets returned by the reader.
    pub packets: u64,
    /// Packets counted as frames but not returned, because their interface is not described.
    pub packets_skipped: u64,
    /// Packets captured with fewer bytes than they had on the wire.
    pub packets_snapped: u64,
    /// Packets whose timestamp is earlier than the previous packet's.
    pub time_backwards: u64,
    /// Time of the earliest packet.
    pub first_time_ns: Option<i64>,
    /// Time of the latest packet.
    pub last_time_ns: Option<i64>,
    /// Bytes read from the file itself, compressed or not.
    pub bytes_on_disk: u64,
    /// Bytes read after decompression, including read-ahead.
    pub bytes: u64,
    pub warnings: Vec<Warning>,
    /// Warnings beyond those stored in `warnings`.
    pub warnings_omitted: u64,
}

impl CaptureFacts {
    pub(super) fn new(file: String, compression: Vec<Compression>) -> Self {
        Self {
            file,
            format: FileFormat::Pcap,
            byte_order: ByteOrder::Little,
            compression,
            interfaces: Vec::new(),
            interfaces_omitted: 0,
            packets: 0,
            packets_skipped: 0,
            packets_snapped: 0,
            time_backwards: 0,
            first_time_ns: None,
            last_time_ns: None,
            bytes_on_disk: 0,
            bytes: 0,
            warnings: Vec::new(),
            warnings_omitted: 0,
        }
    }

    /// Return the finest resolution of any interface, in ticks per second; `None` if no interface is known yet.
    pub fn ticks_per_second(&self) -> Option<u64> {
        self.interfaces.iter().map(|i| i.ticks_per_second).max()
    }

    /// Return the packets that the interfaces report as dropped; `None` if no interface reports any count.
    pub fn drops(&self) -> Option<u64> {
        self.interfaces
            .iter()
            .filter_map(|i| i.drops)
            .reduce(u64::saturating_add)
    }

    #[cold]
    pub(super) fn warn(&mut self, fault: Fault) {
        if self.warnings.len() >= MAX_WARNINGS {
            self.warnings_omitted += 1;
            return;
        }
        self.warnings.push(Warning {
            kind: fault.kind,
            message: fault.message,
            file: self.file.clone(),
            byte_offset: fault.byte_offset,
        });
    }

    /// Store `interface` and return its index in `interfaces`, or `None` if there are too many.
    pub(super) fn add_interface(&mut self, interface: Interface) -> Option<usize> {
        if self.interfaces.len() >= MAX_INTERFACES {
            self.interfaces_omitted += 1;
            return None;
        }
        self.interfaces.push(interface);
        Some(self.interfaces.len() - 1)
    }
}
