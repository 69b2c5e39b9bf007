//! What a budget charged to whom, for one who looks after each segment: of the newest entries only.

use crate::timing::item::Item;

/// The newest entries, and how many there were.
#[derive(Clone, Debug)]
pub struct Log {
    entries: [Entry; LOGGED],
    written: u64,
}

/// More than a segment makes.
const LOGGED: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// This span is the item's; with none, the end of the round tells whose.
    Span {
        item: Option<Item>,
        from_ns: i64,
        to_ns: i64,
    },
    /// The round is over: what was left open in it is this item's.
    Round(Item),
    /// So much of this item's time since then was an idle restart's.
    Restart {
        item: Item,
        since_ns: i64,
        moved_ns: i64,
    },
}

impl Log {
    pub const EMPTY: Log = Log {
        entries: [Entry::Round(Item::Unknown); LOGGED],
        written: 0,
    };

    pub fn write(&mut self, entry: Entry) {
        self.entries[(self.written % LOGGED as u64) as usize] = entry;
        self.written += 1;
    }

    /// Entries from that number on, and the number of the next.
    pub fn since(&self, read: u64) -> (impl Iterator<Item = Entry> + '_, u64) {
        let first = read.max(self.written.saturating_sub(LOGGED as u64));
        let entries =
            (first..self.written).map(|number| self.entries[(number % LOGGED as u64) as usize]);
        (entries, self.written)
    }
}
