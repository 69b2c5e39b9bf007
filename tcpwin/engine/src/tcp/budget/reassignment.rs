//! Reassigns the time of rounds once a connection is over, when all of its rounds show what limited them.
//!
//! Comes in: the bottleneck and the rounds of a direction. Goes out: time that belongs to another item than the one its
//! round was charged to. A window that is full above a standing queue gains nothing by growing, and a loss that
//! overflows a full queue is a symptom: lifting either limit would not have ended the transfer sooner.

use crate::tables::budget_item::SenderState;
use crate::tcp::budget::constant_flight::constant_runs;
use crate::tcp::budget::reader_state::{ReaderState, FILLS};
use crate::tcp::path::bottleneck::{Bottleneck, FULL};
use crate::tcp::path::history::Record;

/// Share of the path's rate from which a loss may be the queue's, and below which the rate is certainly not the path's.
const NEAR: f64 = 0.8;
pub const SPARE: f64 = 0.7;
/// A queue that never empties in a round keeps the path full if the connection has at least this share of its rate: a
/// larger one if the window was full at times, because the queue may be another connection's.
const SHARED: f64 = 0.15;
const OWN: f64 = 0.4;
/// A sender had something to send all the time if its longest silence is shorter than this part of a round trip.
const SILENT_PART: i64 = 4;

/// Time that moves from one item to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reassignment {
    pub from_ns: i64,
    pub to_ns: i64,
    pub item: SenderState,
    pub into: SenderState,
    pub span_ns: i64,
}

/// Why the busy time of a round belongs to another item, or stays where it was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    ReaderBlocking,
    Policed,
    AskedForLess,
    WindowNearRate,
    HeldNearRate,
    ConstantFlight,
    PathFull,
    BelowRate,
    FlightAtWindow,
    ShortSegments,
    AsCharged,
}

/// Whether a row applies to a round.
type Condition = fn(&Facts) -> bool;

/// The decision table: the first row whose condition holds decides. Each row is preceded by its reason.
const TABLE: [(Case, Condition); 10] = [
    // The receiver's application did not read: unread data held the window down, or the ACKs waited for the application.
    (Case::ReaderBlocking, |f| f.is_reader_blocking),
    // A policer drops what is above its rate and queues nothing, so the recovery is its doing too.
    (Case::Policed, |f| f.is_policed && f.is_judged_by_rounds()),
    // The path marked packets, and the flight has not regained its size. No rate is known to compare with.
    (Case::AskedForLess, |f| !f.has_rate && f.is_asked_for_less),
    // Without a queue, the window keeps a sender just below the path's rate.
    (Case::WindowNearRate, |f| {
        f.is_held && f.is_near_rate && f.may_be_the_windows()
    }),
    // The same of a sender that its writer paces: it was charged rightly.
    (Case::HeldNearRate, |f| f.is_held && f.is_near_rate),
    // Whatever loss came before: a flight that the sender holds for good is not what the loss left of its window.
    (Case::ConstantFlight, |f| {
        f.is_constant && !f.is_full && !f.is_at_its_best()
    }),
    // The path was full, or the sender is recovering from the overflow of its queue.
    (Case::PathFull, |f| {
        f.is_full || f.has_overflowed && f.item == SenderState::AfterLoss
    }),
    // The round was charged to the path, but the bottleneck turned out to be faster.
    (Case::BelowRate, |f| {
        f.item == SenderState::Path && f.is_below_rate
    }),
    // A flight that comes to the window's end each time is held by the window, however soon an ACK opens it.
    (Case::FlightAtWindow, |f| {
        let is_suspected =
            f.item == SenderState::SendBuffer || f.item == SenderState::Path && !f.has_rate;
        is_suspected && f.comes_to_window
    }),
    // The window's room cut the segments short, not the end of what the application had written.
    (Case::ShortSegments, |f| {
        f.item == SenderState::Application && f.keeps_window_full
    }),
];

/// Facts about one round, measured against those before it.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// The item of the busy time as charged, and if the path had spare capacity.
    item: SenderState,
    otherwise: SenderState,
    is_reader_blocking: bool,
    is_window_full_of_unread: bool,
    keeps_window_full: bool,
    comes_to_window: bool,
    /// The path marked packets, and the flight has not regained its size since.
    is_asked_for_less: bool,
    /// A bottleneck is known; otherwise all below is false.
    has_rate: bool,
    /// The bottleneck is a policer that has dropped something.
    is_policed: bool,
    /// Delivered less than [`SPARE`] of the bottleneck's rate; at least that; at least [`FULL`].
    is_below_rate: bool,
    is_near_rate: bool,
    is_at_rate: bool,
    /// The path was full: by its rate, its standing queue, its marks or its steadiness.
    is_full: bool,
    /// No queue, and the window or the application held the sender.
    is_held: bool,
    /// In a run of flights of one size.
    is_constant: bool,
    /// The last loss struck when the queue was full.
    has_overflowed: bool,
}

