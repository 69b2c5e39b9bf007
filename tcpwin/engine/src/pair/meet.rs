//! Assign a packet to its pair, or search for its connection's mate in the other capture.

use std::collections::VecDeque;

use super::ahead::search_key;
use super::evidence::BEGIN_NS;
use super::flows::{Hit, MateCandidate, VOTES};
use super::packet::{Side, Sighting};
use super::path_direction::PathDirection;
use super::run::{Pair, Pairer, Rows};
use super::waiting::NONE;
use crate::wire::Segment;

/// Packets after which the nearer point for each host is decided with the available evidence.
const PATIENCE: u16 = 512;
/// Times of a capture may disagree between its directions: a round trip shorter by less than this is not conclusive.
const DISAGREEMENT_NS: i64 = 1_000_000;

impl<R: Rows> Pairer<'_, R> {
    /// Process a packet of one capture.
    #[inline]
    pub fn meet(&mut self, side: Side, segment: &Segment, packet: Sighting) {
        let flows = &mut self.flows[side.index()];
        let (number, direction) = flows.find(segment);
        let flow = &mut flows.flows[number as usize];
        flow.count(direction, &packet);
        if flow.pair == NONE {
            self.search_mate(side, number, direction, packet);
        } else {
            let pair = flow.pair;
            if self.pairs[pair as usize].early.is_empty() {
                self.enter(pair, side, direction, packet);
            } else {
                self.enter_after_early(pair, side, direction, packet);
            }
        }
    }

    /// Process a packet of a pair for which one capture was read too far ahead.
    #[cold]
    fn enter_after_early(&mut self, number: u32, side: Side, direction: u8, packet: Sighting) {
        let early = &mut self.pairs[number as usize].early;
        if early.front().is_some_and(|first| first.0 == side) {
            early.push_back((side, direction, packet));
        } else {
            self.enter(number, side, direction, packet);
        }
        self.take_early(number, false);
    }

    /// Process the packets read too early whose time has come, or all of them.
    pub fn take_early(&mut self, number: u32, all: bool) {
        while let Some((side, _, packet)) = self.pairs[number as usize].early.front() {
            let other = side.other();
            let now_ns = self.translated(self.progress[other.index()].now_ns, other);
            if !all && packet.time_ns > now_ns {
                return;
            }
            if let Some((side, direction, packet)) = self.pairs[number as usize].early.pop_front() {
                self.enter(number, side, direction, packet);
            }
        }
    }

    /// Process a packet of a paired connection, translated to capture A's direction and numbers.
    #[inline]
    fn enter(&mut self, number: u32, side: Side, direction: u8, mut packet: Sighting) {
        let pair = &self.pairs[number as usize];
        let mut direction = direction;
        if side == Side::B {
            direction ^= u8::from(pair.is_flipped);
            let shifts = pair.shifts(direction);
            if shifts != (0, 0) {
                packet.renumber(shifts.0.wrapping_neg(), shifts.1.wrapping_neg());
            }
        }
        self.take(number * 2 + u32::from(direction), side, packet);
    }

    /// Return the key to search for in the sender's capture if it has not shown this arriving packet.
    #[inline]
    pub fn unseen_key(&mut self, side: Side, segment: &Segment) -> Option<u64> {
        let (number, direction) = self.flows[side.index()].known(segment)?;
        let pair = &self.pairs[number as usize];
        let mut direction = direction;
        if side == Side::B {
            direction ^= u8::from(pair.is_flipped);
        }
        let path = &pair.directions[usize::from(direction)];
        if path.near == side || !path.id.holds() || !path.timestamp.holds() {
            return None;
        }
        self.find_unseen(number * 2 + u32::from(direction), side, segment)
    }

    #[inline]
    fn find_unseen(&self, number: u32, side: Side, segment: &Segment) -> Option<u64> {
        let mut packet = Sighting::of(segment);
        let shifts = self.pairs[(number / 2) as usize].shifts((number % 2) as u8);
        let (own, back) = match side {
            Side::A => shifts,
            Side::B => (shifts.0.wrapping_neg(), shifts.1.wrapping_neg()),
        };
        let mut by_a = packet.clone();
        if side == Side::B {
            by_a.renumber(own, back);
        }
        if self.is_waiting(number, side.other(), &by_a) {
            return None;
        }
        packet.renumber(own, back);
        Some(search_key(&self.seed, &packet))
    }

    fn search_mate(&mut self, side: Side, number: u32, direction: u8, packet: Sighting) {
        let [a, b] = &mut self.flows;
        let (own, other) = match side {
            Side::A => (a, b),
            Side::B => (b, a),
        };
        let hit = own.look_up(number, direction, &packet, other);
        if hit.is_none() {
            own.announce(number, direction, &packet);
        }
        own.keep(number, direction, packet);
        if let Some(hit) = hit {
            self.agree(side, number, &hit);
        }
        self.consider(side, number);
    }

    fn agree(&mut self, side: Side, number: u32, hit: &Hit) {
        let flow = &mut self.flows[side.index()].flows[number as usize];
        let agrees = flow
            .candidate
            .as_mut()
            .is_some_and(|known| known.agree(hit));
        if !agrees {
            let has_better = flow.candidate.is_some_and(|known| known.votes >= VOTES);
            if !has_better || hit.is_sure {
                flow.candidate = Some(MateCandidate::of(hit));
            }
        }
        // The mate's own lookups may have started the same match.
        let mate = &mut self.flows[side.other().index()].flows[hit.mate as usize];
        mate.is_candidate = true;
        let theirs = mate.candidate.filter(|theirs| theirs.mate == number);
        if let (Some(theirs), Some(known)) = (
            theirs,
            &mut self.flows[side.index()].flows[number as usize].candidate,
        ) {
            known.adopt(&theirs);
        }
    }

    /// Pair the connection if enough is known.
    fn consider(&mut self, side: Side, number: u32) {
        let flow = &mut self.flows[side.index()].flows[number as usize];
        let Some(candidate) = &mut flow.candidate else {
            return;
        };
        if candidate.votes < VOTES {
            return;
        }
        candidate.patience = candidate.patience.saturating_add(1);
        let mut candidate = *candidate;
        let is_known = nearest(&candidate, true).is_some();
        if !is_known {
            // If the captures start at different times, the index holds few of the common packets.
            if candidate.patience.is_power_of_two() {
                self.look_closely(side, number, &mut candidate);
            }
            if candidate.patience < PATIENCE && nearest(&candidate, true).is_none() {
                return;
            }
        }
        self.settle(side, number, &candidate);
    }

    /// Use the times of identical stored packets, if there are any.
    #[cold]
    fn look_closely(&self, side: Side, number: u32, candidate: &mut MateCandidate) {
        let [own, other] = [side, side.other()].map(|side| &self.flows[side.index()]);
        let apart_ns = own.compare_buffered(number, other, candidate);
        for (direction, apart_ns) in apart_ns.into_iter().enumerate() {
            if apart_ns.is_some() {
                candidate.apart_ns[direction] = apart_ns;
                candidate.is_one[direction] = true;
            }
        }
    }

    /// Pair connections that were matched late, with the available evidence.
    pub fn settle_candidates(&mut self) {
        for side in Side::BOTH {
            for number in 0..self.flows[side.index()].flows.len() {
                let flow = &self.flows[side.index()].flows[number];
                let ready = flow
                    .candidate
                    .filter(|known| known.votes >= VOTES || known.has_syn)
                    .filter(|_| flow.pair == NONE);
                if let Some(mut candidate) = ready {
                    self.look_closely(side, number as u32, &mut candidate);
                    self.settle(side, number as u32, &candidate);
                }
            }
        }
    }

    fn settle(&mut self, side: Side, number: u32, candidate: &MateCandidate) {
        let mate = candidate.mate;
        if self.flows[side.other().index()].flows[mate as usize].pair != NONE {
            self.flows[side.index()].flows[number as usize].candidate = None;
            return;
        }
        // For this capture's direction 0.
        let is_near = nearest(candidate, true)
            .or_else(|| nearest(candidate, false))
            .unwrap_or_else(|| self.guess(side, candidate));
        let near_of_first = if is_near { side } else { side.other() };
        let mut near = near_of_first;
        let (first_in_a, of_a) = match side {
            Side::A => (number, 0),
            Side::B => (mate, u8::from(candidate.is_flipped)),
        };
        let first_frame = self.flows[0].flows[first_in_a as usize].first_frame;
        let shown = self.nearest.get(&first_frame).copied();
        if let Some(shown) = shown {
            near = if of_a == 0 { shown } else { shown.other() };
        }
        let mut directions = [
            PathDirection::new(near, 0),
            PathDirection::new(near.other(), 0),
        ];
        for (path, shift) in directions.iter_mut().zip(candidate.shifts) {
            path.shift = match side {
                Side::A => shift,
                Side::B => shift.wrapping_neg(),
            };
        }
        if side == Side::B && candidate.is_flipped {
            directions.swap(0, 1);
        }
        let flows = match side {
            Side::A => [number, mate],
            Side::B => [mate, number],
        };
        let pair = self.pairs.len() as u32;
        self.pairs.push(Pair {
            flows,
            is_flipped: candidate.is_flipped,
            is_sure: shown.is_some() || is_sure(candidate),
            begun_ns: None,
            directions,
            early: VecDeque::new(),
        });
        let offset_ns = match candidate.apart_ns {
            [Some(there), Some(back)] => Some(there / 2 + back / 2),
            [one, other] => one.or(other),
        };
        let offset_ns = offset_ns.map_or(self.offset_ns(), |apart| match side {
            Side::A => apart,
            Side::B => -apart,
        });
        // With packets of one direction only, the offset makes a packet appear to arrive when it leaves, and a quicker
        // one even earlier. Delay arrivals, so that retransmissions are known before their acknowledgments.
        let sooner_ns = match (candidate.apart_ns, near_of_first) {
            ([Some(_), None], Side::A) | ([None, Some(_)], Side::B) => -BEGIN_NS,
            ([Some(_), None], Side::B) | ([None, Some(_)], Side::A) => BEGIN_NS,
            _ => 0,
        };
        self.replay(pair, flows, offset_ns.saturating_add(sooner_ns));
    }

    /// Process the packets that both captures stored for a pair, in the order in which they passed.
    fn replay(&mut self, pair: u32, flows: [u32; 2], offset_ns: i64) {
        let mut buffered = [0, 1].map(|side| self.flows[side].settle(flows[side], pair));
        loop {
            let times = [buffered[0].front(), buffered[1].front()]
                .map(|buffered| buffered.map(|k| k.1.time_ns));
            let side = match times {
                [Some(a), Some(b)] if a.saturating_add(offset_ns) <= b => Side::A,
                [Some(_), Some(_)] => Side::B,
                _ => break,
            };
            if let Some((direction, packet)) = buffered[side.index()].pop_front() {
                self.enter(pair, side, direction, packet);
            }
        }
        for (side, buffered) in Side::BOTH.into_iter().zip(buffered) {
            let early = buffered
                .into_iter()
                .map(|(direction, packet)| (side, direction, packet));
            self.pairs[pair as usize].early.extend(early);
        }
        self.take_early(pair, false);
    }

    /// Decide by the clocks whether this capture is nearer to the sender of its direction 0, if packets do not show it.
    fn guess(&self, side: Side, candidate: &MateCandidate) -> bool {
        let offset_ns = match (side, self.apart_ns) {
            (Side::A, [Some(_), Some(_)]) => self.offset_ns(),
            (Side::B, [Some(_), Some(_)]) => -self.offset_ns(),
            _ => 0,
        };
        match candidate.apart_ns {
            [Some(apart), _] => apart >= offset_ns,
            [None, Some(apart)] => apart < offset_ns,
            [None, None] => true,
        }
    }
}

