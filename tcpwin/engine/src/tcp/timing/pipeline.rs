//! Requests under way at once: what the last answer had to wait for.
//!
//! In: new data of both sides, once data of one has crossed the other's. Out: time by whose turn it was. A message ends
//! with a short segment ([`Direction::ends_message`]).
//!
//! An answer waits for its request or, if that has already arrived, for the preceding answer; a request waits for the
//! last answer that it acknowledges. Each message adds its wait to that of the message it waited for, so the last one
//! holds the longest chain, which counts the time once if the path was busy while the server worked. The n-th answer
//! belongs to the n-th request as long as each request has one. If a window joins answers, requests remain unanswered,
//! and each answer is matched with the newest request that had arrived. If answers arrive before their requests could
//! have, or without any, both sides send independently. A buffer may join long requests, so that no short segment ends
//! them: a short answer after more of such data belongs to it.

use std::collections::VecDeque;

use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::tcp::timing::delays::Delays;
use crate::tcp::timing::waits::{Waits, REST_NS};
use crate::wire::Segment;

/// Maximum number of requests under way in one conversation.
const MOST_UNDER_WAY: usize = 127;
/// One in this many matched answers may come too early, or without a request.
const UNMATCHED_PART: u32 = 4;
const FEWEST_MATCHED: u32 = 3;
const FEWEST_PAUSES: i64 = 16;
/// Intervals are even if they change by less than this part of their mean. Clients that wait for answers keep the
/// intervals of their first requests, which are rarely as even.
const EVEN_PART: i64 = 16;
/// How much earlier than by the shortest round trip an answer may come.
const SLACK_NS: i64 = 500_000;
/// Before every time of a capture.
const LONG_AGO_NS: i64 = i64::MIN;

/// The waits that preceded a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    pub path_ns: i64,
    pub think_ns: i64,
    pub rest_ns: i64,
    pub work_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    end: Seq,
    start_ns: i64,
    end_ns: i64,
    chain: Chain,
}

/// The newest data of a side.
#[derive(Clone, Copy, Debug)]
struct Newest {
    end: Seq,
    /// Whether the message continues.
    goes_on: bool,
}

/// Pauses before requests. A client that waits for answers asks equally soon after each of them; a client with its own
/// clock asks at any time between two answers, or at even times although the server could answer faster.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    count: i64,
    sum_ns: i64,
    least_ns: i64,
    first_ns: i64,
    newest_ns: i64,
    /// From the request before the newest one, and how much these intervals differed from one to the next, in all.
    interval_ns: i64,
    uneven_ns: i64,
}

impl Pauses {
    fn add(&mut self, pause_ns: i64, now_ns: i64) {
        if self.count == 0 {
            (self.least_ns, self.first_ns) = (pause_ns, now_ns);
        } else {
            let interval_ns = now_ns.saturating_sub(self.newest_ns);
            if self.count > 1 {
                let change_ns = interval_ns
                    .saturating_sub(self.interval_ns)
                    .saturating_abs();
                self.uneven_ns = self.uneven_ns.saturating_add(change_ns);
            }
            self.interval_ns = interval_ns;
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(pause_ns);
        self.least_ns = self.least_ns.min(pause_ns);
        self.newest_ns = now_ns;
    }

    /// Return whether the client asked by its own clock. `is_busy`: the server worked most of the time, which spaces the
    /// requests of a client that waits for it.
    fn are_own(&self, is_busy: bool) -> bool {
        let count = self.count.max(1);
        let spaced_ns = self.newest_ns.saturating_sub(self.first_ns) / count;
        let mean_ns = self.sum_ns / count;
        let is_at_any_time = self.least_ns < mean_ns / 2;
        let is_even = self.uneven_ns / count < spaced_ns / EVEN_PART;
        self.count >= FEWEST_PAUSES
            && !is_busy
            && mean_ns > spaced_ns / 8
            && (is_at_any_time || is_even)
    }
}

/// The order that matches answers with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The oldest without an answer.
    InTurn,
    /// The newest that had arrived.
    Newest,
}

