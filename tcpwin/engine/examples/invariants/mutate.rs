//! Damaged captures, reproducible by seed: packets dropped, duplicated, moved and cut, headers changed, the clock set,
//! two captures spliced, bytes of the file flipped.

use std::io::Cursor;

use _engine::capture::{CaptureReader, MergedReader};

/// Of longer captures, only a part is used.
const MOST_PACKETS: usize = 400;
const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;

#[derive(Clone)]
struct Frame {
    time_ns: i64,
    original_len: u32,
    bytes: Vec<u8>,
}

/// A capture in memory, of one link type.
pub struct Base {
    pub name: String,
    link_type: u32,
    frames: Vec<Frame>,
}

impl Base {
    /// Return the packets of the first link type; None if the capture is unreadable or empty.
    pub fn read(path: &str) -> Option<Self> {
        let mut reader = CaptureReader::open(path).ok()?;
        let (mut link_type, mut frames, mut last_ns) = (None, Vec::new(), 0);
        while let Some(packet) = reader.next_packet() {
            if *link_type.get_or_insert(packet.link_type) != packet.link_type {
                continue;
            }
            last_ns = packet.time_ns.unwrap_or(last_ns);
            frames.push(Frame {
                time_ns: last_ns,
                original_len: packet.original_len,
                bytes: packet.captured.to_vec(),
            });
        }
        Some(Base {
            name: path.to_owned(),
            link_type: link_type?,
            frames,
        })
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Return a number below a limit; 0 for a limit of 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Return the capture of a seed as pcap bytes, and the name of the capture it was made from.
pub fn mutated(bases: &[Base], seed: u64) -> (Vec<u8>, &str) {
    let mut random = Random(seed);
    let base = &bases[random.below(bases.len())];
    let mut frames = part(&base.frames, &mut random);
    if random.one_in(8) {
        let other = &bases[random.below(bases.len())];
        if other.link_type == base.link_type {
            splice(&mut frames, part(&other.frames, &mut random), &mut random);
        }
    }
    for _ in 0..1 + random.below(4) {
        change_some(&mut frames, base.link_type, &mut random);
    }
    let mut bytes = write(base.link_type, &frames);
    if random.one_in(6) {
        for _ in 0..1 + random.below(20) {
            let place = random.below(bytes.len());
            bytes[place] ^= 1 << random.below(8);
        }
    }
    if random.one_in(12) {
        bytes.truncate(24 + random.below(bytes.len()));
    }
    (bytes, &base.name)
}

/// Open the output of [`mutated`].
pub fn open(bytes: Vec<u8>) -> Option<MergedReader> {
    let reader = CaptureReader::from_reader(Box::new(Cursor::new(bytes)), "mutated").ok()?;
    Some(MergedReader::from(reader))
}

/// Select consecutive packets, mostly from the start: without the handshake little is known.
fn part(frames: &[Frame], random: &mut Random) -> Vec<Frame> {
    let count = (1 + random.below(MOST_PACKETS)).min(frames.len());
    let spare = frames.len() - count;
    let first = if random.one_in(3) {
        random.below(spare + 1)
    } else {
        0
    };
    frames[first..first + count].to_vec()
}

/// Insert another capture's packets, or append them.
fn splice(frames: &mut Vec<Frame>, other: Vec<Frame>, random: &mut Random) {
    let place = random.below(frames.len());
    let at_ns = frames.get(place).map_or(0, |frame| frame.time_ns);
    let from_ns = other.first().map_or(0, |frame| frame.time_ns);
    let keeps_time = random.one_in(4);
    let moved = other.into_iter().map(|mut frame| {
        if !keeps_time {
            frame.time_ns = frame.time_ns.wrapping_sub(from_ns).wrapping_add(at_ns);
        }
        frame
    });
    frames.splice(place..place, moved);
    if random.one_in(2) {
        frames.sort_by_key(|frame| frame.time_ns);
    }
}

/// Apply one kind of damage to one packet in `rarity`, or to a run of packets.
fn change_some(frames: &mut Vec<Frame>, link_type: u32, random: &mut Random) {
    let rarity = [2, 5, 20, 100][random.below(4)];
    match random.below(12) {
        0 => frames.retain(|_| !random.one_in(rarity)),
        1 => {
            let from = random.below(frames.len());
            let to = from + random.below(frames.len() - from);
            frames.drain(from..to);
        }
        2 => {
            for place in (0..frames.len()).rev() {
                if random.one_in(rarity) {
                    let mut copy = frames[place].clone();
                    copy.time_ns = copy.time_ns.wrapping_add(random.below(3_000_000) as i64);
                    frames.insert((place + 1 + random.below(4)).min(frames.len()), copy);
                }
            }
        }
        3 => {
            for place in 1..frames.len() {
                if random.one_in(rarity) {
                    frames.swap(place, place - 1 - random.below(place.min(9)));
                }
            }
        }
        4 => {
            let shift_ns = [1_000, 1_000_000, 300_000_000, 1 << 40][random.below(4)];
            let from = random.below(frames.len());
            let sign = if random.one_in(3) { -1 } else { 1 };
            for frame in frames.iter_mut().skip(from) {
                frame.time_ns = frame.time_ns.wrapping_add(sign * shift_ns);
            }
        }
        5 => {
            for frame in frames.iter_mut() {
                if random.one_in(rarity) {
                    let moved_ns = random.below(2_000_000_000) as i64 - 1_000_000_000;
                    frame.time_ns = frame.time_ns.wrapping_add(moved_ns);
                }
            }
        }
        6 => {
            // Drop one side's packets from, or up to, some position.
            let Some(source) = frames.first().and_then(|frame| sender(frame, link_type)) else {
                return;
            };
            let (from, is_source) = (random.below(frames.len()), random.one_in(2));
            let mut place = 0;
            frames.retain(|frame| {
                place += 1;
                place <= from || (sender(frame, link_type) == Some(source)) == is_source
            });
        }
        _ => {
            let field = random.below(8);
            let value = random.next();
            for frame in frames.iter_mut() {
                if random.one_in(rarity) {
                    change_header(frame, link_type, field, value, random);
                }
            }
        }
    }
}

/// Return the offsets of the IP header and the TCP header.
fn headers(frame: &Frame, link_type: u32) -> Option<(usize, usize)> {
    let ip = match link_type {
        1 => 14,
        12 | 14 | 101 => 0,
        113 => 16,
        276 => 20,
        _ => 4,
    };
    let tcp = match frame.bytes.get(ip)? >> 4 {
        4 => ip + usize::from(frame.bytes[ip] & 15) * 4,
        6 => ip + 40,
        _ => return None,
    };
    (frame.bytes.len() >= tcp + 20).then_some((ip, tcp))
}

/// Return the source port.
fn sender(frame: &Frame, link_type: u32) -> Option<[u8; 2]> {
    let (_, tcp) = headers(frame, link_type)?;
    Some([frame.bytes[tcp], frame.bytes[tcp + 1]])
}

fn change_header(frame: &mut Frame, link_type: u32, field: usize, value: u64, random: &mut Random) {
    let Some((ip, tcp)) = headers(frame, link_type) else {
        return;
    };
    let small = random.below(3_000) as u32;
    let mut number = |offset: usize, wild: bool| {
        let place = tcp + offset..tcp + offset + 4;
        if let Some(Ok(bytes)) = frame.bytes.get(place.clone()).map(<[u8; 4]>::try_from) {
            let old = u32::from_be_bytes(bytes);
            let new = if wild {
                value as u32 ^ old.rotate_left(small)
            } else if value & 1 == 0 {
                old.wrapping_add(small)
            } else {
                old.wrapping_sub(small)
            };
            frame.bytes[place].copy_from_slice(&new.to_be_bytes());
        }
    };
    match field {
        0 => number(4, value & 14 == 0),
        1 => number(8, value & 14 == 0),
        // Timestamps at their position in Linux's layout.
        2 => number(24, value & 14 == 0),
        3 => number(28, value & 14 == 0),
        4 => {
            let window = [0, 1, small as u16, value as u16][(value >> 20) as usize & 3];
            frame.bytes[tcp + 14..tcp + 16].copy_from_slice(&window.to_be_bytes());
        }
        5 => frame.bytes[tcp + 13] ^= 1 << (value & 7),
        6 => {
            let cut_len = (tcp + 20 + random.below(60)).min(frame.bytes.len());
            frame.bytes.truncate(cut_len);
        }
        _ => {
            // Change the length on the wire, or another header byte.
            let place = if value & 1 == 0 { ip + 2 } else { tcp + 20 };
            let place = place + random.below(16);
            if let Some(byte) = frame.bytes.get_mut(place) {
                *byte = byte.wrapping_add(value as u8 | 1);
            }
        }
    }
}

fn write(link_type: u32, frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |number: u32| out.extend_from_slice(&number.to_le_bytes());
    put(MAGIC_NANOSECONDS);
    put(2 | 4 << 16);
    put(0);
    put(0);
    put(1 << 18);
    put(link_type);
    for frame in frames {
        let time_ns = frame.time_ns.max(0) as u64;
        let mut put = |number: u32| out.extend_from_slice(&number.to_le_bytes());
        put((time_ns / 1_000_000_000) as u32);
        put((time_ns % 1_000_000_000) as u32);
        put(frame.bytes.len() as u32);
        put(frame.original_len.max(frame.bytes.len() as u32));
        out.extend_from_slice(&frame.bytes);
    }
    out
}
