//! Reassigns the time of rounds once a connection is over and all of its rounds show what limited them.
//!
//! In: the bottleneck and the rounds of a direction. Out: time that belongs to a different item than it was charged to.
//! Enlarging a window that is full above a standing queue gains nothing, and a loss that overflows a full queue is a
//! symptom: lifting either limit would not have ended the transfer sooner.

use crate::tables::budget_item::SenderState;
use crate::tcp::budget::constant_flight::constant_runs;
use crate::tcp::budget::reader_state::{ReaderState, FILLS};
use crate::tcp::path::bottleneck::{Bottleneck, FULL};
use crate::tcp::path::history::Record;

/// Share of the path's rate above which a loss may be an overflow, and below which something else limits the rate.
const NEAR: f64 = 0.8;
pub const SPARE: f64 = 0.7;
/// Minimum share of the path's rate at which a queue that never empties shows a full path. It is higher if the window
/// was full at times, because the queue may belong to another connection.
const SHARED: f64 = 0.15;
const OWN: f64 = 0.4;
/// A sender always had something to send if its longest silence is shorter than this part of an RTT. Linux waits with a
/// full window until a third of it is free (`tcp_tso_should_defer`, net/ipv4/tcp_output.c), up to half a round trip after
/// the first ACK of the next one.
const SILENT: (i64, i64) = (3, 4);
/// The same part of a round, or of several that were merged, if no RTT was measured in it.
const SILENT_UNMEASURED: (i64, i64) = (1, 8);

/// A constant flight is the window's if at most this part of the window was free.
const NEAR_WINDOW_PART: u32 = 16;

/// A sender's own queue has drained once it was silent for this part of the delay; the rest is the path's round trip and
/// the flight itself.
const DRAINED: (i64, i64) = (3, 4);

/// Time that moves from one item to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reassignment {
    pub from_ns: i64,
    pub to_ns: i64,
    pub item: SenderState,
    pub into: SenderState,
    pub span_ns: i64,
}

/// Why the busy time of a round belongs to another item, or remains as charged.
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

type Condition = fn(&Facts) -> bool;

/// The decision table: the first row that applies decides. The reason is above each row.
const TABLE: [(Case, Condition); 10] = [
    // The receiver's application did not read: unread data reduced the window, or ACKs waited for the application.
    (Case::ReaderBlocking, |f| f.is_reader_blocking),
    // A policer drops excess traffic instead of queueing it, so it also caused the recovery.
    (Case::Policed, |f| f.is_policed && f.is_judged_by_rounds()),
    // The path marked packets, and the flight has not regained its size. The path's rate is unknown.
    (Case::AskedForLess, |f| !f.has_rate && f.is_asked_for_less),
    // Without a queue, the window limits the sender to just below the path's rate.
    (Case::WindowNearRate, |f| {
        f.is_held && f.is_near_rate && f.may_be_the_windows()
    }),
    // The same for a sender whose application paces its writes: the charge was correct.
    (Case::HeldNearRate, |f| f.is_held && f.is_near_rate),
    // A flight that the sender keeps constant is not a window reduced by loss, whatever was lost before.
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
    // A flight that reaches the window's edge every time is limited by the window, however soon an ACK opens it.
    (Case::FlightAtWindow, |f| {
        let is_suspected =
            f.item == SenderState::SendBuffer || f.item == SenderState::Path && !f.has_rate;
        is_suspected && f.comes_to_window
    }),
    // The segments were short because the window had no more room, not because a write ended.
    (Case::ShortSegments, |f| {
        f.item == SenderState::Application && f.keeps_window_full
    }),
];