/// Messages so far, with answers assigned to requests by one order.
#[derive(Clone, Debug)]
struct Course {
    order: Order,
    requests: VecDeque<Message>,
    /// The newest request that had arrived.
    arrived: Message,
    /// Answers that no request acknowledged yet, and the last one that one did.
    answers: VecDeque<Message>,
    heard: Message,
    last: Message,
    /// Time of the newest data of requests.
    asked_ns: i64,
    /// Requests sent before this had arrived when the last answer began.
    arrived_ns: i64,
    /// Work of the side that answers, also while the path took longer.
    busy_ns: i64,
    works: Delays,
    pauses: Pauses,
    matched: u32,
    unmatched: u32,
}

#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Waits of the side that asks, and of the one that answers, before it began.
    pub before: [Waits; 2],
    began_ns: i64,
    newest: [Newest; 2],
    in_turn: Course,
    by_newest: Course,
    /// Segments that did not end their request, and short answers without a request in turn, one for each of them.
    going_on: u32,
    joined: u32,
}

/// The time of a pipelined conversation.
#[derive(Clone, Copy, Debug)]
pub struct Pipelined<'a> {
    pub chain: Chain,
    /// Part of the larger of the chain's path and work in which the other one passed, too.
    pub overlapped_ns: i64,
    pub answers: u32,
    /// Work for each answer.
    pub works: &'a Delays,
    /// Whether the n-th answer belongs to the n-th request.
    pub is_in_turn: bool,
}

impl Pipeline {
    /// Begin with a segment, already counted, of the side that asks or answers. None if there are fewer requests than
    /// answers: neither side asks.
    pub fn begin(directions: [&Direction; 2], is_answer: bool, segment: &Segment) -> Option<Self> {
        let nth = usize::from(is_answer);
        let mut newest = directions.map(|side| Newest {
            end: side.flight.nxt,
            goes_on: (side.pace()).is_some_and(|pace| pace.goes_on(side.segment_size())),
        });
        newest[nth] = Newest {
            end: Seq(segment.seq),
            goes_on: false,
        };
        let mut ended = directions.map(|side| side.writes);
        ended[nth] = ended[nth].wrapping_sub(u8::from(directions[nth].ends_message(segment)));
        let begun = ended[1].wrapping_add(u8::from(newest[1].goes_on));
        let mut pending = usize::from(ended[0].wrapping_sub(begun));
        let asks = directions[0];
        if pending > MOST_UNDER_WAY && asks.max_payload >= asks.segment_size() {
            // A buffer joined requests.
            pending = 0;
        }
        let before = directions.map(|side| {
            let turns = side.pace().and_then(|pace| pace.turns.as_deref());
            turns.map_or_else(Waits::default, |turns| turns.waits)
        });
        (pending <= MOST_UNDER_WAY).then(|| Self::new(before, newest, pending, segment.time_ns))
    }

    /// `newest`: before the segment that begins it at `now_ns`. `pending`: requests under way.
    fn new(before: [Waits; 2], newest: [Newest; 2], pending: usize, now_ns: i64) -> Self {
        let course = |order| Course::new(order, pending, newest[1].end, now_ns);
        Pipeline {
            before,
            began_ns: now_ns,
            newest,
            in_turn: course(Order::InTurn),
            by_newest: course(Order::Newest),
            going_on: 0,
            joined: 0,
        }
    }

