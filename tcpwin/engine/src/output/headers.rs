//! Write a capture's headers as pcapng: each packet is truncated to the fewest bytes that still parse to the same
//! result. Later stages produce the same results for both files, apart from the facts about the file itself.
//!
//! Block layouts: draft-ietf-opsawg-pcapng §4.1 (section), §4.2 (interface; if_tsresol 9), §4.3 (enhanced packet).

use std::io::{self, Write};

use crate::capture::{LinkType, MergedReader, Packet};
use crate::wire::{capture_flag, Outcome, Segment, SegmentParser};

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 14;
/// Enough for the headers that continue in a fragment; reassembly needs no later byte.
const FRAGMENT_BYTES: usize = 128;
const LINK_TYPE_ETHERNET: LinkType = 1;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const TCP_BYTES: usize = 20;

/// Number of packets, and of truncated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    pub packets: u64,
    pub packets_cut: u64,
    /// Whether the progress function requested a stop.
    pub was_stopped: bool,
}

/// Write the packets of `input`, untruncated if `whole`. `report` is called periodically with the bytes read so far.
pub fn write_headers(
    input: &mut MergedReader,
    out: &mut impl Write,
    whole: bool,
    mut report: impl FnMut(u64) -> bool,
) -> io::Result<Cut> {
    let mut cut = Cut::default();
    let mut writer = BlockWriter::begin(out)?;
    let mut last_ns = 0;
    let mut next_frame = 1;
    loop {
        if cut.packets % REPORT_EVERY == 0 && !report(input.bytes_read()) {
            cut.was_stopped = true;
            break;
        }
        let Some(packet) = input.next_packet() else {
            break;
        };
        // A packet without a time gets the previous packet's, as in later stages.
        last_ns = packet.time_ns.unwrap_or(last_ns);
        let captured_len = if whole {
            packet.captured.len()
        } else {
            header_len(&packet)
        };
        while next_frame < packet.frame {
            writer.skipped()?;
            next_frame += 1;
        }
        next_frame += 1;
        writer.packet(&packet, last_ns, captured_len)?;
        cut.packets += 1;
        cut.packets_cut += u64::from(captured_len < packet.captured.len());
    }
    writer.finish()?;
    Ok(cut)
}

