//! The exchanges of a conversation: each request with its answer, and who spent the time.
//!
//! A request is new data from the side that asks, until the other side sends data that acknowledges all of it. The
//! answer is the other side's data up to the next answer. Data that acknowledges only part of a request belongs to the
//! previous answer. Of requests under way at once, the n-th message of one side answers the n-th of the other.

use std::collections::{HashMap, VecDeque};

use crate::event::{Events, CAPTURE_DUPLICATE, KEEP_ALIVE, ZERO_WINDOW_PROBE};
use crate::output::pass::Sink;
use crate::output::turns::Conversation;
use crate::sequence::Seq;
use crate::tcp::connection::state::Connection;
use crate::tcp::timing::waits::Waits;
use crate::tcp::tracker::Annotation;
use crate::wire::{Segment, ACK, SYN};

/// Events of segments whose payload belongs to no message.
const NO_MESSAGE: Events = CAPTURE_DUPLICATE | KEEP_ALIVE | ZERO_WINDOW_PROBE;

/// One request and its answer. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    pub connection: u32,
    /// Frames of the first and last segments.
    pub request_frame: u64,
    pub request_end_frame: u64,
    pub answer_frame: u64,
    pub answer_end_frame: u64,
    /// Time of the request's first segment at the capture point.
    pub start_ns: i64,
    /// From the arrival of the previous answer, or the end of the handshake, to the request.
    pub think_ns: i64,
    /// From the first to the last segment of the request.
    pub request_ns: i64,
    /// The path's part of the waits before the request and before the answer: round trips, queues and repairs.
    pub path_ns: i64,
    /// From the arrival of the request at b to the first byte of b's answer.
    pub work_ns: i64,
    /// From the first to the last segment of the answer.
    pub transfer_ns: i64,
    pub request_bytes: u64,
    pub answer_bytes: u64,
}

/// Properties of a connection that an earlier pass has measured.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    /// The side that asks.
    asking: usize,
    /// RTT between the capture point and each side.
    legs_ns: [i64; 2],
    established_ns: Option<i64>,
    /// Requests were under way at once, each with its answer.
    is_pipelined: bool,
}

impl Roles {
    /// None if answers cannot be assigned to their requests.
    pub fn of(connection: &Connection) -> Option<Self> {
        let pipelined = Conversation::pipelined(connection);
        if pipelined.is_some_and(|found| !found.is_in_turn) {
            return None;
        }
        let leg_ns = |side: usize| {
            let other = &connection.directions[1 - side];
            other.rtt_to_receiver_ns().unwrap_or(0)
        };
        Some(Roles {
            asking: connection.initiator_side(),
            legs_ns: [leg_ns(0), leg_ns(1)],
            established_ns: connection.established_ns(),
            is_pipelined: pipelined.is_some(),
        })
    }
}

/// A wait for a side's first data: its own time and the path's.
#[derive(Clone, Copy, Debug)]
struct Wait {
    own_ns: i64,
    path_ns: i64,
}

impl Wait {
    fn new(wait_ns: i64, leg_ns: i64) -> Self {
        let path_ns = leg_ns.clamp(0, wait_ns.max(0));
        Wait {
            own_ns: wait_ns.max(0) - path_ns,
            path_ns,
        }
    }

    /// The turn that a connection counted since `before`, if it is one.
    fn counted(before: &Waits, now: &Waits) -> Option<Self> {
        (now.turns == before.turns.wrapping_add(1)).then(|| Wait {
            own_ns: now.own_ns + now.rest_ns - before.own_ns - before.rest_ns,
            path_ns: now.path_ns + now.transit_ns + now.lost_ns
                - before.path_ns
                - before.transit_ns
                - before.lost_ns,
        })
    }
}

/// A request or an answer.
#[derive(Clone, Copy, Debug)]
struct Part {
    frame: u64,
    end_frame: u64,
    start_ns: i64,
    end_ns: i64,
    bytes: u64,
    wait: Wait,
}

impl Part {
    fn begin(segment: &Segment, bytes: u64, wait: Wait) -> Self {
        Part {
            frame: segment.frame,
            end_frame: segment.frame,
            start_ns: segment.time_ns,
            end_ns: segment.time_ns,
            bytes,
            wait,
        }
    }

