//! The time budget of a followed direction over time.
//!
//! In: the direction's state after each segment, with its budget log. Out: spans with their items, which add up to the
//! direction's budget. The corrections that the budget's fields make to sums are made here in the spans that they
//! concern.

use crate::output::field::DirectionView;
use crate::output::series::Span;
use crate::output::timeline::{Timeline, KINDS, OPEN};
use crate::output::turns::{Conversation, CHARGED_TO};
use crate::output::vantage::path_rtt_ns;
use crate::tables::budget_item::SenderState;
use crate::tcp::budget::charge_log::Charge;
use crate::tcp::budget::Budget;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::state::Connection;
use crate::tcp::timing::waits::REST_NS;

const IDLE: usize = SenderState::Application as usize;
const CLOSED_WINDOW: usize = SenderState::ZeroWindow as usize;

pub struct BudgetTrack {
    pub timeline: Timeline,
    /// Number of budget log entries read.
    read: u64,
    /// Start of the log; before that, the direction's counts are used.
    began_ns: Option<i64>,
    /// Start of the oldest span not yet charged.
    open_ns: i64,
    limited_ns: i64,
    recovery_ns: i64,
    closed: Closed,
    /// Turns of both sides so far, and the spans of the first [`MOST_TURNS`].
    turns: [u32; 2],
    spans: Vec<TurnSpan>,
}

/// Maximum number of turns to place on the time axis; the time of later ones is adjusted to the total.
const MOST_TURNS: usize = 4096;

/// A side's turn as seen at the capture point, with half of the round trip at each end.
#[derive(Clone, Copy)]
struct TurnSpan {
    from_ns: i64,
    to_ns: i64,
    half_ns: i64,
    item: SenderState,
}

/// The zero-window episodes read so far.
#[derive(Default)]
struct Closed {
    episodes: u32,
    total_ns: i64,
    waiting_ns: i64,
    /// The last completed episode.
    last: (i64, i64),
}

impl BudgetTrack {
    /// Keep at most `limit` spans.
    pub fn new(start_ns: i64, span: Span, limit: usize) -> Self {
        BudgetTrack {
            timeline: Timeline::new(start_ns, span, limit),
            read: 0,
            began_ns: None,
            open_ns: i64::MAX,
            limited_ns: 0,
            recovery_ns: 0,
            closed: Closed::default(),
            turns: [0; 2],
            spans: Vec::new(),
        }
    }

    /// Record a turn that ended with the newest segment, sent by `side`.
    pub fn take_turn(&mut self, now_ns: i64, connection: &Connection, side: usize) {
        let (acts, other) = (
            &connection.directions[side],
            &connection.directions[1 - side],
        );
        let turns = turns_of(acts);
        if std::mem::replace(&mut self.turns[side], turns) == turns || turns == 0 {
            return;
        }
        if self.spans.len() < MOST_TURNS {
            let from_ns = other.last_data_ns;
            let wait_ns = now_ns.saturating_sub(from_ns).max(0);
            let leg_ns = other.rtt_to_receiver_ns().unwrap_or(0).clamp(0, wait_ns);
            let is_asking = side == connection.initiator_side();
            self.spans.push(TurnSpan {
                from_ns,
                to_ns: now_ns,
                half_ns: leg_ns / 2,
                item: match is_asking {
                    true if wait_ns - leg_ns > REST_NS => SenderState::Idle,
                    true => SenderState::Requester,
                    false => SenderState::Responder,
                },
            });
        }
    }

    /// Charge each turn's time to the side whose turn it was, and to the path.
    fn place_turns(&mut self) {
        for span in std::mem::take(&mut self.spans) {
            let (own_from_ns, own_to_ns) = (span.from_ns + span.half_ns, span.to_ns - span.half_ns);
            for (from_ns, to_ns, item) in [
                (span.from_ns, own_from_ns, SenderState::RoundTrip),
                (own_from_ns, own_to_ns, span.item),
                (own_to_ns, span.to_ns, SenderState::RoundTrip),
            ] {
                let kinds = CHARGED_TO.map(|item| item as usize);
                self.timeline
                    .convert(from_ns, to_ns, &kinds, item as usize, i64::MAX);
            }
        }
    }