/// Return the shortest prefix of a packet that parses to the same result as all of it.
pub(super) fn header_len(packet: &Packet<'_>) -> usize {
    if let Some(len) = plain_header_len(packet) {
        return len;
    }
    let (wanted, full) = parsed(packet, packet.captured.len());
    let (mut low, mut high) = (0, packet.captured.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let (outcome, segment) = parsed(packet, middle);
        if outcome == wanted && (outcome != Outcome::Segment || is_same(&segment, &full)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if wanted == Outcome::FragmentPending && !is_later_fragment(packet) {
        high = (high + FRAGMENT_BYTES).min(packet.captured.len());
    }
    high
}

/// Return the header length of an ordinary TCP segment in IPv4 in Ethernet; `None` for other packets.
#[inline]
fn plain_header_len(packet: &Packet<'_>) -> Option<usize> {
    let captured = packet.captured;
    if packet.link_type != LINK_TYPE_ETHERNET || captured.get(12..14)? != [8, 0] {
        return None;
    }
    let ip = captured.get(ETHERNET_BYTES..)?;
    let [version, _, length_high, length_low, _, _, fragment_high, fragment_low, _, protocol] =
        *ip.first_chunk::<10>()?;
    let ip_len = usize::from(version & 0x0F) * 4;
    let is_fragment = fragment_high & 0x3F != 0 || fragment_low != 0;
    if version >> 4 != 4 || ip_len < IPV4_BYTES || is_fragment || protocol != 6 {
        return None;
    }
    let tcp = ip.get(ip_len..)?;
    let tcp_len = usize::from(tcp.get(12)? >> 4) * 4;
    let total_len = usize::from(u16::from_be_bytes([length_high, length_low]));
    // A length of 0 means the length of the frame, which is not truncated.
    let fits = total_len == 0 || total_len >= ip_len + tcp_len;
    let is_good = tcp_len >= TCP_BYTES && tcp_len <= tcp.len() && fits;
    is_good.then_some(ETHERNET_BYTES + ip_len + tcp_len)
}

/// Return true for a non-first fragment of an IPv4 datagram directly in Ethernet, whose data starts after all headers.
fn is_later_fragment(packet: &Packet<'_>) -> bool {
    let captured = packet.captured;
    let at = |index: usize| captured.get(index).copied().unwrap_or(0);
    let offset = usize::from(u16::from_be_bytes([at(20) & 0x1F, at(21)])) * 8;
    packet.link_type == LINK_TYPE_ETHERNET && (at(12), at(13)) == (8, 0) && offset >= FRAGMENT_BYTES
}

/// Parse only the first `len` captured bytes, independently of fragments in other packets.
fn parsed(packet: &Packet<'_>, len: usize) -> (Outcome, Segment) {
    let mut segment = Segment::EMPTY;
    let cut = Packet {
        captured: packet.captured.get(..len).unwrap_or(packet.captured),
        ..*packet
    };
    let outcome = SegmentParser::new().parse(&cut, 0, &mut segment);
    (outcome, segment)
}

fn is_same(cut: &Segment, full: &Segment) -> bool {
    let unsnapped = |segment: &Segment| Segment {
        capture_flags: segment.capture_flags & !capture_flag::SNAPPED,
        ..*segment
    };
    unsnapped(cut) == unsnapped(full)
}

pub(super) struct BlockWriter<'o, W: ?Sized> {
    out: &'o mut W,
    /// One interface per link type.
    link_types: Vec<LinkType>,
}

impl<'o, W: Write + ?Sized> BlockWriter<'o, W> {
    pub fn begin(out: &'o mut W) -> io::Result<Self> {
        let mut body = Vec::from(0x1a2b_3c4d_u32.to_le_bytes());
        body.extend(1u16.to_le_bytes());
        body.extend(0u16.to_le_bytes());
        body.extend((-1i64).to_le_bytes());
        block(out, 0x0a0d_0d0a, &body)?;
        Ok(Self {
            out,
            link_types: Vec::new(),
        })
    }

    /// Write a placeholder for a packet of an unknown interface, so that readers number and skip it as in the input.
    pub fn skipped(&mut self) -> io::Result<()> {
        block(
            self.out,
            6,
            &[0xff; 4].into_iter().chain([0; 16]).collect::<Vec<u8>>(),
        )
    }

    pub fn packet(
        &mut self,
        packet: &Packet<'_>,
        time_ns: i64,
        captured_len: usize,
    ) -> io::Result<()> {
        let interface = self.interface(packet.link_type)?;
        let data = packet
            .captured
            .get(..captured_len)
            .unwrap_or(packet.captured);
        let padding = data.len().next_multiple_of(4) - data.len();
        let len = (32 + data.len() + padding) as u32;
        // This block cannot represent times before 1970.
        let ticks = time_ns.max(0) as u64;
        let mut head = [0; 28];
        let fields = [
            6,
            len,
            interface,
            (ticks >> 32) as u32,
            ticks as u32,
            data.len() as u32,
            packet.original_len,
        ];
        for (place, field) in head.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        self.out.write_all(&head)?;
        self.out.write_all(data)?;
        self.out
            .write_all([0; 4].get(..padding).unwrap_or_default())?;
        self.out.write_all(&len.to_le_bytes())
    }

    pub fn finish(self) -> io::Result<()> {
        self.out.flush()
    }

    fn interface(&mut self, link_type: LinkType) -> io::Result<u32> {
        if let Some(at) = self.link_types.iter().position(|known| *known == link_type) {
            return Ok(at as u32);
        }
        let mut body = Vec::from((link_type as u16).to_le_bytes());
        // Reserved, no snapshot length; nanoseconds; end of options.
        body.extend([0; 6]);
        body.extend([9, 0, 1, 0, 9, 0, 0, 0]);
        body.extend([0; 4]);
        block(self.out, 1, &body)?;
        self.link_types.push(link_type);
        Ok(self.link_types.len() as u32 - 1)
    }
}

fn block(out: &mut (impl Write + ?Sized), kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (body.len() as u32 + 12).to_le_bytes();
    for part in [&kind.to_le_bytes()[..], &len, body, &len] {
        out.write_all(part)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureReader;

    fn tcp_packet(options: usize, payload: usize) -> Vec<u8> {
        let total = (40 + options + payload) as u16;
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        bytes.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 9, 0, 0, 0, 7]);
        bytes.extend([((20 + options) * 4) as u8, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes.extend(vec![1; options]);
        bytes.extend(vec![b'x'; payload]);
        bytes
    }

    fn vlan(packet: &[u8]) -> Vec<u8> {
        let mut bytes = packet[..12].to_vec();
        bytes.extend([0x81, 0, 0, 7]);
        bytes.extend(&packet[12..]);
        bytes
    }

    fn cut_len(bytes: &[u8]) -> usize {
        header_len(&Packet {
            frame: 1,
            time_ns: Some(5),
            captured: bytes,
            original_len: bytes.len() as u32,
            link_type: LINK_TYPE_ETHERNET,
        })
    }

    #[test]
    fn a_segment_keeps_all_headers_and_no_payload() {
        assert_eq!(cut_len(&tcp_packet(12, 1000)), 66);
        assert_eq!(cut_len(&tcp_packet(0, 1)), 54);
        assert_eq!(cut_len(&vlan(&tcp_packet(12, 1000))), 70);
    }

    #[test]
    fn a_datagram_without_tcp_keeps_no_payload() {
        let mut packet = tcp_packet(0, 100);
        packet[23] = 17;
        assert!(cut_len(&packet) <= 42);
    }

    #[test]
    fn a_later_fragment_keeps_its_ip_header_only() {
        let mut packet = tcp_packet(0, 1000);
        packet[20..22].copy_from_slice(&[0x20, 185]);
        assert_eq!(cut_len(&packet), 34);
    }

    #[test]
    fn output_can_be_read_back() {
        let mut pcap = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
            pcap.extend(word.to_le_bytes());
        }
        let packet = tcp_packet(12, 1000);
        for word in [7, 9, packet.len() as u32, packet.len() as u32] {
            pcap.extend(word.to_le_bytes());
        }
        pcap.extend(&packet);
        let read = |bytes: Vec<u8>| {
            CaptureReader::from_reader(Box::new(io::Cursor::new(bytes)), "test")
                .map(|reader| MergedReader::from_readers(vec![reader]))
        };
        let mut written = Vec::new();
        let mut input = read(pcap).unwrap();
        let cut = write_headers(&mut input, &mut written, false, |_| true).unwrap();
        assert_eq!((cut.packets, cut.packets_cut), (1, 1));
        assert!(!written.windows(4).any(|four| four == b"xxxx"));
        let mut reread = read(written).unwrap();
        let packet = reread.next_packet().unwrap();
        assert_eq!(packet.time_ns, Some(7_000_009_000));
        assert_eq!((packet.captured.len(), packet.original_len), (66, 1066));
    }
}
