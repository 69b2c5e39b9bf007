//! A queue of finished rounds of a direction, which are processed in batches.
//!
//! Rounds end often, and with thousands of connections little stays in a cache: the state that rounds update is fetched
//! once per batch. A queued round takes one cache line, written but not read. In: rounds in order. Out: the same rounds.

use crate::cache::ask_for_all;
use crate::tables::budget_item::SenderState;
use crate::tcp::path::history::Record;

/// Rounds in a batch.
const MOST: usize = 8;
/// Number of first rounds that are not queued: most connections have no more, and need no queue.
const FIRST_ROUNDS: u8 = 4;

/// A finished round, and further facts about its sender.
#[derive(Clone, Copy, Debug)]
pub struct EndedRound {
    pub record: Record,
    pub mss: u32,
    /// Whether losses are still being repaired.
    pub is_recovering: bool,
    /// Whether data arrived after a gap.
    pub is_disordered: bool,
}

/// A typical round: without loss or marks, and with small numbers.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Narrow {
    end_ns: i64,
    elapsed_ns: u32,
    delivered_bytes: u32,
    busy_ns: u32,
    idle_ns: u32,
    full_ns: u32,
    recovery_ns: u32,
    gap_ns: u32,
    peak_bytes: u32,
    window_bytes: u32,
    delay_us: u32,
    least_delay_us: u32,
    most_delay_us: u32,
    mss: u16,
    item: SenderState,
    otherwise: SenderState,
    is_recovering: bool,
    is_disordered: bool,
}

const _: () = assert!(size_of::<Narrow>() == 64);

impl Narrow {
    const NONE: Narrow = Narrow {
        end_ns: 0,
        elapsed_ns: 0,
        delivered_bytes: 0,
        busy_ns: 0,
        idle_ns: 0,
        full_ns: 0,
        recovery_ns: 0,
        gap_ns: 0,
        peak_bytes: 0,
        window_bytes: 0,
        delay_us: 0,
        least_delay_us: 0,
        most_delay_us: 0,
        mss: 0,
        item: SenderState::Unknown,
        otherwise: SenderState::Unknown,
        is_recovering: false,
        is_disordered: false,
    };

    /// Pack a typical round; return None for any other.
    #[inline(always)]
    fn of(over: &EndedRound) -> Option<Self> {
        let record = &over.record;
        // A negative value becomes a large number, too.
        let large = record.elapsed_ns as u64
            | record.delivered_bytes
            | record.busy_ns as u64
            | record.idle_ns as u64
            | record.full_ns as u64
            | record.recovery_ns as u64
            | record.gap_ns as u64;
        let cold_state = record.losses | record.loss_delay_us | record.marked | over.mss >> 16;
        if large >> 32 != 0 || cold_state != 0 {
            return None;
        }
        Some(Narrow {
            end_ns: record.end_ns,
            elapsed_ns: record.elapsed_ns as u32,
            delivered_bytes: record.delivered_bytes as u32,
            busy_ns: record.busy_ns as u32,
            idle_ns: record.idle_ns as u32,
            full_ns: record.full_ns as u32,
            recovery_ns: record.recovery_ns as u32,
            gap_ns: record.gap_ns as u32,
            peak_bytes: record.peak_bytes,
            window_bytes: record.window_bytes,
            delay_us: record.delay_us,
            least_delay_us: record.least_delay_us,
            most_delay_us: record.most_delay_us,
            mss: over.mss as u16,
            item: record.item,
            otherwise: record.otherwise,
            is_recovering: over.is_recovering,
            is_disordered: over.is_disordered,
        })
    }
}