    /// Update with the direction's state after a segment.
    pub fn take(&mut self, now_ns: i64, direction: &Direction) {
        match budget_of(direction) {
            Some(budget) => self.read_log(budget),
            None => self.take_early(now_ns, direction),
        }
        self.take_episodes(now_ns, direction);
    }

    fn read_log(&mut self, budget: &Budget) {
        let Some(log) = budget.log() else {
            return;
        };
        if self.began_ns.is_none() {
            self.began_ns = Some(budget.began_ns);
            self.timeline.push(IDLE, budget.began_ns);
            // Spans that were still open when the log began.
            let open_ns = budget.early_limited_ns.saturating_sub(self.limited_ns);
            let from_ns = budget.began_ns.saturating_sub(open_ns);
            let into = SenderState::WindowFull as usize;
            self.timeline
                .convert(from_ns, budget.began_ns, &[IDLE], into, open_ns);
        }
        let (entries, next) = log.since(self.read);
        self.read = next;
        for entry in entries {
            match entry {
                Charge::Span {
                    item,
                    from_ns,
                    to_ns,
                } => self.charge(item.map_or(OPEN, |item| item as usize), from_ns, to_ns),
                Charge::Round(item) => self.end_round(item as usize),
                Charge::Restart {
                    item,
                    since_ns,
                    moved_ns,
                } => {
                    let (kinds, into) = ([item as usize], SenderState::IdleRestart as usize);
                    self.timeline
                        .convert(since_ns, i64::MAX, &kinds, into, moved_ns);
                }
            }
        }
    }

    fn charge(&mut self, kind: usize, from_ns: i64, to_ns: i64) {
        let end_ns = self.timeline.end_ns();
        // A silence begins before it is recognized as one.
        if from_ns < end_ns {
            let to_ns = to_ns.min(end_ns);
            self.timeline.convert(from_ns, to_ns, &ANY, kind, i64::MAX);
        }
        self.timeline.push(IDLE, from_ns);
        self.timeline.push(kind, to_ns);
        if kind == OPEN {
            self.open_ns = self.open_ns.min(from_ns);
        }
    }

    fn end_round(&mut self, kind: usize) {
        if self.open_ns < i64::MAX {
            self.timeline
                .convert(self.open_ns, i64::MAX, &[OPEN], kind, i64::MAX);
            self.open_ns = i64::MAX;
        }
    }

    /// Update by the direction's counts: the log is empty while fewer than two segments are in flight.
    fn take_early(&mut self, now_ns: i64, direction: &Direction) {
        self.timeline.push(IDLE, now_ns);
        let cold_state = direction.cold_state.as_deref();
        let episode = cold_state.and_then(|cold_state| cold_state.episode());
        let counts = [
            (
                &mut self.limited_ns,
                direction.limited_ns(),
                SenderState::WindowFull,
            ),
            (
                &mut self.recovery_ns,
                episode.map_or(0, |episode| episode.recovery_ns),
                SenderState::FastRecovery,
            ),
        ];
        for (known_ns, count_ns, item) in counts {
            let more_ns = count_ns.saturating_sub(std::mem::replace(known_ns, count_ns));
            if more_ns > 0 {
                let from_ns = now_ns.saturating_sub(more_ns);
                self.timeline
                    .convert(from_ns, now_ns, &[IDLE], item as usize, more_ns);
            }
        }
    }

