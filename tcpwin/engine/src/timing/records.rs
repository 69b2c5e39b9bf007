//! The records of a direction's rounds, each in some thirty bytes instead of a hundred.
//!
//! Rounds end all the time, and of thousands of connections no record stays in a cache: what is written to memory, and
//! kept there, is what they cost. Most parts of a record are small, zero, or told by another. Comes in: records in order.
//! Goes out: the same records.

use crate::cache::{ask_for, LINE_BYTES};
use crate::timing::item::Item;
use crate::timing::path::Record;

/// Numbers that nearly every record has, and how many bytes they take together where each fits its own.
const USUAL: usize = 7;
const NARROW_BYTES: usize = 5 * 4 + 2 * 2;
/// Numbers that are mostly zero: those that are not stand behind the others, as a bit each says.
const RARE: usize = 9;
/// The bit that says that all numbers take eight bytes each; else those that are mostly zero take four.
const IS_WIDE: u16 = 1 << 15;
const HEAD_BYTES: usize = 4;
const MOST_BYTES: usize = HEAD_BYTES + (USUAL + RARE) * 8;
/// Room that is added at once: little at first, since most connections have few rounds. What is written stays where it is.
const FIRST_ROOM_BYTES: usize = MOST_BYTES + 64;
const ROOM_BYTES: usize = 1024;

#[derive(Clone, Debug, Default)]
pub struct Records {
    rooms: Vec<Vec<u8>>,
    count: u32,
    last: Last,
}

/// What the next record is told by, of the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    end_ns: i64,
    window_bytes: u32,
}

impl Records {
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Bring what [`Records::push`] writes to into the cache.
    #[inline(always)]
    pub fn ask_for_end(&self) {
        if let Some(bytes) = self.rooms.last() {
            let end = bytes.as_ptr().wrapping_add(bytes.len());
            ask_for(end);
            ask_for(end.wrapping_add(LINE_BYTES));
        }
    }

    pub fn push(&mut self, record: &Record) {
        let (usual, rare) = self.last.numbers(record);
        self.last = Last::from(record);
        let mut bits = 0;
        for (place, number) in rare.iter().enumerate() {
            bits |= u16::from(*number != 0) << place;
        }
        let [elapsed, delivered, gap, peak, delay, below, above] = usual;
        let words = rare
            .iter()
            .fold(elapsed | delivered | gap | peak | delay, |all, number| {
                all | number
            });
        let is_narrow = (words >> 32) | ((below | above) >> 16) == 0;
        if !is_narrow {
            bits |= IS_WIDE;
        }
        let [low, high] = bits.to_le_bytes();
        let head = [low, high, record.item as u8, record.otherwise as u8];
        if is_narrow {
            self.push_narrow(head, usual, rare);
        } else {
            self.push_wide(head, usual, rare);
        }
        self.count += 1;
    }

    #[inline(always)]
    fn push_narrow(&mut self, head: [u8; HEAD_BYTES], usual: [u64; USUAL], rare: [u64; RARE]) {
        let [five @ .., below, above] = usual;
        // What is left out is overwritten by what comes next: no branch on what there is.
        let mut narrow = [0u8; HEAD_BYTES + NARROW_BYTES + RARE * 4];
        let (first, twos) = narrow.split_at_mut(HEAD_BYTES + five.len() * 4);
        let (start, fours) = first.split_at_mut(HEAD_BYTES);
        start.copy_from_slice(&head);
        for (four, number) in fours.chunks_exact_mut(4).zip(five) {
            four.copy_from_slice(&(number as u32).to_le_bytes());
        }
        for (two, number) in twos.chunks_exact_mut(2).zip([below, above]) {
            two.copy_from_slice(&(number as u16).to_le_bytes());
        }
        let mut length = HEAD_BYTES + NARROW_BYTES;
        for number in rare {
            if let Some(four) = narrow.get_mut(length..length + 4) {
                four.copy_from_slice(&(number as u32).to_le_bytes());
            }
            length += 4 * usize::from(number != 0);
        }
        let bytes = self.room();
        let length = bytes.len() + length;
        bytes.extend_from_slice(&narrow);
        bytes.truncate(length);
    }