impl From<&Narrow> for EndedRound {
    #[inline(always)]
    fn from(narrow: &Narrow) -> Self {
        EndedRound {
            record: Record {
                end_ns: narrow.end_ns,
                elapsed_ns: i64::from(narrow.elapsed_ns),
                delivered_bytes: u64::from(narrow.delivered_bytes),
                busy_ns: i64::from(narrow.busy_ns),
                item: narrow.item,
                otherwise: narrow.otherwise,
                idle_ns: i64::from(narrow.idle_ns),
                full_ns: i64::from(narrow.full_ns),
                recovery_ns: i64::from(narrow.recovery_ns),
                gap_ns: i64::from(narrow.gap_ns),
                peak_bytes: narrow.peak_bytes,
                window_bytes: narrow.window_bytes,
                delay_us: narrow.delay_us,
                least_delay_us: narrow.least_delay_us,
                most_delay_us: narrow.most_delay_us,
                losses: 0,
                loss_delay_us: 0,
                marked: 0,
            },
            mss: u32::from(narrow.mss),
            is_recovering: narrow.is_recovering,
            is_disordered: narrow.is_disordered,
        }
    }
}

type Slots = Box<[Narrow; MOST]>;

/// Queued rounds.
#[derive(Clone, Debug, Default)]
pub struct RoundQueue {
    room: Option<Slots>,
    count: u8,
    /// First rounds, which were not queued.
    first: u8,
}

/// A batch taken from the queue.
pub struct Waited {
    room: Option<Slots>,
    count: u8,
}

impl RoundQueue {
    /// Queue a round. Return false if the caller must process it now, after those in the queue.
    #[inline]
    pub fn push(&mut self, over: &EndedRound) -> bool {
        if self.first < FIRST_ROUNDS {
            self.first += 1;
            return false;
        }
        let room = self
            .room
            .get_or_insert_with(|| Box::new([Narrow::NONE; MOST]));
        match (room.get_mut(usize::from(self.count)), Narrow::of(over)) {
            (Some(place), Some(narrow)) => {
                *place = narrow;
                self.count += 1;
                true
            }
            _ => false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn take(&mut self) -> Waited {
        if let Some(room) = &self.room {
            ask_for_all(room.as_ref());
        }
        Waited {
            room: self.room.take(),
            count: std::mem::take(&mut self.count),
        }
    }

    /// Return the allocation of a batch to the queue.
    pub fn put_back(&mut self, waited: Waited) {
        self.room = waited.room;
    }

    /// Free the queue: no round follows.
    pub fn end(&mut self) {
        debug_assert!(self.is_empty());
        self.room = None;
    }
}

impl Waited {
    pub fn rounds(&self) -> impl Iterator<Item = EndedRound> + '_ {
        let room = self.room.iter().flat_map(|room| room.iter());
        room.take(usize::from(self.count)).map(EndedRound::from)
    }
}

#[cfg(test)]
impl EndedRound {
    pub fn of(record: Record) -> Self {
        EndedRound {
            record,
            mss: 0,
            is_recovering: false,
            is_disordered: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_rounds_wait_and_all_others_are_processed_at_once() {
        let round = |number: u32| EndedRound {
            mss: 1448 + number,
            is_disordered: number % 2 == 0,
            ..EndedRound::of(Record {
                end_ns: i64::from(number) << 40,
                most_delay_us: u32::MAX - number,
                ..Record::PLAIN
            })
        };
        let mut round_queue = RoundQueue::default();
        assert!((0..4).all(|number| !round_queue.push(&round(number))));
        assert!((4..12).all(|number| round_queue.push(&round(number))));
        assert!(!round_queue.push(&round(12)), "the batch is full");
        let waited = round_queue.take();
        let rounds: Vec<_> = waited.rounds().collect();
        let came: Vec<_> = (4..12).map(round).collect();
        assert_eq!(format!("{rounds:?}"), format!("{came:?}"));
        round_queue.put_back(waited);
        assert!(round_queue.is_empty());
        let odd = |change: fn(&mut Record)| {
            let mut over = round(1);
            change(&mut over.record);
            over
        };
        let odd = [
            odd(|record| record.losses = 1),
            odd(|record| record.marked = 1),
            odd(|record| record.elapsed_ns = 1 << 32),
            odd(|record| record.busy_ns = -1),
        ];
        assert!(odd.iter().all(|over| !round_queue.push(over)));
    }
}
