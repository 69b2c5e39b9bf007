//! A segment as data: SND.MAX, gaps, data sent again, probes and keep-alives, the window's right edge.

use crate::connection::state::Direction;
use crate::event::{self, Events};
use crate::recovery::resent::{judge, Resent};
use crate::sequence::Seq;
use crate::tracker::sequence_length;
use crate::wire::{Segment, FIN};

/// Further from SND.MAX than any window reaches (RFC 7323 §2.3): no segment of this connection's sequence space.
const MAX_JUMP: u32 = 1 << 30;
/// Later than this after the window closed, a first zero-length segment at SND.UNA − 1 is a keep-alive: probes begin
/// within TCP_RTO_MAX (include/net/tcp.h).
const PROBE_WITHIN_NS: i64 = 120_000_000_000;
/// Options that a sender may leave out make room for as much payload.
const MSS_SLACK_BYTES: u32 = 12;

/// Take in the sequence space of a segment without SYN and RST. `is_scale_certain` says whether the window that limits
/// this direction is known in bytes.
#[inline]
pub fn take(
    sent: &mut Direction,
    segment: &Segment,
    is_scale_certain: bool,
    handshake_rtt_ns: Option<i64>,
) -> Events {
    let now_ns = segment.time_ns;
    let seq = Seq(segment.seq);
    let length = sequence_length(segment);
    if !sent.is_started {
        sent.flight.start(seq, now_ns);
        sent.is_started = true;
    }
    if !sent.has_syn && sent.segments == 1 {
        sent.isn = seq.minus(1);
    }
    let ahead = sent.flight.nxt.to(seq);
    let mut events = 0;
    if sent.is_flight_lost && ahead >= 0 {
        // What was acknowledged unseen is missing before this segment, which shows SND.MAX again.
        sent.flight.integrate(now_ns, false);
        sent.is_flight_lost = false;
        events |= event::PREVIOUS_SEGMENT_MISSING;
    }
    if ahead == 0 && length == 0 {
        return events;
    }
    if ahead.unsigned_abs() > MAX_JUMP {
        return events;
    }
    let end = seq + length;
    let is_known = sent.is_flight_known();
    if segment.flags & FIN != 0 && !sent.has_fin {
        sent.flight.integrate(now_ns, is_known);
        sent.has_fin = true;
        sent.fin_end = end;
        sent.flight.control += 1;
    }
    sent.has_only_syn &= sent.syn.has_early_data;
    if ahead == 0 {
        if is_probe(sent, segment) {
            return events | take_probe(sent, segment, end);
        }
        sent.flight.integrate(now_ns, is_known);
        sent.flight.nxt = end;
        sent.rtt.sent(end, now_ns);
    } else if ahead > 0 {
        events |= take_gap(sent, segment, seq, end);
    } else {
        let (found, is_new) = take_below(sent, segment, seq, end, handshake_rtt_ns);
        events |= found;
        if !is_new {
            return events;
        }
    }
    sent.flight.note_max();
    if segment.payload_len > 0 {
        sent.note_payload(segment);
        if is_scale_certain && sent.window.is_known {
            events |= judge_edge(sent, segment, end);
        } else if let Some(inference) = sent.cold.as_mut().and_then(|cold| cold.inference.as_mut())
        {
            inference.send(segment.frame, end);
        }
    }
    events
}

/// The segment's end against the right edge: exactly there, less than a segment short of it, or beyond every edge.
#[inline]
pub fn judge_edge(sent: &mut Direction, segment: &Segment, end: Seq) -> Events {
    let room = end.to(sent.window.edge);
    if room >= sent.segment_size() as i32 {
        return 0;
    }
    judge_near_edge(sent, segment, end, room)
}

#[cold]
fn judge_near_edge(sent: &mut Direction, segment: &Segment, end: Seq, room: i32) -> Events {
    if segment.flags & FIN != 0 {
        return 0;
    }
    if room == 0 {
        return event::WINDOW_FULL;
    }
    if room > 0 {
        sent.cold().window_near_full += 1;
    } else if end.is_after(sent.window.edge_max) {
        sent.cold().window_overrun += 1;
    }
    0
}

/// Sequence numbers were skipped: bytes that the capture does not hold, lost before it or by it, or still to come.
#[cold]
fn take_gap(sent: &mut Direction, segment: &Segment, seq: Seq, end: Seq) -> Events {
    let is_known = sent.is_flight_known();
    sent.flight.integrate(segment.time_ns, is_known);
    let from = sent.flight.nxt;
    sent.flight.nxt = end;
    sent.rtt.cancel();
    if !sent.is_seen {
        return 0;
    }
    let cold = sent.cold();
    cold.unseen.insert(from, seq);
    cold.gap_ns = segment.time_ns;
    cold.gap_tsval = segment.options.timestamps.map(|(value, _)| value);
    event::PREVIOUS_SEGMENT_MISSING
}

#[inline]
fn is_probe(sent: &Direction, segment: &Segment) -> bool {
    segment.payload_len == 1
        && sent.window.is_known
        && sent.window.bytes == 0
        && segment.flags & FIN == 0
}

