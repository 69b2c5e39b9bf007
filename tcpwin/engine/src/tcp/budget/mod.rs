//! The budget of a sender's time: every instant of a direction's lifetime is charged to one item.
//!
//! The state after a segment lasts until the next segment. Time limited by the window or by loss and idle time are
//! charged immediately; the time of a sender with data in flight and room to send is charged once per round trip, by
//! the facts of the round (rules 8.a to 8.l).

pub mod activity;
pub mod charge_log;
mod constant_flight;
pub mod idle_restart;
mod reader_state;
pub mod reassignment;
pub mod round_limit;
pub mod unknown_scale;

use crate::tables::budget_item::{ItemTrait, SenderState, SENDER_STATES};
use crate::tcp::budget::activity::Activity;
use crate::tcp::budget::charge_log::{Charge, Log};
use crate::tcp::budget::round_limit::{Passed, RoundTrip, Rounds};
use crate::tcp::budget::unknown_scale::{Doubt, ScaleNeed, Shift};

/// Items that the time of an idle restart may have been charged to: slow start, or waiting for the congestion window.
const OF_A_RESTART: [SenderState; 5] = [
    SenderState::SlowStart,
    SenderState::Congestion,
    SenderState::AfterLoss,
    SenderState::Path,
    SenderState::Application,
];

/// The time charged so far to the items that the cost of an idle restart may be taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    at_ns: i64,
    spent_ns: [i64; OF_A_RESTART.len()],
}

/// How a round's time passed, and what its busy time was charged to.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub item: SenderState,
    /// The item if the path had spare capacity.
    pub otherwise: SenderState,
    pub busy_ns: i64,
    pub idle_ns: i64,
    pub full_ns: i64,
    pub recovery_ns: i64,
    /// Longest silence of the sender.
    pub gap_ns: i64,
}

/// Fields that every segment touches come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Budget {
    pub state: Activity,
    pub is_voided: bool,
    /// Room in the window if its scale is unknown.
    room: ScaleNeed,
    /// Whether the round included recovery: its flight then counts lost bytes.
    has_recovered: bool,
    /// Largest gap in this round between two data segments while the sender was busy.
    gap_ns: i64,
    since_ns: i64,
    /// Time of the last change of state.
    changed_ns: i64,
    /// Busy time in the current round, not yet charged to an item.
    busy_ns: i64,
    /// Time of the first known state.
    pub began_ns: i64,
    /// Time before `began_ns` in which the receive window limited the sender.
    pub early_limited_ns: i64,
    /// Time in the current round with nothing in flight.
    idle_ns: i64,
    /// Time in the current round in which the window limited the sender.
    window_ns: i64,
    /// Part of `window_ns` in which the window was not small, and time in fast recovery.
    full_ns: i64,
    recovery_ns: i64,
    rounds: Rounds,
    spent_ns: [i64; SENDER_STATES],
    /// Present if [`Budget::follow`] was called.
    log: Option<Box<Log>>,
    /// Present once time was charged while the window was unknown.
    doubt: Option<Box<Doubt>>,
}

impl Budget {
    pub const EMPTY: Budget = Budget {
        spent_ns: [0; SENDER_STATES],
        log: None,
        doubt: None,
        began_ns: i64::MIN,
        early_limited_ns: 0,
        since_ns: i64::MIN,
        changed_ns: i64::MIN,
        busy_ns: 0,
        idle_ns: 0,
        gap_ns: 0,
        window_ns: 0,
        full_ns: 0,
        recovery_ns: 0,
        has_recovered: false,
        rounds: Rounds::NONE,
        state: Activity::Unseen,
        room: ScaleNeed::KNOWN,
        is_voided: false,
    };

    /// Return the end of the charged time.
    #[inline(always)]
    pub fn since_ns(&self) -> i64 {
        self.since_ns
    }

    /// Return whether data was in flight and the window had room since a time.
    pub fn was_busy_since(&self, from_ns: i64) -> bool {
        self.state == Activity::Busy && self.changed_ns <= from_ns
    }

    /// Return the time since the first known state; 0 before.
    pub fn age_ns(&self, now_ns: i64) -> i64 {
        if self.has_begun() {
            now_ns.saturating_sub(self.began_ns)
        } else {
            0
        }
    }

    #[inline(always)]
    pub fn has_begun(&self) -> bool {
        self.began_ns != i64::MIN
    }

    /// Start charging time. `limited_ns`: time before in which the receive window limited the sender.
    pub fn begin(&mut self, now_ns: i64, limited_ns: i64) {
        (self.began_ns, self.since_ns) = (now_ns, now_ns);
        self.early_limited_ns = limited_ns;
    }

