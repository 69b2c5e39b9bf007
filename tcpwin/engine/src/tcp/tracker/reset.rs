//! Judges whether the receiver of a RST obeyed it.
//!
//! RFC 5961 §3.2, RFC 9293 §3.10.7.4: a RST outside the receive window is dropped, one at RCV.NXT is obeyed, and any other
//! is answered by a challenge ACK. Older stacks obey all within the window, and a capture may lack the data that moved
//! RCV.NXT, so for a RST beyond SND.MAX the following segments decide.

use crate::sequence::Seq;
use crate::tcp::connection::incidents::DoubtfulReset;
use crate::tcp::connection::state::Connection;
use crate::tcp::window::zero::EndedBy;
use crate::wire::{Segment, RST};

/// Further from SND.MAX than any window reaches (RFC 7323 §2.3).
const MAX_JUMP: i32 = 1 << 30;
/// Time for which segments may cross a RST, without a measured handshake.
const CROSSING_DEFAULT_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    Obeyed,
    Refused,
    /// In the window, but RCV.NXT cannot be there.
    Doubtful,
}

/// Judge a RST, given that RCV.NXT lies between SND.UNA and SND.MAX.
pub fn judge(connection: &Connection, side: usize, segment: &Segment) -> Reset {
    let sent = &connection.directions[side];
    if !sent.is_flight_known() {
        return Reset::Obeyed;
    }
    let (seq, flight) = (Seq(segment.seq), &sent.flight);
    if !seq.is_before(flight.una) && !seq.is_after(flight.nxt) {
        return Reset::Obeyed;
    }
    let is_window_known = sent.window.is_known && connection.window_is_certain(1 - side);
    let is_in_window = if is_window_known {
        !seq.is_after(sent.window.edge_max)
    } else {
        flight.nxt.to(seq) < MAX_JUMP
    };
    if seq.is_after(flight.nxt) && is_in_window {
        Reset::Doubtful
    } else {
        Reset::Refused
    }
}

/// Note a segment after a doubtful RST: unless it may have crossed the RST, it shows that the RST was not obeyed or was
/// forged.
#[inline]
pub fn refute(connection: &mut Connection, side: usize, segment: &Segment) {
    let doubt = connection.doubtful_reset();
    let Some(doubt) = doubt.filter(|_| segment.flags & RST == 0) else {
        return;
    };
    let crossing_ns = connection.handshake_rtt_ns().unwrap_or(CROSSING_DEFAULT_NS);
    let is_crossing = side != usize::from(doubt.side)
        && segment.time_ns.saturating_sub(doubt.time_ns) <= crossing_ns.saturating_mul(2);
    if !is_crossing {
        connection.incidents_mut().rare_mut().doubtful_reset = None;
    }
}

/// Accept a doubtful RST at the connection's end if nothing followed it.
pub fn conclude(connection: &mut Connection) {
    let incidents = connection.incidents.as_mut();
    let rare = incidents.and_then(|incidents| incidents.rare.as_mut());
    let Some(doubt) = rare.and_then(|rare| rare.doubtful_reset.take()) else {
        return;
    };
    let DoubtfulReset {
        side,
        time_ns,
        frame,
    } = doubt;
    connection.marks.close(side);
    if connection.marks.reset_by().is_some() {
        return;
    }
    connection.note_end_stalls(time_ns);
    connection.marks.reset(side);
    let has_data = connection
        .directions
        .iter()
        .any(|each| each.data_segments > 0);
    if has_data {
        connection.incidents_mut().rare_mut().reset = Some((time_ns, frame));
    }
    for direction in &mut connection.directions {
        if let Some(cold_state) = &mut direction.cold_state {
            cold_state.end_zero(frame, time_ns, EndedBy::Reset);
        }
    }
}
