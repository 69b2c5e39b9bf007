//! Send times of the segments in flight, for the RTT of each ACK and the original of each retransmission.
//!
//! The oldest segment is stored inline. The others are behind a pointer, so that directions with a single segment in
//! flight need no allocation.

use crate::sequence::Seq;
use crate::tcp::path::pace::Pace;
use crate::tcp::timing::estimator::RttEstimator;
use crate::tcp::timing::sent::Sent;

/// `time_ns` of an empty slot.
const NONE: i64 = i64::MIN;
/// Empty slot among the samples that are stored before there is a [`Pace`].
const NO_SAMPLE: u32 = u32::MAX;

const NOTHING_SENT: Sent = Sent {
    time_ns: NONE,
    end: Seq(0),
    frame: 0,
};

#[derive(Clone, Debug)]
pub struct Ledger {
    first: Sent,
    least_ns: u64,
    store: Store,
}

/// Segments after the oldest, in the smallest representation that fits.
#[derive(Clone, Debug)]
enum Store {
    /// The first samples, in microseconds.
    Early([u32; 3]),
    Few(Box<Few>),
    Paced(Box<Pace>),
}

#[derive(Clone, Debug)]
struct Few {
    early_us: [u32; 3],
    /// How often the second segment in flight followed one below the MSS.
    tinygrams: u32,
    second: Sent,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            first: NOTHING_SENT,
            least_ns: u64::MAX,
            store: Store::Early([NO_SAMPLE; 3]),
        }
    }
}

/// How a segment in flight was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Plain,
    /// By SACK, before the cumulative ACK.
    Reported,
    /// It or an earlier segment was retransmitted or not captured.
    Doubtful,
}

/// Segments acknowledged by one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    pub oldest_ns: i64,
    pub newest_ns: i64,
}

/// The copy of retransmitted data whose timestamp an ACK echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echoed {
    pub sent_ns: i64,
    /// Whether no later copy can have triggered the ACK.
    pub is_certain: bool,
}

impl Ledger {
    /// Return the minimum time from a segment to its ACK.
    pub fn min_ns(&self) -> Option<u64> {
        (self.least_ns != u64::MAX).then_some(self.least_ns)
    }

    /// Return the send time of the oldest segment in flight.
    #[inline(always)]
    pub fn oldest_ns(&self) -> Option<i64> {
        (self.first.time_ns != NONE).then_some(self.first.time_ns)
    }

    /// Return [`Ledger::oldest_ns`], or `i64::MIN` if nothing is in flight.
    #[inline(always)]
    pub fn oldest_or_none_ns(&self) -> i64 {
        self.first.time_ns
    }

    /// Return [`Ledger::min_ns`], or `u64::MAX` without samples.
    #[inline(always)]
    pub fn least_or_none_ns(&self) -> u64 {
        self.least_ns
    }

