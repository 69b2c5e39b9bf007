//! The records of a direction's rounds, packed into about twenty bytes each instead of a hundred.
//!
//! Rounds end often, and with thousands of connections no record stays in a cache: their cost is the memory written.
//! Most fields are small, zero, or derivable from another. In: records in order. Out: the same records.

use crate::cache::ask_for;
use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tcp::path::history::Record;

/// Count of numbers that nearly every record has, and of all numbers, including those that are mostly zero.
const USUAL: usize = 9;
const RARE: usize = 7;
/// Bytes of a number by its two-bit code: as many as needed, but never one.
const LENGTHS: [usize; 4] = [0, 2, 3, 4];
const MASKS: [u32; 4] = [0, 0xFFFF, 0x00FF_FFFF, 0xFFFF_FFFF];
/// The head: codes of the usual numbers, both items, and flags for the numbers after it.
const HEAD_BYTES: usize = 4;
const ITEM_SHIFT: usize = 2 * USUAL;
const OTHERWISE_SHIFT: usize = ITEM_SHIFT + ITEM_BITS;
const ITEM_BITS: usize = 5;
/// Numbers that are mostly zero follow, with separate codes.
const HAS_RARE: u32 = 1 << 28;
/// Times are whole microseconds, as in most captures.
const IS_MICROSECONDS: u32 = 1 << 29;
/// All numbers take eight bytes each.
const IS_WIDE: u32 = 1 << 30;
const RARE_HEAD_BYTES: usize = 2;
const MOST_NARROW_BYTES: usize = HEAD_BYTES + RARE_HEAD_BYTES + (USUAL + RARE) * 4;
const WIDE_BYTES: usize = HEAD_BYTES + (USUAL + RARE) * 8;
/// Sizes of rooms: small at first, since most connections have few rounds. Written records are never moved.
const FIRST_ROOM_BYTES: usize = 160;
const ROOM_BYTES: usize = 512;

const _: () = assert!(SENDER_STATES <= 1 << ITEM_BITS && OTHERWISE_SHIFT + ITEM_BITS == 28);
const _: () = assert!(WIDE_BYTES <= FIRST_ROOM_BYTES);

#[derive(Clone, Debug, Default)]
pub struct Records {
    rooms: Vec<Room>,
    count: u32,
    begin: Last,
    last: Last,
}

#[derive(Clone, Debug)]
struct Room {
    bytes: Box<[u8]>,
    used: usize,
}

/// Base of the next record's differences.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    end_ns: i64,
    window_bytes: u32,
}

/// Buffer of a narrow record.
type Place = [u8; MOST_NARROW_BYTES];

impl Records {
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Prefetch the memory that [`Records::push`] writes.
    #[inline(always)]
    pub fn ask_for_end(&self) {
        if let Some(room) = self.rooms.last() {
            ask_for(room.bytes.as_ptr().wrapping_add(room.used));
        }
    }

    pub fn push(&mut self, record: &Record) {
        if self.count == 0 {
            self.begin.end_ns = record.end_ns.wrapping_sub(record.elapsed_ns);
            self.last = self.begin;
        }
        let (usual, cold_state) = self.last.numbers(record);
        self.last = Last::from(record);
        let items =
            (record.item as u32) << ITEM_SHIFT | (record.otherwise as u32) << OTHERWISE_SHIFT;
        let all = |numbers: &[u64]| numbers.iter().fold(0, |all, number| all | number);
        let all_rare = all(&cold_state);
        if (all(&usual) | all_rare) >> 32 != 0 {
            self.push_wide(items, &usual, &cold_state);
        } else {
            let numbers = Narrow {
                usual: usual.map(|number| number as u32),
                cold_state: cold_state.map(|number| number as u32),
                has_rare: all_rare != 0,
            };
            let room = self.room(MOST_NARROW_BYTES);
            let place = room.bytes.get_mut(room.used..);
            if let Some(place) = place.and_then(|bytes| bytes.first_chunk_mut()) {
                room.used += numbers.write(items, place);
            }
        }
        self.count += 1;
    }