    /// Return the nanoseconds of each item, in the order of [`SenderState::ALL`], given what is known about the shift.
    pub fn spent(&self, shift: Shift) -> [i64; SENDER_STATES] {
        let mut spent_ns = self.spent_ns;
        if let Some(doubt) = &self.doubt {
            doubt.settle(shift, &mut spent_ns);
        }
        spent_ns
    }

    /// Return the log of charges, if [`Budget::follow`] was called.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    /// Start a log; earlier charges become its first entries.
    pub fn follow(&mut self) {
        if self.log.is_some() {
            return;
        }
        let mut log = Box::new(Log::EMPTY);
        let mut from_ns = self.began_ns;
        let mut spent_ns = self.spent_ns;
        if let Some(doubt) = &self.doubt {
            doubt.settle(Shift::AtLeast(0), &mut spent_ns);
        }
        let charged = SenderState::ALL.into_iter().map(Some).zip(spent_ns);
        for (item, spent_ns) in charged.chain([(None, self.busy_ns)]) {
            if spent_ns > 0 {
                let to_ns = from_ns.saturating_add(spent_ns);
                log.write(Charge::Span {
                    item,
                    from_ns,
                    to_ns,
                });
                from_ns = to_ns;
            }
        }
        self.log = Some(log);
    }

    fn note_span(&mut self, item: Option<SenderState>, from_ns: i64, span_ns: i64) {
        if let Some(log) = &mut self.log {
            let to_ns = from_ns.saturating_add(span_ns);
            log.write(Charge::Span {
                item,
                from_ns,
                to_ns,
            });
        }
    }

    #[inline(always)]
    pub fn turn(&mut self, state: Activity, now_ns: i64) {
        if state != self.state {
            self.change(state, now_ns);
        }
    }

    /// Set the state after a segment that cannot end a recovery.
    #[inline(always)]
    pub fn turn_ordinary(&mut self, state: Activity, now_ns: i64) {
        if state != self.state && !self.state.is_recovery() {
            self.change(state, now_ns);
        }
    }

    /// Set the state after a segment, and the window's room.
    pub fn turn_in(&mut self, state: Activity, room: ScaleNeed, now_ns: i64) {
        if state != self.state || room != self.room {
            self.change(state, now_ns);
            self.room = room;
        }
    }

    #[cold]
    fn change(&mut self, state: Activity, now_ns: i64) {
        self.charge(now_ns);
        self.has_recovered |= state.is_recovery();
        self.state = state;
        self.changed_ns = now_ns;
    }

    /// Charge the time until now.
    fn charge(&mut self, now_ns: i64) {
        if !self.has_begun() {
            self.begin(now_ns, 0);
            return;
        }
        let span_ns = now_ns.saturating_sub(self.since_ns).max(0);
        let item = self.state.item();
        let shown = if self.is_doubtful() {
            Some(SenderState::Unknown)
        } else {
            item
        };
        self.note_span(shown, self.since_ns, span_ns);
        self.since_ns = self.since_ns.max(now_ns);
        if self.is_doubtful() {
            let doubt = self.doubt.get_or_insert_with(|| Box::new(Doubt::NONE));
            doubt.add(item, self.room, span_ns);
            if self.state == Activity::Idle {
                self.idle_ns = self.idle_ns.saturating_add(span_ns);
            }
        } else {
            self.add(self.state, span_ns);
        }
    }

    /// Return whether the window may have limited the sender, because its scale is unknown.
    fn is_doubtful(&self) -> bool {
        !self.room.is_certain() && matches!(self.state, Activity::Busy | Activity::Idle)
    }

    fn add(&mut self, state: Activity, span_ns: i64) {
        match state.item() {
            Some(item) => {
                self.spent_ns[item as usize] = self.spent_ns[item as usize].saturating_add(span_ns);
                match state {
                    Activity::Idle => self.idle_ns = self.idle_ns.saturating_add(span_ns),
                    Activity::WindowFull => {
                        self.window_ns = self.window_ns.saturating_add(span_ns);
                        self.full_ns = self.full_ns.saturating_add(span_ns);
                    }
                    Activity::SmallWindow => {
                        self.window_ns = self.window_ns.saturating_add(span_ns);
                    }
                    Activity::FastRecovery => {
                        self.recovery_ns = self.recovery_ns.saturating_add(span_ns);
                    }
                    _ => {}
                }
            }
            None => self.busy_ns = self.busy_ns.saturating_add(span_ns),
        }
    }

    /// Record that the sender drained at `at_ns`, in the past, and has been in `state` since.
    pub fn drain(&mut self, state: Activity, at_ns: i64) {
        self.drain_in(state, self.room, at_ns);
    }

    /// Like [`Budget::drain`], and set the window's room.
    pub fn drain_in(&mut self, state: Activity, room: ScaleNeed, at_ns: i64) {
        let is_open = matches!(self.state, Activity::Busy | Activity::WindowFull);
        if is_open && at_ns > self.since_ns && self.has_begun() {
            self.change(state, at_ns);
            self.room = room;
        }
    }