/// Return whether this capture is nearer to the sender of its direction 0; `None` if that is not known yet.
///
/// Routers decrement the TTL. Otherwise, the round trip to the far host is longer at the near point: the sum of both
/// delays is positive, whatever the clocks show. This requires times of the same packet, which `is_sure` demands.
fn nearest(candidate: &MateCandidate, is_sure: bool) -> Option<bool> {
    if let Some(near) = nearest_by_hops(candidate) {
        return Some(near);
    }
    if is_sure && candidate.is_one != [true; 2] {
        return None;
    }
    match candidate.apart_ns {
        [Some(there), Some(back)] if there != back => Some(there > back),
        _ => None,
    }
}

fn nearest_by_hops(candidate: &MateCandidate) -> Option<bool> {
    let fewer = |hops: Option<i16>| hops.filter(|hops| *hops != 0).map(|hops| hops > 0);
    match (fewer(candidate.hops[0]), fewer(candidate.hops[1])) {
        (Some(near), None) => Some(near),
        (None, Some(far)) => Some(!far),
        (Some(near), Some(far)) if near != far => Some(near),
        _ => None,
    }
}

/// Return true if the evidence for the nearer point exceeds the possible disagreement of times.
fn is_sure(candidate: &MateCandidate) -> bool {
    let trip_ns = match candidate.apart_ns {
        [Some(there), Some(back)] if candidate.is_one == [true; 2] => there.saturating_sub(back),
        _ => 0,
    };
    nearest_by_hops(candidate).is_some() || trip_ns.saturating_abs() > DISAGREEMENT_NS
}
