//! Segments → pcap or pcapng with valid IPv4 and TCP checksums, Ethernet link type, cut at the snap length.
//! Payload is a fixed pattern indexed by stream offset, so that a retransmission repeats the same bytes. It is zero in
//! headers-only captures, which then compress as real ones do.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::random::Random;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;

const LINKTYPE_ETHERNET: u32 = 1;
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
/// Minimum distance of two packets: a burst on a fast link.
const PACKET_GAP_NS: u64 = 500;
const FULL_SNAPLEN: usize = 262_144;
const FLUSH_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Pcap,
    Pcapng,
}

/// The two ends of a connection: 0 is the client, 1 the server.
#[derive(Clone, Copy)]
pub struct Hosts {
    pub address: [u32; 2],
    pub port: [u16; 2],
    pub isn: [u32; 2],
}

/// A TCP segment; `start`, `ack` and `sack` count from each side's initial sequence number.
#[derive(Clone, Copy, Default)]
pub struct Segment {
    pub start: u64,
    pub ack: u64,
    pub flags: u8,
    pub window: u16,
    pub payload_len: u16,
    pub ip_id: u16,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    /// Value and echo reply (RFC 7323).
    pub timestamps: Option<[u32; 2]>,
    pub sack: [(u64, u64); 3],
    pub sack_count: u8,
}

/// Source of payload bytes, with running sums of their 16-bit words at both alignments.
struct Pattern {
    bytes: Vec<u8>,
    sums: [Vec<u32>; 2],
}

impl Pattern {
    const PERIOD: usize = 1 << 16;

    fn new(zero: bool) -> Self {
        let mut random = Random::new(42);
        let mut bytes: Vec<u8> = (0..Self::PERIOD / 8)
            .flat_map(|_| {
                if zero {
                    [0; 8]
                } else {
                    random.bits().to_le_bytes()
                }
            })
            .collect();
        bytes.extend_from_within(..);
        let sums_from = |first: usize| {
            let mut total = 0u32;
            std::iter::once(0)
                .chain(bytes[first..].chunks_exact(2).map(|pair| {
                    // Wraps harmlessly: only differences of less than 2^16 words are used.
                    total = total.wrapping_add(u32::from(u16::from_be_bytes([pair[0], pair[1]])));
                    total
                }))
                .collect()
        };
        let sums = [sums_from(0), sums_from(1)];
        Pattern { bytes, sums }
    }

    /// Return `len` bytes at a stream offset, and their ones' complement sum.
    fn cut(&self, offset: u64, len: u16) -> (&[u8], u64) {
        let first = (offset % Self::PERIOD as u64) as usize;
        let len = usize::from(len);
        let bytes = &self.bytes[first..first + len];
        let sums = &self.sums[first % 2];
        let mut sum = u64::from(sums[first / 2 + len / 2].wrapping_sub(sums[first / 2]));
        if len % 2 == 1 {
            sum += u64::from(bytes[len - 1]) << 8;
        }
        (bytes, sum)
    }
}

pub struct Writer {
    file: File,
    buffer: Vec<u8>,
    format: Format,
    snaplen: usize,
    last_ns: u64,
    pattern: Pattern,
    max_packets: u64,
    pub packets: u64,
    pub wire_bytes: u64,
}

impl Writer {
    /// Create a capture file of at most `max_packets`; a `snaplen` of 0 keeps whole packets.
    pub fn create(
        path: &Path,
        format: Format,
        snaplen: usize,
        max_packets: u64,
    ) -> io::Result<Self> {
        let snaplen = if snaplen == 0 { FULL_SNAPLEN } else { snaplen };
        let mut buffer = Vec::with_capacity(2 * FLUSH_BYTES);
        let words: &[u32] = match format {
            // Section Header Block of unknown section length, then one Interface Description Block.
            Format::Pcapng => &[
                0x0A0D_0D0A,
                28,
                0x1A2B_3C4D,
                1,
                !0,
                !0,
                28,
                1,
                20,
                LINKTYPE_ETHERNET,
                snaplen as u32,
                20,
            ],
            Format::Pcap => &[
                0xA1B2_C3D4,
                0x0004_0002,
                0,
                0,
                snaplen as u32,
                LINKTYPE_ETHERNET,
            ],
        };
        put_words(&mut buffer, words);
        Ok(Writer {
            file: File::create(path)?,
            buffer,
            format,
            snaplen,
            last_ns: 0,
            pattern: Pattern::new(snaplen < FULL_SNAPLEN),
            max_packets,
            packets: 0,
            wire_bytes: 0,
        })
    }

    pub fn is_full(&self) -> bool {
        self.packets >= self.max_packets
    }

    /// Append a segment sent by side `from`, unless full; times never run backwards in the file.
    pub fn write(
        &mut self,
        time_ns: u64,
        hosts: &Hosts,
        from: usize,
        segment: &Segment,
    ) -> io::Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let time_ns = time_ns.max(self.last_ns + PACKET_GAP_NS);
        self.last_ns = time_ns;

