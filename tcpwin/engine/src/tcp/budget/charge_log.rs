//! The newest charges of a budget, for a reader that follows it segment by segment.

use crate::tables::budget_item::SenderState;

/// The newest entries, and the number of entries ever written.
#[derive(Clone, Debug)]
pub struct Log {
    entries: [Charge; LOGGED],
    written: u64,
}

/// More entries than one segment adds.
const LOGGED: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The span is charged to the item; None if the end of its round decides the item.
    Span {
        item: Option<SenderState>,
        from_ns: i64,
        to_ns: i64,
    },
    /// The round is over: its undecided spans belong to the item.
    Round(SenderState),
    /// Move this much of the item's time since `since_ns` to the idle restart.
    Restart {
        item: SenderState,
        since_ns: i64,
        moved_ns: i64,
    },
}

impl Log {
    pub const EMPTY: Log = Log {
        entries: [Charge::Round(SenderState::Unknown); LOGGED],
        written: 0,
    };

    pub fn write(&mut self, entry: Charge) {
        self.entries[(self.written % LOGGED as u64) as usize] = entry;
        self.written += 1;
    }

    /// Return the entries from number `read` on, and the number of the next entry.
    pub fn since(&self, read: u64) -> (impl Iterator<Item = Charge> + '_, u64) {
        let first = read.max(self.written.saturating_sub(LOGGED as u64));
        let entries =
            (first..self.written).map(|number| self.entries[(number % LOGGED as u64) as usize]);
        (entries, self.written)
    }
}
