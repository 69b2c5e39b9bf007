//! A segment as data: SND.MAX, gaps, the window's right edge.
//!
//! [`crate::tcp::tracker::retransmission`] takes segments that begin below SND.MAX.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::tracker::probe::{is_probe, take_probe};
use crate::tcp::tracker::retransmission::{on_segment_below_nxt, SegmentBelowNxt};
use crate::tcp::tracker::sender::judge_edge;
use crate::tcp::window::flight::Unknown;
use crate::tcp::window::zero::EndedBy;
use crate::wire::{Segment, FIN};

/// Distance from SND.MAX beyond any window (RFC 7323 §2.3): such a segment is outside the connection's sequence space.
pub(super) const MAX_JUMP: u32 = 1 << 30;

/// Process the sequence space of a segment without SYN and RST. `peer` is the other direction.
#[inline]
pub fn take(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    handshake_rtt_ns: Option<i64>,
    evidence: &mut Option<Evidence>,
) -> Events {
    let is_scale_certain = peer.own_scale.is_certain();
    let now_ns = segment.time_ns;
    let seq = Seq(segment.seq);
    let length = segment.sequence_length();
    if !sent.flight.is_started {
        sent.flight.start(seq, now_ns);
        sent.flight.is_started = true;
    }
    if !sent.has_syn && sent.segments == 1 {
        sent.isn = seq.minus(1);
    }
    if !sent.has_syn && !sent.is_seen {
        note_before(sent, seq);
    }
    let ahead = sent.flight.nxt.to(seq);
    let mut events = 0;
    let is_beyond_all = ahead.unsigned_abs() > MAX_JUMP && (ahead < 0 || !sent.is_seen);
    // A side's first segment sets its sequence number.
    let may_be_other = ahead > 0 && sent.is_seen;
    if is_beyond_all || (may_be_other && sent.doubts_data(segment, is_scale_certain)) {
        return events;
    }
    if sent.flight.nxt.to(seq) != ahead && sent.is_seen {
        // The preceding segment was ignored, and belongs after the missing data.
        events |= event::PREVIOUS_SEGMENT_MISSING;
    }
    let ahead = sent.flight.nxt.to(seq);
    if sent.flight.unknown == Unknown::Max && ahead >= 0 {
        // Acknowledged but uncaptured data is missing before this segment, which reveals SND.MAX.
        sent.flight.integrate(now_ns, false);
        sent.flight.unknown = Unknown::Neither;
        events |= event::PREVIOUS_SEGMENT_MISSING;
    }
    if ahead == 0 && length == 0 {
        // It carries an ACK, so its own SYN was answered, even if the capture lacks the answer.
        sent.has_only_syn &= sent.syn.has_early_data();
        return events;
    }
    let end = seq + length;
    let is_known = sent.is_flight_known();
    if segment.flags & FIN != 0 && !sent.has_fin() {
        sent.flight.integrate(now_ns, is_known);
        sent.send_fin(end);
        sent.flight.control += 1;
    }
    sent.has_only_syn &= sent.syn.has_early_data();
    if ahead == 0 {
        if is_probe(sent, segment) {
            return events | take_probe(sent, segment, end);
        }
        events |= sent.send(peer, segment, end, is_known);
    } else if ahead > 0 {
        events |= take_gap(sent, peer, segment, seq, end);
    } else {
        let below = SegmentBelowNxt {
            seq,
            end,
            handshake_rtt_ns,
        };
        let (found, is_new) = on_segment_below_nxt(sent, peer, segment, &below, evidence);
        events |= found;
        if !is_new {
            return events;
        }
    }
    if segment.payload_len > 0 {
        if is_scale_certain && sent.window.is_known {
            events |= judge_edge(sent, segment, end);
        } else {
            end_zero_by_data(sent, peer, segment, seq);
            if let Some(inference) = sent
                .cold_state
                .as_mut()
                .and_then(|cold_state| cold_state.inference.as_mut())
            {
                inference.send(segment.frame, end);
            }
        }
    }
    events
}

/// End a zero window at data beyond its edge, sent too late to have been in flight: the capture lacks the update. A closed
/// window has the same edge at every scale.
#[inline]
fn end_zero_by_data(sent: &mut Direction, peer: &Direction, segment: &Segment, seq: Seq) {
    let Some(cold_state) = &mut sent.cold_state else {
        return;
    };
    let zero = cold_state.zero.as_ref().and_then(|zero| zero.current());
    let (Some(zero), 2..) = (zero, segment.payload_len) else {
        return;
    };
    let since_ns = segment.time_ns.saturating_sub(zero.start_ns);
    let legs_ns = [sent.ledger.min_ns(), peer.ledger.min_ns()];
    let round_trip_ns = legs_ns.into_iter().flatten().sum::<u64>();
    if !seq.is_before(sent.window.edge) && since_ns > 2 * round_trip_ns as i64 {
        cold_state.end_zero(segment.frame, segment.time_ns, EndedBy::Data);
    }
}

/// Note the data before the first segment of a side without a captured SYN: bytes already acknowledged, and bytes between
/// those and this segment, are missing from the capture.
fn note_before(sent: &mut Direction, seq: Seq) {
    let ahead = i64::from(sent.flight.una.to(seq));
    let acked_bytes = sent.acked_bytes;
    if sent.flight.is_acked && ahead.unsigned_abs() > u64::from(MAX_JUMP) {
        // Its sequence number is unrelated: the capture need not hold any of the acknowledged data.
        if acked_bytes > 0 {
            sent.cold_state().before_bytes = acked_bytes;
        }
    } else if sent.flight.is_acked {
        let before = acked_bytes.saturating_add_signed(ahead);
        if before > 0 {
            sent.cold_state().before_bytes = before;
        }
        if ahead < 0 && acked_bytes > before {
            // Their ACKs were captured first.
            let una = sent.flight.una;
            let left = una.minus((acked_bytes - before) as u32);
            sent.cold_state().missed.note(left, una, acked_bytes);
        }
    }
}

/// Note skipped sequence numbers: bytes lost before or by the capture, or still to come.
#[cold]
fn take_gap(
    sent: &mut Direction,
    peer: &Direction,
    segment: &Segment,
    seq: Seq,
    end: Seq,
) -> Events {
    let (from, is_known) = (sent.flight.nxt, sent.is_flight_known());
    let events = sent.send(peer, segment, end, is_known);
    if !sent.is_seen {
        return events;
    }
    let cold_state = sent.cold_state();
    // Before any captured data: bytes before this segment have been carried by now.
    cold_state.unseen_since_ns.get_or_insert(segment.time_ns);
    cold_state.unseen.insert(from, seq);
    cold_state.holes.open(from, seq, segment);
    events | event::PREVIOUS_SEGMENT_MISSING
}