    fn extend(&mut self, segment: &Segment, bytes: u64) {
        self.end_frame = segment.frame;
        self.end_ns = self.end_ns.max(segment.time_ns);
        self.bytes += bytes;
    }

    fn span_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// The state of a connection's conversation.
#[derive(Debug)]
struct Course {
    roles: Roles,
    /// End of each side's data.
    nxt: [Option<Seq>; 2],
    /// Acknowledgment number of the other side.
    una: [Option<Seq>; 2],
    last_data_ns: Option<i64>,
    waits: [Waits; 2],
    /// Whether each side is in the middle of a message.
    goes_on: [bool; 2],
    /// Requests that are not answered yet.
    requests: VecDeque<Part>,
    /// The last answered request, and its answer.
    answered: Option<(Part, Part)>,
}

impl Course {
    fn new(roles: Roles) -> Self {
        Course {
            roles,
            nxt: [None; 2],
            una: [None; 2],
            last_data_ns: roles.established_ns,
            waits: Default::default(),
            goes_on: [false; 2],
            requests: VecDeque::new(),
            answered: None,
        }
    }

    /// Process a segment. `waits`: of its side, with this segment. `ends`: whether it ends a message. Return the exchange
    /// that it completes.
    fn take(
        &mut self,
        segment: &Segment,
        side: usize,
        events: Events,
        (waits, ends): (Waits, bool),
    ) -> Option<Exchange> {
        let other = 1 - side;
        if segment.flags & ACK != 0 {
            let ack = Seq(segment.ack);
            self.una[other] = Some(self.una[other].map_or(ack, |una| una.max(ack)));
        }
        let counted = Wait::counted(&self.waits[side], &waits);
        self.waits[side] = waits;
        if segment.payload_len == 0 || events & NO_MESSAGE != 0 {
            return None;
        }
        let seq = Seq(segment.seq) + u32::from(segment.flags & SYN != 0);
        let end = seq + segment.payload_len;
        let bytes = match self.nxt[side] {
            Some(nxt) if !end.is_after(nxt) => {
                self.resend(segment, side, end);
                return None;
            }
            Some(nxt) => nxt.max(seq).to(end).unsigned_abs(),
            None => segment.payload_len,
        };
        self.nxt[side] = Some(end);
        let last_data_ns = self.last_data_ns.replace(segment.time_ns);
        let bytes = u64::from(bytes);
        let goes_on = std::mem::replace(&mut self.goes_on[side], !ends);
        let is_pipelined = self.roles.is_pipelined;
        if side == self.roles.asking {
            let begins = self.requests.is_empty() || (is_pipelined && !goes_on);
            match self.requests.back_mut().filter(|_| !begins) {
                Some(request) => request.extend(segment, bytes),
                None => {
                    let wait = counted.unwrap_or_else(|| self.think(segment, last_data_ns));
                    self.requests.push_back(Part::begin(segment, bytes, wait));
                }
            }
            return None;
        }
        let has_all = self.nxt[other].is_some_and(|nxt| !Seq(segment.ack).is_before(nxt));
        let begins = if is_pipelined { !goes_on } else { has_all };
        if let Some(request) = begins.then(|| self.requests.pop_front()).flatten() {
            let wait = if is_pipelined {
                self.work_in_turn(segment, &request)
            } else {
                let wait_ns = segment.time_ns.saturating_sub(request.end_ns);
                counted.unwrap_or_else(|| Wait::new(wait_ns, self.roles.legs_ns[side]))
            };
            let answer = Part::begin(segment, bytes, wait);
            let before = self.answered.replace((request, answer));
            return before.map(|(request, answer)| exchange(&request, &answer));
        }
        if let Some((_, answer)) = &mut self.answered {
            answer.extend(segment, bytes);
        }
        None
    }

    /// The wait for a request that the connection did not count as a turn.
    fn think(&self, segment: &Segment, last_data_ns: Option<i64>) -> Wait {
        let Roles {
            asking,
            legs_ns,
            established_ns,
            is_pipelined,
        } = self.roles;
        let answer_ns = self.answered.as_ref().map(|(_, answer)| answer.end_ns);
        let since_ns = if is_pipelined { answer_ns } else { None }.or(last_data_ns);
        let gap_ns = since_ns.map_or(0, |since_ns| segment.time_ns.saturating_sub(since_ns));
        // The handshake ends with a segment of a.
        let is_first = since_ns.is_some() && since_ns == established_ns;
        Wait::new(gap_ns, if is_first { 0 } else { legs_ns[asking] })
    }

