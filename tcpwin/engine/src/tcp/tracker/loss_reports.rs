//! Reports of loss (duplicate ACKs, SACK) by the time they reached the sender, wherever the capture was made.

use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::tcp::recovery::resent::DUPLICATE_THRESHOLD;

/// Reports of loss that had reached the sender when it sent the segment.
pub(super) struct LossReports {
    pub duplicate_acks: u32,
    pub sacked_above: u32,
    pub sacked_ranges: u32,
    /// The capture holds enough reports for a repair, wherever they were by then.
    pub are_enough: bool,
}

/// Return true if the reaction to an ACK captured at `time_ns` may show by now: one round trip to the sender later.
pub(super) fn has_reached(time_ns: i64, rtt_to_sender_ns: i64, now_ns: i64) -> bool {
    time_ns.saturating_add(rtt_to_sender_ns / 5 * 4) <= now_ns
}

/// Return the reports of loss above `seq` that the sender can have received by `now_ns`.
pub(super) fn loss_reports_at_sender(
    sent: &Direction,
    seq: Seq,
    rtt_to_sender_ns: i64,
    now_ns: i64,
) -> LossReports {
    let cold_state = sent.cold_state.as_deref();
    let mut reported = LossReports {
        duplicate_acks: u32::from(sent.duplicate_acks),
        sacked_above: 0,
        sacked_ranges: 0,
        are_enough: false,
    };
    let ranges = cold_state
        .into_iter()
        .flat_map(|cold_state| cold_state.sacked.iter());
    for (left, right) in ranges.filter(|range| range.0.is_after(seq)) {
        let bytes = left.to(right).max(0) as u32;
        reported.sacked_above = reported.sacked_above.saturating_add(bytes);
        reported.sacked_ranges += 1;
    }
    reported.are_enough = reported.duplicate_acks >= DUPLICATE_THRESHOLD
        || reported.sacked_ranges >= DUPLICATE_THRESHOLD
        || reported.sacked_above > (DUPLICATE_THRESHOLD - 1) * sent.segment_size();
    let first_report = cold_state.and_then(|cold_state| cold_state.loss_report);
    if first_report.is_some_and(|(time_ns, _)| has_reached(time_ns, rtt_to_sender_ns, now_ns)) {
        return reported;
    }
    let is_first_on_the_way = cold_state
        .and_then(|cold_state| cold_state.first_report_ns)
        .is_some_and(|time_ns| !has_reached(time_ns, rtt_to_sender_ns, now_ns));
    if is_first_on_the_way {
        return LossReports {
            duplicate_acks: 0,
            sacked_above: 0,
            sacked_ranges: 0,
            ..reported
        };
    }
    // Still on the way: the sender did not yet know enough to start a repair.
    LossReports {
        duplicate_acks: reported.duplicate_acks.min(2),
        sacked_above: reported.sacked_above.min(sent.segment_size()),
        sacked_ranges: reported.sacked_ranges.min(1),
        ..reported
    }
}
