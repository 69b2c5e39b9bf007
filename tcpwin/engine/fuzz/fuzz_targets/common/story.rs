//! Conversations derived from an input, which chooses each packet's connection, side, contents and delay. Most packets
//! are what hosts would send next, so that few bytes reach deep states; the rest is arbitrary.

use super::tape::Tape;

const CONNECTIONS: usize = 4;
const MOST_PACKETS: usize = 600;
const PAYLOADS: [u16; 8] = [1460, 1448, 1, 536, 100, 4344, 8, 65_000];
const STEPS_NS: [u64; 8] = [
    1_000,
    20_000,
    500_000,
    10_000_000,
    40_000_000,
    200_000_000,
    1_000_000_000,
    61_000_000_000,
];
const WINDOWS: [u16; 6] = [0, 1, 229, 5_000, 29_200, 65_535];
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

#[derive(Clone)]
pub struct Frame {
    pub time_ns: u64,
    pub bytes: Vec<u8>,
    /// Length on the wire; payloads are not captured.
    pub original_len: u32,
}

#[derive(Clone, Copy, Default)]
struct Side {
    next: u32,
    una: u32,
    window: u16,
    timestamp: u32,
    echo: u32,
}

pub struct Story {
    sides: [[Side; 2]; CONNECTIONS],
    has_timestamps: bool,
    is_ip6: bool,
    time_ns: u64,
    pub frames: Vec<Frame>,
}

impl Story {
    pub fn decode(tape: &mut Tape<'_>) -> Self {
        let kind = tape.byte();
        let mut story = Story {
            sides: [[Side::default(); 2]; CONNECTIONS],
            has_timestamps: kind & 1 != 0,
            is_ip6: kind & 2 != 0,
            time_ns: 1_700_000_000_000_000_000,
            frames: Vec::new(),
        };
        for (number, pair) in story.sides.iter_mut().enumerate() {
            // One starts just before the sequence numbers wrap.
            let first = if number == 1 { u32::MAX - 3_000 } else { 1_000 };
            for side in pair {
                (side.next, side.una, side.window) = (first, first, 29_200);
            }
        }
        if kind & 4 != 0 {
            story.open(0);
        }
        while !tape.is_over() && story.frames.len() < MOST_PACKETS {
            story.step(tape);
        }
        story
    }

    fn open(&mut self, connection: usize) {
        let options = [2, 4, 5, 180, 1, 3, 3, 7, 1, 1, 4, 2];
        for (side, flags) in [(0, SYN), (1, SYN | ACK), (0, ACK)] {
            let said = if flags & SYN != 0 { &options[..] } else { &[] };
            self.put(connection, side, 0, flags, 0, said);
            self.sides[connection][side].next += u32::from(flags & SYN != 0);
            self.time_ns += 10_000_000;
        }
    }

    fn step(&mut self, tape: &mut Tape<'_>) {
        let who = tape.byte();
        let what = tape.byte();
        let (connection, side) = (usize::from(who >> 1) % CONNECTIONS, usize::from(who & 1));
        self.time_ns += STEPS_NS[usize::from(who >> 3 & 7)];
        let here = self.sides[connection][side];
        match what & 15 {
            0..=4 => {
                let payload = PAYLOADS[usize::from(what >> 4 & 7)];
                self.put(connection, side, 0, ACK | PSH, payload, &[]);
                let next = here.next.wrapping_add(u32::from(payload));
                self.sides[connection][side].next = next;
            }
            5..=7 => {
                // Acknowledges all or some, possibly with another window.
                let there = self.sides[connection][1 - side];
                let all = there.next.wrapping_sub(here.una);
                let share = u64::from(1 + (what >> 4 & 3));
                let part = (u64::from(all) * share / 4) as u32;
                if all < 1 << 30 {
                    self.sides[connection][side].una = here.una.wrapping_add(part);
                }
                if what & 0x40 != 0 {
                    self.sides[connection][side].window = tape.one_of(&WINDOWS);
                }
                self.put(connection, side, 0, ACK, 0, &[]);
            }
            8 => {
                // A retransmission from this far back.
                let back = tape.u16();
                let payload = tape.one_of(&PAYLOADS);
                self.put(connection, side, -i64::from(back), ACK, payload, &[]);
            }
            9 => {
                // A gap in the capture: the next packet follows a hole.
                let hole = u32::from(tape.u16());
                self.sides[connection][side].next = here.next.wrapping_add(hole);
            }
            10 => {
                let there = self.sides[connection][1 - side];
                let mut options = vec![1, 1, 5, 2];
                for _ in 0..1 + (what >> 4 & 3) {
                    let left = there.next.wrapping_sub(u32::from(tape.u16()));
                    let right = left.wrapping_add(u32::from(tape.u16()));
                    options.extend(left.to_be_bytes());
                    options.extend(right.to_be_bytes());
                    options[3] += 8;
                }
                self.put(connection, side, 0, ACK, 0, &options);
            }
            11 => {
                let probe = u16::from(what >> 4 & 1);
                self.put(connection, side, -1, ACK, probe, &[]);
            }
            12 => {
                let end = if what & 0x80 == 0 { FIN } else { RST };
                self.put(connection, side, 0, ACK | end, 0, &[]);
                self.sides[connection][side].next = here.next.wrapping_add(1);
            }
            13 => self.open(connection),
            14 => self.copy(tape),
            _ => self.wild(connection, side, tape),
        }
    }