    /// The wait for an answer from when its request had arrived, and the answer before had left.
    fn work_in_turn(&self, segment: &Segment, request: &Part) -> Wait {
        let leg_ns = self.roles.legs_ns[1 - self.roles.asking];
        let wait = Wait::new(segment.time_ns.saturating_sub(request.end_ns), leg_ns);
        let before = self.answered.as_ref();
        let free_ns = before.map_or(wait.own_ns, |(_, answer)| {
            segment.time_ns.saturating_sub(answer.end_ns)
        });
        Wait {
            own_ns: wait.own_ns.min(free_ns.max(0)),
            ..wait
        }
    }

    /// Process a retransmission: it extends the message if the receiver lacks the data.
    fn resend(&mut self, segment: &Segment, side: usize, end: Seq) {
        if self.una[side].is_some_and(|una| !end.is_after(una)) {
            return;
        }
        let is_asking = side == self.roles.asking;
        let part = match (self.requests.back_mut(), &mut self.answered) {
            (Some(request), _) if is_asking => request,
            (None, Some((_, answer))) if !is_asking => answer,
            _ => return,
        };
        part.extend(segment, 0);
        self.last_data_ns = self.last_data_ns.max(Some(segment.time_ns));
    }
}

fn exchange(request: &Part, answer: &Part) -> Exchange {
    Exchange {
        connection: 0,
        request_frame: request.frame,
        request_end_frame: request.end_frame,
        answer_frame: answer.frame,
        answer_end_frame: answer.end_frame,
        start_ns: request.start_ns,
        think_ns: request.wait.own_ns,
        request_ns: request.span_ns(),
        path_ns: request.wait.path_ns.saturating_add(answer.wait.path_ns),
        work_ns: answer.wait.own_ns,
        transfer_ns: answer.span_ns(),
        request_bytes: request.bytes,
        answer_bytes: answer.bytes,
    }
}

/// A sink that lists at most a given number of exchanges of the chosen connections.
pub struct ExchangeSink {
    courses: HashMap<u32, Course>,
    most: usize,
    found: Vec<Exchange>,
    /// Exchanges beyond `most`.
    omitted: u64,
}

impl ExchangeSink {
    pub fn new(roles: impl IntoIterator<Item = (u32, Roles)>, most: usize) -> Self {
        let roles = roles.into_iter();
        ExchangeSink {
            courses: roles.map(|(id, roles)| (id, Course::new(roles))).collect(),
            most,
            found: Vec::new(),
            omitted: 0,
        }
    }

    fn add(&mut self, connection: u32, exchange: Exchange) {
        if self.found.len() < self.most {
            self.found.push(Exchange {
                connection,
                ..exchange
            });
        } else {
            self.omitted += 1;
        }
    }

