//! Divides a conversation's time between the side that had to act and the path.
//!
//! In: a connection's record. Out: times of the whole connection, the same for both directions. Side a asks and side b
//! answers. A connection is a conversation if side b answered side a at least once.

use crate::event::{Events, PREVIOUS_SEGMENT_MISSING, RESENT};
use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::state::Connection;
use crate::tcp::timing::pipeline::{Pipeline, Pipelined};
use crate::tcp::timing::waits::Waits;

/// With fewer crossings, both sides may still take turns: a server may greet while its client sends a request.
const FEWEST_CROSSED: u32 = 3;
/// Above one crossing in this many turns, both sides send whenever they like.
const CROSSED_PART: u32 = 20;

/// If both sides have more than this many messages per turn and some more, neither waits for the other.
const UNASKED_FACTOR: u32 = 2;
const FEWEST_UNASKED: u32 = 3;
/// Side a asks at once if it takes less than this part of side b's time.
const AT_ONCE_PART: i64 = 20;

/// Items that waits may have been charged to so far, likeliest first: the sender had nothing to send, or the last of
/// its data was still in flight.
pub(super) const CHARGED_TO: [SenderState; 4] = [
    SenderState::Application,
    SenderState::SlowStart,
    SenderState::Congestion,
    SenderState::SendBuffer,
];

/// The turns of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Answers by side b.
    pub exchanges: u32,
    /// From the last byte of an answer to side a's next request.
    pub requester_ns: i64,
    /// From the last byte of a request to side b's first byte.
    pub responder_ns: i64,
    /// Requests and answers were in transit: at most a round trip per turn.
    pub round_trips_ns: i64,
    /// Messages were still arriving later than that, delayed by a queue on the path.
    pub transit_ns: i64,
    /// From one segment of a message to the next, where its sender had all of it at hand.
    pub transfer_ns: i64,
    /// Data lost before the capture point was sent again: after a timer, and the rest.
    pub lost_ns: i64,
    pub repair_ns: i64,
    /// No request for a long time, or until the end.
    pub idle_ns: i64,
    /// Part of the larger of `responder_ns` and `round_trips_ns` in which the other passed, too: with several requests
    /// under way, lifting the larger gains less by this.
    pub overlapped_ns: i64,
    /// Answers may be in another order than their requests, as those of HTTP/2: each was assigned to the newest request that
    /// had arrived.
    pub is_by_newest: bool,
}

/// The turns of a connection, as far as its packets show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation {
    /// Only one side sent data, or neither waited for the other.
    None,
    /// Both sides send whenever they like, so it is unknown whose turn it was.
    Interleaved,
    /// Side b sends at even times, whatever side a sends.
    Scheduled,
    Turns(Turns),
}

impl Conversation {
    /// Return the time of requests under way at once, if they are what the packets show.
    pub fn pipelined(connection: &Connection) -> Option<Pipelined<'_>> {
        let side = connection.initiator_side();
        let [asks, answers] = [side, 1 - side].map(|side| &connection.directions[side]);
        let pipelined = connection.pipeline()?.pipelined();
        pipelined.filter(|_| crosses(&waits(asks, answers), &waits(answers, asks)))
    }

    /// Return what a connection's packets show.
    pub fn of(connection: &Connection) -> Conversation {
        let asking = connection.initiator_side();
        let sides = [asking, 1 - asking].map(|side| &connection.directions[side]);
        let [asks, answers] = sides;
        if asks.data_segments == 0 || answers.data_segments == 0 || connection.is_sampled() {
            return Conversation::None;
        }
        let [asked, answered] = [waits(asks, answers), waits(answers, asks)];
        let is_crossing = crosses(&asked, &answered) || is_unasked(asks) && is_unasked(answers);
        let is_asked_at_once = asked.own_ns <= answered.own_ns / AT_ONCE_PART;
        let schedule = answers.pace().and_then(|pace| pace.turns.as_deref());
        if schedule.is_some_and(|turns| turns.schedule.is_kept(is_asked_at_once)) {
            return Conversation::Scheduled;
        }
        let mut turns = if is_crossing {
            match connection.pipeline().and_then(Turns::of_pipeline) {
                Some(turns) => turns,
                None => return Conversation::Interleaved,
            }
        } else if answered.turns == 0 {
            return Conversation::None;
        } else {
            Turns::of_waits([&asked, &answered])
        };
        turns.add_unfinished(connection, [&asked, &answered]);
        turns.transfer_ns = sides.iter().fold(0i64, |sum_ns, side| {
            sum_ns.saturating_add(side.pace().map_or(0, |pace| pace.transfer_ns))
        });
        turns.open(connection, asks, answers);
        turns.close(connection, asks, answers);
        Conversation::Turns(turns)
    }

    pub fn turns(self) -> Option<Turns> {
        match self {
            Conversation::Turns(turns) => Some(turns),
            Conversation::None | Conversation::Interleaved | Conversation::Scheduled => None,
        }
    }

    /// Name in machine formats.
    pub const fn name(self) -> &'static str {
        match self {
            Conversation::None => "one_sided",
            Conversation::Interleaved => "interleaved",
            Conversation::Scheduled => "scheduled",
            Conversation::Turns(turns) if turns.is_by_newest => "overlapping",
            Conversation::Turns(_) => "known",
        }
    }
}

