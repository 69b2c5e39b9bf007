//! Frames that segmentation offload cut or joined at one point: matched with the other's byte by byte.

use super::packet::{Side, Sighting};
use super::run::{Pairer, Rows};
use super::waiting::{Mark, NONE};
use crate::sequence::Seq;

/// Frames that wait for their parts: so many of the newest are looked at.
pub const MOST_PARTS: usize = 256;

impl<R: Rows> Pairer<'_, R> {
    /// Match a packet part by part. `None`: nothing of it is left to wait for; else what is, if parts were found.
    #[allow(clippy::option_option)]
    pub fn match_parts(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        mark: Mark,
    ) -> Option<Option<Vec<(Seq, Seq)>>> {
        let mut open = vec![(packet.start(), packet.start() + packet.payload_len)];
        let before = open.clone();
        self.match_shorter(number, side, packet, mark, &mut open);
        self.match_longer(number, side, packet, mark, &mut open);
        if open.is_empty() {
            return None;
        }
        Some((open != before).then_some(open))
    }

    /// Shorter packets that wait at the other point and are parts of this one.
    fn match_shorter(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        mark: Mark,
        open: &mut Vec<(Seq, Seq)>,
    ) {
        if packet.payload_len <= self.way(number).full_segment() {
            return;
        }
        let (mut done, mut parts) = (0, 0);
        while done < packet.payload_len {
            let left = packet.payload_len - done;
            let Some(at) = self.find_part(number, side.other(), packet, done, parts, left) else {
                let skipped = self.way(number).full_segment().min(left);
                done += skipped;
                parts += 1;
                continue;
            };
            let part_len = self.room.get(at).packet.payload_len;
            let start = packet.start() + done;
            close(open, start, start + part_len);
            if part_len < left {
                self.way_mut(number).segment_len = part_len;
            }
            done += part_len;
            parts += 1;
            self.join_part(number, side, at, packet, mark);
        }
    }

    fn find_part(
        &self,
        number: u32,
        side: Side,
        packet: &Sighting,
        done: u32,
        parts: u32,
        left: u32,
    ) -> Option<u32> {
        let way = self.way(number);
        let seq = packet.seq.wrapping_add(done);
        // Offload counts the ids up, or leaves all the same.
        for id in [packet.ip_id.wrapping_add(parts) & 0xFFFF, packet.ip_id] {
            let key = way.key_at(&self.seed, number, side, packet, seq, id);
            let mut at = self.room.find(key);
            while at != NONE {
                let entry = self.room.get(at);
                let other = &entry.packet;
                let fits = entry.way == number
                    && entry.side == side
                    && other.seq == seq
                    && (1..=left).contains(&other.payload_len)
                    && (!way.timestamp.holds() || other.tsval == packet.tsval);
                if fits {
                    return Some(at);
                }
                at = self.room.next_same(at);
            }
            if !way.id.holds() {
                break;
            }
        }
        None
    }

    /// Join a part that waits with the longer packet that has it.
    fn join_part(&mut self, number: u32, side: Side, at: u32, packet: &Sighting, mark: Mark) {
        self.way_mut(number).is_resegmented = true;
        let waits_near = side != self.way(number).near;
        self.overtake(number, if waits_near { at } else { NONE });
        let (part, part_mark) = self.remove(at);
        let segments = u64::from(self.way(number).segments(part.payload_len));
        if waits_near {
            self.delivered(number, &part, packet, part_mark, (1, segments), false);
        } else {
            self.delivered(number, packet, &part, mark, (1, segments), false);
        }
    }

    /// Longer packets that wait at the other point and have bytes of this one.
    fn match_longer(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        mark: Mark,
        open: &mut Vec<(Seq, Seq)>,
    ) {
        let other = side.other().index();
        let newest = self.way(number).parts[other].len();
        let oldest = newest.saturating_sub(MOST_PARTS);
        let mut place = newest;
        while place > oldest && !open.is_empty() {
            place -= 1;
            let Some(long) = self.way(number).parts[other].get(place) else {
                continue;
            };
            let handle = long.handle;
            let at = handle.0;
            if !self.room.is_there(handle) {
                self.way_mut(number).parts[other].remove(place);
                continue;
            }
            if !self.may_be_part(number, at, packet) {
                continue;
            }
            let shared = shared_ranges(open, &long.open);
            if shared.is_empty() {
                continue;
            }
            let mut rest = long.open.clone();
            let is_new_frame = open.len() == 1;
            let mut bytes = 0;
            for (start, end) in shared {
                close(open, start, end);
                close(&mut rest, start, end);
                bytes += start.to(end) as u32;
            }
            let is_done = rest.is_empty();
            if let Some(long) = self.way_mut(number).parts[other].get_mut(place) {
                long.open = rest;
            }
            self.join_long(number, side, at, packet, mark, (is_new_frame, bytes));
            if is_done && self.room.is_there(handle) {
                self.remove(at);
                // It may have gone with the packet already.
                let parts = &mut self.way_mut(number).parts[other];
                if parts.get(place).is_some_and(|long| long.open.is_empty()) {
                    parts.remove(place);
                }
            }
        }
    }

    fn may_be_part(&self, number: u32, at: u32, packet: &Sighting) -> bool {
        let way = self.way(number);
        let long = &self.room.get(at).packet;
        if way.timestamp.holds() && long.tsval != packet.tsval {
            return false;
        }
        if !way.id.holds() || long.id().is_none() || packet.id().is_none() {
            return true;
        }
        // Ids of parts lie within the few that the frame takes.
        let apart = (packet.ip_id as u16).wrapping_sub(long.ip_id as u16) as i16;
        let most = long.payload_len.max(packet.payload_len) / 500 + 1;
        u32::from(apart.unsigned_abs()) <= most
    }

    fn join_long(
        &mut self,
        number: u32,
        side: Side,
        at: u32,
        packet: &Sighting,
        mark: Mark,
        (is_new_frame, bytes): (bool, u32),
    ) {
        let long = self.room.get(at).packet.clone();
        let waits_near = side != self.way(number).near;
        self.overtake(number, if waits_near { at } else { NONE });
        let way = self.way_mut(number);
        way.is_resegmented = true;
        let long_end = long.start() + long.payload_len;
        let is_last = packet.start() + packet.payload_len == long_end;
        if !is_last && packet.payload_len < long.payload_len && packet.payload_len == bytes {
            way.segment_len = packet.payload_len;
        }
        let segments = u64::from(way.segments(bytes));
        let count = (u64::from(is_new_frame), segments);
        if waits_near {
            let long_mark = self.room.get(at).mark;
            self.delivered(number, &long, packet, long_mark, count, false);
            self.room.get_mut(at).mark.is_judged = true;
        } else {
            self.delivered(number, packet, &long, mark, count, false);
        }
    }
}

/// Take a range out of ranges.
fn close(open: &mut Vec<(Seq, Seq)>, start: Seq, end: Seq) {
    let mut rest = Vec::with_capacity(open.len() + 1);
    for &(left, right) in open.iter() {
        let before = (left, earlier(right, start));
        let after = (left.max(end), right);
        rest.extend(
            [before, after]
                .into_iter()
                .filter(|range| range.0.is_before(range.1)),
        );
    }
    *open = rest;
}

/// What two lists of ranges share.
fn shared_ranges(one: &[(Seq, Seq)], other: &[(Seq, Seq)]) -> Vec<(Seq, Seq)> {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    pairs
        .map(|(a, b)| (a.0.max(b.0), earlier(a.1, b.1)))
        .filter(|range| range.0.is_before(range.1))
        .collect()
}

fn earlier(one: Seq, other: Seq) -> Seq {
    if one.is_before(other) {
        one
    } else {
        other
    }
}