    #[cold]
    fn push_wide(&mut self, head: [u8; HEAD_BYTES], usual: [u64; USUAL], rare: [u64; RARE]) {
        let bytes = self.room();
        bytes.extend_from_slice(&head);
        for number in usual
            .iter()
            .chain(rare.iter().filter(|number| **number != 0))
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// The room in which one more record fits.
    #[inline(always)]
    fn room(&mut self) -> &mut Vec<u8> {
        let room = |bytes: &Vec<u8>| bytes.capacity() - bytes.len();
        if self
            .rooms
            .last()
            .is_none_or(|bytes| room(bytes) < MOST_BYTES)
        {
            self.add_room();
        }
        let last = self.rooms.len() - 1;
        &mut self.rooms[last]
    }

    #[cold]
    fn add_room(&mut self) {
        let is_first = self.rooms.is_empty();
        let room_bytes = if is_first {
            FIRST_ROOM_BYTES
        } else {
            ROOM_BYTES
        };
        self.rooms.push(Vec::with_capacity(room_bytes));
    }

    /// All of them again, in order.
    pub fn unpack(&self) -> Vec<Record> {
        let mut records = Vec::with_capacity(self.len());
        let mut last = Last::default();
        for bytes in &self.rooms {
            let mut rest = bytes.as_slice();
            while let Some(record) = last.unpack(&mut rest) {
                last = Last::from(&record);
                records.push(record);
            }
        }
        records
    }
}

impl From<&Record> for Last {
    fn from(record: &Record) -> Self {
        Last {
            end_ns: record.end_ns,
            window_bytes: record.window_bytes,
        }
    }
}

impl Last {
    /// The numbers of the record that follows: as little as tells them, whatever they are.
    #[inline(always)]
    fn numbers(&self, record: &Record) -> ([u64; USUAL], [u64; RARE]) {
        let expected_ns = self.end_ns.wrapping_add(record.elapsed_ns);
        let delay_us = record.delay_us;
        let usual = [
            record.elapsed_ns as u64,
            record.delivered_bytes,
            record.gap_ns as u64,
            u64::from(record.peak_bytes),
            u64::from(delay_us),
            u64::from(delay_us.wrapping_sub(record.least_delay_us)),
            u64::from(record.most_delay_us.wrapping_sub(delay_us)),
        ];
        let rare = [
            record.end_ns.wrapping_sub(expected_ns) as u64,
            record.elapsed_ns.wrapping_sub(record.busy_ns) as u64,
            record.idle_ns as u64,
            record.full_ns as u64,
            record.recovery_ns as u64,
            u64::from(record.window_bytes ^ self.window_bytes),
            u64::from(record.losses),
            u64::from(record.loss_delay_us),
            u64::from(record.marked),
        ];
        (usual, rare)
    }