    /// Charge a closed window only for the time the sender waited, which may become known after the episode.
    fn take_episodes(&mut self, now_ns: i64, direction: &Direction) {
        let Some(zero) = direction
            .cold_state
            .as_deref()
            .and_then(|cold_state| cold_state.zero.as_ref())
        else {
            return;
        };
        let closed = &mut self.closed;
        if zero.episode_count != closed.episodes {
            let length_ns = zero.total_ns.saturating_sub(closed.total_ns);
            (closed.episodes, closed.total_ns) = (zero.episode_count, zero.total_ns);
            let last = zero.episodes.last();
            closed.last = last.map_or((now_ns.saturating_sub(length_ns), now_ns), |episode| {
                (episode.start_ns, episode.end_ns)
            });
            let (from_ns, to_ns) = closed.last;
            self.timeline
                .convert(from_ns, to_ns, &[CLOSED_WINDOW], IDLE, i64::MAX);
        }
        let closed = &mut self.closed;
        let waited_ns = zero.waiting_ns.saturating_sub(closed.waiting_ns);
        if waited_ns > 0 {
            closed.waiting_ns = zero.waiting_ns;
            let (from_ns, to_ns) = closed.last;
            self.timeline
                .convert(from_ns, to_ns, &[IDLE], CLOSED_WINDOW, waited_ns);
        }
    }

    /// Finish the connection: add the items that are known only at its end, or only as sums.
    pub fn finish(&mut self, connection: &Connection, side: usize) {
        let view = DirectionView {
            connection,
            sender: side,
        };
        let direction = &connection.directions[side];
        let (start_ns, end_ns) = (connection.start_ns, connection.end_ns);
        self.take(end_ns, direction);
        self.timeline.push(IDLE, end_ns);
        match self.began_ns {
            Some(began_ns) => {
                let first_ns = began_ns.saturating_sub(direction.first_data_ns);
                if view.is_from_start() && first_ns <= path_rtt_ns(connection).unwrap_or(0) {
                    let from_ns = direction.first_data_ns;
                    let into = SenderState::SlowStart as usize;
                    self.timeline
                        .convert(from_ns, began_ns, &[IDLE], into, i64::MAX);
                }
            }
            None => {
                if let Some(from_ns) = view.closed_since_ns() {
                    let into = SenderState::Closed as usize;
                    self.timeline
                        .convert(from_ns, end_ns, &[IDLE], into, i64::MAX);
                }
            }
        }
        let moves = (direction.pace()).map(|pace| pace.moves(direction.segment_size()));
        for each in moves.into_iter().flatten() {
            let (kinds, into) = ([each.item as usize], each.into as usize);
            self.timeline
                .convert(each.from_ns, each.to_ns, &kinds, into, each.span_ns);
        }
        if let Some(stall) = view.end_stall().filter(|stall| stall.kind.is_unanswered()) {
            let into = SenderState::PeerSilent as usize;
            self.timeline
                .convert(stall.start_ns, stall.end_ns, &ANY, into, i64::MAX);
        }
        let handshake_ns = view.handshake_ns(end_ns.saturating_sub(start_ns).max(0));
        let (to_ns, into) = (
            start_ns.saturating_add(handshake_ns),
            SenderState::Handshake as usize,
        );
        self.timeline
            .convert(start_ns, to_ns, &ANY, into, handshake_ns);
        if direction.data_segments > 0 && !direction.is_flight_known() {
            let (to_ns, into) = (
                self.began_ns.unwrap_or(end_ns),
                SenderState::Unknown as usize,
            );
            self.timeline
                .convert(start_ns, to_ns, &[IDLE], into, i64::MAX);
        }
        if Conversation::of(connection).turns().is_some() {
            self.place_turns();
        }
        self.timeline.settle(&view.budget());
    }
}

const ANY: [usize; KINDS] = {
    let mut kinds = [0; KINDS];
    let mut kind = 0;
    while kind < KINDS {
        kinds[kind] = kind;
        kind += 1;
    }
    kinds
};

/// Count the turns of a side, except those in which its data crossed the other side's.
fn turns_of(side: &Direction) -> u32 {
    let turns = side.pace().and_then(|pace| pace.turns.as_deref());
    let counted = turns.map_or(0, |turns| turns.waits.turns);
    counted + u32::from(side.first_answer_ns().is_some())
}

fn budget_of(direction: &Direction) -> Option<&Budget> {
    let budget = &direction.pace()?.late.budget;
    budget.has_begun().then_some(budget)
}
