//! Frames that segmentation offload split or merged at one point: matched with the other point's byte by byte.

use super::packet::{Side, Sighting};
use super::run::{Pairer, Rows};
use super::waiting::{Mark, NONE};
use crate::sequence::Seq;

/// Maximum number of waiting frames examined for parts, from the newest and from the oldest.
pub const MAX_PARTS: usize = 256;

impl<R: Rows> Pairer<'_, R> {
    /// Match a packet part by part. `known`: its open ranges, if some of it was seen. Return `None` if nothing is left
    /// to wait for; otherwise the remaining ranges if parts were found.
    #[allow(clippy::option_option)]
    pub fn match_parts(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        mark: Mark,
        known: Option<Vec<(Seq, Seq)>>,
    ) -> Option<Option<Vec<(Seq, Seq)>>> {
        let whole = || vec![(packet.start(), packet.start() + packet.payload_len)];
        let mut open = known.clone().unwrap_or_else(whole);
        let before = open.clone();
        self.find_mixed(number, side, packet);
        self.match_shorter(number, side, packet, mark, &mut open);
        self.match_longer(number, side, packet, mark, &mut open);
        if open.is_empty() {
            return None;
        }
        Some((known.is_some() || open != before).then_some(open))
    }

    /// Detect frames of several short segments: a frame waiting at the other point starts with this packet but has a
    /// different length, and neither exceeds a segment.
    fn find_mixed(&mut self, number: u32, side: Side, packet: &Sighting) {
        let full = self.direction(number).full_segment();
        if self.direction(number).is_mixed || packet.payload_len > full {
            return;
        }
        let is_mixed = |len: u32| len != packet.payload_len && (1..=full).contains(&len);
        let start = (0, packet.ip_id);
        if self.find_start(number, side.other(), packet, start, is_mixed) != NONE {
            self.mix(number);
        }
    }

    /// Treat all waiting and future data as frames of several segments.
    #[cold]
    fn mix(&mut self, number: u32) {
        self.direction_mut(number).is_mixed = true;
        self.rekey(number);
    }

    /// Match shorter packets that wait at the other point and are parts of this one.
    fn match_shorter(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        mark: Mark,
        open: &mut Vec<(Seq, Seq)>,
    ) {
        let mut full = self.direction(number).full_segment();
        // `fewest`: the number of segments if each waiting frame is a single one.
        let (mut done, mut parts, mut fewest, mut is_mixed) = (0, 0, 0, false);
        while done < packet.payload_len {
            let left = packet.payload_len - done;
            let counts = (parts, fewest);
            let Some(at) = self.find_part(number, side.other(), packet, done, counts, left) else {
                if packet.payload_len <= full {
                    break;
                }
                done += full.min(left);
                (parts, fewest) = (parts + 1, fewest + 1);
                continue;
            };
            let part_len = self.pending.get(at).packet.payload_len;
            let start = packet.start() + done;
            close(open, start, start + part_len);
            if fewest > 1 && part_len <= full {
                // The preceding ones were one segment each: the IDs increase, or are all equal.
                self.direction_mut(number).learn_segment(full);
            }
            if part_len < left && part_len <= full {
                full = part_len;
                is_mixed |= part_len < self.direction(number).full_segment();
            }
            done += part_len;
            (parts, fewest) = (parts + part_len.div_ceil(full), fewest + 1);
            self.join_part(number, side, at, packet, mark);
        }
        if is_mixed && !self.direction(number).is_mixed {
            self.mix(number);
        }
    }

    fn find_part(
        &self,
        number: u32,
        side: Side,
        packet: &Sighting,
        done: u32,
        (parts, fewest): (u32, u32),
        left: u32,
    ) -> Option<u32> {
        // Offload increments the IDs, or leaves them all equal.
        let id_at = |count: u32| packet.ip_id.wrapping_add(count) & 0xFFFF;
        for id in [id_at(parts), id_at(fewest), packet.ip_id] {
            let is_shorter =
                |len: u32| (1..=left).contains(&len) && (done > 0 || len < packet.payload_len);
            let at = self.find_start(number, side, packet, (done, id), is_shorter);
            if at != NONE {
                return Some(at);
            }
            if !self.direction(number).id.holds() {
                break;
            }
        }
        None
    }

    /// Return a waiting packet of `side` that starts at an offset within this one.
    fn find_start(
        &self,
        number: u32,
        side: Side,
        packet: &Sighting,
        (done, id): (u32, u32),
        has_len: impl Fn(u32) -> bool,
    ) -> u32 {
        let path = self.direction(number);
        let seq = packet.seq.wrapping_add(done);
        let key = path.key_at(&self.seed, number, side, packet, seq, id);
        let mut at = self.pending.find(key);
        while at != NONE {
            let entry = self.pending.get(at);
            let other = &entry.packet;
            let fits = entry.direction == number
                && entry.side == side
                && other.seq == seq
                && has_len(other.payload_len)
                && (!path.timestamp.holds() || other.tsval == packet.tsval);
            if fits {
                return at;
            }
            at = self.pending.next_same(at);
        }
        NONE
    }

    /// Join a waiting part with the longer packet that contains it.
    fn join_part(&mut self, number: u32, side: Side, at: u32, packet: &Sighting, mark: Mark) {
        self.direction_mut(number).is_resegmented = true;
        let waits_near = side != self.direction(number).near;
        self.overtake(number, if waits_near { at } else { NONE });
        let (part, part_mark) = self.remove(at);
        let segments = u64::from(self.direction(number).segments(part.payload_len));
        if waits_near {
            self.delivered(number, &part, packet, part_mark, (1, segments), false);
        } else {
            self.delivered(number, packet, &part, mark, (1, segments), false);
        }
    }

    /// Match waiting frames of several segments at the other point that share bytes with this packet.
    fn match_longer(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        mark: Mark,
        open: &mut Vec<(Seq, Seq)>,
    ) {
        let other = side.other().index();
        let mut place = self.direction(number).parts[other].len();
        let newest = place.saturating_sub(MAX_PARTS);
        while place > 0 && !open.is_empty() {
            place -= 1;
            if place < newest && place >= MAX_PARTS {
                place = MAX_PARTS - 1;
            }
            let Some(long) = self.direction(number).parts[other].get(place) else {
                continue;
            };
            let handle = long.handle;
            let at = handle.0;
            if !self.pending.contains(handle) {
                self.direction_mut(number).parts[other].remove(place);
                continue;
            }
            let Some(part_len) = self.part_len(number, at, long.part_len, packet) else {
                continue;
            };
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
            let starts_inside = self
                .pending
                .get(at)
                .packet
                .start()
                .is_before(packet.start());
            if let Some(long) = self.direction_mut(number).parts[other].get_mut(place) {
                long.open = rest;
                if part_len != 0 && starts_inside {
                    long.part_len = part_len;
                }
            }
            let share = Share {
                is_new_frame,
                bytes,
                part_len,
            };
            self.join_long(number, side, at, packet, mark, share);
            if is_done && self.pending.contains(handle) {
                self.remove(at);
                // The frame's parts may have been removed together with the packet.
                let parts = &mut self.direction_mut(number).parts[other];
                if parts.get(place).is_some_and(|long| long.open.is_empty()) {
                    parts.remove(place);
                }
            }
        }
    }

    /// Return the payload per segment if a packet and a longer waiting frame may share segments; 0 if it cannot be
    /// determined. `known`: the size determined from earlier ones.
    pub fn part_len(&self, number: u32, at: u32, known: u32, packet: &Sighting) -> Option<u32> {
        let path = self.direction(number);
        let long = &self.pending.get(at).packet;
        if long.seq == packet.seq && long.payload_len == packet.payload_len {
            // An identical frame would have matched as a whole, so this frame is a copy.
            return None;
        }
        let keeps_timestamp = path.timestamp.holds();
        if keeps_timestamp && long.tsval != packet.tsval {
            return None;
        }
        if !path.id.holds() || long.id().is_none() || packet.id().is_none() {
            return Some(known);
        }
        // Offload increments the IDs per segment, or leaves them all equal: a copy has a different one.
        let ids = i32::from((packet.ip_id as u16).wrapping_sub(long.ip_id as u16) as i16);
        if ids == 0 {
            return Some(known);
        }
        let offset = long.start().to(packet.start());
        let part_len = offset / ids;
        if part_len <= 0 || part_len.saturating_mul(ids) != offset {
            return None;
        }
        let (part_len, full) = (part_len as u32, path.full_segment());
        let is_own = [packet.payload_len, long.payload_len].contains(&part_len);
        let is_part = if known != 0 {
            part_len == known
        } else if path.is_mixed {
            part_len <= full
        } else if is_inside(packet, long) && packet.payload_len <= full {
            part_len == packet.payload_len
        } else {
            let is_usual = part_len * 2 >= full && (part_len <= full || path.segment_len == 0);
            is_usual || is_own || keeps_timestamp && long.has_timestamps
        };
        is_part.then_some(part_len)
    }

    fn join_long(
        &mut self,
        number: u32,
        side: Side,
        at: u32,
        packet: &Sighting,
        mark: Mark,
        share: Share,
    ) {
        let long = self.pending.get(at).packet.clone();
        let waits_near = side != self.direction(number).near;
        self.overtake(number, if waits_near { at } else { NONE });
        let path = self.direction_mut(number);
        path.is_resegmented = true;
        let has_ids = path.id.holds() && packet.id().is_some();
        let is_third = long.start().to(packet.start()) >= 2 * packet.payload_len as i32;
        let is_reported = !has_ids || share.part_len == packet.payload_len && is_third;
        if is_reported && packet.payload_len == share.bytes && is_inside(packet, &long) {
            path.learn_segment(packet.payload_len);
        }
        if path.is_mixed && share.part_len != 0 {
            path.short_len = share.part_len;
        }
        let segments = u64::from(path.segments_of(share.bytes, share.part_len));
        let count = (u64::from(share.is_new_frame), segments);
        if waits_near {
            let long_mark = self.pending.get(at).mark;
            self.delivered(number, &long, packet, long_mark, count, false);
            self.pending.get_mut(at).mark.is_judged = true;
        } else {
            self.delivered(number, packet, &long, mark, count, false);
        }
    }
}

/// The common part of a packet and a longer frame.
struct Share {
    /// Whether no part of the packet was seen in another frame.
    is_new_frame: bool,
    bytes: u32,
    /// Payload per segment; 0 if unknown.
    part_len: u32,
}

/// Return true if a packet lies within a longer frame and ends before it.
fn is_inside(packet: &Sighting, long: &Sighting) -> bool {
    let end = packet.start() + packet.payload_len;
    !packet.start().is_before(long.start()) && end.is_before(long.start() + long.payload_len)
}

/// Remove a range from a list of ranges.
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

/// Return the intersection of two lists of ranges.
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