        let (payload, payload_sum) = self.pattern.cut(segment.start, segment.payload_len);
        let mut headers = [0u8; 14 + 20 + 60];
        let headers_len = put_headers(&mut headers, hosts, from, segment, payload_sum);
        let original_len = headers_len + payload.len();
        let captured_len = original_len.min(self.snaplen);
        let time_us = (EPOCH_NS + time_ns) / 1000;

        let out = &mut self.buffer;
        let padded_len = captured_len.next_multiple_of(4);
        match self.format {
            Format::Pcap => {
                let (seconds, us) = ((time_us / 1_000_000) as u32, (time_us % 1_000_000) as u32);
                put_words(
                    out,
                    &[seconds, us, captured_len as u32, original_len as u32],
                );
            }
            Format::Pcapng => {
                let (high, low) = ((time_us >> 32) as u32, time_us as u32);
                let block_len = 32 + padded_len as u32;
                put_words(
                    out,
                    &[
                        6,
                        block_len,
                        0,
                        high,
                        low,
                        captured_len as u32,
                        original_len as u32,
                    ],
                );
            }
        }
        out.extend_from_slice(&headers[..headers_len.min(captured_len)]);
        out.extend_from_slice(&payload[..captured_len.saturating_sub(headers_len)]);
        if self.format == Format::Pcapng {
            out.extend_from_slice(&[0u8; 3][..padded_len - captured_len]);
            put_words(out, &[32 + padded_len as u32]);
        }

        self.packets += 1;
        self.wire_bytes += original_len as u64;
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub fn span_ns(&self) -> u64 {
        self.last_ns
    }
}

fn put_words(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Write the Ethernet, IPv4 and TCP headers; return their total length.
fn put_headers(
    headers: &mut [u8; 94],
    hosts: &Hosts,
    from: usize,
    segment: &Segment,
    payload_sum: u64,
) -> usize {
    let to = 1 - from;
    let mut options = [0u8; 40];
    let options_len = put_options(&mut options, hosts, from, segment);
    let tcp_len = 20 + options_len;
    let ip_len = (20 + tcp_len) as u16 + segment.payload_len;

    headers[..14].copy_from_slice(&[
        2, 0, 0, 0, 0, to as u8, 2, 0, 0, 0, 0, from as u8, 0x08, 0x00,
    ]);

    let ip = &mut headers[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&ip_len.to_be_bytes());
    ip[4..6].copy_from_slice(&segment.ip_id.to_be_bytes());
    ip[6] = 0x40; // don't fragment
    ip[8] = 64;
    ip[9] = 6;
    ip[12..16].copy_from_slice(&hosts.address[from].to_be_bytes());
    ip[16..20].copy_from_slice(&hosts.address[to].to_be_bytes());
    let checksum = !fold(sum_words(ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());

    let seq = hosts.isn[from].wrapping_add(segment.start as u32);
    let ack = if segment.flags & ACK == 0 {
        0
    } else {
        hosts.isn[to].wrapping_add(segment.ack as u32)
    };
    let tcp = &mut headers[34..34 + tcp_len];
    tcp[0..2].copy_from_slice(&hosts.port[from].to_be_bytes());
    tcp[2..4].copy_from_slice(&hosts.port[to].to_be_bytes());
    tcp[4..8].copy_from_slice(&seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&ack.to_be_bytes());
    tcp[12] = (tcp_len as u8 / 4) << 4;
    tcp[13] = segment.flags;
    tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
    tcp[20..].copy_from_slice(&options[..options_len]);
    // RFC 9293 3.1: pseudo-header of both addresses, the protocol and the TCP length.
    let pseudo = 6 + (tcp_len + usize::from(segment.payload_len)) as u64;
    let addresses = halves(hosts.address[0]) + halves(hosts.address[1]);
    let checksum = !fold(sum_words(tcp) + pseudo + addresses + payload_sum);
    headers[50..52].copy_from_slice(&checksum.to_be_bytes());
    34 + tcp_len
}

/// Write the options in Linux's layout, padded to 4 bytes. They never exceed 40 bytes, as SYNs carry no SACK blocks.
fn put_options(options: &mut [u8; 40], hosts: &Hosts, from: usize, segment: &Segment) -> usize {
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        options[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
    };
    if let Some(mss) = segment.mss {
        put(&[2, 4]);
        put(&mss.to_be_bytes());
    }
    match (segment.sack_permitted, segment.timestamps.is_some()) {
        (true, true) => put(&[4, 2]),
        (true, false) => put(&[1, 1, 4, 2]),
        (false, true) => put(&[1, 1]),
        (false, false) => {}
    }
    if let Some([value, echo]) = segment.timestamps {
        put(&[8, 10]);
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    }
    if let Some(shift) = segment.scale {
        put(&[1, 3, 3, shift]);
    }
    if segment.sack_count > 0 {
        put(&[1, 1, 5, 2 + 8 * segment.sack_count]);
        for (left, right) in segment.sack.iter().take(usize::from(segment.sack_count)) {
            for edge in [left, right] {
                put(&hosts.isn[1 - from].wrapping_add(*edge as u32).to_be_bytes());
            }
        }
    }
    len
}

fn halves(word: u32) -> u64 {
    u64::from(word >> 16) + u64::from(word & 0xFFFF)
}

fn sum_words(bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(4)
        .map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}