    /// Return whether the window is known, or has room at any scale.
    pub fn has_known_room(&self) -> bool {
        self.room.is_certain()
    }

    /// Charge the silence since `from_ns`, which a timer's retransmission ended, to `item`.
    #[cold]
    pub fn silence(&mut self, item: SenderState, from_ns: i64, now_ns: i64) {
        if !self.has_begun() {
            self.begin(from_ns, 0);
        }
        if self.state == Activity::Unseen {
            self.state = Activity::Busy;
        }
        // The time before the silence belongs to the current state.
        self.charge(from_ns.clamp(self.since_ns, now_ns.max(self.since_ns)));
        let span_ns = now_ns.saturating_sub(self.since_ns).max(0);
        self.note_span(Some(item), self.since_ns, span_ns);
        self.since_ns = self.since_ns.max(now_ns);
        self.spent_ns[item as usize] = self.spent_ns[item as usize].saturating_add(span_ns);
    }

    /// Charge `span_ns` of the time so far to `item`, taken first from the `likely` items, then from all others.
    #[cold]
    pub fn claim(&mut self, item: SenderState, span_ns: i64, likely: &[SenderState]) {
        let mut left_ns = span_ns.saturating_sub(self.spent_ns[item as usize]);
        let mut claimed_ns = 0i64;
        let mut take_from = |spent_ns: &mut i64| {
            let moved_ns = left_ns.clamp(0, (*spent_ns).max(0));
            *spent_ns -= moved_ns;
            left_ns -= moved_ns;
            claimed_ns += moved_ns;
        };
        for other in likely {
            take_from(&mut self.spent_ns[*other as usize]);
        }
        take_from(&mut self.busy_ns);
        for other in SenderState::ALL
            .into_iter()
            .rev()
            .filter(|other| *other != item)
        {
            take_from(&mut self.spent_ns[other as usize]);
        }
        let spent_ns = &mut self.spent_ns[item as usize];
        *spent_ns = spent_ns.saturating_add(claimed_ns);
    }

    /// Record the gap between this data and the previous data.
    #[inline(always)]
    pub fn note_gap(&mut self, gap_ns: i64) {
        self.gap_ns = self.gap_ns.max(gap_ns);
    }

    /// Forget the rates of the rounds so far, which were shorter than a round trip.
    pub fn forget_rates(&mut self) {
        self.rounds.forget_rates();
    }

    /// Void the charges so far, because they were judged by a flight that was not the sender's.
    pub fn void(&mut self) {
        self.is_voided = true;
        forget_flight(&mut self.spent_ns);
        if let Some(doubt) = &mut self.doubt {
            doubt.forget();
        }
    }

    /// Record a loss at this flight. `is_refused`: the receiver had withdrawn the window for the lost data.
    pub fn note_loss(&mut self, flight_bytes: u32, is_refused: bool) {
        self.rounds.lose(flight_bytes, is_refused);
    }

    /// End the round, and charge its busy time to what limited it.
    #[cold]
    pub fn end_round(&mut self, round: &RoundTrip, now_ns: i64) -> Spent {
        if self.has_begun() {
            self.charge(now_ns);
        }
        let passed = Passed {
            idle_ns: std::mem::take(&mut self.idle_ns),
            window_ns: std::mem::take(&mut self.window_ns),
            gap_ns: std::mem::take(&mut self.gap_ns),
            has_recovered: std::mem::replace(&mut self.has_recovered, self.state.is_recovery()),
        };
        let (item, otherwise) = self.rounds.judge(round, &passed);
        let mut spent = Spent {
            item,
            otherwise,
            busy_ns: 0,
            idle_ns: passed.idle_ns,
            full_ns: std::mem::take(&mut self.full_ns),
            recovery_ns: std::mem::take(&mut self.recovery_ns),
            gap_ns: passed.gap_ns,
        };
        let busy_ns = std::mem::take(&mut self.busy_ns);
        let doubt = self.doubt.as_mut().filter(|doubt| doubt.is_in_round());
        let judged = if doubt.is_some() {
            SenderState::Unknown
        } else {
            item
        };
        if let Some(log) = &mut self.log {
            log.write(Charge::Round(judged));
        }
        match doubt {
            Some(doubt) => doubt.end_round(item, busy_ns),
            None => {
                let spent_ns = &mut self.spent_ns[item as usize];
                *spent_ns = spent_ns.saturating_add(busy_ns);
                spent.busy_ns = busy_ns;
            }
        }
        spent
    }

    /// Move up to `span_ns` of one item's time to another.
    pub fn reassign(&mut self, from: SenderState, into: SenderState, span_ns: i64) {
        let moved_ns = span_ns.clamp(0, self.spent_ns[from as usize].max(0));
        self.spent_ns[from as usize] -= moved_ns;
        let spent_ns = &mut self.spent_ns[into as usize];
        *spent_ns = spent_ns.saturating_add(moved_ns);
    }