    /// Return the exchanges in the order of their requests, and the number of omitted ones.
    pub fn finish(mut self) -> (Vec<Exchange>, u64) {
        for (id, course) in std::mem::take(&mut self.courses) {
            if let Some((request, answer)) = &course.answered {
                self.add(id, exchange(request, answer));
            }
        }
        self.found
            .sort_unstable_by_key(|exchange| (exchange.request_frame, exchange.connection));
        (self.found, self.omitted)
    }
}

impl Sink for ExchangeSink {
    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
    ) -> bool {
        let id = annotation.connection;
        let side = usize::from(annotation.side);
        let Some(course) = self.courses.get_mut(&id) else {
            return true;
        };
        let direction = &connection.directions[side];
        let turns = direction.pace().and_then(|pace| pace.turns.as_deref());
        let waits = turns.map_or_else(Waits::default, |turns| turns.waits);
        let known = (waits, direction.ends_message(segment));
        if let Some(done) = course.take(segment, side, annotation.events, known) {
            self.add(id, done);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const ROLES: Roles = Roles {
        asking: 0,
        legs_ns: [0, 20 * MS],
        established_ns: Some(0),
        is_pipelined: false,
    };

    /// Return the exchanges of data: milliseconds, side, first byte, length and acknowledged byte.
    fn exchanges(roles: Roles, steps: &[(i64, usize, u32, u32, u32)]) -> Vec<Exchange> {
        let mut course = Course::new(roles);
        let mut found = Vec::new();
        for (frame, (at_ms, side, seq, payload_len, ack)) in (1..).zip(steps.iter().copied()) {
            let segment = Segment {
                frame,
                time_ns: at_ms * MS,
                seq,
                ack,
                payload_len,
                flags: ACK,
                ..Segment::EMPTY
            };
            found.extend(course.take(&segment, side, 0, (Waits::default(), true)));
        }
        let last = course.answered.as_ref();
        found.extend(last.map(|(request, answer)| exchange(request, answer)));
        found
    }

    #[test]
    fn an_exchange_has_the_time_of_each_side_and_of_the_path() {
        let found = exchanges(
            ROLES,
            &[
                (5, 0, 1, 100, 1),
                (30, 1, 1, 1000, 101),
                (31, 1, 1001, 500, 101),
                (41, 0, 101, 50, 1501),
                (64, 1, 1501, 10, 151),
            ],
        );
        let times = |each: &Exchange| {
            [each.think_ns, each.path_ns, each.work_ns, each.transfer_ns].map(|ns| ns / MS)
        };
        assert_eq!(
            found.iter().map(times).collect::<Vec<_>>(),
            [[5, 20, 5, 1], [10, 20, 3, 0]]
        );
        let bytes: Vec<_> = (found.iter())
            .map(|each| (each.request_bytes, each.answer_bytes))
            .collect();
        assert_eq!(bytes, [(100, 1500), (50, 10)]);
        assert_eq!(
            (found[0].answer_frame, found[0].answer_end_frame),
            (2, 3),
            "frames of the first answer"
        );
    }

    #[test]
    fn a_repaired_request_ends_with_its_last_copy() {
        let [found] = exchanges(
            ROLES,
            &[
                (0, 0, 1, 100, 1),
                (220, 0, 1, 100, 1),
                (245, 1, 1, 10, 101),
                // The peer has it already.
                (246, 0, 1, 100, 11),
            ],
        )[..] else {
            panic!("one exchange");
        };
        assert_eq!(
            (found.request_ns / MS, found.work_ns / MS),
            (220, 5),
            "the server has not waited"
        );
        assert_eq!((found.request_end_frame, found.request_bytes), (2, 100));
    }

    #[test]
    fn a_request_in_flight_does_not_cut_the_answer_before_it() {
        let found = exchanges(
            ROLES,
            &[
                (0, 0, 1, 100, 1),
                (25, 1, 1, 1000, 101),
                (26, 0, 101, 100, 1001),
                (27, 1, 1001, 1000, 101),
                (50, 1, 2001, 300, 201),
            ],
        );
        let answers: Vec<_> = found.iter().map(|each| each.answer_bytes).collect();
        assert_eq!(answers, [2000, 300]);
        assert_eq!(found[1].work_ns, 4 * MS);
    }

    #[test]
    fn the_second_request_under_way_has_the_second_answer() {
        let roles = Roles {
            is_pipelined: true,
            ..ROLES
        };
        let found = exchanges(
            roles,
            &[
                (0, 0, 1, 100, 1),
                (1, 0, 101, 100, 1),
                (25, 1, 1, 300, 201),
                (26, 0, 201, 100, 301),
                (32, 1, 301, 10, 201),
                (50, 1, 311, 20, 301),
            ],
        );
        let rows: Vec<_> = (found.iter())
            .map(|each| [each.request_frame, each.answer_frame, each.answer_bytes])
            .collect();
        assert_eq!(rows, [[1, 3, 300], [2, 5, 10], [4, 6, 20]]);
        let works: Vec<_> = found.iter().map(|each| each.work_ns / MS).collect();
        // The second one waited for the first one's answer.
        assert_eq!(works, [5, 7, 4]);
    }

    #[test]
    fn a_greeting_answers_nothing() {
        let found = exchanges(
            ROLES,
            &[(25, 1, 1, 80, 1), (26, 0, 1, 20, 81), (48, 1, 81, 60, 21)],
        );
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].think_ns, found[0].work_ns), (MS, 2 * MS));
    }

    #[test]
    fn the_list_is_bounded() {
        let mut sink = ExchangeSink::new([], 1);
        sink.add(7, Exchange::default());
        sink.add(7, Exchange::default());
        let (found, omitted) = sink.finish();
        assert_eq!((found.len(), found[0].connection, omitted), (1, 7, 1));
    }
}
