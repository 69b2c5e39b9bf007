//! The path as seen by a capture: its round trip, and the nearer end. Reads a connection without changing it.

use crate::tcp::connection::state::Connection;

/// Return the minimum known round trip of the whole path: the handshake's, or the sum of both sides of the capture
/// point, each the minimum time from data to its ACK or from a timestamp to its echo.
pub fn path_rtt_ns(connection: &Connection) -> Option<i64> {
    let leg_rtts = [0, 1].map(|side: usize| connection.directions[side].rtt_to_receiver_ns());
    let sum = match leg_rtts {
        [Some(first), Some(second)] => Some(first.saturating_add(second)),
        _ => None,
    };
    match (connection.handshake_rtt_ns(), sum) {
        (Some(handshake), Some(sum)) => Some(handshake.min(sum)),
        (handshake, sum) => handshake.or(sum),
    }
}

/// Return one leg of the handshake's round trip, if its segments were not retransmitted.
pub(super) fn handshake_half_ns(
    connection: &Connection,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
) -> Option<i64> {
    if connection.marks.is_handshake_ambiguous() {
        return None;
    }
    Some(to_ns?.saturating_sub(from_ns?)).filter(|ns| *ns >= 0)
}

/// The end within a tenth of the total round trip.
pub(super) enum Nearer {
    First,
    Second,
    Neither,
}

/// Return the nearer of two ends. If both are within the hosts' own delays, the capture was made on a single host.
pub(super) fn nearer(first_ns: i64, second_ns: i64) -> Nearer {
    let path_ns = first_ns.saturating_add(second_ns);
    match (first_ns <= path_ns / 10, second_ns <= path_ns / 10) {
        (true, _) => Nearer::First,
        (_, true) => Nearer::Second,
        _ => Nearer::Neither,
    }
}