    /// Mark the charges so far. Called when a round is over.
    pub fn mark(&self) -> Mark {
        Mark {
            at_ns: self.since_ns,
            spent_ns: OF_A_RESTART.map(|item| self.spent_ns[item as usize]),
        }
    }

    /// Move up to `cost_ns` of the time since the mark to the idle restart. Called when a round is over.
    pub fn charge_restart(&mut self, since: &Mark, cost_ns: i64) {
        let mut left_ns = cost_ns;
        for (item, before_ns) in OF_A_RESTART.into_iter().zip(since.spent_ns) {
            let spent_ns = self.spent_ns[item as usize].saturating_sub(before_ns);
            let moved_ns = left_ns.clamp(0, spent_ns.max(0));
            if moved_ns == 0 {
                continue;
            }
            left_ns -= moved_ns;
            self.spent_ns[item as usize] -= moved_ns;
            let restart = &mut self.spent_ns[SenderState::IdleRestart as usize];
            *restart = restart.saturating_add(moved_ns);
            if let Some(log) = &mut self.log {
                log.write(Charge::Restart {
                    item,
                    since_ns: since.at_ns,
                    moved_ns,
                });
            }
        }
    }
}

/// Move the time of every item that is judged by the flight to [`SenderState::Unknown`].
pub fn forget_flight(spent_ns: &mut [i64; SENDER_STATES]) {
    for item in SenderState::ALL {
        if item.has(ItemTrait::Flight) {
            let ns = std::mem::take(&mut spent_ns[item as usize]);
            let unknown = &mut spent_ns[SenderState::Unknown as usize];
            *unknown = unknown.saturating_add(ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total_ns(budget: &Budget) -> i64 {
        budget.spent_ns.iter().sum()
    }

    fn spent_ns(budget: &Budget, item: SenderState) -> i64 {
        budget.spent(Shift::Known(0))[item as usize]
    }

    #[test]
    fn each_instant_belongs_to_one_item() {
        let mut budget = Budget::EMPTY;
        budget.turn(Activity::Busy, 10);
        budget.turn(Activity::WindowFull, 30);
        budget.turn(Activity::ZeroWindow, 70);
        budget.turn(Activity::Busy, 100);
        budget.turn(Activity::Idle, 110);
        budget.end_round(&RoundTrip::PLAIN, 120);
        assert_eq!(spent_ns(&budget, SenderState::WindowFull), 40);
        assert_eq!(spent_ns(&budget, SenderState::ZeroWindow), 30);
        assert_eq!(spent_ns(&budget, SenderState::Application), 10);
        assert_eq!(total_ns(&budget), 110);
    }

    #[test]
    fn the_silence_before_a_timeout_is_its_own() {
        let mut budget = Budget::EMPTY;
        budget.turn(Activity::Busy, 0);
        budget.silence(SenderState::Timeout, 40, 240);
        budget.turn(Activity::Timeout, 240);
        budget.turn(Activity::Busy, 300);
        budget.end_round(&RoundTrip::PLAIN, 300);
        assert_eq!(spent_ns(&budget, SenderState::Timeout), 260);
        assert_eq!(total_ns(&budget), 300);
    }

    #[test]
    fn a_restart_is_charged_to_the_time_since_it_began_only() {
        let grows = RoundTrip {
            grows: true,
            ..RoundTrip::PLAIN
        };
        let mut budget = Budget::EMPTY;
        budget.turn(Activity::Busy, 0);
        budget.end_round(&grows, 500);
        let mark = budget.mark();
        budget.turn(Activity::Idle, 500);
        budget.turn(Activity::Busy, 510);
        budget.end_round(&grows, 600);
        budget.turn(Activity::WindowFull, 600);
        budget.end_round(&grows, 700);
        budget.charge_restart(&mark, 300);
        assert_eq!(
            spent_ns(&budget, SenderState::SlowStart),
            500,
            "the initial one"
        );
        assert_eq!(spent_ns(&budget, SenderState::IdleRestart), 100);
        assert_eq!(
            spent_ns(&budget, SenderState::WindowFull),
            100,
            "is seen, not judged"
        );
        assert_eq!(total_ns(&budget), 700);
    }

    #[test]
    fn what_drained_unseen_is_idle_from_then_on() {
        let mut budget = Budget::EMPTY;
        budget.turn(Activity::Busy, 0);
        budget.drain(Activity::Idle, 50);
        budget.turn(Activity::Busy, 500);
        budget.end_round(&RoundTrip::PLAIN, 500);
        assert_eq!(spent_ns(&budget, SenderState::Application), 450 + 50);
    }
}
