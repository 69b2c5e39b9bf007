//! Many connections between endpoints on paths with delay, loss and reordering, seen by a tap at one of the two ends.
//! A single event queue orders them by time; the tap's view goes to the writer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use crate::endpoint::{Endpoint, Traits, NEVER};
use crate::output::{Hosts, Segment, Writer, FIN, RST, SYN};
use crate::random::Random;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const CLIENT: usize = 0;
const SERVER: usize = 1;
const UNLIMITED: u64 = 1 << 40;

/// Probabilities per segment, in units of 2^-16.
const LOSS: u16 = 328; // 0.5 %
const ACK_LOSS: u16 = 33; // 0.05 %
const REORDERING: u16 = 33;
const STALL: u16 = 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Start,
    Arrival,
    Timer,
    AckTimer,
    Ask,
    Answer,
    Resume,
}

/// Field order is the order of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time_ns: u64,
    order: u32,
    connection: u32,
    side: u8,
    what: What,
}

/// The behaviour of the two applications.
enum Plan {
    Bulk {
        source: usize,
        bytes: u64,
        abort_at: Option<u64>,
        begun: bool,
    },
    Exchanges {
        left: u64,
        ask_end: u64,
        answer_end: u64,
    },
}

struct Connection {
    hosts: Hosts,
    ends: [Endpoint; 2],
    /// Segments in flight to each side.
    wires: [VecDeque<Segment>; 2],
    last_arrival_ns: [u64; 2],
    delay_ns: u64,
    /// The side where the capture is taken.
    tap: usize,
    /// Whether an event is queued for the timer: one per timer, whatever its deadline.
    timer_queued: [bool; 2],
    ack_timer_queued: [bool; 2],
    plan: Plan,
}

#[derive(Default)]
pub struct Happenings {
    pub lost: u64,
    pub reordered: u64,
    pub stalls: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub zero_windows: u64,
}

struct World<'a> {
    writer: &'a mut Writer,
    queue: BinaryHeap<Reverse<Event>>,
    events: u32,
    random: Random,
    sent: Vec<Segment>,
    happenings: Happenings,
}

/// Run `count` connections until the capture holds `packets` packets.
pub fn run(writer: &mut Writer, packets: u64, count: u32, seed: u64) -> io::Result<Happenings> {
    let mut random = Random::new(seed);
    let share = packets / u64::from(count.max(1));
    let mut connections: Vec<Connection> = (0..count)
        .map(|index| invent(index, share, &mut random))
        .collect();
    let queue = BinaryHeap::with_capacity(64 * connections.len());
    let mut world = World {
        writer,
        queue,
        events: 0,
        random,
        sent: Vec::new(),
        happenings: Happenings::default(),
    };
    // All start within a small part of the capture, so that each gets its share of the packets.
    let starts_within_ns = (share * 200 * US).min(3000 * MS);
    for index in 0..count {
        let start_ns = world.random.range(0, starts_within_ns);
        world.at(start_ns, index, CLIENT, What::Start);
    }
    while !world.writer.is_full() {
        let Some(Reverse(event)) = world.queue.pop() else {
            break;
        };
        if let Some(connection) = connections.get_mut(event.connection as usize) {
            world.step(event, connection)?;
        }
    }
    let mut happenings = world.happenings;
    for end in connections.iter().flat_map(|connection| &connection.ends) {
        happenings.timeouts += end.timeouts;
        happenings.fast_retransmits += end.fast_retransmits;
        happenings.zero_windows += end.zero_windows;
    }
    Ok(happenings)
}

