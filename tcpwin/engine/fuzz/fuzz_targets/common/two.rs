//! Conversations at one point, and their packets after a path to another: both are paired, twice.

use std::collections::HashMap;

use _engine::pair::{first_offset, pair, NoRows};

use super::everything::open;
use super::story::{pcap, Story};
use super::tape::Tape;

pub fn pair_twice(input: &[u8]) {
    let (path, rest) = input.split_at(input.len().min(16));
    let here = Story::decode(&mut Tape(rest)).frames;
    let mut path = Tape(path);
    let (offset_ns, period, damage) = (
        u64::from(path.u32()) << 8,
        1 + usize::from(path.byte()),
        path.byte(),
    );
    let mut there = Vec::new();
    for (place, frame) in here.iter().enumerate() {
        let mut frame = frame.clone();
        frame.time_ns += offset_ns + u64::from(damage) * 1_000;
        if place % period == period - 1 {
            match damage & 3 {
                0 => continue,
                1 => there.push(frame.clone()),
                2 => frame.time_ns += 300_000_000,
                _ => {
                    let at = frame.bytes.len() - 1 - usize::from(damage >> 2) % 40;
                    frame.bytes[at] ^= damage;
                }
            }
        }
        there.push(frame);
    }
    let sides = [pcap(&here), pcap(&there)];
    let inputs = || sides.each_ref().map(|side| open(side).expect("a capture"));
    let offset = first_offset(inputs(), |_| true).unwrap_or(0);
    let first = pair(inputs(), offset, HashMap::new(), &mut NoRows, |_| true);
    let nearest = first
        .pairs
        .iter()
        .filter_map(|pair| Some((pair.first_frames[0], pair.turned?)));
    drop(pair(
        inputs(),
        offset,
        nearest.collect(),
        &mut NoRows,
        |_| true,
    ));
}
