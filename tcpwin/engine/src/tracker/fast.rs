//! The ordinary segment: in order, acknowledging what was sent, into an open window, with nothing unusual pending.
//!
//! Does what the full way does for such a segment and nothing else; declines everything that is not just that.

use crate::connection::state::Direction;
use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tracker::send::judge_edge;
use crate::window::receive::Advertisement;
use crate::wire::{capture_flag, Segment, ACK, FIN, RST, SYN};

/// Take the segment, or decline it before anything was changed. Both directions must be ordinary
/// ([`Direction::is_ordinary`]) and their limits noted.
#[inline(always)]
pub fn take(
    sent: &mut Direction,
    acked: &mut Direction,
    segment: &Segment,
) -> Option<(Events, Option<u64>)> {
    let now_ns = segment.time_ns;
    let (seq, ack) = (Seq(segment.seq), Seq(segment.ack));
    let payload_len = segment.payload_len;
    let timestamps = segment.options.timestamps;
    let tsval = timestamps.map_or(sent.tsval, |(value, _)| value);
    let advance = acked.flight.una.to(ack);
    let bytes = u32::from(segment.window) << sent.own_shift;
    let segment_size = acked.segment_size();
    // Zero and signs of several numbers at once: one branch each, where a chain of comparisons would cost many.
    let differs = u32::from(segment.flags & (SYN | FIN | RST | ACK) ^ ACK)
        | u32::from(segment.capture_flags & capture_flag::OPTIONS_CUT)
        | u32::from(segment.options.sack_count)
        | (sent.flight.nxt.0 ^ seq.0)
        | u32::from(sent.has_tsval != timestamps.is_some());
    let turns_back = advance | ack.to(acked.flight.nxt) | Seq(sent.tsval).to(Seq(tsval));
    let brings = advance as u32 | payload_len;
    if differs != 0 || turns_back < 0 || brings == 0 || bytes < segment_size.max(1) {
        return None;
    }
    let mut events = 0;
    let mut rtt_ns = None;
    if advance > 0 {
        acked.flight.pass_time(now_ns, acked.flight.span());
        acked.flight.una = ack;
        acked.acked_bytes += advance as u64;
        acked.last_ack_ns = now_ns;
        acked.duplicate_acks = 0;
        rtt_ns = acked.rtt.acked(ack, now_ns);
    }
    let advertised = acked.window.renew(
        now_ns,
        &Advertisement {
            seq,
            ack,
            bytes,
            unit_bytes: 1 << sent.own_shift,
            is_new_ack: advance > 0,
            is_stale: false,
        },
    );
    acked.window.last_raw = segment.window;
    if advertised.shrink_bytes > 0 {
        events |= event::WINDOW_SHRINK;
    }
    acked.note_open_limit(now_ns);
    sent.tsval = tsval;
    sent.segments += 1;
    if payload_len > 0 {
        let end = seq + payload_len;
        sent.flight.pass_time(now_ns, sent.flight.span());
        sent.flight.nxt = end;
        sent.flight.max_bytes = sent.flight.max_bytes.max(sent.flight.span());
        sent.rtt.sent(end, now_ns);
        sent.note_payload(segment);
        events |= judge_edge(sent, segment, end);
        sent.note_open_limit(now_ns);
    }
    Some((events, rtt_ns))
}