    #[inline(always)]
    pub fn pace(&self) -> Option<&Pace> {
        match &self.store {
            Store::Paced(pace) => Some(pace),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn pace_mut(&mut self) -> Option<&mut Pace> {
        match &mut self.store {
            Store::Paced(pace) => Some(pace),
            _ => None,
        }
    }

    /// Count a second segment in flight after one below the MSS, unless a pace counts it.
    #[inline]
    pub fn note_tinygram(&mut self) {
        if let Store::Few(few) = &mut self.store {
            few.tinygrams = few.tinygrams.saturating_add(1);
        }
    }

    pub fn tinygrams(&self) -> u32 {
        match &self.store {
            Store::Early(_) => 0,
            Store::Few(few) => few.tinygrams,
            Store::Paced(pace) => pace.tinygrams,
        }
    }

    fn early(&self) -> impl Iterator<Item = u32> {
        let early_us = match &self.store {
            Store::Early(early_us) => *early_us,
            Store::Few(few) => few.early_us,
            Store::Paced(_) => [NO_SAMPLE; 3],
        };
        early_us.into_iter().filter(|us| *us != NO_SAMPLE)
    }

    pub fn samples(&self) -> u32 {
        match self.pace() {
            Some(pace) => pace.samples,
            None => self.early().count() as u32,
        }
    }

    /// Return the estimate from all samples so far.
    pub fn estimator(&self) -> RttEstimator {
        if let Some(pace) = self.pace() {
            return pace.estimator;
        }
        let mut estimator = RttEstimator::default();
        // With one segment in flight at a time, each ACK ends a round.
        for sample_us in self.early() {
            estimator.sample(sample_us, true);
        }
        estimator
    }

    pub fn rto_ns(&self, further_ns: i64) -> i64 {
        self.estimator().rto_ns(further_ns)
    }

    /// Return the pace, and create it if needed. The first round ends when more than `round_end` is acknowledged.
    #[cold]
    pub fn pace_from(&mut self, round_end: Seq) -> &mut Pace {
        if self.pace().is_none() {
            let mut pace = Pace::new(self.estimator(), self.samples(), round_end);
            if let Store::Few(few) = &self.store {
                if few.second.time_ns != NONE {
                    pace.push(few.second);
                }
                pace.tinygrams = few.tinygrams;
            }
            self.store = Store::Paced(Box::new(pace));
        }
        match &mut self.store {
            Store::Paced(pace) => pace,
            _ => unreachable!("just created"),
        }
    }

    /// Record new data up to `end`; `una` is SND.UNA. Returns the pace, if there is one.
    #[inline(always)]
    pub fn sent(&mut self, end: Seq, una: Seq, now_ns: i64, frame: u64) -> Option<&mut Pace> {
        let sent = Sent {
            time_ns: now_ns,
            end,
            frame: frame as u32,
        };
        let is_first = self.first.time_ns == NONE;
        if is_first {
            self.first = sent;
        } else if !matches!(self.store, Store::Paced(_)) {
            self.push_rarely(sent, una);
            return self.pace_mut();
        }
        let pace = self.pace_mut()?;
        if !is_first {
            pace.push(sent);
        }
        Some(pace)
    }

    fn push_rarely(&mut self, sent: Sent, una: Seq) {
        match &mut self.store {
            Store::Early(early_us) => {
                let early_us = *early_us;
                self.store = Store::Few(Box::new(Few {
                    early_us,
                    tinygrams: 0,
                    second: sent,
                }));
            }
            Store::Few(few) if few.second.time_ns == NONE => few.second = sent,
            _ => self.pace_from(una).push(sent),
        }
    }

    /// Remove the segment after the oldest.
    #[inline(always)]
    fn pop(&mut self) -> Option<Sent> {
        match &mut self.store {
            Store::Paced(pace) => pace.rest.pop_front(),
            Store::Few(few) => {
                let second = std::mem::replace(&mut few.second, NOTHING_SENT);
                (second.time_ns != NONE).then_some(second)
            }
            Store::Early(_) => None,
        }
    }

    /// Forget all segments in flight, because the copy that an ACK will acknowledge is ambiguous.
    pub fn forget(&mut self) {
        self.first.time_ns = NONE;
        match &mut self.store {
            Store::Early(_) => {}
            Store::Few(few) => few.second = NOTHING_SENT,
            Store::Paced(pace) => pace.rest.clear(),
        }
    }

    /// Shift all send times after the capture's clock was set forward.
    #[cold]
    pub fn step(&mut self, stepped_ns: i64) {
        let step = |sent: &mut Sent| {
            if sent.time_ns != NONE {
                sent.time_ns = sent.time_ns.saturating_add(stepped_ns);
            }
        };
        step(&mut self.first);
        match &mut self.store {
            Store::Early(_) => {}
            Store::Few(few) => step(&mut few.second),
            Store::Paced(pace) => pace.rest.iter_mut().for_each(step),
        }
    }

    /// Return whether no segment is in flight.
    pub fn is_empty(&self) -> bool {
        self.first.time_ns == NONE
    }

    /// Return whether each next segment must travel the full path, because of an idle gap or a delayed ACK.
    #[inline]
    pub fn is_followed(&self) -> bool {
        self.pace().is_some_and(Pace::is_followed)
    }

    /// Return the segment that holds the byte at `seq`, which must be in flight and captured in order.
    pub fn find(&self, seq: Seq) -> Option<Sent> {
        if self.first.time_ns == NONE {
            return None;
        }
        if seq.is_before(self.first.end) {
            return Some(self.first);
        }
        match &self.store {
            Store::Early(_) => None,
            Store::Few(few) => Some(few.second)
                .filter(|second| second.time_ns != NONE && seq.is_before(second.end)),
            Store::Paced(pace) => {
                let place = pace.rest.partition_point(|sent| !seq.is_before(sent.end));
                pace.rest.get(place).copied()
            }
        }
    }

    /// Remove the segments that `ack` covers; none may have been retransmitted or reported by SACK. A segment captured
    /// before segmentation offload counts as covered if at most `rest_bytes` of it are missing.
    #[inline(always)]
    pub fn cover_plain(&mut self, ack: Seq, rest_bytes: u32) -> Option<Covered> {
        let oldest = self.first;
        if oldest.time_ns == NONE {
            return None;
        }
        let mut newest_ns = oldest.time_ns;
        if oldest.end.is_after(ack) {
            if ack.to(oldest.end) as u32 > rest_bytes {
                return None;
            }
        } else {
            self.first.time_ns = NONE;
            while let Some(next) = self.pop() {
                if next.end.is_after(ack) {
                    self.first = next;
                    break;
                }
                newest_ns = next.time_ns;
            }
        }
        Some(Covered {
            oldest_ns: oldest.time_ns,
            newest_ns,
        })
    }

    /// Remove the segments that `ack` covers. Returns the send times of those that SACK had not reported, or None if
    /// any was retransmitted (Karn's algorithm, RFC 6298 §3; Linux `tcp_clean_rtx_queue`).
    #[cold]
    pub fn cover(
        &mut self,
        una: Seq,
        ack: Seq,
        rest_bytes: u32,
        arrival: impl Fn(Seq, Seq) -> Arrival,
    ) -> Option<Covered> {
        let mut covered: Option<Covered> = None;
        let mut is_doubtful = false;
        let mut start = una;
        let mut next = (self.first.time_ns != NONE).then_some(self.first);
        self.first.time_ns = NONE;
        while let Some(sent) = next {
            let is_whole = !sent.end.is_after(ack);
            let upto = if is_whole { sent.end } else { ack };
            let is_part = start.is_before(ack) && upto.to(sent.end) as u32 <= rest_bytes;
            if is_whole || is_part {
                match arrival(start, upto) {
                    Arrival::Reported => {}
                    Arrival::Doubtful => is_doubtful = true,
                    Arrival::Plain => {
                        let oldest_ns = covered.map_or(sent.time_ns, |covered| covered.oldest_ns);
                        covered = Some(Covered {
                            oldest_ns,
                            newest_ns: sent.time_ns,
                        });
                    }
                }
            } else if start.is_before(ack) && arrival(start, ack) == Arrival::Doubtful {
                is_doubtful = true;
            }
            if !is_whole {
                self.first = sent;
                break;
            }
            start = sent.end;
            next = self.pop();
        }
        if start.is_before(ack) && self.first.time_ns == NONE {
            is_doubtful |= arrival(start, ack) == Arrival::Doubtful;
        }
        covered.filter(|_| !is_doubtful)
    }

    /// Add the RTT sample of an ACK; `una` is the new SND.UNA.
    #[inline(always)]
    pub fn sample(&mut self, covered: Covered, una: Seq, now_ns: i64) -> Option<u64> {
        let sample_ns = u64::try_from(now_ns.saturating_sub(covered.oldest_ns)).ok()?;
        let newest_ns =
            u64::try_from(now_ns.saturating_sub(covered.newest_ns)).unwrap_or(sample_ns);
        self.least_ns = self.least_ns.min(newest_ns);
        self.estimate(sample_ns, una);
        Some(sample_ns)
    }

    #[inline(always)]
    pub fn estimate(&mut self, sample_ns: u64, una: Seq) {
        let sample_us = u32::try_from(sample_ns / 1000).unwrap_or(NO_SAMPLE - 1);
        match &mut self.store {
            Store::Paced(pace) => pace.sample(sample_us, una),
            _ => self.estimate_early(sample_us, una),
        }
    }

    /// Add the age of an echoed timestamp to the estimate only. It may not be a true RTT, but the sender uses it: Linux
    /// `tcp_ack_update_rtt` falls back to `tcp_rtt_tsopt_us` where Karn's algorithm forbids other samples.
    #[cold]
    pub fn estimate_only(&mut self, sent_ns: i64, una: Seq, now_ns: i64) {
        let sample_ns = now_ns.saturating_sub(sent_ns).max(0) as u64;
        let sample_us = u32::try_from(sample_ns / 1000).unwrap_or(NO_SAMPLE - 1);
        let pace = self.pace_from(una.minus(1));
        let is_round_over = pace.is_round_over(una);
        pace.estimator.sample(sample_us, is_round_over);
    }

    fn estimate_early(&mut self, sample_us: u32, una: Seq) {
        let early_us = match &mut self.store {
            Store::Early(early_us) => early_us,
            Store::Few(few) => &mut few.early_us,
            Store::Paced(_) => return,
        };
        match early_us.iter_mut().find(|us| **us == NO_SAMPLE) {
            Some(place) => *place = sample_us,
            None => self.pace_from(una.minus(1)).sample(sample_us, una),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(ledger: &mut Ledger, end: u32, now_ns: i64) {
        ledger.sent(Seq(end), Seq(0), now_ns, 7);
    }

    #[test]
    fn an_ack_is_timed_from_the_oldest_segment_it_covers() {
        let mut ledger = Ledger::default();
        for (end, now_ns) in [(100, 1_000), (200, 2_000), (300, 9_000)] {
            sent(&mut ledger, end, now_ns);
        }
        assert_eq!(ledger.cover_plain(Seq(50), 0), None);
        let covered = ledger.cover_plain(Seq(200), 0).unwrap();
        assert_eq!((covered.oldest_ns, covered.newest_ns), (1_000, 2_000));
        assert_eq!(ledger.sample(covered, Seq(200), 5_000), Some(4_000));
        assert_eq!((ledger.min_ns(), ledger.samples()), (Some(3_000), 1));
        assert_eq!(ledger.find(Seq(250)).unwrap().time_ns, 9_000);
        assert_eq!(ledger.find(Seq(300)), None);
        let last = ledger.cover_plain(Seq(300), 0).unwrap();
        assert_eq!(
            ledger.sample(last, Seq(300), 8_000),
            None,
            "time ran backwards"
        );
        assert!(ledger.is_empty());
    }

    #[test]
    fn a_super_segment_is_acknowledged_in_parts_and_a_far_one_not_yet() {
        let mut ledger = Ledger::default();
        sent(&mut ledger, 10_000, 1_000);
        assert_eq!(ledger.cover_plain(Seq(2_000), 4_000), None);
        assert_eq!(
            ledger.cover_plain(Seq(7_000), 4_000).unwrap().oldest_ns,
            1_000
        );
        assert!(!ledger.is_empty());
    }

    #[test]
    fn karn_holds_and_sacked_segments_do_not_count() {
        let arrival = |doubtful: (u32, u32), reported: (u32, u32)| {
            move |start: Seq, end: Seq| {
                let overlaps = |range: (u32, u32)| start.0 < range.1 && range.0 < end.0;
                if overlaps(doubtful) {
                    Arrival::Doubtful
                } else if overlaps(reported) {
                    Arrival::Reported
                } else {
                    Arrival::Plain
                }
            }
        };
        let filled = || {
            let mut ledger = Ledger::default();
            for (end, now_ns) in [(100, 1_000), (200, 2_000), (300, 3_000)] {
                sent(&mut ledger, end, now_ns);
            }
            ledger
        };
        let cover = |ack, doubtful, reported| {
            filled().cover(Seq(0), Seq(ack), 0, arrival(doubtful, reported))
        };
        assert_eq!(cover(300, (100, 200), (0, 0)), None, "retransmitted");
        assert_eq!(cover(300, (0, 0), (0, 100)).unwrap().oldest_ns, 2_000);
        assert_eq!(cover(200, (0, 0), (0, 200)), None, "all reported before");
        assert_eq!(cover(200, (200, 300), (0, 0)).unwrap().newest_ns, 2_000);
    }

    #[test]
    fn a_frame_number_is_whole_again() {
        let sent = Sent {
            time_ns: 0,
            end: Seq(0),
            frame: u32::MAX - 1,
        };
        assert_eq!(sent.frame((1 << 32) + 5), Some(u64::from(u32::MAX) - 1));
    }
}
