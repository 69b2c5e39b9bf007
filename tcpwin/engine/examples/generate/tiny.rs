//! A scan and short exchanges: very many connections of one to eleven packets. No state is stored between packets: each
//! follows from the seed, the connection's number and the step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use crate::output::{Hosts, Segment, Writer, ACK, FIN, PSH, RST, SYN};
use crate::random::Random;

const US: u64 = 1_000;
const CLIENT: usize = 0;
const SERVER: usize = 1;
const MSS: u64 = 1448;
/// A new connection every 30 µs on average.
const MEAN_GAP_NS: u64 = 30 * US;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A SYN without an answer.
    Silence,
    /// A SYN answered by a reset.
    Refusal,
    Exchange,
}

struct Flow {
    kind: Kind,
    hosts: Hosts,
    round_trip_ns: u64,
    request_end: u64,
    response_end: u64,
}

/// Write every packet of `count` connections, or as many as the writer accepts; return the number of lone SYNs.
pub fn run(writer: &mut Writer, count: u32, seed: u64) -> io::Result<u64> {
    // (time, insertion order, connection, step)
    let mut queue: BinaryHeap<Reverse<(u64, u64, u32, u8)>> = BinaryHeap::new();
    let mut random = Random::new(seed);
    let mut entries = 0u64;
    let mut lone_syns = 0u64;
    if count > 0 {
        queue.push(Reverse((0, 0, 0, 0)));
    }
    while let Some(Reverse((now_ns, _, index, step))) = queue.pop() {
        if writer.is_full() {
            break;
        }
        let flow = invent(index, seed);
        let (from, segment, delay_ns) = play(&flow, step);
        writer.write(now_ns, &flow.hosts, from, &segment)?;
        let mut enter = |time_ns, index, step| {
            entries += 1;
            queue.push(Reverse((time_ns, entries, index, step)));
        };
        if step == 0 {
            lone_syns += u64::from(flow.kind == Kind::Silence);
            if index + 1 < count {
                enter(
                    now_ns + random.range(MEAN_GAP_NS / 2, MEAN_GAP_NS * 3 / 2),
                    index + 1,
                    0,
                );
            }
        }
        if let Some(delay_ns) = delay_ns {
            enter(now_ns + delay_ns, index, step + 1);
        }
    }
    Ok(lone_syns)
}

fn invent(index: u32, seed: u64) -> Flow {
    let mut random = Random::new(seed ^ u64::from(index).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let kind = match random.range(0, 10) {
        0..=3 => Kind::Silence,
        4..=5 => Kind::Refusal,
        _ => Kind::Exchange,
    };
    // The index is encoded in one address, or in client address and port, so four-tuples are unique.
    let (address, port) = if kind == Kind::Exchange {
        let client = 0xAC10_0000 + (index & 0xFFFF);
        let server = 0x0A00_0000 + random.range(0, 64) as u32;
        ([client, server], [1024 + (index >> 16) as u16, 443])
    } else {
        let scanner = 0xCB00_7100 + random.range(0, 8) as u32;
        let service = [22, 23, 80, 443, 3389][random.range(0, 5) as usize];
        (
            [scanner, 0x0A00_0000 + index],
            [random.range(1024, 65_000) as u16, service],
        )
    };
    Flow {
        kind,
        hosts: Hosts {
            address,
            port,
            isn: [random.bits() as u32, random.bits() as u32],
        },
        round_trip_ns: random.range(200 * US, 60_000 * US),
        request_end: 1 + random.range(200, 800),
        response_end: 1 + random.range(100, 2700),
    }
}

/// Return the segment of a step, its sender, and the delay until the next one.
fn play(flow: &Flow, step: u8) -> (usize, Segment, Option<u64>) {
    let round_trip = Some(flow.round_trip_ns);
    let (request, response) = (flow.request_end, flow.response_end);
    let first = response.min(1 + MSS);
    let piece = |start: u64, end: u64, ack: u64, flags: u8| Segment {
        start,
        ack,
        flags,
        window: 510,
        payload_len: (end - start) as u16,
        ip_id: u16::from(step) + 1,
        timestamps: Some([1000 + u32::from(step), 999]),
        ..Segment::default()
    };
    let syn = |flags: u8, window: u16| Segment {
        flags,
        window,
        ack: 1,
        mss: Some(1460),
        scale: (flow.kind == Kind::Exchange).then_some(7),
        sack_permitted: flow.kind == Kind::Exchange,
        timestamps: (flow.kind == Kind::Exchange).then_some([1000 + u32::from(step), 0]),
        ..Segment::default()
    };
    // A response of one segment skips the step of the second.
    let step = if step >= 6 && response == first {
        step + 1
    } else {
        step
    };
    match (flow.kind, step) {
        (Kind::Silence, _) => (CLIENT, syn(SYN, 1024), None),
        (_, 0) => (CLIENT, syn(SYN, 64_240), round_trip),
        (Kind::Refusal, _) => (
            SERVER,
            Segment {
                ack: 1,
                flags: RST | ACK,
                ..Segment::default()
            },
            None,
        ),
        (_, 1) => (SERVER, syn(SYN | ACK, 65_160), Some(20 * US)),
        (_, 2) => (CLIENT, piece(1, 1, 1, ACK), Some(10 * US)),
        (_, 3) => (CLIENT, piece(1, request, 1, ACK | PSH), round_trip),
        (_, 4) => (SERVER, piece(1, 1, request, ACK), Some(300 * US)),
        (_, 5) => (SERVER, piece(1, first, request, ACK | PSH), Some(5 * US)),
        (_, 6) => (
            SERVER,
            piece(first, response, request, ACK | PSH),
            Some(15 * US),
        ),
        (_, 7) => (
            CLIENT,
            piece(request, request, response, ACK),
            Some(100 * US),
        ),
        (_, 8) => (
            CLIENT,
            piece(request, request, response, ACK | FIN),
            round_trip,
        ),
        (_, 9) => (
            SERVER,
            piece(response, response, request + 1, ACK | FIN),
            Some(20 * US),
        ),
        _ => (
            CLIENT,
            piece(request + 1, request + 1, response + 1, ACK),
            None,
        ),
    }
}