impl Facts {
    fn is_judged_by_rounds(&self) -> bool {
        matches!(
            self.item,
            SenderState::Congestion
                | SenderState::AfterLoss
                | SenderState::Path
                | SenderState::SendBuffer
        )
    }

    fn may_be_the_windows(&self) -> bool {
        matches!(self.item, SenderState::Path | SenderState::Congestion)
            || self.item == SenderState::Application && self.keeps_window_full
    }

    /// Bursts may show a rate a little above the path's own.
    fn is_at_its_best(&self) -> bool {
        self.item == SenderState::Path && self.is_near_rate
    }

    fn case(&self) -> Case {
        let row = TABLE.iter().find(|(_, applies)| applies(self));
        row.map_or(Case::AsCharged, |(case, _)| *case)
    }

    /// The item of the round's busy time.
    fn busy_item(&self, case: Case) -> SenderState {
        match case {
            Case::ReaderBlocking => SenderState::Reader,
            Case::Policed => SenderState::Policer,
            Case::AskedForLess | Case::PathFull => SenderState::Path,
            Case::WindowNearRate | Case::FlightAtWindow | Case::ShortSegments => {
                SenderState::WindowFull
            }
            Case::ConstantFlight if self.comes_to_window => SenderState::WindowFull,
            Case::ConstantFlight => SenderState::SendBuffer,
            Case::BelowRate => self.otherwise,
            Case::HeldNearRate | Case::AsCharged => self.item,
        }
    }

    /// The item of the round's fast recovery.
    fn recovery_item(case: Case) -> SenderState {
        match case {
            Case::Policed => SenderState::Policer,
            Case::PathFull => SenderState::Path,
            _ => SenderState::FastRecovery,
        }
    }

    /// The item of the time in which the window was full.
    fn full_item(&self, case: Case) -> SenderState {
        match case {
            Case::ReaderBlocking | Case::Policed => SenderState::WindowFull,
            _ if self.is_full && !self.is_held => SenderState::Path,
            _ => SenderState::WindowFull,
        }
    }

    /// The item of the time in which the sender seemed to have nothing to send.
    fn idle_item(&self, case: Case) -> SenderState {
        match case {
            // A full window stays one: whether the reader keeps it full is judged elsewhere.
            Case::ReaderBlocking if self.is_window_full_of_unread || self.keeps_window_full => {
                SenderState::Reader
            }
            Case::ReaderBlocking | Case::Policed | Case::AskedForLess => SenderState::Application,
            _ if self.is_at_rate && !self.is_held => SenderState::Path,
            _ if self.keeps_window_full => SenderState::WindowFull,
            _ => SenderState::Application,
        }
    }
}

/// Derives the facts of round after round, and remembers what later rounds are measured against.
struct Observer<'a> {
    bottleneck: Option<&'a Bottleneck>,
    /// Round trips from which a queue stood all the time, and from which segments waited in one.
    standing_us: u32,
    waiting_us: u32,
    mss: u32,
    /// The largest flight that a mark struck, until a flight exceeds it: the path asks for less in one round, and the
    /// flight grows back in several.
    marked_peak: u32,
    before_peak: u32,
    was_near: bool,
    has_overflowed: bool,
    has_lost: bool,
}

impl Observer<'_> {
    fn facts(&mut self, record: &Record, reader: ReaderState, is_constant: bool) -> Facts {
        let mut facts = Facts {
            item: record.item,
            otherwise: record.otherwise,
            is_reader_blocking: matches!(
                reader,
                ReaderState::Blocking | ReaderState::FillingWindow
            ),
            is_window_full_of_unread: reader == ReaderState::FillingWindow,
            keeps_window_full: keeps_the_window_full(record),
            comes_to_window: comes_to_the_window(record, self.mss),
            is_asked_for_less: false,
            has_rate: self.bottleneck.is_some(),
            is_policed: false,
            is_below_rate: false,
            is_near_rate: false,
            is_at_rate: false,
            is_full: false,
            is_held: false,
            is_constant: false,
            has_overflowed: false,
        };
        // A round that the reader held back shows nothing about the path.
        if facts.is_reader_blocking {
            return facts;
        }
        facts.is_asked_for_less = self.is_asked_for_less(record) && facts.is_judged_by_rounds();
        let Some(bottleneck) = self.bottleneck else {
            return facts;
        };
        self.has_lost |= record.losses > 0;
        facts.is_policed = bottleneck.is_policed && self.has_lost;
        if facts.is_policed && facts.is_judged_by_rounds() {
            return facts;
        }
        let used = bottleneck.used(record);
        let least_used = if record.full_ns > 0 { OWN } else { SHARED };
        let has_queue = record.least_delay_us >= self.standing_us && used >= least_used;
        facts.is_below_rate = used < SPARE;
        facts.is_near_rate = used >= SPARE;
        facts.is_at_rate = used >= FULL;
        let is_steady = bottleneck.is_steady && facts.is_near_rate;
        facts.is_full = facts.is_at_rate || has_queue || facts.is_asked_for_less || is_steady;
        facts.is_held = record.delay_us < self.waiting_us
            && (record.is_windowed() || record.item == SenderState::Application);
        facts.is_constant = is_constant;
        self.note_overflow(record, used >= NEAR || has_queue);
        facts.has_overflowed = self.has_overflowed;
        facts
    }

    fn is_asked_for_less(&mut self, record: &Record) -> bool {
        if record.marked > 0 {
            self.marked_peak = record
                .peak_bytes
                .max(self.before_peak)
                .max(self.marked_peak);
        } else if record.peak_bytes > self.marked_peak {
            self.marked_peak = 0;
        }
        self.before_peak = record.peak_bytes;
        self.marked_peak > 0
    }

    /// A loss is an overflow if it struck at the path's rate with segments waiting in the queue.
    fn note_overflow(&mut self, record: &Record, is_near: bool) {
        if record.losses > 0 {
            let waited_us = record.loss_delay_us.max(record.most_delay_us);
            self.has_overflowed = (is_near || self.was_near) && waited_us >= self.waiting_us;
        } else if record.item != SenderState::AfterLoss && record.recovery_ns == 0 {
            self.has_overflowed = false;
        }
        self.was_near = is_near;
    }
}