/// Facts about a round, relative to earlier rounds.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// The item that the busy time was charged to, and the item if the path has spare capacity.
    item: SenderState,
    otherwise: SenderState,
    is_reader_blocking: bool,
    is_window_full_of_unread: bool,
    keeps_window_full: bool,
    comes_to_window: bool,
    nears_window: bool,
    /// Whether the path marked packets, and the flight has not regained its size since.
    is_asked_for_less: bool,
    /// Whether a bottleneck is known; otherwise all fields below are false.
    has_rate: bool,
    /// Whether the bottleneck is a policer, and packets were lost.
    is_policed: bool,
    /// Whether the round achieved less than [`SPARE`] of the bottleneck's rate, at least [`SPARE`], or at least
    /// [`FULL`].
    is_below_rate: bool,
    is_near_rate: bool,
    is_at_rate: bool,
    /// Whether the path was full, by its rate, standing queue, marks or steadiness.
    is_full: bool,
    /// Whether the window or the application limited the sender, without a queue.
    is_held: bool,
    /// Whether the round is in a run of constant flights.
    is_constant: bool,
    /// Whether the last loss occurred when the queue was full.
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

    /// Return whether the round may be at the path's rate: bursts can show a rate slightly above it.
    fn is_at_its_best(&self) -> bool {
        self.item == SenderState::Path && self.is_near_rate
    }

    fn case(&self) -> Case {
        let row = TABLE.iter().find(|(_, applies)| applies(self));
        row.map_or(Case::AsCharged, |(case, _)| *case)
    }

    /// Return the item of the round's busy time.
    fn busy_item(&self, case: Case) -> SenderState {
        match case {
            Case::ReaderBlocking => SenderState::Reader,
            Case::Policed => SenderState::Policer,
            Case::AskedForLess | Case::PathFull => SenderState::Path,
            Case::WindowNearRate | Case::FlightAtWindow | Case::ShortSegments => {
                SenderState::WindowFull
            }
            Case::ConstantFlight if self.nears_window => SenderState::WindowFull,
            Case::ConstantFlight => SenderState::SendBuffer,
            Case::BelowRate => self.otherwise,
            Case::HeldNearRate | Case::AsCharged => self.item,
        }
    }

    /// Return the item of the round's fast recovery.
    fn recovery_item(case: Case) -> SenderState {
        match case {
            Case::Policed => SenderState::Policer,
            Case::PathFull => SenderState::Path,
            _ => SenderState::FastRecovery,
        }
    }

    /// Return the item of the time in which the window was full.
    fn full_item(&self, case: Case) -> SenderState {
        match case {
            Case::ReaderBlocking | Case::Policed => SenderState::WindowFull,
            _ if self.is_full && !self.is_held => SenderState::Path,
            _ => SenderState::WindowFull,
        }
    }

    /// Return the item of the time in which the sender seemed to have nothing to send.
    fn idle_item(&self, case: Case) -> SenderState {
        match case {
            // Time with a full window is not moved here: whether the reader keeps it full is judged elsewhere.
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

/// Derives the facts of each round, and stores what later rounds are compared with.
struct Observer<'a> {
    bottleneck: Option<&'a Bottleneck>,
    /// RTT from which there was a queue throughout, and RTT from which segments waited in a queue.
    standing_us: u32,
    waiting_us: u32,
    mss: u32,
    /// Largest flight in which packets were marked, until a flight exceeds it: a mark reduces the flight within one
    /// round, but it takes several to grow back.
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
            nears_window: nears_the_window(record, self.mss),
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
        // If the reader limited the round, it shows nothing about the path.
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
        let has_queue = record.least_delay_us >= self.standing_us
            && used >= least_used
            && !outlasts_a_silence(record);
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

    /// Record whether a loss is an overflow: it occurred at the path's rate while segments waited in the queue.
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

/// Return whether the delay remained although the sender was silent for most of it, other than to wait for a timer. Its
/// own queue would have drained: the receiver acknowledges late, as Linux does while unread data keep the window from
/// growing (`__tcp_ack_snd_check` in net/ipv4/tcp_input.c), or others fill the queue.
fn outlasts_a_silence(record: &Record) -> bool {
    let is_repairing =
        record.losses > 0 || record.item == SenderState::AfterLoss || record.recovery_ns > 0;
    let drained_us = i64::from(record.least_delay_us) * DRAINED.0 / DRAINED.1;
    !is_repairing && record.gap_ns / 1000 >= drained_us
}

/// Return the time that belongs to other items, judged by all rounds.
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
        // A full path also keeps the flight constant.
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

/// Return whether the flight filled the window and the sender was never silent. A short segment then shows the window's
/// room, not the end of a write, even with PSH: Linux sets PSH after every half of the largest window that is written
/// (`forced_push`, net/ipv4/tcp.c).
fn keeps_the_window_full(record: &Record) -> bool {
    let fills = u64::from(record.peak_bytes) * FILLS.1 >= u64::from(record.window_bytes) * FILLS.0;
    if !fills || record.window_bytes == 0 {
        return false;
    }
    let ((part, whole), trip_ns) = match record.delay_us {
        0 => (SILENT_UNMEASURED, record.elapsed_ns),
        delay_us => (SILENT, i64::from(delay_us) * 1000),
    };
    let is_long = record.gap_ns.saturating_mul(whole) >= trip_ns.saturating_mul(part);
    // A full window silences the sender.
    !(is_long && record.gap_ns > record.full_ns)
}

/// Return whether the flight came within a segment of the window's edge.
fn comes_to_the_window(record: &Record, mss: u32) -> bool {
    record.window_bytes > 0
        && record.full_ns > 0
        && record.peak_bytes.saturating_add(mss) > record.window_bytes
}

/// Return whether a constant flight leaves so little of the window free that the window decides its size: Linux sends no
/// burst of which only a part fits (`tcp_tso_should_defer`, net/ipv4/tcp_output.c).
fn nears_the_window(record: &Record, mss: u32) -> bool {
    let free_bytes = record.window_bytes.saturating_sub(record.peak_bytes);
    record.window_bytes > 0 && free_bytes < mss.max(record.window_bytes / NEAR_WINDOW_PART)
}

#[cfg(test)]
mod tests;
