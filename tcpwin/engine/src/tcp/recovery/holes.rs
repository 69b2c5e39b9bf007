//! Holes in the captured data, and whether the segment that fills one was late or retransmitted.

use crate::sequence::Seq;
use crate::wire::{Segment, NO_IP_ID};

/// Maximum number of holes; beyond it the oldest is forgotten.
const MAX_HOLES: usize = 64;
/// Without a measured round trip, a hole filled sooner than this is reordering (Wireshark's default threshold).
pub const REORDER_DEFAULT_NS: i64 = 3_000_000;
/// Maximum distance between IP identifications of the same counter.
const MAX_ID_STEP: i16 = 1024;

/// Sequence numbers that were skipped, and the segment that skipped them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    pub left: Seq,
    pub right: Seq,
    pub time_ns: i64,
    pub frame: u64,
    pub tsval: Option<u32>,
    ip_id: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Holes {
    holes: Vec<Hole>,
}

/// The evidence that a segment was late, not retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// By the capture's clock, it came first.
    CaptureOrder,
    Timestamp,
    Identification,
    Time,
}

impl Holes {
    pub fn open(&mut self, left: Seq, right: Seq, by: &Segment) {
        if self.holes.len() >= MAX_HOLES {
            self.holes.remove(0);
        }
        self.holes.push(Hole {
            left,
            right,
            time_ns: by.time_ns,
            frame: by.frame,
            tsval: by.options.timestamps.map(|(value, _)| value),
            ip_id: by.ip_id,
        });
    }

    /// Return the hole that a segment from `seq` on fills.
    pub fn at(&self, seq: Seq, end: Seq) -> Option<Hole> {
        let touches = |hole: &&Hole| seq.is_before(hole.right) && hole.left.is_before(end);
        self.holes.iter().find(touches).copied()
    }

    pub fn forget_below(&mut self, una: Seq) {
        self.holes.retain(|hole| una.is_before(hole.right));
    }

    pub fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }
}

/// Judge whether newly captured bytes were sent no later than the segment that overtook them, by timestamps first, then IP
/// identification, then time relative to the round trip (rule 6.2). None if they were retransmitted.
///
/// The same timestamp as that of the overtaking segment shows nothing, unless `newest_tsval` shows that the clock has
/// ticked since: a retransmission would then carry a newer timestamp.
pub fn lateness(
    hole: &Hole,
    segment: &Segment,
    newest_tsval: Option<u32>,
    round_trip_ns: Option<i64>,
    clock_ns: i64,
) -> Option<Lateness> {
    if clock_ns < hole.time_ns {
        return Some(Lateness::CaptureOrder);
    }
    let own_tsval = segment.options.timestamps.map(|(value, _)| value);
    if let (Some(own), Some(later)) = (own_tsval, hole.tsval) {
        if own != later {
            return (later.wrapping_sub(own) as i32 > 0).then_some(Lateness::Timestamp);
        }
        if newest_tsval.is_some_and(|newest| newest.wrapping_sub(own) as i32 > 0) {
            return Some(Lateness::Timestamp);
        }
    }
    if let Some(step) = identification_step(segment.ip_id, hole.ip_id) {
        return (step > 0).then_some(Lateness::Identification);
    }
    let within_ns = round_trip_ns.map_or(REORDER_DEFAULT_NS, |ns| ns.max(1));
    let filled_after_ns = segment.time_ns.saturating_sub(hole.time_ns);
    (filled_after_ns < within_ns).then_some(Lateness::Time)
}

/// Return how far one IP identification is ahead of another of the same counter.
fn identification_step(from: u32, to: u32) -> Option<i16> {
    if [from, to]
        .iter()
        .any(|id| *id == NO_IP_ID || *id == 0 || *id > 0xffff)
    {
        return None;
    }
    let step = (to as u16).wrapping_sub(from as u16) as i16;
    (step != 0 && step.unsigned_abs() <= MAX_ID_STEP.unsigned_abs()).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(time_ns: i64, tsval: Option<u32>, ip_id: u32) -> Segment {
        let mut segment = Segment {
            time_ns,
            ip_id,
            ..Segment::EMPTY
        };
        segment.options.timestamps = tsval.map(|value| (value, 0));
        segment
    }

    fn judged(opener: Segment, filler: Segment) -> Option<Lateness> {
        let mut holes = Holes::default();
        holes.open(Seq(1000), Seq(2000), &opener);
        let hole = holes.at(Seq(1000), Seq(2000)).unwrap();
        lateness(
            &hole,
            &filler,
            opener.options.timestamps.map(|(value, _)| value),
            Some(10_000_000),
            filler.time_ns,
        )
    }

    #[test]
    fn timestamps_then_identification_then_time() {
        let ms = 1_000_000;
        let open = |tsval, id| segment(100 * ms, tsval, id);
        let fill = |after: i64, tsval, id| segment((100 + after) * ms, tsval, id);
        assert_eq!(
            judged(open(Some(9), 5), fill(50, Some(8), 7)),
            Some(Lateness::Timestamp)
        );
        assert_eq!(judged(open(Some(9), 5), fill(1, Some(10), 4)), None);
        assert_eq!(
            judged(open(Some(9), 5), fill(50, Some(9), 4)),
            Some(Lateness::Identification)
        );
        assert_eq!(judged(open(None, 5), fill(1, None, 6)), None);
        assert_eq!(
            judged(open(None, 0), fill(1, None, 0)),
            Some(Lateness::Time)
        );
        assert_eq!(
            judged(open(None, 5), fill(1, None, 40_000)),
            Some(Lateness::Time)
        );
        assert_eq!(judged(open(None, NO_IP_ID), fill(10, None, NO_IP_ID)), None);
        assert_eq!(
            judged(open(None, 5), fill(-1, None, 6)),
            Some(Lateness::CaptureOrder)
        );
    }
}