    /// The record that stands first in `bytes`, which then begins behind it.
    #[inline(always)]
    fn unpack(&self, bytes: &mut &[u8]) -> Option<Record> {
        let [low, high, item, otherwise] = take::<HEAD_BYTES>(bytes)?;
        let bits = u16::from_le_bytes([low, high]);
        let is_narrow = bits & IS_WIDE == 0;
        let mut usual = [0u64; USUAL];
        if is_narrow {
            let [five @ .., below_low, below_high, above_low, above_high] =
                take::<NARROW_BYTES>(bytes)?;
            for (number, four) in usual.iter_mut().zip(five.chunks_exact(4)) {
                *number = u64::from(u32::from_le_bytes(*four.first_chunk()?));
            }
            let [.., below, above] = &mut usual;
            *below = u64::from(u16::from_le_bytes([below_low, below_high]));
            *above = u64::from(u16::from_le_bytes([above_low, above_high]));
        } else {
            for number in &mut usual {
                *number = u64::from_le_bytes(take(bytes)?);
            }
        }
        let mut rare = [0u64; RARE];
        for (place, number) in rare.iter_mut().enumerate() {
            if bits >> place & 1 == 1 {
                *number = if is_narrow {
                    u64::from(u32::from_le_bytes(take(bytes)?))
                } else {
                    u64::from_le_bytes(take(bytes)?)
                };
            }
        }
        let [elapsed, delivered_bytes, gap, peak, delay, below, above] = usual;
        let [end, rest, idle, full, recovery, window, losses, loss_delay, marked] = rare;
        let (elapsed_ns, delay_us) = (elapsed as i64, delay as u32);
        Some(Record {
            end_ns: self
                .end_ns
                .wrapping_add(elapsed_ns)
                .wrapping_add(end as i64),
            elapsed_ns,
            delivered_bytes,
            busy_ns: elapsed_ns.wrapping_sub(rest as i64),
            item: *Item::ALL.get(usize::from(item))?,
            otherwise: *Item::ALL.get(usize::from(otherwise))?,
            idle_ns: idle as i64,
            full_ns: full as i64,
            recovery_ns: recovery as i64,
            gap_ns: gap as i64,
            peak_bytes: peak as u32,
            window_bytes: window as u32 ^ self.window_bytes,
            delay_us,
            least_delay_us: delay_us.wrapping_sub(below as u32),
            most_delay_us: delay_us.wrapping_add(above as u32),
            losses: losses as u32,
            loss_delay_us: loss_delay as u32,
            marked: marked as u32,
        })
    }
}

/// The first of some bytes, which then begin behind them.
#[inline(always)]
fn take<const LENGTH: usize>(bytes: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (first, rest) = bytes.split_first_chunk::<LENGTH>()?;
    *bytes = rest;
    Some(*first)
}

impl FromIterator<Record> for Records {
    fn from_iter<T: IntoIterator<Item = Record>>(records: T) -> Self {
        let mut packed = Records::default();
        records.into_iter().for_each(|record| packed.push(&record));
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let ns = || prop_oneof![Just(0i64), 0..1i64 << 31, any::<i64>()];
        let count = || prop_oneof![Just(0u32), 0..1u32 << 16, any::<u32>()];
        (
            prop::array::uniform7(ns()),
            prop::array::uniform8(count()),
            prop_oneof![0..1u64 << 20, any::<u64>()],
            prop::array::uniform2(0..Item::ALL.len()),
        )
            .prop_map(|(ns, counts, delivered_bytes, items)| Record {
                end_ns: ns[0],
                elapsed_ns: ns[1],
                delivered_bytes,
                busy_ns: ns[2],
                item: Item::ALL[items[0]],
                otherwise: Item::ALL[items[1]],
                idle_ns: ns[3],
                full_ns: ns[4],
                recovery_ns: ns[5],
                gap_ns: ns[6],
                peak_bytes: counts[0],
                window_bytes: counts[1],
                delay_us: counts[2],
                least_delay_us: counts[3],
                most_delay_us: counts[4],
                losses: counts[5],
                loss_delay_us: counts[6],
                marked: counts[7],
            })
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(records in prop::collection::vec(any_record(), 0..40)) {
            let packed: Records = records.iter().copied().collect();
            prop_assert_eq!(packed.len(), records.len());
            prop_assert_eq!(format!("{:?}", packed.unpack()), format!("{records:?}"));
        }
    }

    #[test]
    fn an_ordinary_round_takes_a_third_of_its_record() {
        let round = |number: i64| Record {
            end_ns: 1_700_000_000_000_000_000 + number * 100_000_000,
            ..Record::PLAIN
        };
        let packed: Records = (0..100).map(round).collect();
        assert!(packed.rooms.concat().len() * 3 < 100 * size_of::<Record>());
    }
}
