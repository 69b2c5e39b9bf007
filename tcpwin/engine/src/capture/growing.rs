//! Find the complete records of a pcap file that is still being written.
//!
//! In: bytes from the start of a record. Out: the end of the last complete record, and the times of the first and last.

/// Longer than any real record: a length above this means that the bytes are not, or no longer, a capture.
const MAX_RECORD_BYTES: u32 = 1 << 26;
const RECORD_HEADER_BYTES: usize = 16;
const CAPTURED: usize = 8;

/// Byte order and timestamp unit, from the file header.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub is_big_endian: bool,
    /// Whether fractions of a second are in nanoseconds rather than microseconds.
    pub is_nanoseconds: bool,
}

/// The complete records found in a slice of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    pub end: usize,
    pub records: u64,
    /// Time of the first and last record, nanoseconds since the epoch; 0 without any.
    pub first_ns: i64,
    pub last_ns: i64,
    /// Whether the bytes after the last record are not a record, so that nothing after them can be read.
    pub is_damaged: bool,
}

pub fn grown(bytes: &[u8], layout: Layout) -> Grown {
    let mut grown = Grown::default();
    let word = |place: usize| -> Option<u32> {
        let four = *bytes.get(place..)?.first_chunk()?;
        Some(if layout.is_big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        })
    };
    loop {
        let parts = (
            word(grown.end),
            word(grown.end + 4),
            word(grown.end + CAPTURED),
        );
        let (Some(sec), Some(fraction), Some(captured)) = parts else {
            return grown;
        };
        if captured > MAX_RECORD_BYTES {
            grown.is_damaged = true;
            return grown;
        }
        let end = grown.end + RECORD_HEADER_BYTES + captured as usize;
        if end > bytes.len() {
            return grown;
        }
        let unit_ns = if layout.is_nanoseconds { 1 } else { 1000 };
        grown.last_ns = i64::from(sec) * 1_000_000_000 + i64::from(fraction) * unit_ns;
        if grown.records == 0 {
            grown.first_ns = grown.last_ns;
        }
        grown.end = end;
        grown.records += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Layout = Layout {
        is_big_endian: false,
        is_nanoseconds: false,
    };

    fn record(sec: u32, length: u32) -> Vec<u8> {
        let parts = [sec, 3, length, 1500];
        let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
        bytes.resize(16 + length as usize, 7);
        bytes
    }

    #[test]
    fn a_record_counts_once_it_is_whole() {
        let bytes = [record(1, 5), record(2, 0), record(3, 9)].concat();
        for cut in 0..=bytes.len() {
            let grown = grown(&bytes[..cut], LITTLE);
            let (end, records) = match cut {
                0..21 => (0, 0),
                21..37 => (21, 1),
                37..62 => (37, 2),
                _ => (62, 3),
            };
            assert_eq!(
                (grown.end, grown.records, grown.is_damaged),
                (end, records, false)
            );
            let last_ns = records as i64 * 1_000_000_000 + 3_000;
            assert_eq!(grown.last_ns, if records > 0 { last_ns } else { 0 });
        }
    }

    #[test]
    fn both_byte_orders_and_units_are_read() {
        let parts = [1u32, 3, 2, 2].iter().flat_map(|part| part.to_be_bytes());
        let bytes: Vec<u8> = parts.chain([7, 7]).collect();
        let layout = Layout {
            is_big_endian: true,
            is_nanoseconds: true,
        };
        let grown = grown(&bytes, layout);
        assert_eq!((grown.end, grown.first_ns), (18, 1_000_000_003));
    }

    #[test]
    fn an_impossible_length_is_damage() {
        let mut bytes = record(1, 5);
        bytes[11] = 0xFF;
        assert!(grown(&bytes, LITTLE).is_damaged);
    }
}