    #[cold]
    fn push_wide(&mut self, items: u32, usual: &[u64; USUAL], cold_state: &[u64; RARE]) {
        let room = self.room(WIDE_BYTES);
        let Some(bytes) = room.bytes.get_mut(room.used..room.used + WIDE_BYTES) else {
            return;
        };
        let (head, eights) = bytes.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&(items | IS_WIDE).to_le_bytes());
        for (eight, number) in eights
            .chunks_exact_mut(8)
            .zip(usual.iter().chain(cold_state))
        {
            eight.copy_from_slice(&number.to_le_bytes());
        }
        room.used += WIDE_BYTES;
    }

    /// Return a room in which one more record fits.
    #[inline(always)]
    fn room(&mut self, bytes: usize) -> &mut Room {
        let has_room = |room: &Room| room.bytes.len() - room.used >= bytes;
        if !self.rooms.last().is_some_and(has_room) {
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
        self.rooms.push(Room {
            bytes: vec![0; room_bytes].into_boxed_slice(),
            used: 0,
        });
    }

    /// Return all records, in order.
    pub fn unpack(&self) -> Vec<Record> {
        let mut records = Vec::with_capacity(self.len());
        self.each(|record| records.push(*record));
        records
    }

    /// Return the records joined in pairs.
    pub fn halved(&self) -> Records {
        let mut halved = Records::default();
        let mut first: Option<Record> = None;
        self.each(|record| match first.take() {
            None => first = Some(*record),
            Some(mut joined) => {
                joined.join(record);
                halved.push(&joined);
            }
        });
        if let Some(last) = first {
            halved.push(&last);
        }
        halved
    }

    #[inline(always)]
    fn each(&self, mut take: impl FnMut(&Record)) {
        let mut last = self.begin;
        for room in &self.rooms {
            let mut place = 0;
            while place < room.used {
                let Some((record, length)) = last.read(&room.bytes, place) else {
                    break;
                };
                place += length;
                last = Last::from(&record);
                take(&record);
            }
        }
    }
}

/// Numbers of a record that fit in four bytes each.
struct Narrow {
    usual: [u32; USUAL],
    cold_state: [u32; RARE],
    has_rare: bool,
}

