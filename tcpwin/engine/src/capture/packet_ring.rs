//! Convert blocks of a Linux packet socket's ring buffer to pcap records.
//!
//! In: a TPACKET_V3 block owned by user space (`linux/if_packet.h`). Out: little-endian records with nanosecond
//! timestamps. An inconsistent block yields the packets before the inconsistency.

/// Offsets in `tpacket_block_desc`, after its version and the offset of private data.
const NUM_PKTS: usize = 12;
const FIRST_PKT: usize = 16;
/// Offsets in `tpacket3_hdr`; the link-layer address follows it, aligned to 16.
const SEC: usize = 4;
const NSEC: usize = 8;
const SNAPLEN: usize = 12;
const LEN: usize = 16;
const NET: usize = 26;
const HEADER_BYTES: usize = 48;
/// Offset in `sockaddr_ll` of the packet's direction.
const PKTTYPE: usize = HEADER_BYTES + 10;
const OUTGOING: u8 = 4;

/// The records appended from a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    pub packets: u64,
    /// Time of the first and last packet, nanoseconds since the epoch; 0 without any.
    pub first_ns: i64,
    pub last_ns: i64,
}

/// Append a record for each packet of a block. Set `skip_outgoing` on a loopback, where each packet is captured
/// both leaving and arriving.
pub fn append_records(block: &[u8], skip_outgoing: bool, out: &mut Vec<u8>) -> Appended {
    let mut appended = Appended::default();
    let (Some(count), Some(first)) = (word(block, NUM_PKTS), word(block, FIRST_PKT)) else {
        return appended;
    };
    let mut place = first as usize;
    for _ in 0..count {
        let Some(next) = append_record(block, place, skip_outgoing, out, &mut appended) else {
            break;
        };
        place = next;
    }
    appended
}

/// Append one record and return the position of the next packet.
fn append_record(
    block: &[u8],
    place: usize,
    skip_outgoing: bool,
    out: &mut Vec<u8>,
    appended: &mut Appended,
) -> Option<usize> {
    let packet = block.get(place..)?;
    let (sec, nsec) = (word(packet, SEC)?, word(packet, NSEC)?);
    let (snaplen, len) = (word(packet, SNAPLEN)?, word(packet, LEN)?);
    let net = usize::from(u16::from_ne_bytes(*packet.get(NET..)?.first_chunk()?));
    let data = packet.get(net..net.checked_add(snaplen as usize)?)?;
    let is_outgoing = *packet.get(PKTTYPE)? == OUTGOING;
    if !(skip_outgoing && is_outgoing) {
        for part in [sec, nsec, snaplen, len] {
            out.extend_from_slice(&part.to_le_bytes());
        }
        out.extend_from_slice(data);
        let time_ns = i64::from(sec) * 1_000_000_000 + i64::from(nsec);
        if appended.packets == 0 {
            appended.first_ns = time_ns;
        }
        appended.last_ns = time_ns;
        appended.packets += 1;
    }
    let next = word(packet, 0)? as usize;
    // The last packet of a block has no successor.
    place.checked_add(next).filter(|_| next >= HEADER_BYTES)
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    let four = bytes.get(place..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATA_AT: usize = 96;
    const RECORD_HEADER_BYTES: usize = 16;

    /// A block in the kernel's layout: packets at multiples of 16, the last one without a next offset.
    fn block(packets: &[(u32, u8, &[u8])]) -> Vec<u8> {
        let mut block = vec![0u8; 48];
        block[NUM_PKTS..NUM_PKTS + 4].copy_from_slice(&(packets.len() as u32).to_ne_bytes());
        block[FIRST_PKT..FIRST_PKT + 4].copy_from_slice(&48u32.to_ne_bytes());
        for (nth, (sec, kind, data)) in packets.iter().enumerate() {
            let mut packet = vec![0u8; (DATA_AT + data.len()).next_multiple_of(16)];
            let next = if nth + 1 < packets.len() {
                packet.len()
            } else {
                0
            };
            let mut put = |place: usize, value: u32| {
                packet[place..place + 4].copy_from_slice(&value.to_ne_bytes());
            };
            put(0, next as u32);
            put(SEC, *sec);
            put(NSEC, 7);
            put(SNAPLEN, data.len() as u32);
            put(LEN, 1500);
            packet[NET..NET + 2].copy_from_slice(&(DATA_AT as u16).to_ne_bytes());
            packet[PKTTYPE] = *kind;
            packet[DATA_AT..DATA_AT + data.len()].copy_from_slice(data);
            block.extend(packet);
        }
        block
    }

    #[test]
    fn each_packet_is_a_record() {
        let mut out = Vec::new();
        let appended = append_records(&block(&[(5, 0, b"one"), (6, 4, b"two!")]), false, &mut out);
        let expected = Appended {
            packets: 2,
            first_ns: 5_000_000_007,
            last_ns: 6_000_000_007,
        };
        assert_eq!(appended, expected);
        let mut record = Vec::new();
        for part in [5u32, 7, 3, 1500] {
            record.extend(part.to_le_bytes());
        }
        record.extend(b"one");
        assert_eq!(out[..19], record);
        assert_eq!(out.len(), 2 * RECORD_HEADER_BYTES + 7);
    }

    #[test]
    fn outgoing_packets_of_a_loopback_are_skipped() {
        let mut out = Vec::new();
        let appended = append_records(&block(&[(5, 4, b"one"), (6, 0, b"two!")]), true, &mut out);
        assert_eq!((appended.packets, appended.first_ns), (1, 6_000_000_007));
        assert_eq!(out.len(), RECORD_HEADER_BYTES + 4);
    }

    proptest! {
        #[test]
        fn no_block_is_read_beyond_its_end(mut bytes in prop::collection::vec(any::<u8>(), 0..400), place in 0usize..200) {
            let good = block(&[(5, 0, b"one"), (6, 0, b"two!")]);
            append_records(&bytes, false, &mut Vec::new());
            let end = (place + bytes.len()).min(good.len());
            bytes.truncate(end.saturating_sub(place));
            let mut bent = good.clone();
            bent[end - bytes.len()..end].copy_from_slice(&bytes);
            let mut out = Vec::new();
            let appended = append_records(&bent, false, &mut out);
            prop_assert!(out.len() <= bent.len() * (appended.packets as usize + 1));
        }
    }
}