    /// Repeat an earlier packet, or reorder the last few.
    fn copy(&mut self, tape: &mut Tape<'_>) {
        let back = usize::from(tape.byte());
        let count = self.frames.len();
        if let Some(place) = count.checked_sub(1 + back % 8) {
            if back & 0x80 == 0 {
                let mut repeated = self.frames[place].clone();
                repeated.time_ns = self.time_ns;
                self.frames.push(repeated);
            } else {
                self.frames.swap(place, count - 1);
            }
        }
    }

    /// An arbitrary packet; time may run backwards.
    fn wild(&mut self, connection: usize, side: usize, tape: &mut Tape<'_>) {
        let (flags, kind) = (tape.byte(), tape.byte());
        let offset = match kind & 3 {
            0 => i64::from(tape.u32() as i32),
            1 => i64::from(tape.u16() as i16),
            _ => 0,
        };
        let far = if kind & 4 != 0 { tape.u32() } else { 0 };
        self.sides[connection][side].una = self.sides[connection][side].una.wrapping_add(far);
        if kind & 8 != 0 {
            self.time_ns -= u64::from(tape.u16()) * 1_000_000;
        }
        let options: Vec<u8> = (0..kind >> 4 & 7)
            .flat_map(|_| tape.u32().to_be_bytes())
            .collect();
        let payload = if kind & 128 != 0 { tape.u16() } else { 0 };
        self.put(connection, side, offset, flags, payload, &options);
    }

    fn put(
        &mut self,
        connection: usize,
        side: usize,
        offset: i64,
        flags: u8,
        payload: u16,
        options: &[u8],
    ) {
        let here = self.sides[connection][side];
        let mut said = options.to_vec();
        if self.has_timestamps && said.len() <= 28 {
            let now = (self.time_ns / 1_000_000) as u32;
            said.extend([1, 1, 8, 10]);
            said.extend(now.to_be_bytes());
            said.extend(here.echo.to_be_bytes());
            self.sides[connection][1 - side].echo = now;
            self.sides[connection][side].timestamp = now;
        }
        let header = 20 + said.len();
        let tcp_len = header + usize::from(payload);
        let mut bytes = vec![2; 12];
        if self.is_ip6 {
            bytes.extend([0x86, 0xDD, 0x60, 0, 0, 0]);
            bytes.extend((tcp_len.min(65_535) as u16).to_be_bytes());
            bytes.extend([6, 64]);
            for last in [side, 1 - side] {
                bytes.extend([0xFD; 15]);
                bytes.push(last as u8);
            }
        } else {
            bytes.extend([0x08, 0x00, 0x45, 0]);
            bytes.extend(((20 + tcp_len).min(65_535) as u16).to_be_bytes());
            bytes.extend((self.frames.len() as u16).to_be_bytes());
            bytes.extend([0x40, 0, 64, 6, 0, 0]);
            for last in [side, 1 - side] {
                bytes.extend([10, 0, 0, last as u8]);
            }
        }
        let ports = [40_000 + connection as u16, 443];
        bytes.extend(ports[side].to_be_bytes());
        bytes.extend(ports[1 - side].to_be_bytes());
        let seq = here.next.wrapping_add(offset as u32);
        bytes.extend(seq.to_be_bytes());
        bytes.extend(here.una.to_be_bytes());
        bytes.extend([(header as u8) << 2, flags]);
        bytes.extend(here.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&said);
        let original_len = (bytes.len() + usize::from(payload)) as u32;
        self.frames.push(Frame {
            time_ns: self.time_ns,
            bytes,
            original_len,
        });
    }
}

/// Return a pcap file with nanosecond timestamps.
pub fn pcap(frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut put = |number: u32| file.extend_from_slice(&number.to_le_bytes());
    for number in [0xA1B2_3C4D, 2 | 4 << 16, 0, 0, 1 << 18, 1] {
        put(number);
    }
    for frame in frames {
        let mut put = |number: u32| file.extend_from_slice(&number.to_le_bytes());
        put((frame.time_ns / 1_000_000_000) as u32);
        put((frame.time_ns % 1_000_000_000) as u32);
        put(frame.bytes.len() as u32);
        put(frame.original_len);
        file.extend_from_slice(&frame.bytes);
    }
    file
}
