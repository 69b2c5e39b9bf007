//! Detects a capture clock that was set forward: during a silence it advanced more than the sender's clock.
//!
//! In: a segment, and its sender's timestamps so far. Out: the part of the silence that only the capture's clock measured.
//! Detects nothing without timestamps.

use crate::tcp::connection::clock::LEAST_STEP_NS;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::state::Connection;
use crate::wire::Segment;

/// Tick of the slowest timestamp clock (RFC 7323 §5.4: 1 ms to 1 s).
const SLOWEST_TICK_NS: i64 = 1_000_000_000;
/// Ticks and time since the SYN that suffice to measure a tick.
const TELLING_TICKS: i64 = 10;
const TELLING_NS: i64 = 50_000_000;

/// Return the part of the silence from `before_ns` to this segment that its sender's timestamps do not account for.
#[cold]
pub fn stepped_ns(
    connection: &Connection,
    side: usize,
    segment: &Segment,
    before_ns: i64,
) -> Option<i64> {
    let silence_ns = segment.time_ns.saturating_sub(before_ns);
    let sent = &connection.directions[side];
    let (tsval, _) = segment.options.timestamps?;
    if silence_ns < LEAST_STEP_NS || !sent.has_tsval {
        return None;
    }
    let ticks = i64::from(tsval.wrapping_sub(sent.tsval) as i32);
    let tick_ns = match tick_ns(connection, sent, before_ns) {
        Some(tick_ns) => tick_ns,
        // A stopped clock shows nothing.
        None if ticks > 0 => SLOWEST_TICK_NS,
        None => return None,
    };
    let passed_ns = ticks.saturating_add(1).saturating_mul(tick_ns);
    (ticks >= 0 && passed_ns < silence_ns / 2).then(|| silence_ns - passed_ns)
}

/// Bound the tick of a side's clock from its SYN, or the start of the capture, to the silence.
fn tick_ns(connection: &Connection, sent: &Direction, before_ns: i64) -> Option<i64> {
    let syn_ns = if sent.syn.is_answer() {
        connection.syn_ack_ns()
    } else {
        connection.syn_ns()
    };
    let began_ns = syn_ns.filter(|_| sent.has_syn);
    let passed_ns = before_ns.saturating_sub(began_ns.unwrap_or(connection.start_ns));
    let ticks = i64::from(sent.tsval.wrapping_sub(sent.first_tsval) as i32);
    (ticks >= TELLING_TICKS && passed_ns >= TELLING_NS).then(|| passed_ns / ticks)
}
