//! Zero-window probes and keep-alives.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::wire::{Segment, FIN};

/// Later than this after the window closed, a first zero-length segment at SND.UNA − 1 is a keep-alive: probes begin
/// within TCP_RTO_MAX (include/net/tcp.h).
const PROBE_WITHIN_NS: i64 = 120_000_000_000;

#[inline]
pub(super) fn is_probe(sent: &Direction, segment: &Segment) -> bool {
    segment.payload_len == 1
        && sent.window.is_known
        && sent.window.bytes == 0
        && segment.flags & FIN == 0
}

/// Process one byte sent into a closed window (RFC 9293 §3.8.6.1). It counts as sent, though it will be retransmitted.
#[cold]
pub(super) fn take_probe(sent: &mut Direction, segment: &Segment, end: Seq) -> Events {
    let is_resent = sent.send_probe(segment, end);
    let cold_state = sent.cold_state();
    cold_state.resent_bytes += u64::from(is_resent);
    cold_state.probe_end = Some(end);
    cold_state.zero().probe(segment.time_ns);
    event::ZERO_WINDOW_PROBE
}

/// Process a keep-alive, or a probe of the same form sent before the sender knew that the window had opened.
pub(super) fn take_keep_alive(
    sent: &mut Direction,
    segment: &Segment,
    handshake_rtt_ns: Option<i64>,
) -> Events {
    let cold_state = sent.cold_state();
    let tsecr = segment.options.timestamps.map(|(_, echo)| echo);
    match &mut cold_state.zero {
        Some(zero) if zero.is_crossing(segment.time_ns, tsecr, handshake_rtt_ns) => {
            zero.probe_crossing();
            event::ZERO_WINDOW_PROBE
        }
        _ => {
            cold_state.is_keep_alive_unanswered = true;
            event::KEEP_ALIVE
        }
    }
}

/// Return whether the closed window went unprobed for so long that no probe timer can be running.
pub(super) fn is_too_late(sent: &Direction, now_ns: i64) -> bool {
    let episode = sent
        .cold_state
        .as_ref()
        .and_then(|cold_state| cold_state.zero.as_ref()?.current());
    episode.is_some_and(|episode| {
        episode.probes == 0 && now_ns.saturating_sub(episode.start_ns) > PROBE_WITHIN_NS
    })
}
