//! Match the two sightings of a packet: whole, or in parts if segmentation offload split or merged them at one point.

use super::altered::{compare, note, Change};
use super::epochs::Setting;
use super::packet::{Side, Sighting};
use super::parts::MAX_PARTS;
use super::path_direction::{Paired, Parts, PathDirection};
use super::resent::PacketOutcome;
use super::run::{Pairer, Row, Rows};
use super::tally::Fate;
use super::waiting::{Mark, NONE};
use crate::sequence::Seq;
use crate::wire::SYN;

/// Waiting packets examined to learn which fields pass unchanged.
const LOOK_BACK: usize = 64;
/// Maximum time between two records of the same packet in one capture.
const SAME_TIME_NS: i64 = 1_000_000;
/// A SYN without an IP ID that seems to have taken longer is a retransmission: they are sent after a second
/// (RFC 6298 §2.1).
const MAX_SYN_NS: i64 = 900_000_000;
/// A smaller MSS leaves no space for payload next to the timestamps.
const MIN_MSS: u16 = 12;

impl<R: Rows> Pairer<'_, R> {
    #[inline]
    pub fn direction(&self, number: u32) -> &PathDirection {
        &self.pairs[(number / 2) as usize].directions[(number % 2) as usize]
    }

    #[inline]
    pub fn direction_mut(&mut self, number: u32) -> &mut PathDirection {
        &mut self.pairs[(number / 2) as usize].directions[(number % 2) as usize]
    }

    /// Process a packet of a direction, as seen by one capture.
    pub fn take(&mut self, number: u32, side: Side, packet: Sighting) {
        if packet.has(SYN) {
            self.note_syn(number, &packet);
        }
        let mut mark = if side == self.direction(number).near {
            self.note_sent(number, &packet)
        } else {
            Mark::default()
        };
        mark.epoch = self.epochs.current();
        mark.other_run_ns = self.progress[side.other().index()].run_ns;
        mark.has_new_ack = self.direction_mut(number).note_newest_ack(side, &packet);
        self.note_ack(number ^ 1, side, &packet);
        if packet.is_bare_ack() {
            self.note_bare_ack(number, side, &packet);
        }
        if packet.sequence_len() > 0 && side == self.direction(number).far() {
            self.direction_mut(number).note_data_at_far(&packet);
        }
        self.place(number, side, packet, mark);
    }

    /// Use the times of a paired bare ACK only once it is known to be unique.
    fn note_bare_ack(&mut self, number: u32, side: Side, packet: &Sighting) {
        let said = packet.said(&self.seed);
        let path = self.direction_mut(number);
        let near = path.near;
        if let Some(paired) = path.bare_acks.note(side, near, said, Seq(packet.ack)) {
            let b_less_a_ns = match near {
                Side::A => paired.far_ns.wrapping_sub(paired.near_ns),
                Side::B => paired.near_ns.wrapping_sub(paired.far_ns),
            };
            self.apart_ns[near.index()] = Some(b_less_a_ns);
            let epoch = self.note_times(number, paired.near_ns, paired.far_ns);
            let apart_ns = paired.far_ns.wrapping_sub(paired.near_ns);
            self.direction_mut(number).note_apart(epoch, apart_ns);
        }
    }

    /// Record when a packet passed both points, for the clock and the delays; return its epoch.
    #[inline]
    fn note_times(&mut self, number: u32, near_ns: i64, far_ns: i64) -> u32 {
        let near = self.direction(number).near;
        let (a_ns, b_ns) = match near {
            Side::A => (near_ns, far_ns),
            Side::B => (far_ns, near_ns),
        };
        let epoch = self.epoch_of(number, near_ns, b_ns.wrapping_sub(a_ns), a_ns);
        self.bounds.add(near == Side::A, a_ns, b_ns, epoch);
        let point = (a_ns, far_ns.wrapping_sub(near_ns));
        let pairs = self.bounds.pairs();
        let path = self.direction_mut(number);
        path.delays.await_epoch(far_ns, point, pairs, epoch);
        epoch
    }

    /// Find the other sighting, or wait for it.
    fn place(&mut self, number: u32, side: Side, packet: Sighting, mark: Mark) {
        if let Some(at) = self.find(number, side.other(), &packet, &mark) {
            self.join(number, side, at, packet, mark);
            return;
        }
        self.place_parts(number, side, packet, mark, None);
    }

    /// Find the other sightings of a packet's parts, or wait for them. `open`: the bytes not seen yet, if some have
    /// been.
    fn place_parts(
        &mut self,
        number: u32,
        side: Side,
        packet: Sighting,
        mark: Mark,
        mut open: Option<Vec<(Seq, Seq)>>,
    ) {
        if packet.payload_len > 0 {
            let path = self.direction(number);
            let other = side.other().index();
            if path.lists[other].first != NONE || !path.parts[other].is_empty() {
                let Some(rest) = self.match_parts(number, side, &packet, mark, open) else {
                    return;
                };
                open = rest;
            }
        }
        self.wait(number, side, packet, mark, open);
    }

    /// Return true if a packet, or the frame that contains it, is waiting at `side`.
    pub fn is_waiting(&self, number: u32, side: Side, packet: &Sighting) -> bool {
        let is_part = |long: &Parts| {
            let at = long.handle.0;
            self.pending.contains(long.handle)
                && self.pending.get(at).packet.overlaps(packet)
                && self.part_len(number, at, long.part_len, packet).is_some()
        };
        self.find(number, side, packet, &Mark::default()).is_some()
            || self.direction(number).parts[side.index()]
                .iter()
                .rev()
                .take(MAX_PARTS)
                .any(is_part)
    }

    /// Return the entry waiting at `side` for this packet; `mark` is what is known about it.
    #[inline]
    fn find(&self, number: u32, side: Side, packet: &Sighting, mark: &Mark) -> Option<u32> {
        let path = self.direction(number);
        let mut at = self
            .pending
            .find(path.key(&self.seed, number, side, packet));
        let mut best: Option<(u32, i64)> = None;
        for _ in 0..LOOK_BACK {
            if at == NONE {
                break;
            }
            let entry = self.pending.get(at);
            if entry.direction == number
                && entry.side == side
                && path.is_same(&entry.packet, packet)
            {
                let is_bare = packet.sequence_len() == 0 && packet.id().is_none();
                if is_bare && !entry.packet.says_the_same(packet) {
                    if path.keeps_sack && !entry.packet.has_same_sack(packet) {
                        at = self.pending.next_same(at);
                        continue;
                    }
                    // Among indistinguishable ACKs of the same number, prefer one with the same contents.
                    best = best.or(Some((at, i64::MAX)));
                    at = self.pending.next_same(at);
                    continue;
                }
                if packet.sequence_len() == 0 || path.distinguishes(packet) {
                    return Some(at);
                }
                // Among indistinguishable copies of the same bytes, prefer the one with the usual delay.
                let (apart_ns, mark) = if side == path.near {
                    let apart_ns = packet.time_ns.wrapping_sub(entry.packet.time_ns);
                    (apart_ns, &entry.mark)
                } else {
                    let apart_ns = entry.packet.time_ns.wrapping_sub(packet.time_ns);
                    (apart_ns, mark)
                };
                if !self.can_have_taken(number, apart_ns, mark) {
                    at = self.pending.next_same(at);
                    continue;
                }
                let odd_ns = apart_ns
                    .saturating_sub(self.usual_apart_ns(number))
                    .saturating_abs();
                if packet.has(SYN) && odd_ns > MAX_SYN_NS {
                    at = self.pending.next_same(at);
                    continue;
                }
                if best.is_none_or(|(_, least_ns)| odd_ns < least_ns) {
                    best = Some((at, odd_ns));
                }
            }
            at = self.pending.next_same(at);
        }
        best.map(|(at, _)| at)
    }

    /// Return the far time minus the near time of the newest packet or, before there is one, the clock offset.
    fn usual_apart_ns(&self, number: u32) -> i64 {
        let path = self.direction(number);
        match path.near {
            _ if path.most_apart_ns != i64::MIN => path.newest_apart_ns,
            Side::A => self.offset_ns(),
            Side::B => self.offset_ns().saturating_neg(),
        }
    }

    /// Return true if one of several copies of the same bytes may have taken this long; otherwise it is another copy
    /// that the near capture lacks.
    #[inline]
    fn can_have_taken(&self, number: u32, apart_ns: i64, mark: &Mark) -> bool {
        let (path, back) = (self.direction(number), self.direction(number ^ 1));
        let has_gaps = path.far_alone > 0 || path.lists[path.far().index()].first != NONE;
        if !has_gaps || path.most_apart_ns == i64::MIN {
            return true;
        }
        let has_round_trip = back.least_apart_ns < i64::MAX && back.epoch == path.epoch;
        if mark.is_overtaken && has_round_trip {
            // A retransmission cannot arrive sooner than a round trip after the packets that overtook the original. The
            // clock offset cancels out, as it has opposite signs in the two directions.
            let round_trip_ns = path.least_apart_ns.saturating_add(back.least_apart_ns);
            return apart_ns.saturating_sub(path.newest_apart_ns) < round_trip_ns.max(SAME_TIME_NS);
        }
        !mark.is_resend || apart_ns >= path.least_apart_ns.saturating_sub(SAME_TIME_NS)
    }

    /// Join a packet with its waiting sighting.
    fn join(&mut self, number: u32, side: Side, at: u32, packet: Sighting, mark: Mark) {
        let waits_near = side != self.direction(number).near;
        if waits_near {
            self.overtake(number, at);
        } else {
            self.overtake(number, NONE);
        }
        let (waited, waited_mark) = self.remove(at);
        let is_new_at_both = mark.has_new_ack && waited_mark.has_new_ack;
        let (near, far, mut mark) = if waits_near {
            (&waited, &packet, waited_mark)
        } else {
            (&packet, &waited, mark)
        };
        mark.has_new_ack = is_new_at_both;
        let segments = u64::from(self.direction(number).segments(near.payload_len));
        self.delivered(number, near, far, mark, (1, segments), true);
    }

    /// Remove a waiting packet.
    pub fn remove(&mut self, at: u32) -> (Sighting, Mark) {
        let (number, side) = (self.pending.get(at).direction, self.pending.get(at).side);
        let after = self.pending.next_in_direction(at);
        let handle = self.pending.handle(at);
        let path = &mut self.pairs[(number / 2) as usize].directions[(number % 2) as usize];
        if path.fresh == at {
            path.fresh = after;
        }
        let parts = &mut path.parts[side.index()];
        let is_gone =
            |oldest: &Parts| oldest.handle == handle || !self.pending.contains(oldest.handle);
        while parts.front().is_some_and(is_gone) {
            parts.pop_front();
        }
        let packet = &self.pending.get(at).packet;
        if let (Some(index), 1..) = (&mut path.by_sequence[side.index()], packet.sequence_len()) {
            index.remove(packet.start(), at);
        }
        self.pending.remove(at, &mut path.lists[side.index()])
    }

    /// Count a packet with both sightings.
    pub fn delivered(
        &mut self,
        number: u32,
        near: &Sighting,
        far: &Sighting,
        mark: Mark,
        (frames, segments): (u64, u64),
        is_whole: bool,
    ) {
        let is_reported = mark.is_resend && !mark.is_judged;
        let resent = is_reported.then(|| self.judge_resent(number, near, &mark, Some(far)));
        let fate = if mark.is_overtaken {
            Fate::Late
        } else {
            Fate::Delivered
        };
        let near_side = self.direction(number).near;
        let (a, b) = match near_side {
            Side::A => (near, far),
            Side::B => (far, near),
        };
        let b_less_a_ns = b.time_ns.wrapping_sub(a.time_ns);
        let is_this = self.is_surely(number, near, far, &mark);
        let epoch = if is_this && !near.is_bare_ack() {
            self.note_times(number, near.time_ns, far.time_ns)
        } else {
            self.direction(number).epoch
        };
        let path = &mut self.pairs[(number / 2) as usize].directions[(number % 2) as usize];
        path.tally.add(fate, frames, segments);
        let mut is_altered = false;
        let (id, timestamp) = (&mut path.id, &mut path.timestamp);
        if near.id().is_some() && near.ip_id == far.ip_id {
            id.agree();
        }
        if near.has_timestamps && near.tsval == far.tsval {
            timestamp.agree();
        }
        path.keeps_sack |= near.has_sack() && near.has_same_sack(far);
        let changes = &mut path.changes;
        compare(near, far, is_whole, |field, before, after| {
            is_altered = true;
            note(
                changes,
                Change {
                    field,
                    count: 1,
                    frames: [a.frame, b.frame],
                    near: before,
                    far: after,
                },
            );
        });
        path.altered += u64::from(is_altered);
        path.first_frames.get_or_insert([a.frame, b.frame]);
        let hops = i16::from(near.ttl) - i16::from(far.ttl);
        path.hops = Some(match path.hops {
            Some((least, most)) => (least.min(hops), most.max(hops)),
            None => (hops, hops),
        });
        path.far_ttl = far.ttl;
        let apart_ns = far.time_ns.wrapping_sub(near.time_ns);
        if !near.is_bare_ack() || path.most_apart_ns == i64::MIN {
            path.note_apart(epoch, apart_ns);
        }
        let key = path.arrival_key(&self.seed, number, far);
        path.note_arrival(key);
        if near.has(SYN) && is_this {
            let begun = &mut self.pairs[(number / 2) as usize].begun_ns;
            begun.get_or_insert([a.time_ns, b.time_ns]);
        }
        let path = &mut self.pairs[(number / 2) as usize].directions[(number % 2) as usize];
        if is_this && near.is_bare_ack() {
            path.bare_acks.paired = Some(Paired {
                said: far.said(&self.seed),
                ack: Seq(far.ack),
                near_ns: near.time_ns,
                far_ns: far.time_ns,
            });
        }
        let apart_ns = &mut self.apart_ns[near_side.index()];
        // Indistinguishable ACKs may be confused with others that left much later.
        // The delay of a late packet does not predict the next one's.
        if !near.is_bare_ack() && !mark.is_overtaken || apart_ns.is_none() {
            *apart_ns = Some(b_less_a_ns);
        }
        let first = &mut self.progress[near_side.index()].first_paired_ns;
        first.get_or_insert(near.time_ns);
        let row = R::WANTED.then(|| Row {
            connection: number / 2,
            direction: (number % 2) as u8,
            fate,
            frames: [a.frame, b.frame],
            times_ns: [a.time_ns, b.time_ns],
            seq: near.seq,
            ack: near.ack,
            payload_len: if is_whole {
                near.payload_len
            } else {
                near.payload_len.min(far.payload_len)
            },
            flags: near.flags,
            is_resend: mark.is_resend,
            resent,
            pairs_before: self.bounds.pairs(),
            epoch,
        });
        let outcome = PacketOutcome {
            row,
            resent,
            has_arrived: true,
        };
        self.record_outcome(number, near, &mark, outcome);
    }

    /// Return true if two sightings are certain to be of the same packet, so that their times can be compared: not of
    /// indistinguishable copies of the same bytes or ACKs of the same number.
    #[inline]
    fn is_surely(&self, number: u32, near: &Sighting, far: &Sighting, mark: &Mark) -> bool {
        let path = self.direction(number);
        if path.id.holds() && near.id().is_some() {
            return true;
        }
        if near.sequence_len() == 0 {
            return mark.has_new_ack && near.says_the_same(far);
        }
        path.timestamp.holds() && near.has_timestamps || !(mark.is_resend || mark.is_copied)
    }

    /// Return the epoch of a paired packet. The first one that shows a clock setting updates all directions.
    #[inline]
    fn epoch_of(&mut self, number: u32, near_ns: i64, b_less_a_ns: i64, a_ns: i64) -> u32 {
        let side = self.direction(number).near;
        let (epoch, setting) = self.epochs.judge(side == Side::A, a_ns, b_less_a_ns);
        match setting {
            Some(setting) => self.note_setting(epoch, side, &setting),
            None => self.direction_mut(number ^ 1).delays.confirm(near_ns),
        }
        epoch
    }

    #[cold]
    fn note_setting(&mut self, epoch: u32, shown_by: Side, setting: &Setting) {
        if let Some(other) = &mut self.apart_ns[shown_by.other().index()] {
            *other = other.saturating_add(setting.step_ns);
        }
        for path in self.pairs.iter_mut().flat_map(|pair| &mut pair.directions) {
            let is_upper = path.near == Side::A;
            path.delays.set(epoch, |apart_ns| {
                setting.precedes(is_upper, if is_upper { apart_ns } else { -apart_ns })
            });
        }
    }

    /// Let a packet wait for its other sighting. `open`: the bytes not seen yet, if some have been.
    fn wait(
        &mut self,
        number: u32,
        side: Side,
        packet: Sighting,
        mut mark: Mark,
        open: Option<Vec<(Seq, Seq)>>,
    ) {
        let key = self
            .direction(number)
            .key(&self.seed, number, side, &packet);
        let arrival = self
            .direction(number)
            .arrival_key(&self.seed, number, &packet);
        if side == self.direction(number).near {
            if self.is_waiting_twice(number, side, &packet) {
                self.record_unpaired(
                    number,
                    side,
                    &packet,
                    Fate::CapturedTwice,
                    Mark::default(),
                    1,
                );
                return;
            }
        } else {
            let path = self.direction(number);
            let is_sure = path.id.holds() && packet.id().is_some();
            if is_sure && open.is_none() && path.has_arrived(arrival) {
                self.record_unpaired(number, side, &packet, Fate::Duplicated, mark, 1);
                return;
            }
            self.note_arrived_alone(number, &packet);
            mark.id_place = packet
                .id()
                .and_then(|id| self.direction(number).ids.place(id));
        }
        if self.learn(number, side, &packet, &mark) {
            self.place(number, side, packet, mark);
            return;
        }
        let (payload_len, sequence_len) = (packet.payload_len, packet.sequence_len());
        let start = packet.start();
        let path = &mut self.pairs[(number / 2) as usize].directions[(number % 2) as usize];
        let list = &mut path.lists[side.index()];
        let at = self.pending.add(key, number, side, packet, mark, list);
        if let (Some(index), 1..) = (&mut path.by_sequence[side.index()], sequence_len) {
            index.insert(start, sequence_len, at, ());
        }
        if side == path.near && path.fresh == NONE {
            path.fresh = at;
        }
        let is_long = payload_len > path.full_segment();
        if open.is_some() || is_long || path.is_mixed && payload_len > 0 {
            let handle = self.pending.handle(at);
            let open = open.unwrap_or_else(|| vec![(start, start + payload_len)]);
            path.parts[side.index()].push_back(Parts {
                handle,
                open,
                part_len: 0,
            });
        }
    }

    /// Return true if the near capture holds a waiting packet twice: it was sent once, because its IP ID is the same,
    /// or because the same bytes with the same timestamp are not retransmitted within a millisecond.
    fn is_waiting_twice(&self, number: u32, side: Side, packet: &Sighting) -> bool {
        let Some(at) = self.find(number, side, packet, &Mark::default()) else {
            return false;
        };
        if self.direction(number).id.holds() && packet.id().is_some() {
            return true;
        }
        let apart_ns = packet
            .time_ns
            .wrapping_sub(self.pending.get(at).packet.time_ns);
        packet.sequence_len() > 0 && packet.has_timestamps && apart_ns.abs() <= SAME_TIME_NS
    }

    /// Learn from a packet without its other sighting whether IDs or timestamps are rewritten on the path. Return true
    /// if this yields the sighting.
    fn learn(&mut self, number: u32, side: Side, packet: &Sighting, mark: &Mark) -> bool {
        // Duplicate ACKs are identical without being the same packet.
        let is_telling =
            |packet: &Sighting, mark: &Mark| packet.sequence_len() > 0 || mark.has_new_ack;
        let path = self.direction(number);
        if !path.id.is_open() && !path.timestamp.is_open() || !is_telling(packet, mark) {
            return false;
        }
        let mut at = path.lists[side.other().index()].first;
        let mut looked = 0;
        let (mut id_is_odd, mut timestamp_is_odd, mut is_proof) = (false, false, false);
        while at != NONE && looked < LOOK_BACK {
            let entry = self.pending.get(at);
            let other = &entry.packet;
            let is_alike = is_telling(other, &entry.mark)
                && other.seq == packet.seq
                && other.ack == packet.ack
                && other.payload_len == packet.payload_len
                && other.kind() == packet.kind();
            if is_alike {
                let both = (packet.has_timestamps, other.has_timestamps);
                let same_timestamp = packet.tsval == other.tsval && both == (true, true);
                let same_id = packet.id().is_some() && packet.ip_id == other.ip_id;
                id_is_odd = !same_id && packet.ip_id != other.ip_id;
                timestamp_is_odd = packet.tsval != other.tsval;
                // The unchanged field proves that it is the same transmission.
                is_proof = id_is_odd && same_timestamp || timestamp_is_odd && same_id;
                if is_proof {
                    break;
                }
            }
            looked += 1;
            at = self.pending.next_in_direction(at);
        }
        let path = self.direction_mut(number);
        let mut is_settled = false;
        if id_is_odd && path.id.is_open() {
            is_settled |= path.id.disagree(is_proof);
        }
        if timestamp_is_odd && path.timestamp.is_open() {
            is_settled |= path.timestamp.disagree(is_proof);
        }
        if is_settled {
            self.rekey(number);
        }
        is_settled
    }

    /// Look up all waiting packets of a direction again, using only fields known to pass unchanged.
    pub fn rekey(&mut self, number: u32) {
        let mut all = Vec::new();
        for side in Side::BOTH {
            loop {
                let at = self.direction(number).lists[side.index()].first;
                if at == NONE {
                    break;
                }
                let open = self.open_parts(at).map(|parts| parts.open.clone());
                let (packet, mark) = self.remove(at);
                all.push((side, packet, mark, open));
            }
            self.direction_mut(number).parts[side.index()].clear();
        }
        for (side, packet, mark, open) in all {
            let is_whole = open.as_ref().is_none_or(|open| {
                open.as_slice() == [(packet.start(), packet.start() + packet.payload_len)]
            });
            if is_whole {
                self.place(number, side, packet, mark);
            } else {
                self.place_parts(number, side, packet, mark, open);
            }
        }
    }

    /// Record the properties of a SYN.
    fn note_syn(&mut self, number: u32, packet: &Sighting) {
        let offers_sack = packet.options.as_ref().is_some_and(|o| o.sack_permitted);
        self.direction_mut(number).offers_sack |= offers_sack;
        let mss = packet.options.as_ref().and_then(|options| options.mss);
        if let Some(mss) = mss.filter(|mss| *mss > MIN_MSS) {
            self.direction_mut(number).note_mss(true, mss.into());
            self.direction_mut(number ^ 1).note_mss(false, mss.into());
        }
    }
}
