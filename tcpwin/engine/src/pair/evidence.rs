//! Decide whether a packet missing from the far capture was lost or missed by the capture, using the receiver's ACKs.
//!
//! Data that was acknowledged, and that no other packet can have delivered, arrived. Data that the receiver lacked
//! after a later packet had arrived was lost. Otherwise it was lost if the far capture shows no gaps, and is unknown if
//! it does.

use super::by_sequence::BySequence;
use super::packet::{Side, Sighting};
use super::path_direction::Parts;
use super::resent::PacketOutcome;
use super::run::{Pairer, Row, Rows};
use super::tally::Fate;
use super::waiting::{Mark, Waiting, NONE};
use crate::sequence::Seq;
use crate::wire::{ACK, RST, SYN};

/// Delays vary: the far capture must have run this much longer than the longest delay after a packet left.
const MARGIN_NS: i64 = 50_000_000;
/// A path that reorders may do so while the captures start.
pub const BEGIN_NS: i64 = 20_000_000;
/// A difference in hops beyond this means that a packet came from another distance.
const OTHER_DISTANCE: u8 = 2;

impl<R: Rows> Pairer<'_, R> {
    /// Record what a leaving packet shows about earlier ones.
    pub fn note_sent(&mut self, number: u32, packet: &Sighting) -> Mark {
        let mut mark = Mark::default();
        let path = self.direction_mut(number);
        if packet.payload_len > 0 {
            path.note_segment(packet);
        }
        let segments = path.segments(packet.payload_len);
        if let Some(id) = packet.id() {
            path.ids.note(id, segments);
        }
        if packet.sequence_len() == 0 {
            return mark;
        }
        let end = packet.end();
        let highest = path.sent_end;
        path.sent_end = Some(highest.map_or(end, |highest| highest.max(end)));
        if highest.is_some_and(|highest| packet.start().is_before(highest)) {
            mark.is_resend = true;
            mark.others_were_lost = self.note_resend(number, packet);
            self.note_copy_before(number, packet, &mut mark);
        }
        mark
    }

    /// Mark waiting packets that share bytes with a leaving packet. Return true if all copies of it were lost.
    #[cold]
    fn note_resend(&mut self, number: u32, packet: &Sighting) -> bool {
        let path = self.direction_mut(number);
        path.resent += 1;
        let lacks_first = path.lacks_first_of(packet);
        let (near, far) = (path.near, path.far());
        let (mut lost_bytes, mut all_lost) = (0, true);
        for at in self.waiting_with(number, near, packet.start(), packet.end()) {
            let entry = self.pending.get_mut(at);
            entry.mark.is_copied = true;
            all_lost &= entry.mark.has_hole;
            lost_bytes += entry.packet.sequence_len();
        }
        if lacks_first && lost_bytes == 0 {
            self.direction_mut(number).refuses = true;
        }
        for at in self.waiting_with(number, far, packet.start(), packet.end()) {
            self.pending.get_mut(at).mark.is_copied = true;
        }
        all_lost && lost_bytes >= packet.sequence_len()
    }

    /// Return the packets waiting at a point that share bytes with `[start, end)`, in the order of their bytes.
    pub fn waiting_with(&mut self, number: u32, side: Side, start: Seq, end: Seq) -> Vec<u32> {
        let path = &mut self.pairs[(number / 2) as usize].directions[(number % 2) as usize];
        let list = &path.lists[side.index()];
        if list.first == NONE {
            return Vec::new();
        }
        let index = path.by_sequence[side.index()].get_or_insert_with(|| {
            let mut index = BySequence::new();
            let mut at = list.first;
            while at != NONE {
                let packet = &self.pending.get(at).packet;
                if packet.sequence_len() > 0 {
                    index.insert(packet.start(), packet.sequence_len(), at, ());
                }
                at = self.pending.next_in_direction(at);
            }
            index
        });
        index.overlapping(start, end).map(|(at, ())| at).collect()
    }

    /// Note a data packet that only the far capture has: it may have been a retransmission of waiting packets.
    pub fn note_arrived_alone(&mut self, number: u32, packet: &Sighting) {
        if packet.sequence_len() == 0 {
            return;
        }
        let near = self.direction(number).near;
        for at in self.waiting_with(number, near, packet.start(), packet.end()) {
            self.pending.get_mut(at).mark.is_copied = true;
        }
    }

    /// Mark packets as overtaken that left before an arriving packet and have not arrived. `until`: the arriving
    /// packet's entry while it waits, or [`NONE`].
    #[inline]
    pub fn overtake(&mut self, number: u32, until: u32) {
        let first = self.direction(number).fresh;
        if first == until || first == NONE {
            return;
        }
        // An overtaken packet does not overtake others.
        if until != NONE && self.pending.get(until).mark.is_overtaken {
            return;
        }
        self.overtake_from(number, first, until);
    }

    #[cold]
    fn overtake_from(&mut self, number: u32, first: u32, until: u32) {
        let path = self.direction(number);
        let has_paired = path.most_apart_ns != i64::MIN;
        let apart_before =
            has_paired.then(|| (path.newest_apart_ns, self.bounds.pairs(), path.epoch));
        let mut at = first;
        while at != NONE && at != until {
            let next = self.pending.next_in_direction(at);
            let entry = self.pending.get_mut(at);
            entry.mark.is_overtaken = true;
            entry.mark.apart_before = apart_before;
            let (start, end) = (entry.packet.start(), entry.packet.end());
            if entry.packet.sequence_len() > 0 && self.direction(number).is_covered(start, end) {
                self.note_reported(number, at);
            }
            at = next;
        }
        self.direction_mut(number).fresh = until;
        self.judge_reported(number);
    }

    fn note_reported(&mut self, number: u32, at: u32) {
        let handle = self.pending.handle(at);
        self.pending.get_mut(at).mark.is_reported = true;
        self.direction_mut(number).reported.push(handle);
    }

    /// The receiver has reported more: find overtaken data that it has now reported as a whole.
    fn find_reported(&mut self, number: u32, left: Seq, right: Seq) {
        let near = self.direction(number).near;
        if !self.has_overtaken(number) {
            return;
        }
        for at in self.waiting_with(number, near, left, right) {
            let Waiting { packet, mark, .. } = self.pending.get(at);
            let is_open = mark.is_overtaken && !mark.is_reported;
            if is_open
                && self
                    .direction(number)
                    .is_covered(packet.start(), packet.end())
            {
                self.note_reported(number, at);
            }
        }
    }

    /// Return true if a packet that was overtaken waits.
    #[inline]
    fn has_overtaken(&self, number: u32) -> bool {
        let path = self.direction(number);
        path.lists[path.near.index()].first != path.fresh
    }

    /// Process the acknowledgment of a direction's data by a packet of the other direction.
    #[inline]
    pub fn note_ack(&mut self, number: u32, side: Side, packet: &Sighting) {
        if !packet.has(ACK) || packet.has(RST) {
            return;
        }
        let path = self.direction_mut(number);
        let acked = Seq(packet.ack);
        let before = path.acked;
        let is_news = before.is_none_or(|highest| highest.is_before(acked));
        if is_news {
            path.acked = Some(acked);
        }
        let is_leaving = side == path.far();
        if !is_leaving && path.acked_at_near.is_none_or(|seen| seen.is_before(acked)) {
            path.acked_at_near = Some(acked);
        }
        let blocks = packet.options.as_ref().map_or(0, |o| o.sack_count);
        if is_leaving && (is_news || blocks > 0) {
            path.news_ns = packet.time_ns;
        }
        if is_news {
            self.find_reported(number, before.unwrap_or(acked.minus(1 << 30)), acked);
        }
        if blocks > 0 {
            self.note_sack(number, packet, acked);
        }
        if is_leaving {
            self.direction_mut(number).last_ack_ns = packet.time_ns;
            if !self.direction(number).open_resent.is_empty() {
                let duplicate = duplicate_of(packet, acked);
                self.note_ack_of_resent(number, acked, duplicate);
            }
        }
        if is_leaving && self.has_overtaken(number) {
            self.find_holes(number, packet, acked);
        }
        if is_news || blocks > 0 || !is_leaving {
            self.judge_reported(number);
        }
    }

    fn note_sack(&mut self, number: u32, packet: &Sighting, acked: Seq) {
        let Some(options) = &packet.options else {
            return;
        };
        let blocks = options.sack_blocks();
        let second = blocks.get(1).copied();
        self.direction_mut(number).has_sack = true;
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let (left, right) = (Seq(left), Seq(right));
            if is_dsack(index, (left, right), second, acked) {
                self.note_dsack(number, left, right);
            } else {
                let sacked = &mut self.direction_mut(number).sacked;
                let known = sacked.end_from(left);
                if sacked.insert(left, right) > 0 {
                    self.find_reported(number, known, right);
                }
            }
        }
        let path = self.direction_mut(number);
        let first = path.sacked.iter().next().map(|range| range.0);
        if let Some(first) = first.filter(|first| first.is_before(acked)) {
            path.sacked.remove(first, acked);
        }
    }

    /// Note bytes that the receiver reports as received twice (RFC 2883).
    fn note_dsack(&mut self, number: u32, left: Seq, right: Seq) {
        let near = self.direction(number).near;
        for at in self.waiting_with(number, near, left, right) {
            self.pending.get_mut(at).mark.has_dsack = true;
        }
    }

    /// Find bytes that the receiver lacked when this packet left it: those between its acknowledgment and its SACK
    /// blocks.
    fn find_holes(&mut self, number: u32, packet: &Sighting, acked: Seq) {
        let path = self.direction(number);
        let (near, patience_ns) = (path.near, path.patience_ns());
        let blocks = packet
            .options
            .as_deref()
            .map_or(&[][..], |o| o.sack_blocks());
        let second = blocks.get(1).copied();
        let mut lacked = vec![acked];
        for (index, block) in blocks.iter().enumerate() {
            let (left, right) = (Seq(block.0), Seq(block.1));
            if !is_dsack(index, (left, right), second, acked) {
                lacked.extend([left.minus(1), right]);
            }
        }
        for byte in lacked {
            for at in self.waiting_with(number, near, byte, byte + 1) {
                let entry = self.pending.get_mut(at);
                let since_ns = packet.time_ns.saturating_sub(entry.packet.time_ns);
                entry.mark.has_hole |= entry.mark.is_overtaken && since_ns > patience_ns;
            }
        }
    }

    /// Judge overtaken data that the receiver has reported.
    fn judge_reported(&mut self, number: u32) {
        if self.direction(number).reported.is_empty() || !self.shows_all_copies(number) {
            return;
        }
        let patience_ns = self.direction(number).patience_ns();
        let far_now_ns = self.progress[self.direction(number).far().index()].now_ns;
        let mut reported = std::mem::take(&mut self.direction_mut(number).reported);
        reported.retain(|&handle| {
            if !self.pending.contains(handle) || !self.must_have_come(handle.0) {
                return false;
            }
            // Its record may appear slightly later in the far capture.
            let entry = self.pending.get_mut(handle.0);
            let since_ns = far_now_ns.saturating_sub(entry.packet.time_ns);
            entry.mark.has_arrived = true;
            if since_ns <= patience_ns {
                return true;
            }
            self.give_up(handle.0);
            false
        });
        let path = self.direction_mut(number);
        reported.append(&mut path.reported);
        path.reported = reported;
    }

    /// Return true if the near capture has been read far enough to have shown any packet that could have delivered the
    /// bytes of the receiver's latest report.
    fn shows_all_copies(&self, number: u32) -> bool {
        let path = self.direction(number);
        if path.least_apart_ns == i64::MAX || path.news_ns == i64::MIN {
            return true;
        }
        let left_ns = path.news_ns.saturating_sub(path.least_apart_ns);
        self.progress[path.near.index()].now_ns >= left_ns
    }

    /// Return true if the acknowledgment of a packet's bytes proves that it arrived.
    fn must_have_come(&self, at: u32) -> bool {
        let mark = self.pending.get(at).mark;
        mark.has_arrived || !mark.is_copied && (!mark.is_resend || mark.others_were_lost)
    }

    /// Give up on a packet's other sighting and determine its fate.
    pub fn give_up(&mut self, at: u32) {
        let (number, side) = (self.pending.get(at).direction, self.pending.get(at).side);
        if side == self.direction(number).near {
            let packet = &self.pending.get(at).packet;
            let covered = self
                .direction(number)
                .is_covered(packet.start(), packet.end());
            let has_data = packet.sequence_len() > 0;
            let came = has_data && covered && self.must_have_come(at);
            let (fate, segments) = (self.fate_of_missing(at, came), self.open_segments(at));
            if self.pending.get(at).mark.is_copied && fate != Fate::FarMissed {
                self.note_given_up(number, self.pending.handle(at), fate);
            }
            let (packet, mark) = self.remove(at);
            if has_data && mark.is_copied && matches!(fate, Fate::Lost | Fate::Unseen) {
                self.direction_mut(number).lost_resent += 1;
            }
            if fate == Fate::FarMissed && !self.is_outside(number, &packet, mark) {
                self.progress[side.other().index()].missed += 1;
            }
            self.record_unpaired(number, side, &packet, fate, mark, segments);
        } else {
            let segments = self.open_segments(at);
            let is_whole = self.open_bytes(at) == self.pending.get(at).packet.payload_len;
            let (packet, mark) = self.remove(at);
            let fate = self.fate_of_alone(number, &packet, is_whole);
            if fate == Fate::NearMissed {
                if self.near_was_running(number, &packet) {
                    self.progress[side.other().index()].missed += 1;
                    if packet.sequence_len() > 0 {
                        let path = self.direction_mut(number);
                        path.far_alone += 1;
                        path.far_alone_resent += u64::from(mark.is_copied);
                    }
                }
                if let Some(place) = mark.id_place {
                    self.direction_mut(number).ids.fill(place);
                }
            }
            self.record_unpaired(number, side, &packet, fate, mark, segments);
        }
    }

    /// Return the payload not shown by the other capture.
    fn open_bytes(&self, at: u32) -> u32 {
        self.open_parts(at)
            .map_or(self.pending.get(at).packet.payload_len, Parts::open_bytes)
    }

    fn open_segments(&self, at: u32) -> u32 {
        let entry = self.pending.get(at);
        let path = self.direction(entry.direction);
        match self.open_parts(at) {
            Some(parts) if parts.open_bytes() < entry.packet.payload_len => {
                path.segments_of(parts.open_bytes(), parts.part_len)
            }
            _ => path.segments(entry.packet.payload_len),
        }
    }

    /// Return the parts of an offloaded frame not shown by the other capture.
    pub fn open_parts(&self, at: u32) -> Option<&Parts> {
        let entry = self.pending.get(at);
        let parts = &self.direction(entry.direction).parts[entry.side.index()];
        let handle = self.pending.handle(at);
        parts.iter().find(|parts| parts.handle == handle)
    }

    fn fate_of_missing(&self, at: u32, came: bool) -> Fate {
        let entry = self.pending.get(at);
        let (mark, packet) = (entry.mark, &entry.packet);
        let path = self.direction(entry.direction);
        let key = path.arrival_key(&self.seed, entry.direction, packet);
        let is_whole = self.open_bytes(at) == packet.payload_len;
        if is_whole && path.id.holds() && packet.id().is_some() && path.has_arrived(key) {
            Fate::CapturedTwice
        } else if came {
            Fate::FarMissed
        } else {
            let has_hole = mark.has_hole && !mark.has_dsack;
            let is_proof = path.tally.of(Fate::Late).frames == 0 && !path.refuses;
            match (has_hole, self.is_outside(entry.direction, packet, mark)) {
                (true, false) => Fate::Lost,
                (true, true) if is_proof => Fate::Lost,
                (_, true) => Fate::Outside,
                (false, false) => Fate::Unseen,
            }
        }
    }

    /// Return true if the far capture may not have been running when a packet arrived, or should have arrived.
    pub fn is_outside(&self, number: u32, packet: &Sighting, mark: Mark) -> bool {
        let path = self.direction(number);
        let first = self.progress[path.near.index()].first_paired_ns;
        let range_ns = path
            .most_apart_ns
            .saturating_sub(path.least_apart_ns)
            .max(0);
        let begin_ns = range_ns.saturating_add(BEGIN_NS);
        let is_before = |first_ns: i64| packet.time_ns < first_ns.saturating_add(begin_ns);
        // After a SYN that both captures have, both were running. Some SYN-ACKs cannot be distinguished from one
        // another.
        let begun_ns = self.pairs[(number / 2) as usize].begun_ns;
        let has_begun = begun_ns.is_some_and(|begun_ns| {
            let is_after = mark.epoch > 0 || packet.time_ns >= begun_ns[path.near.index()];
            is_after && !packet.has(SYN)
        });
        // Times of two clock settings cannot be compared.
        if !has_begun && first.is_none_or(|first_ns| mark.epoch == 0 && is_before(first_ns)) {
            return true;
        }
        if mark.epoch < self.epochs.current() {
            return false;
        }
        let far = self.progress[path.far().index()];
        let keeps_order = path.tally.of(Fate::Late).frames == 0;
        if mark.is_overtaken && keeps_order || !far.is_over {
            return false;
        }
        let latest_ns = packet.time_ns.saturating_add(path.patience_ns());
        let margin_ns = if mark.is_overtaken { 0 } else { MARGIN_NS };
        latest_ns.saturating_add(margin_ns) > far.now_ns
    }

    /// Determine the fate of a packet that only the far capture has. `is_whole`: no part of it was seen at the near
    /// point.
    fn fate_of_alone(&self, number: u32, packet: &Sighting, is_whole: bool) -> Fate {
        let path = self.direction(number);
        let key = path.arrival_key(&self.seed, number, packet);
        let is_distinguished = path.id.holds() && packet.id().is_some();
        if is_whole
            && path.has_arrived(key)
            && (is_distinguished || self.near_was_running(number, packet))
        {
            return Fate::Duplicated;
        }
        let is_alien = packet.ttl.abs_diff(path.far_ttl) > OTHER_DISTANCE;
        if packet.has(RST) && path.far_ttl != 0 && is_alien {
            return Fate::Injected;
        }
        Fate::NearMissed
    }

    /// Return true if the near capture must have been running when a packet left that only the far one has.
    fn near_was_running(&self, number: u32, packet: &Sighting) -> bool {
        let path = self.direction(number);
        let near = self.progress[path.near.index()];
        let Some(first_ns) = near.first_ns else {
            return false;
        };
        // Both captures were running after a SYN that both have, or after a clock setting that both have shown.
        let begun_ns = self.pairs[(number / 2) as usize].begun_ns;
        let is_after_syn = begun_ns.is_some_and(|begun_ns| {
            begun_ns[path.far().index()] < packet.time_ns && !packet.has(SYN)
        });
        let has_begun = path.epoch > 0 || is_after_syn;
        if has_begun && !near.is_over {
            return true;
        }
        if path.most_apart_ns == i64::MIN {
            return false;
        }
        let earliest_ns = packet.time_ns.saturating_sub(path.most_apart_ns);
        let latest_ns = packet.time_ns.saturating_sub(path.least_apart_ns);
        let was_begun = has_begun || earliest_ns.saturating_sub(MARGIN_NS) > first_ns;
        was_begun && latest_ns < near.now_ns
    }

    /// Count a packet that only one capture has.
    pub fn record_unpaired(
        &mut self,
        number: u32,
        side: Side,
        packet: &Sighting,
        fate: Fate,
        mark: Mark,
        segments: u32,
    ) {
        let pairs_before = self.bounds.pairs();
        let is_reported = mark.is_resend && !mark.is_judged && fate != Fate::CapturedTwice;
        let resent = is_reported.then(|| self.judge_resent(number, packet, &mark, None));
        let path = self.direction_mut(number);
        path.tally.add(fate, 1, u64::from(segments));
        path.note_lost(fate, packet.frame);
        if let (Fate::Lost | Fate::Unseen, Some((apart_ns, pairs, epoch))) =
            (fate, mark.apart_before)
        {
            let a_ns = match side {
                Side::A => packet.time_ns,
                Side::B => packet.time_ns.wrapping_add(apart_ns),
            };
            path.delays_before_loss.add(a_ns, apart_ns, pairs, epoch);
        }
        let mut frames = [0; 2];
        let mut times_ns = [i64::MIN; 2];
        frames[side.index()] = packet.frame;
        times_ns[side.index()] = packet.time_ns;
        let row = R::WANTED.then(|| Row {
            connection: number / 2,
            direction: (number % 2) as u8,
            fate,
            frames,
            times_ns,
            seq: packet.seq,
            ack: packet.ack,
            payload_len: packet.payload_len,
            flags: packet.flags,
            is_resend: mark.is_resend,
            resent,
            pairs_before,
            epoch: self.direction(number).epoch,
        });
        let outcome = PacketOutcome {
            row,
            resent,
            has_arrived: false,
        };
        self.record_outcome(number, packet, &mark, outcome);
    }
}

/// Return whether a block is a DSACK: the first block, if it lies below the acknowledgment or within the second block
/// (RFC 2883 §4).
fn is_dsack(index: usize, block: (Seq, Seq), second: Option<(u32, u32)>, acked: Seq) -> bool {
    let is_within =
        |(left, right): (u32, u32)| !block.0.is_before(Seq(left)) && !block.1.is_after(Seq(right));
    index == 0 && (!acked.is_before(block.1) || second.is_some_and(is_within))
}

/// Return the bytes that an ACK reports as received twice.
fn duplicate_of(packet: &Sighting, acked: Seq) -> Option<(Seq, Seq)> {
    let blocks = packet.options.as_deref()?.sack_blocks();
    let first = blocks.first().map(|block| (Seq(block.0), Seq(block.1)))?;
    is_dsack(0, first, blocks.get(1).copied(), acked).then_some(first)
}