impl World<'_> {
    fn at(&mut self, time_ns: u64, connection: u32, side: usize, what: What) {
        self.events = self.events.wrapping_add(1);
        self.queue.push(Reverse(Event {
            time_ns,
            order: self.events,
            connection,
            side: side as u8,
            what,
        }));
    }

    fn step(&mut self, event: Event, connection: &mut Connection) -> io::Result<()> {
        let Event {
            time_ns: now_ns,
            connection: index,
            what,
            ..
        } = event;
        let side = usize::from(event.side);
        let mut sent = std::mem::take(&mut self.sent);
        let end = &mut connection.ends[side];
        match what {
            What::Start => end.connect(now_ns, &mut sent),
            What::Timer => {
                connection.timer_queued[side] = false;
                if end.timer_ns() <= now_ns {
                    end.expire(now_ns, &mut sent);
                }
            }
            What::AckTimer => {
                connection.ack_timer_queued[side] = false;
                if end.ack_timer_ns() <= now_ns {
                    end.expire_ack(now_ns, &mut sent);
                }
            }
            What::Resume => end.resume_reading(now_ns, &mut sent),
            What::Ask => self.ask(now_ns, connection, &mut sent),
            What::Answer => self.answer(now_ns, connection, &mut sent),
            What::Arrival => {
                if let Some(segment) = connection.wires[side].pop_front() {
                    if connection.tap == side {
                        self.writer
                            .write(now_ns, &connection.hosts, 1 - side, &segment)?;
                    }
                    let before = end.received();
                    end.receive(now_ns, &segment, &mut sent);
                    let delivered = end.received() > before;
                    self.follow_plan(now_ns, index, side, delivered, connection, &mut sent);
                }
            }
        }
        for segment in sent.drain(..) {
            self.send(now_ns, index, side, connection, segment)?;
        }
        self.sent = sent;
        self.queue_timers(index, side, connection);
        Ok(())
    }

    fn queue_timers(&mut self, index: u32, side: usize, connection: &mut Connection) {
        let (timer_ns, ack_timer_ns) = (
            connection.ends[side].timer_ns(),
            connection.ends[side].ack_timer_ns(),
        );
        if timer_ns != NEVER && !connection.timer_queued[side] {
            connection.timer_queued[side] = true;
            self.at(timer_ns, index, side, What::Timer);
        }
        if ack_timer_ns != NEVER && !connection.ack_timer_queued[side] {
            connection.ack_timer_queued[side] = true;
            self.at(ack_timer_ns, index, side, What::AckTimer);
        }
    }

    /// Put a segment on the path; it may be lost after the sender's tap or before the receiver's.
    fn send(
        &mut self,
        now_ns: u64,
        index: u32,
        from: usize,
        connection: &mut Connection,
        segment: Segment,
    ) -> io::Result<()> {
        if connection.tap == from {
            self.writer
                .write(now_ns, &connection.hosts, from, &segment)?;
        }
        let chance = self.random.bits();
        let (loss_chance, order_chance, jitter) =
            (chance as u16, (chance >> 16) as u16, chance >> 48);
        let takes_sequence = segment.payload_len > 0 || segment.flags & (SYN | FIN) != 0;
        let loss = if takes_sequence { LOSS } else { ACK_LOSS };
        if segment.flags & RST == 0 && loss_chance < loss {
            self.happenings.lost += 1;
            return Ok(());
        }
        let to = 1 - from;
        let jitter_ns = (connection.delay_ns / 64 * jitter) >> 16;
        let arrival_ns =
            (now_ns + connection.delay_ns + jitter_ns).max(connection.last_arrival_ns[to] + 2 * US);
        connection.last_arrival_ns[to] = arrival_ns;
        let wire = &mut connection.wires[to];
        wire.push_back(segment);
        if order_chance < REORDERING && wire.len() >= 2 {
            // The two swap places on the path; their arrival times stay.
            let last = wire.len() - 1;
            wire.swap(last, last - 1);
            self.happenings.reordered += 1;
        }
        self.at(arrival_ns, index, to, What::Arrival);
        Ok(())
    }

    /// Perform the applications' reaction to a segment that arrived at `side`.
    fn follow_plan(
        &mut self,
        now_ns: u64,
        index: u32,
        side: usize,
        delivered: bool,
        connection: &mut Connection,
        sent: &mut Vec<Segment>,
    ) {
        let end = &mut connection.ends[side];
        if !end.is_established() {
            return;
        }
        if end.peer_has_closed() {
            return end.close(now_ns, sent);
        }
        match &mut connection.plan {
            Plan::Bulk {
                source,
                bytes,
                begun,
                ..
            } if *source == side => {
                if !std::mem::replace(begun, true) {
                    end.write(now_ns, *bytes, sent);
                    if *bytes < UNLIMITED {
                        end.close(now_ns, sent);
                    }
                }
            }
            Plan::Bulk { abort_at, .. } => {
                if abort_at.is_some_and(|offset| end.received() >= offset) {
                    end.abort(now_ns, sent);
                } else if delivered && end.is_reading() && (self.random.bits() as u16) < STALL {
                    end.pause_reading();
                    self.happenings.stalls += 1;
                    let wakes_ns = now_ns + self.random.octaves(400, 4) * MS;
                    self.at(wakes_ns, index, side, What::Resume);
                }
            }
            Plan::Exchanges {
                ask_end,
                answer_end,
                ..
            } => {
                if side == SERVER && *ask_end > 0 && end.received() >= *ask_end {
                    *ask_end = 0;
                    let ready_ns = now_ns + self.random.octaves(500, 6) * US;
                    self.at(ready_ns, index, SERVER, What::Answer);
                } else if side == CLIENT && *answer_end > 0 && end.received() >= *answer_end {
                    *answer_end = 0;
                    let asks_ns = now_ns + self.random.octaves(2, 10) * MS;
                    self.at(asks_ns, index, CLIENT, What::Ask);
                }
            }
        }
    }

    fn ask(&mut self, now_ns: u64, connection: &mut Connection, sent: &mut Vec<Segment>) {
        let Plan::Exchanges { left, ask_end, .. } = &mut connection.plan else {
            return;
        };
        let client = &mut connection.ends[CLIENT];
        if *left == 0 {
            return client.close(now_ns, sent);
        }
        *left -= 1;
        let request_bytes = self.random.range(100, 1400);
        *ask_end = client.written() + request_bytes;
        client.write(now_ns, request_bytes, sent);
    }

    fn answer(&mut self, now_ns: u64, connection: &mut Connection, sent: &mut Vec<Segment>) {
        let Plan::Exchanges { answer_end, .. } = &mut connection.plan else {
            return;
        };
        let server = &mut connection.ends[SERVER];
        let response_bytes = self.random.octaves(300, 10);
        *answer_end = server.written() + response_bytes;
        server.write(now_ns, response_bytes, sent);
    }
}

