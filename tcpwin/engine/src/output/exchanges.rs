//! The exchanges of a conversation: each request with its answer, and who spent the time.
//!
//! A request is new data from the side that asks, until the other side sends data that acknowledges all of it. The
//! answer is the other side's data up to the next answer. Data that acknowledges only part of a request belongs to the
//! previous answer.

use std::collections::HashMap;

use crate::event::{Events, CAPTURE_DUPLICATE, KEEP_ALIVE, ZERO_WINDOW_PROBE};
use crate::output::pass::Sink;
use crate::sequence::Seq;
use crate::tcp::connection::state::Connection;
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
    /// The path's part of the waits before the request and before the answer.
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
}

impl Roles {
    pub fn of(connection: &Connection) -> Self {
        let leg_ns = |side: usize| {
            let other = &connection.directions[1 - side];
            other.rtt_to_receiver_ns().unwrap_or(0)
        };
        Roles {
            asking: connection.initiator_side(),
            legs_ns: [leg_ns(0), leg_ns(1)],
            established_ns: connection.established_ns(),
        }
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
    /// Time since the previous data; unknown for the first data of a connection without a handshake.
    gap_ns: Option<i64>,
}

impl Part {
    fn begin(segment: &Segment, bytes: u64, gap_ns: Option<i64>) -> Self {
        Part {
            frame: segment.frame,
            end_frame: segment.frame,
            start_ns: segment.time_ns,
            end_ns: segment.time_ns,
            bytes,
            gap_ns,
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
    /// The request that is not answered yet.
    request: Option<Part>,
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
            request: None,
            answered: None,
        }
    }

    /// Process a segment. Return the exchange that it completes.
    fn take(&mut self, segment: &Segment, side: usize, events: Events) -> Option<Exchange> {
        let other = 1 - side;
        if segment.flags & ACK != 0 {
            let ack = Seq(segment.ack);
            self.una[other] = Some(self.una[other].map_or(ack, |una| una.max(ack)));
        }
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
        let gap_ns = (self.last_data_ns).map(|last_ns| segment.time_ns.saturating_sub(last_ns));
        self.last_data_ns = Some(segment.time_ns);
        let bytes = u64::from(bytes);
        if side == self.roles.asking {
            match &mut self.request {
                Some(request) => request.extend(segment, bytes),
                None => self.request = Some(Part::begin(segment, bytes, gap_ns)),
            }
            return None;
        }
        let has_all = self.nxt[other].is_some_and(|nxt| !Seq(segment.ack).is_before(nxt));
        if let Some(request) = self.request.filter(|_| has_all) {
            self.request = None;
            let answer = Part::begin(segment, bytes, None);
            let before = self.answered.replace((request, answer));
            return before.map(|(request, answer)| self.exchange(&request, &answer));
        }
        if let Some((_, answer)) = &mut self.answered {
            answer.extend(segment, bytes);
        }
        None
    }

    /// Process a retransmission: it extends the message if the receiver lacks the data.
    fn resend(&mut self, segment: &Segment, side: usize, end: Seq) {
        if self.una[side].is_some_and(|una| !end.is_after(una)) {
            return;
        }
        let is_asking = side == self.roles.asking;
        let part = match (&mut self.request, &mut self.answered) {
            (Some(request), _) if is_asking => request,
            (None, Some((_, answer))) if !is_asking => answer,
            _ => return,
        };
        part.extend(segment, 0);
        self.last_data_ns = self.last_data_ns.max(Some(segment.time_ns));
    }

    fn exchange(&self, request: &Part, answer: &Part) -> Exchange {
        let Roles {
            asking, legs_ns, ..
        } = self.roles;
        let wait_ns = answer.start_ns.saturating_sub(request.end_ns).max(0);
        let gap_ns = request.gap_ns.unwrap_or(0).max(0);
        let there_ns = legs_ns[1 - asking].clamp(0, wait_ns);
        // The handshake ends with a segment from a.
        let is_first = request.start_ns.checked_sub(gap_ns) == self.roles.established_ns;
        let back_ns = if is_first {
            0
        } else {
            legs_ns[asking].clamp(0, gap_ns)
        };
        Exchange {
            connection: 0,
            request_frame: request.frame,
            request_end_frame: request.end_frame,
            answer_frame: answer.frame,
            answer_end_frame: answer.end_frame,
            start_ns: request.start_ns,
            think_ns: gap_ns - back_ns,
            request_ns: request.span_ns(),
            path_ns: there_ns.saturating_add(back_ns),
            work_ns: wait_ns - there_ns,
            transfer_ns: answer.span_ns(),
            request_bytes: request.bytes,
            answer_bytes: answer.bytes,
        }
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
                self.add(id, course.exchange(request, answer));
            }
        }
        self.found
            .sort_unstable_by_key(|exchange| (exchange.request_frame, exchange.connection));
        (self.found, self.omitted)
    }
}

impl Sink for ExchangeSink {
    fn take(&mut self, segment: &Segment, annotation: &Annotation, _: &Connection) -> bool {
        let id = annotation.connection;
        let course = self.courses.get_mut(&id);
        let side = usize::from(annotation.side);
        if let Some(done) = course.and_then(|each| each.take(segment, side, annotation.events)) {
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
            found.extend(course.take(&segment, side, 0));
        }
        let last = course.answered.as_ref();
        found.extend(last.map(|(request, answer)| course.exchange(request, answer)));
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