impl Narrow {
    /// Write the record and return its length in bytes.
    #[inline(always)]
    fn write(mut self, items: u32, place: &mut Place) -> usize {
        let mut head = items;
        let is_whole = |ns: &u32| ns % 1000 == 0;
        let [usual_times @ .., _, _, _, _, _, _] = &mut self.usual;
        let [rare_times @ .., _, _, _] = &mut self.cold_state;
        if usual_times.iter().all(is_whole) && (!self.has_rare || rare_times.iter().all(is_whole)) {
            head |= IS_MICROSECONDS;
            usual_times.iter_mut().for_each(|ns| *ns /= 1000);
            rare_times.iter_mut().for_each(|ns| *ns /= 1000);
        }
        let (codes, mut length) = write_numbers(place, HEAD_BYTES, &self.usual);
        head |= codes;
        if self.has_rare {
            head |= HAS_RARE;
            let codes_at = length;
            let (codes, end) = write_numbers(place, length + RARE_HEAD_BYTES, &self.cold_state);
            if let Some(two) = place.get_mut(codes_at..codes_at + RARE_HEAD_BYTES) {
                two.copy_from_slice(&(codes as u16).to_le_bytes());
            }
            length = end;
        }
        place[..HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
        length
    }
}

/// Write numbers one after the other; return their codes and the end position.
#[inline(always)]
fn write_numbers<const COUNT: usize>(
    place: &mut Place,
    from: usize,
    numbers: &[u32; COUNT],
) -> (u32, usize) {
    let (mut codes, mut length) = (0, from);
    for (nth, number) in numbers.iter().enumerate() {
        // Omitted numbers are overwritten by the next: no branch on presence.
        if let Some(four) = place.get_mut(length..length + 4) {
            four.copy_from_slice(&number.to_le_bytes());
        }
        let is_any = u32::from(*number != 0);
        let code = is_any + u32::from(number >> 16 != 0) + u32::from(number >> 24 != 0);
        codes |= code << (2 * nth);
        length += (code + is_any) as usize;
    }
    (codes, length)
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
    /// Encode the numbers of the next record in as few bytes as they need. Times come first in both kinds.
    #[inline(always)]
    fn numbers(&self, record: &Record) -> ([u64; USUAL], [u64; RARE]) {
        let expected_ns = self.end_ns.wrapping_add(record.elapsed_ns);
        let delay_us = record.delay_us;
        let usual = [
            record.elapsed_ns as u64,
            record.gap_ns as u64,
            record.elapsed_ns.wrapping_sub(record.busy_ns) as u64,
            record.delivered_bytes,
            u64::from(record.peak_bytes),
            u64::from(delay_us),
            u64::from(delay_us.wrapping_sub(record.least_delay_us)),
            u64::from(record.most_delay_us.wrapping_sub(delay_us)),
            u64::from(record.window_bytes ^ self.window_bytes),
        ];
        let cold_state = [
            record.end_ns.wrapping_sub(expected_ns) as u64,
            record.idle_ns as u64,
            record.full_ns as u64,
            record.recovery_ns as u64,
            u64::from(record.losses),
            u64::from(record.loss_delay_us),
            u64::from(record.marked),
        ];
        (usual, cold_state)
    }

    /// Read the record at a place in a room, and its length in bytes.
    #[inline(always)]
    fn read(&self, bytes: &[u8], place: usize) -> Option<(Record, usize)> {
        let bytes = bytes.get(place..)?;
        let head = u32::from_le_bytes(*bytes.first_chunk()?);
        let (mut usual, mut cold_state) = ([0u64; USUAL], [0u64; RARE]);
        let mut length = HEAD_BYTES;
        if head & IS_WIDE == 0 {
            let place: &Place = bytes.first_chunk()?;
            length = read_numbers(place, length, head, &mut usual)?;
            if head & HAS_RARE != 0 {
                let codes = place.get(length..length + RARE_HEAD_BYTES)?.first_chunk()?;
                let codes = u32::from(u16::from_le_bytes(*codes));
                length = read_numbers(place, length + RARE_HEAD_BYTES, codes, &mut cold_state)?;
            }
            if head & IS_MICROSECONDS != 0 {
                let [usual_times @ .., _, _, _, _, _, _] = &mut usual;
                let [rare_times @ .., _, _, _] = &mut cold_state;
                usual_times.iter_mut().for_each(|us| *us *= 1000);
                rare_times.iter_mut().for_each(|us| *us *= 1000);
            }
        } else {
            let eights = bytes.get(HEAD_BYTES..WIDE_BYTES)?.chunks_exact(8);
            for (number, eight) in usual.iter_mut().chain(&mut cold_state).zip(eights) {
                *number = u64::from_le_bytes(*eight.first_chunk()?);
            }
            length = WIDE_BYTES;
        }
        let [elapsed, gap, rest, delivered_bytes, peak, delay, below, above, window] = usual;
        let [end, idle, full, recovery, losses, loss_delay, marked] = cold_state;
        let item_at = |shift: usize| {
            let number = (head >> shift) & ((1 << ITEM_BITS) - 1);
            SenderState::ALL.get(number as usize).copied()
        };
        let (elapsed_ns, delay_us) = (elapsed as i64, delay as u32);
        let record = Record {
            end_ns: self
                .end_ns
                .wrapping_add(elapsed_ns)
                .wrapping_add(end as i64),
            elapsed_ns,
            delivered_bytes,
            busy_ns: elapsed_ns.wrapping_sub(rest as i64),
            item: item_at(ITEM_SHIFT)?,
            otherwise: item_at(OTHERWISE_SHIFT)?,
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
        };
        Some((record, length))
    }
}

/// Read numbers and return the end position.
#[inline(always)]
fn read_numbers<const COUNT: usize>(
    place: &Place,
    from: usize,
    codes: u32,
    numbers: &mut [u64; COUNT],
) -> Option<usize> {
    let mut length = from;
    for (nth, number) in numbers.iter_mut().enumerate() {
        let code = ((codes >> (2 * nth)) & 3) as usize;
        let four = place.get(length..length + 4)?.first_chunk()?;
        *number = u64::from(u32::from_le_bytes(*four) & MASKS[code]);
        length += LENGTHS[code];
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl FromIterator<Record> for Records {
        fn from_iter<T: IntoIterator<Item = Record>>(records: T) -> Self {
            let mut packed = Records::default();
            records.into_iter().for_each(|record| packed.push(&record));
            packed
        }
    }

    fn any_record() -> impl Strategy<Value = Record> {
        let ns = || prop_oneof![Just(0i64), 0..1i64 << 31, any::<i64>()];
        let count = || prop_oneof![Just(0u32), 0..1u32 << 16, any::<u32>()];
        (
            prop::array::uniform7(ns()),
            prop::array::uniform8(count()),
            prop_oneof![0..1u64 << 20, any::<u64>()],
            prop::array::uniform2(0..SenderState::ALL.len()),
        )
            .prop_map(|(ns, counts, delivered_bytes, items)| Record {
                end_ns: ns[0],
                elapsed_ns: ns[1],
                delivered_bytes,
                busy_ns: ns[2],
                item: SenderState::ALL[items[0]],
                otherwise: SenderState::ALL[items[1]],
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
        fn records_round_trip(records in prop::collection::vec(any_record(), 0..40)) {
            let packed: Records = records.iter().copied().collect();
            prop_assert_eq!(packed.len(), records.len());
            prop_assert_eq!(format!("{:?}", packed.unpack()), format!("{records:?}"));
            let joined = |pair: &[Record]| {
                let mut joined = pair[0];
                pair[1..].iter().for_each(|other| joined.join(other));
                joined
            };
            let halves: Vec<_> = records.chunks(2).map(joined).collect();
            prop_assert_eq!(format!("{:?}", packed.halved().unpack()), format!("{halves:?}"));
        }
    }

    #[test]
    fn an_ordinary_round_takes_a_fourth_of_its_record() {
        let round = |number: i64| Record {
            end_ns: 1_700_000_000_000_000_000 + number * 100_000_000,
            ..Record::PLAIN
        };
        let packed: Records = (0..100).map(round).collect();
        let used: usize = packed.rooms.iter().map(|room| room.used).sum();
        assert!(used * 4 < 100 * size_of::<Record>());
    }
}