/// Create a connection with random properties; `share` is its approximate number of packets.
fn invent(index: u32, share: u64, random: &mut Random) -> Connection {
    let timestamps = random.percent(85);
    let (client_sack, server_sack) = (random.percent(98), random.percent(97));
    let scales = [
        random.percent(97).then(|| random.range(6, 10) as u8),
        random.percent(94).then(|| random.range(5, 12) as u8),
    ];
    let scaled = scales[CLIENT].is_some() && scales[SERVER].is_some();
    let buffer_bytes = if scaled {
        65_536 << random.range(0, 4)
    } else {
        65_535
    };

    // At 0.5 to 4 Mbit/s each, a capture of millions of packets lasts tens of seconds.
    let rate_bps = random.octaves(500_000, 3);
    let least_round_trip_ns = random.octaves(500 * US, 8);
    let least_window_bytes = (8 + random.range(0, 24)) * 1448;
    let max_cwnd_bytes = (rate_bps / 8 * least_round_trip_ns / (1000 * MS)).max(least_window_bytes);
    let round_trip_ns = least_round_trip_ns.max(max_cwnd_bytes * 8 * (1000 * MS) / rate_bps);

    let plan = if random.percent(40) {
        let left = if random.percent(30) {
            random.range(1, 20)
        } else {
            UNLIMITED
        };
        Plan::Exchanges {
            left,
            ask_end: 0,
            answer_end: 1,
        }
    } else {
        let source = random.range(0, 2) as usize;
        let usual_bytes = share * 2 / 3 * 1448;
        let limited = random.percent(30);
        let bytes = if limited {
            random.range(usual_bytes / 10, usual_bytes).max(1)
        } else {
            UNLIMITED
        };
        let abort_at = (limited && random.percent(30)).then_some(bytes / 2);
        Plan::Bulk {
            source,
            bytes,
            abort_at,
            begun: false,
        }
    };
    let mut end = |scale, sack| {
        let traits = Traits {
            scale,
            sack,
            timestamps,
            receive_buffer_bytes: buffer_bytes,
            max_cwnd_bytes,
            rto_ns: 200 * MS + 2 * round_trip_ns,
            clock_offset_ms: random.bits() as u32,
        };
        Endpoint::new(traits, random.bits() as u16)
    };
    let ends = [
        end(scales[CLIENT], client_sack),
        end(scales[SERVER], server_sack),
    ];
    Connection {
        hosts: Hosts {
            // One client address each, so that four-tuples are unique.
            address: [0x0A00_0002 + index, 0xC0A8_0001 + index % 250],
            port: [
                random.range(32_768, 61_000) as u16,
                [5201, 9101, 50_505, 40_404][random.range(0, 4) as usize],
            ],
            isn: [random.bits() as u32, random.bits() as u32],
        },
        ends,
        wires: [VecDeque::new(), VecDeque::new()],
        last_arrival_ns: [0; 2],
        delay_ns: round_trip_ns / 2,
        tap: usize::from(random.percent(50)),
        timer_queued: [false; 2],
        ack_timer_queued: [false; 2],
        plan,
    }
}