/// One byte into a closed window (RFC 9293 §3.8.6.1). The byte counts as sent, though it will be sent again.
#[cold]
fn take_probe(sent: &mut Direction, segment: &Segment, end: Seq) -> Events {
    let is_known = sent.is_flight_known();
    sent.flight.integrate(segment.time_ns, is_known);
    let is_again = !sent.flight.nxt.is_before(end);
    sent.flight.nxt = sent.flight.nxt.max(end);
    sent.flight.note_max();
    sent.note_payload(segment);
    let cold = sent.cold();
    cold.resent_bytes += u64::from(is_again);
    cold.probe_end = Some(end);
    cold.zero().probe(segment.time_ns);
    event::ZERO_WINDOW_PROBE
}

/// A keep-alive, or a probe of the same form that was sent before the sender knew of the open window.
fn take_keep_alive(
    sent: &mut Direction,
    segment: &Segment,
    handshake_rtt_ns: Option<i64>,
) -> Events {
    let cold = sent.cold();
    let tsecr = segment.options.timestamps.map(|(_, echo)| echo);
    match &mut cold.zero {
        Some(zero) if zero.is_crossing(segment.time_ns, tsecr, handshake_rtt_ns) => {
            zero.probe_crossing();
            event::ZERO_WINDOW_PROBE
        }
        _ => {
            cold.is_keep_alive_unanswered = true;
            event::KEEP_ALIVE
        }
    }
}

/// Whether the closed window went unprobed for so long that no probe timer can be running.
fn is_too_late(sent: &Direction, now_ns: i64) -> bool {
    let episode = sent
        .cold
        .as_ref()
        .and_then(|cold| cold.zero.as_ref()?.current());
    episode.is_some_and(|episode| {
        episode.probes == 0 && now_ns.saturating_sub(episode.start_ns) > PROBE_WITHIN_NS
    })
}

/// A segment that begins below SND.MAX. Returns its events and whether it carries data to be counted.
#[cold]
fn take_below(
    sent: &mut Direction,
    segment: &Segment,
    seq: Seq,
    end: Seq,
    handshake_rtt_ns: Option<i64>,
) -> (Events, bool) {
    let now_ns = segment.time_ns;
    let (una, nxt) = (sent.flight.una, sent.flight.nxt);
    let is_outstanding = sent.flight.is_outstanding();
    let is_closed = sent.window.is_known && sent.window.bytes == 0;
    let is_plain = segment.flags & FIN == 0;
    if segment.payload_len == 0 && is_plain {
        if seq + 1 == una && is_closed && !is_too_late(sent, now_ns) {
            sent.cold().zero().probe(now_ns);
            return (event::ZERO_WINDOW_PROBE, false);
        }
        if seq + 1 == nxt && !is_outstanding && sent.is_acked {
            return (take_keep_alive(sent, segment, handshake_rtt_ns), false);
        }
        return (0, false);
    }
    let probe_end = sent.cold.as_ref().and_then(|cold| cold.probe_end);
    if segment.payload_len == 1 && is_plain && is_closed && seq == una && probe_end == Some(end) {
        return (take_probe(sent, segment, end), false);
    }
    if segment.payload_len == 1
        && is_plain
        && seq + 1 == nxt
        && !is_outstanding
        && sent.is_acked
        && !is_closed
    {
        sent.cold().is_keep_alive_unanswered = true;
        return (event::KEEP_ALIVE, false);
    }
    let is_known = sent.is_flight_known();
    sent.flight.integrate(now_ns, is_known);
    if probe_end == Some(nxt) && seq + 1 == nxt && nxt.is_before(end) {
        // The probe's byte, now with what follows it.
        let cold = sent.cold();
        cold.probe_end = None;
        cold.resent_bytes += 1;
        sent.flight.nxt = end;
        sent.rtt.sent(end, now_ns);
        return (0, true);
    }
    sent.rtt.cancel();
    let (mss, duplicate_acks) = (sent.segment_size(), sent.duplicate_acks);
    let cold = sent.cold();
    let old_end = if end.is_before(nxt) { end } else { nxt };
    let mut events = judge(&Resent {
        seq,
        end: old_end,
        una,
        now_ns,
        tsval: segment.options.timestamps.map(|(value, _)| value),
        unseen: &cold.unseen,
        sacked: &cold.sacked,
        gap_ns: cold.gap_ns,
        gap_tsval: cold.gap_tsval,
        duplicate_acks,
        mss,
        handshake_rtt_ns,
    });
    let filled = cold.unseen.remove(seq, old_end);
    let again = (seq.to(old_end).max(0) as u32).saturating_sub(filled);
    if events & event::RESENT != 0 {
        cold.resent_segments = cold.resent_segments.saturating_add(1);
        cold.resent_bytes += u64::from(again.min(segment.payload_len));
        // Linux resends what is outstanding instead of probing when the window closed upon it (`tcp_retransmit_timer`).
        if is_closed && seq == una && is_outstanding {
            cold.zero().probe(now_ns);
            events |= event::ZERO_WINDOW_PROBE;
        }
    }
    sent.flight.nxt = nxt.max(end);
    (events, true)
}

impl Direction {
    #[inline]
    pub fn note_payload(&mut self, segment: &Segment) {
        if self.data_segments == 0 {
            self.first_data_ns = segment.time_ns;
        }
        self.data_segments += 1;
        self.payload_bytes += u64::from(segment.payload_len);
        self.max_payload = self.max_payload.max(segment.payload_len);
        self.last_data_ns = segment.time_ns;
        if self.mss > 0 && segment.payload_len > u32::from(self.mss) + MSS_SLACK_BYTES {
            self.cold().super_segments += 1;
        }
    }
}