/// List the time that belongs to another item, by all that the rounds show.
pub fn reassignments(
    bottleneck: Option<&Bottleneck>,
    records: &[Record],
    base_us: Option<u32>,
    mss: u32,
) -> Vec<Reassignment> {
    let waits_us = bottleneck.and_then(|bottleneck| bottleneck.waits_us(mss));
    let (standing_us, waiting_us) = waits_us.unwrap_or((u32::MAX, u32::MAX));
    let readers = ReaderState::of(records, bottleneck, base_us, waiting_us, mss);
    let mut constant = constant_runs(records, mss);
    if let Some(bottleneck) = bottleneck {
        // A full path keeps a flight constant as well.
        let is_full = |record: &&Record| bottleneck.used(record) >= FULL;
        constant.retain(|run| records[run.clone()].iter().filter(is_full).count() * 2 < run.len());
    }
    let mut observer = Observer {
        bottleneck,
        standing_us,
        waiting_us,
        mss,
        marked_peak: 0,
        before_peak: 0,
        was_near: false,
        has_overflowed: false,
        has_lost: false,
    };
    let mut all = Vec::new();
    for (place, (record, reader)) in records.iter().zip(readers).enumerate() {
        let is_constant = constant.iter().any(|run| run.contains(&place));
        let facts = observer.facts(record, reader, is_constant);
        let case = facts.case();
        let at_the_end_ns = match reader {
            ReaderState::DrainingAtEnd(span_ns) => span_ns,
            _ => 0,
        };
        let spans = [
            (SenderState::Closed, SenderState::Reader, at_the_end_ns),
            (record.item, facts.busy_item(case), record.busy_ns),
            (
                SenderState::FastRecovery,
                Facts::recovery_item(case),
                record.recovery_ns,
            ),
            (
                SenderState::WindowFull,
                facts.full_item(case),
                record.full_ns,
            ),
            (
                SenderState::Application,
                facts.idle_item(case),
                record.idle_ns,
            ),
        ];
        let moved = (spans.into_iter()).filter(|(item, into, ns)| *ns > 0 && item != into);
        all.extend(moved.map(|(item, into, span_ns)| Reassignment {
            from_ns: record.end_ns.saturating_sub(record.elapsed_ns),
            to_ns: record.end_ns,
            item,
            into,
            span_ns,
        }));
    }
    all
}

/// Return true if the flight filled the window and the sender was never silent. A short segment then shows how much room
/// there was, not the end of a write, even with PSH: Linux sets PSH for each half of the largest window that was written
/// (`forced_push`, net/ipv4/tcp.c).
fn keeps_the_window_full(record: &Record) -> bool {
    let fills = u64::from(record.peak_bytes) * FILLS.1 >= u64::from(record.window_bytes) * FILLS.0;
    let is_long = record.gap_ns.saturating_mul(SILENT_PART) >= i64::from(record.delay_us) * 1000;
    // A full window keeps the sender silent.
    let is_silent = is_long && record.gap_ns > record.full_ns;
    fills && record.window_bytes > 0 && !is_silent
}

/// Return true if the flight came within a segment of the window's end.
fn comes_to_the_window(record: &Record, mss: u32) -> bool {
    record.window_bytes > 0
        && record.full_ns > 0
        && record.peak_bytes.saturating_add(mss) > record.window_bytes
}

#[cfg(test)]
mod tests;