/// Return whether data of either side crosses the other's as a rule.
fn crosses(asked: &Waits, answered: &Waits) -> bool {
    let crossed = asked.crossed + answered.crossed;
    crossed >= FEWEST_CROSSED
        && crossed.saturating_mul(CROSSED_PART) > asked.turns.saturating_add(answered.turns)
}

/// Return whether a side often sends another message, after a pause, although the other side has not answered the last.
fn is_unasked(side: &Direction) -> bool {
    let turns = side.pace().and_then(|pace| pace.turns.as_deref());
    turns.is_some_and(|turns| {
        let answers = turns.turns.saturating_mul(UNASKED_FACTOR);
        turns.messages > answers.saturating_add(FEWEST_UNASKED)
    })
}

/// Return a side's waits. The answer of a side that answered only once is stored outside its waits.
fn waits(side: &Direction, other: &Direction) -> Waits {
    let turns = side.pace().and_then(|pace| pace.turns.as_deref());
    let mut waits = turns.map_or_else(Waits::default, |turns| turns.waits);
    if let Some(answer_ns) = side.first_answer_ns() {
        waits.add(answer_ns, other.rtt_to_receiver_ns().unwrap_or(0));
    }
    waits
}

impl Turns {
    fn of_waits([asked, answered]: [&Waits; 2]) -> Turns {
        Turns {
            exchanges: answered.turns,
            requester_ns: asked.own_ns,
            responder_ns: answered.own_ns.saturating_add(answered.rest_ns),
            round_trips_ns: asked.path_ns.saturating_add(answered.path_ns),
            transit_ns: asked.transit_ns.saturating_add(answered.transit_ns),
            transfer_ns: 0,
            idle_ns: asked.rest_ns,
            overlapped_ns: 0,
            is_by_newest: false,
            lost_ns: asked.lost_ns.saturating_add(answered.lost_ns),
            repair_ns: asked.repair_ns.saturating_add(answered.repair_ns),
        }
    }

    /// The turns of requests under way at once, if each answer belongs to one.
    fn of_pipeline(pipeline: &Pipeline) -> Option<Turns> {
        let Pipelined {
            chain,
            overlapped_ns,
            answers,
            is_in_turn,
            ..
        } = pipeline.pipelined()?;
        let before = Turns::of_waits(pipeline.before.each_ref());
        Some(Turns {
            exchanges: before.exchanges.saturating_add(answers),
            requester_ns: before.requester_ns.saturating_add(chain.think_ns),
            responder_ns: before.responder_ns.saturating_add(chain.work_ns),
            round_trips_ns: before.round_trips_ns.saturating_add(chain.path_ns),
            idle_ns: before.idle_ns.saturating_add(chain.rest_ns),
            overlapped_ns,
            is_by_newest: !is_in_turn,
            ..before
        })
    }