    /// Process a segment with data. `ends`: whether it ends its message. `legs_ns`: round trips from the capture point to
    /// the side that asks, and to the one that answers.
    pub fn take(&mut self, is_answer: bool, segment: &Segment, ends: bool, legs_ns: [i64; 2]) {
        let newest = &mut self.newest[usize::from(is_answer)];
        let (end, now_ns) = (Seq(segment.seq) + segment.payload_len, segment.time_ns);
        if !end.is_after(newest.end) {
            return;
        }
        let begins = !newest.goes_on;
        *newest = Newest {
            end,
            goes_on: !ends,
        };
        if is_answer && begins {
            self.by_newest.begin_answer(now_ns, legs_ns[1]);
            if !self.in_turn.begin_answer(now_ns, legs_ns[1]) {
                self.in_turn.unmatched = self.in_turn.unmatched.saturating_add(1);
                let is_joined = ends && self.going_on > self.joined;
                self.joined = self.joined.saturating_add(u32::from(is_joined));
            }
        } else if !is_answer {
            self.going_on = self.going_on.saturating_add(u32::from(!ends));
        }
        let is_long = !ends || !begins;
        for course in [&mut self.in_turn, &mut self.by_newest] {
            if is_answer {
                course.answer(ends, end, now_ns);
            } else {
                course.ask(begins, is_long, Seq(segment.ack), end, now_ns, legs_ns[0]);
            }
        }
    }

    /// Return whose turn it was, if the answers belong to the requests.
    pub fn pipelined(&self) -> Option<Pipelined<'_>> {
        let Course {
            matched, unmatched, ..
        } = self.in_turn;
        let known = matched.saturating_add(self.joined);
        if known < FEWEST_MATCHED || unmatched.saturating_sub(self.joined) > known / UNMATCHED_PART
        {
            return None;
        }
        let is_in_turn = unmatched == 0 && !self.in_turn.has_left_over();
        let course = if is_in_turn {
            &self.in_turn
        } else {
            &self.by_newest
        };
        let mut chain = course.last.chain;
        let is_busy = chain.work_ns > chain.path_ns.saturating_add(chain.think_ns);
        if is_in_turn && course.pauses.are_own(is_busy) {
            chain = Chain {
                think_ns: chain.path_ns + chain.think_ns + chain.work_ns,
                path_ns: 0,
                work_ns: 0,
                ..chain
            };
        }
        let life_ns = course.last.end_ns.saturating_sub(self.began_ns);
        let free_ns = life_ns.saturating_sub(course.busy_ns).max(0);
        let overlapped_ns = (chain.path_ns - free_ns).max(0);
        if chain.work_ns > chain.path_ns - overlapped_ns {
            // Work that the path hid is the larger part.
            chain.path_ns -= overlapped_ns;
            chain.work_ns = chain.work_ns.saturating_add(overlapped_ns);
        }
        Some(Pipelined {
            chain,
            overlapped_ns,
            answers: known,
            works: &course.works,
            is_in_turn,
        })
    }
}

impl Course {
    fn new(order: Order, pending: usize, end: Seq, now_ns: i64) -> Self {
        let message = |end_ns| Message {
            end,
            start_ns: end_ns,
            end_ns,
            chain: Chain::default(),
        };
        Course {
            order,
            requests: std::iter::repeat_n(message(LONG_AGO_NS), pending).collect(),
            arrived: message(LONG_AGO_NS),
            answers: VecDeque::new(),
            heard: message(now_ns),
            last: message(now_ns),
            asked_ns: now_ns,
            arrived_ns: LONG_AGO_NS,
            busy_ns: 0,
            works: Delays::default(),
            pauses: Pauses::default(),
            matched: 0,
            unmatched: 0,
        }
    }

    /// Return whether requests that had arrived before the last answer have none.
    fn has_left_over(&self) -> bool {
        let oldest = self.requests.front();
        oldest.is_some_and(|request| request.end_ns < self.arrived_ns)
    }

