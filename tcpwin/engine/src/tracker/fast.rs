//! The ordinary segment: in order, acknowledging what was sent, into an open window, with nothing unusual pending.
//!
//! Does what the full way does for such a segment and nothing else; declines everything that is not just that.

use crate::connection::state::Direction;
use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tracker::send::judge_edge;
use crate::window::receive::Advertisement;
use crate::wire::{Segment, ACK, FIN, RST, SYN};

/// Take the segment, or decline it before anything was changed.
#[inline]
pub fn take(sent: &mut Direction, acked: &mut Direction, segment: &Segment) -> Option<(Events, Option<u64>)> {
    let now_ns = segment.time_ns;
    let (seq, ack) = (Seq(segment.seq), Seq(segment.ack));
    let payload_len = segment.payload_len;
    let advance = acked.flight.una.to(ack);
    let bytes = u32::from(segment.window) << sent.own_shift;
    let is_ordinary = (segment.flags & (SYN | FIN | RST | ACK) == ACK)
        & sent.is_ordinary
        & acked.is_ordinary
        & (segment.options.sack_count == 0)
        & (sent.flight.nxt == seq)
        & (advance >= 0)
        & (ack.to(acked.flight.nxt) >= 0)
        & ((advance > 0) | (payload_len > 0))
        & (bytes > 0)
        & (bytes >= acked.segment_size());
    if !is_ordinary || sent.is_overtaken(segment.options.timestamps) {
        return None;
    }
    let mut events = 0;
    let mut rtt_ns = None;
    if advance > 0 {
        acked.flight.integrate(now_ns, true);
        acked.flight.una = ack;
        acked.acked_bytes += advance as u64;
        acked.last_ack_ns = now_ns;
        acked.duplicate_acks = 0;
        rtt_ns = acked.rtt.acked(ack, now_ns);
    }
    let advertised = acked.window.advertise(
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
    sent.segments += 1;
    if payload_len > 0 {
        let end = seq + payload_len;
        sent.flight.integrate(now_ns, true);
        sent.flight.nxt = end;
        sent.rtt.sent(end, now_ns);
        sent.flight.note_max();
        sent.note_payload(segment);
        events |= judge_edge(sent, segment, end);
    }
    sent.note_timestamps(segment.options.timestamps);
    sent.note_limit(now_ns, true);
    acked.note_limit(now_ns, true);
    Some((events, rtt_ns))
}