    /// Add the silences within messages. Where nothing was lost the path carried more slowly.
    fn add_unfinished(&mut self, connection: &Connection, waits: [&Waits; 2]) {
        const LOSSES: Events = RESENT | PREVIOUS_SEGMENT_MISSING;
        let has_loss = (0..2).any(|side| connection.event_count(side, LOSSES) > 0);
        let [timers_ns, rest_ns] = [0, 1].map(|nth: usize| {
            waits.iter().fold(0i64, |sum_ns, each| {
                sum_ns.saturating_add(each.unfinished_ns[nth])
            })
        });
        if has_loss {
            self.lost_ns = self.lost_ns.saturating_add(timers_ns);
            self.repair_ns = self.repair_ns.saturating_add(rest_ns);
        } else {
            self.transit_ns = self.transit_ns.saturating_add(rest_ns);
        }
    }

    /// Add the wait for the first data after the handshake.
    fn open(&mut self, connection: &Connection, asks: &Direction, answers: &Direction) {
        let Some(established_ns) = connection.established_ns() else {
            return;
        };
        let first_ns = asks.first_data_ns.min(answers.first_data_ns);
        let wait_ns = first_ns.saturating_sub(established_ns).max(0);
        let mut opening = Waits::default();
        if asks.first_data_ns <= answers.first_data_ns {
            opening.add(wait_ns, 0);
            self.requester_ns = self.requester_ns.saturating_add(opening.own_ns);
            self.idle_ns = self.idle_ns.saturating_add(opening.rest_ns);
        } else {
            // A server that sends first starts when the client's last ACK of the handshake arrives.
            opening.add(wait_ns, asks.rtt_to_receiver_ns().unwrap_or(0));
            self.responder_ns = self
                .responder_ns
                .saturating_add(opening.own_ns + opening.rest_ns);
            self.round_trips_ns = self.round_trips_ns.saturating_add(opening.path_ns);
        }
    }

    /// Add the time after the last data.
    fn close(&mut self, connection: &Connection, asks: &Direction, answers: &Direction) {
        let last_ns = asks.last_data_ns.max(answers.last_data_ns);
        let wait_ns = connection.end_ns.saturating_sub(last_ns).max(0);
        let is_answered = answers.last_data_ns >= asks.last_data_ns;
        let (last, own_ns) = if is_answered {
            (answers, &mut self.idle_ns)
        } else if asks.has_fin() || asks.flight.is_outstanding() {
            // No answer is due, or the peer's host did not even acknowledge the request.
            (asks, &mut self.idle_ns)
        } else {
            (asks, &mut self.responder_ns)
        };
        let path_ns = last.rtt_to_receiver_ns().unwrap_or(0).clamp(0, wait_ns);
        *own_ns = own_ns.saturating_add(wait_ns - path_ns);
        self.round_trips_ns = self.round_trips_ns.saturating_add(path_ns);
    }

    /// Move the turns' time out of the items that it was charged to. A side's own turn may come out of every one of them:
    /// near a message's receiver, the wait for its answer looks like a wait for its ACK.
    pub fn reassign(&self, items_ns: &mut [i64; SENDER_STATES]) {
        const ALL: usize = CHARGED_TO.len();
        let wanted = [
            (SenderState::Responder, self.responder_ns, ALL),
            (SenderState::Requester, self.requester_ns, ALL),
            (SenderState::Idle, self.idle_ns, ALL),
            (SenderState::Path, self.transit_ns, 1),
            (SenderState::RoundTrip, self.round_trips_ns, ALL),
            // Also charged to its sender's timer where both sides sent again.
            (SenderState::Tail, self.lost_ns, 1),
            (SenderState::AfterLoss, self.repair_ns, 1),
            // The remaining time; windows and losses explain the other gaps.
            (SenderState::Path, self.transfer_ns, 1),
        ];
        for (item, wanted_ns, places) in wanted {
            let mut left_ns = wanted_ns;
            for from in &CHARGED_TO[..places] {
                let moved_ns = left_ns.clamp(0, items_ns[*from as usize].max(0));
                items_ns[*from as usize] -= moved_ns;
                items_ns[item as usize] += moved_ns;
                left_ns -= moved_ns;
            }
        }
    }
}