    /// Process data of a request.
    fn ask(&mut self, begins: bool, is_long: bool, ack: Seq, end: Seq, now_ns: i64, leg_ns: i64) {
        let may_begin = begins || self.order == Order::Newest;
        let mut has_heard = false;
        while let Some(answer) =
            (self.answers.front()).filter(|each| may_begin && !each.end.is_after(ack))
        {
            self.heard = *answer;
            has_heard = true;
            self.answers.pop_front();
        }
        let silent_ns = now_ns.saturating_sub(self.asked_ns);
        self.asked_ns = now_ns;
        // Data that follows at once did not wait for the answer.
        if !begins && (!has_heard || silent_ns < SLACK_NS) {
            match self.requests.back_mut() {
                Some(request) => (request.end, request.end_ns) = (end, now_ns),
                // The rest of one whose first part had arrived when the last answer began.
                None if self.order == Order::Newest => self.push(end, now_ns, self.arrived.chain),
                None => {}
            }
            return;
        }
        let wait_ns = now_ns.saturating_sub(self.heard.end_ns).max(0);
        let path_ns = leg_ns.clamp(0, wait_ns);
        let think_ns = wait_ns - path_ns;
        if self.requests.is_empty() && self.answers.is_empty() {
            self.pauses = Pauses::default();
        } else if !is_long && (has_heard || self.pauses.count > 0) {
            // The first requests wait for nothing, and a long one also waits for the one before it.
            self.pauses.add(think_ns, now_ns);
        }
        let mut chain = self.heard.chain;
        chain.path_ns = chain.path_ns.saturating_add(path_ns);
        let own_ns = if think_ns > REST_NS {
            &mut chain.rest_ns
        } else {
            &mut chain.think_ns
        };
        *own_ns = own_ns.saturating_add(think_ns);
        self.push(end, now_ns, chain);
    }

    fn push(&mut self, end: Seq, now_ns: i64, chain: Chain) {
        if self.requests.len() >= MOST_UNDER_WAY {
            self.requests.pop_front();
            self.unmatched = self.unmatched.saturating_add(1);
        }
        let (start_ns, end_ns) = (now_ns, now_ns);
        self.requests.push_back(Message {
            end,
            start_ns,
            end_ns,
            chain,
        });
    }

    /// Process data of an answer.
    fn answer(&mut self, ends: bool, end: Seq, now_ns: i64) {
        (self.last.end, self.last.end_ns) = (end, now_ns);
        if ends || self.order == Order::Newest {
            if self.answers.len() >= MOST_UNDER_WAY {
                self.answers.pop_front();
            }
            self.answers.push_back(self.last);
        }
    }

    fn request_of_answer(&mut self, now_ns: i64, leg_ns: i64) -> Option<Message> {
        if self.order == Order::InTurn {
            return self.requests.pop_front();
        }
        while let Some(request) =
            (self.requests.front()).filter(|each| each.start_ns.saturating_add(leg_ns) <= now_ns)
        {
            self.arrived = *request;
            self.requests.pop_front();
        }
        // More of it may still be on its way.
        self.arrived.end_ns = self.arrived.end_ns.min(now_ns.saturating_sub(leg_ns));
        Some(self.arrived)
    }

    /// Begin an answer. Return whether its request had arrived.
    fn begin_answer(&mut self, now_ns: i64, leg_ns: i64) -> bool {
        let Some(request) = self.request_of_answer(now_ns, leg_ns) else {
            return false;
        };
        self.arrived_ns = now_ns.saturating_sub(leg_ns);
        let arrived_ns = request.end_ns.saturating_add(leg_ns);
        let is_matched = now_ns >= arrived_ns.saturating_sub(leg_ns / 8 + SLACK_NS);
        self.matched = self.matched.saturating_add(u32::from(is_matched));
        let arrived_ns = arrived_ns.min(now_ns);
        let mut since_ns = self.last.end_ns;
        if arrived_ns >= since_ns {
            let path_ns = arrived_ns.saturating_sub(request.end_ns).max(0);
            since_ns = arrived_ns;
            self.last.chain = request.chain;
            self.last.chain.path_ns = request.chain.path_ns.saturating_add(path_ns);
        }
        let work_ns = now_ns.saturating_sub(since_ns).max(0);
        self.last.chain.work_ns = self.last.chain.work_ns.saturating_add(work_ns);
        self.busy_ns = self.busy_ns.saturating_add(work_ns);
        self.works.add(work_ns);
        is_matched
    }
}

#[cfg(test)]
mod tests;
