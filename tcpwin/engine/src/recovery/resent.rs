//! Data below SND.MAX: out of order, or sent again, and by what evidence.
//!
//! Bytes that were never captured can only be late; bytes seen before were sent again, whatever the timing says.

use crate::event::{self, Events};
use crate::recovery::ranges::RangeSet;
use crate::sequence::Seq;

/// Without a handshake to measure, a gap filled sooner than this is reordering (Wireshark's default threshold).
const REORDER_DEFAULT_NS: i64 = 3_000_000;

/// What is known when a segment arrives whose sequence number is below SND.MAX.
pub struct Resent<'a> {
    pub seq: Seq,
    pub end: Seq,
    pub una: Seq,
    pub now_ns: i64,
    pub tsval: Option<u32>,
    /// Sequence ranges below SND.MAX that were never captured.
    pub unseen: &'a RangeSet,
    /// Ranges above SND.UNA that the receiver reported as received.
    pub sacked: &'a RangeSet,
    /// When the newest hole opened, and the timestamp of the segment that opened it.
    pub gap_ns: i64,
    pub gap_tsval: Option<u32>,
    pub duplicate_acks: u16,
    pub mss: u32,
    pub handshake_rtt_ns: Option<i64>,
}

/// Name the cause, as far as the packets so far tell it.
pub fn judge(resent: &Resent<'_>) -> Events {
    let length = resent.seq.to(resent.end).max(0) as u32;
    let never_seen = resent.unseen.overlap(resent.seq, resent.end);
    if !resent.end.is_after(resent.una) {
        return event::SPURIOUS_RETRANSMISSION;
    }
    if never_seen == length && is_late(resent) {
        return event::OUT_OF_ORDER;
    }
    let sacked_above = resent
        .sacked
        .iter()
        .filter(|range| range.0.is_after(resent.seq))
        .fold(0u32, |sum, range| {
            sum.saturating_add(range.0.to(range.1).max(0) as u32)
        });
    // RFC 5681 §3.2: three duplicate ACKs; RFC 6675 §4: three segments' worth SACKed above it.
    let by_duplicates = resent.duplicate_acks >= 3 && resent.seq == resent.una;
    if by_duplicates || (resent.mss > 0 && sacked_above >= 3 * resent.mss) {
        event::FAST_RETRANSMISSION
    } else {
        event::RETRANSMISSION
    }
}

/// Whether bytes never captured before come late by reordering: sent no later than what overtook them.
fn is_late(resent: &Resent<'_>) -> bool {
    match (resent.tsval, resent.gap_tsval) {
        (Some(own), Some(later)) if own != later => (later.wrapping_sub(own) as i32) > 0,
        _ => {
            let threshold_ns = resent.handshake_rtt_ns.unwrap_or(REORDER_DEFAULT_NS);
            resent.now_ns.saturating_sub(resent.gap_ns) < threshold_ns
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case<'a>(unseen: &'a RangeSet, sacked: &'a RangeSet) -> Resent<'a> {
        Resent {
            seq: Seq(1000),
            end: Seq(2000),
            una: Seq(1000),
            now_ns: 50_000_000,
            tsval: None,
            unseen,
            sacked,
            gap_ns: 49_000_000,
            gap_tsval: None,
            duplicate_acks: 0,
            mss: 1000,
            handshake_rtt_ns: Some(10_000_000),
        }
    }

    #[test]
    fn bytes_seen_before_were_sent_again_however_soon() {
        let none = RangeSet::default();
        assert_eq!(judge(&case(&none, &none)), event::RETRANSMISSION);
        assert_eq!(
            judge(&Resent {
                una: Seq(2000),
                ..case(&none, &none)
            }),
            event::SPURIOUS_RETRANSMISSION
        );
        assert_eq!(
            judge(&Resent {
                duplicate_acks: 3,
                ..case(&none, &none)
            }),
            event::FAST_RETRANSMISSION
        );
    }

    #[test]
    fn a_hole_filled_soon_is_reordering_unless_timestamps_say_otherwise() {
        let none = RangeSet::default();
        let mut hole = RangeSet::default();
        hole.insert(Seq(1000), Seq(2000));
        assert_eq!(judge(&case(&hole, &none)), event::OUT_OF_ORDER);
        assert_eq!(
            judge(&Resent {
                gap_ns: 0,
                ..case(&hole, &none)
            }),
            event::RETRANSMISSION
        );
        let later = Resent {
            gap_ns: 0,
            tsval: Some(9),
            gap_tsval: Some(10),
            ..case(&hole, &none)
        };
        assert_eq!(judge(&later), event::OUT_OF_ORDER);
        let newer = Resent {
            tsval: Some(12),
            gap_tsval: Some(10),
            ..case(&hole, &none)
        };
        assert_eq!(judge(&newer), event::RETRANSMISSION);
    }

    #[test]
    fn three_segments_sacked_above_are_evidence() {
        let none = RangeSet::default();
        let mut sacked = RangeSet::default();
        sacked.insert(Seq(3000), Seq(6000));
        assert_eq!(judge(&case(&none, &sacked)), event::FAST_RETRANSMISSION);
    }
}
