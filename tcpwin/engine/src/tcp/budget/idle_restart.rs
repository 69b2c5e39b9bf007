//! Idle gaps, and the cost of reduced congestion windows after them.
//!
//! When a sender with nothing in flight sends again, Linux halves its congestion window for each RTO since the last
//! data, down to the initial window (`tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`; RFC 5681 §4.1). The packets
//! show this as a burst that stops although data is left to send, and continues one round trip later.

use crate::cache::{ask_for, from};
use crate::tcp::budget::Mark;
use crate::wire::Segment;

/// On shorter paths, a restart costs too little to report.
const MIN_ROUND_TRIP_NS: i64 = 1_000_000;
/// Number of rounds after which the window's size no longer depends on the restart.
const MAX_ROUNDS: u32 = 16;

#[derive(Clone, Debug, Default)]
pub struct Idle {
    pub gaps: u32,
    pub idle_ns: i64,
    pub restarts: u32,
    pub round_trips: u32,
    pub cost_ns: i64,
    pub ramp: Option<Ramp>,
    /// The budget at the start of the last ramp.
    pub before: Mark,
    /// Cost that is not yet charged to the budget.
    owed_ns: i64,
    /// The longest gaps, longest first, each with the frame that ended it; 0 if there are fewer.
    pub longest: [(i64, u64); LONGEST],
}

/// Number of gaps whose frames are kept.
const LONGEST: usize = 3;

/// The growth of the flight after an idle gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    pub gap: Gap,
    pub start_ns: i64,
    pub start_frame: u64,
    /// Bytes sent before the first wait for an ACK.
    pub burst_bytes: u32,
    sent_bytes: u32,
    /// Bytes sent since the last wait.
    round_bytes: u32,
    rounds: u32,
    is_restart: bool,
    /// Whether the window had room for another segment after the last one.
    had_room: bool,
}

/// An idle gap and the windows around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub gap_ns: i64,
    pub rto_ns: i64,
    pub round_trip_ns: i64,
    pub mss: u32,
    /// Congestion window before the gap, from the packets or from a model.
    pub window_bytes: u32,
    /// Congestion window that Linux leaves after the gap.
    pub predicted_bytes: u32,
}

/// Return the congestion window that Linux leaves after `gap_ns`: `tcp_cwnd_restart` (net/ipv4/tcp_output.c).
pub fn restart_window(window_bytes: u32, gap_ns: i64, rto_ns: i64, initial_bytes: u32) -> u32 {
    let floor = window_bytes.min(initial_bytes);
    let (mut window, mut left_ns) = (window_bytes, gap_ns.saturating_sub(rto_ns));
    while left_ns > 0 && window > floor {
        window >>= 1;
        left_ns = left_ns.saturating_sub(rto_ns.max(1));
    }
    window.max(floor)
}

impl Idle {
    /// Process the first data after a gap. The ramp is followed only if the path's round trip is known.
    pub fn begin(&mut self, gap: Gap, idle_ns: i64, segment: &Segment, has_room: bool) {
        self.gaps = self.gaps.saturating_add(1);
        self.idle_ns = self.idle_ns.saturating_add(idle_ns.max(0));
        if let Some(place) = self
            .longest
            .iter()
            .position(|(kept_ns, _)| *kept_ns < idle_ns)
        {
            self.longest[place..].rotate_right(1);
            self.longest[place] = (idle_ns, segment.frame);
        }
        let can_tell = gap.round_trip_ns >= MIN_ROUND_TRIP_NS
            && gap.mss > 0
            && gap.predicted_bytes < gap.window_bytes;
        self.ramp = can_tell.then_some(Ramp {
            gap,
            start_ns: segment.time_ns,
            start_frame: segment.frame,
            burst_bytes: 0,
            sent_bytes: segment.payload_len,
            round_bytes: segment.payload_len,
            rounds: 1,
            is_restart: false,
            had_room: has_room,
        });
    }

    /// Process new data on the ramp. `has_room`: the receive window known to the sender had room for another segment.
    /// Return true if this segment shows that the sender had to wait for an ACK.
    pub fn sent(
        &mut self,
        now_ns: i64,
        last_data_ns: i64,
        payload_len: u32,
        has_room: bool,
    ) -> bool {
        let Some(ramp) = &mut self.ramp else {
            return false;
        };
        let silence_ns = now_ns.saturating_sub(last_data_ns);
        let had_room = std::mem::replace(&mut ramp.had_room, has_room);
        let round_trip_ns = ramp.gap.round_trip_ns;
        let since_ns = now_ns.saturating_sub(ramp.start_ns);
        if ramp.rounds == 1 && since_ns > longest_round_ns(round_trip_ns) {
            // The burst lasted longer than the wait for its first ACK could have.
            self.ramp = None;
            return false;
        }
        if silence_ns < round_trip_ns / 2 {
            ramp.sent_bytes = ramp.sent_bytes.saturating_add(payload_len);
            ramp.round_bytes = ramp.round_bytes.saturating_add(payload_len);
            return false;
        }
        if ramp.rounds == 1 {
            ramp.burst_bytes = ramp.sent_bytes;
            // The first ACK of the burst releases more data one round trip after the start of the burst, or at most one
            // delayed ACK (RFC 9293 §3.8.6.3) later.
            let since_ns = now_ns.saturating_sub(ramp.start_ns);
            let is_clocked =
                since_ns >= round_trip_ns / 10 * 9 && since_ns <= longest_round_ns(round_trip_ns);
            // If the burst was much smaller than the reduced window, something else stopped it.
            let slack = ramp.gap.mss.saturating_mul(2);
            let is_burst = ramp.burst_bytes >= ramp.gap.predicted_bytes / 2
                && ramp.burst_bytes <= ramp.gap.predicted_bytes.saturating_add(slack)
                && ramp.burst_bytes.saturating_add(ramp.gap.mss) < ramp.gap.window_bytes;
            if !is_clocked || !is_burst || !had_room {
                self.ramp = None;
                return false;
            }
            ramp.is_restart = true;
            self.restarts = self.restarts.saturating_add(1);
        }
        // Slow start doubles the data sent per round (RFC 5681 §3.1).
        let is_growing = ramp.rounds == 1 || ramp.round_bytes >= ramp.burst_bytes / 2 * 3;
        if silence_ns > longest_round_ns(round_trip_ns) || !is_growing {
            self.end();
            return false;
        }
        ramp.rounds += 1;
        ramp.round_bytes = payload_len;
        ramp.sent_bytes = ramp.sent_bytes.saturating_add(payload_len);
        let is_first = ramp.rounds == 2;
        if ramp.rounds >= MAX_ROUNDS {
            self.end();
        }
        is_first
    }

    /// End the ramp: the message after the gap is complete, or the window is regained.
    pub fn end(&mut self) {
        let Some(ramp) = self.ramp.take().filter(|ramp| ramp.is_restart) else {
            return;
        };
        let lost = ramp
            .rounds
            .saturating_sub(rounds_needed(ramp.sent_bytes, ramp.gap.window_bytes));
        self.round_trips = self.round_trips.saturating_add(lost);
        let cost_ns = ramp.gap.round_trip_ns.saturating_mul(i64::from(lost));
        self.cost_ns = self.cost_ns.saturating_add(cost_ns);
        self.owed_ns = self.owed_ns.saturating_add(cost_ns);
    }

    /// Prefetch the data that [`Idle::take_owed_ns`] reads.
    #[inline(always)]
    pub fn ask_for_owed(&self) {
        ask_for(from(&self.owed_ns));
    }

    /// Return the cost of the last ramp and reset it.
    #[inline(always)]
    pub fn take_owed_ns(&mut self) -> i64 {
        std::mem::take(&mut self.owed_ns)
    }

    /// Return whether as much data is in flight as before the gap.
    pub fn is_regained(&self, flight_bytes: u32) -> bool {
        self.ramp
            .as_ref()
            .is_some_and(|ramp| flight_bytes >= ramp.gap.window_bytes)
    }
}

/// Return the maximum round trip, with queues on the path and a delayed ACK.
fn longest_round_ns(round_trip_ns: i64) -> i64 {
    (round_trip_ns.saturating_mul(3) / 2).saturating_add(50_000_000)
}

/// Return the number of round trips that slow start from a window needs to send this many bytes.
fn rounds_needed(bytes: u32, window_bytes: u32) -> u32 {
    let (mut left, mut window, mut rounds) = (u64::from(bytes), u64::from(window_bytes.max(1)), 1);
    while left > window {
        left -= window;
        window *= 2;
        rounds += 1;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// linux_facts: a round trip of 180 ms, an RTO of 380 ms, 80 segments, one second idle: two halvings.
    #[test]
    fn a_second_idle_halves_twice() {
        assert_eq!(restart_window(80, 1000 * MS, 380 * MS, 10), 20);
        assert_eq!(
            restart_window(80, 380 * MS, 380 * MS, 10),
            80,
            "not longer than the RTO"
        );
        assert_eq!(restart_window(80, 381 * MS, 380 * MS, 10), 40);
        assert_eq!(restart_window(80, i64::MAX, 380 * MS, 10), 10);
        assert_eq!(
            restart_window(6, i64::MAX, 380 * MS, 10),
            6,
            "never widened"
        );
    }

    #[test]
    fn rounds_double() {
        assert_eq!(rounds_needed(30_000, 30_000), 1);
        assert_eq!(rounds_needed(30_001, 10_000), 3);
        assert_eq!(rounds_needed(0, 0), 1);
    }

    fn followed(burst: u32, second_ns: i64, has_room: bool) -> Idle {
        let mut idle = Idle::default();
        let gap = Gap {
            gap_ns: 2_000 * MS,
            rto_ns: 380 * MS,
            round_trip_ns: 180 * MS,
            mss: 1448,
            window_bytes: 30 * 1448,
            predicted_bytes: 10 * 1448,
        };
        let first = Segment {
            payload_len: 1448,
            ..Segment::EMPTY
        };
        idle.begin(gap, 1_820 * MS, &first, has_room);
        for _ in 1..burst {
            idle.sent(0, 0, 1448, has_room);
        }
        idle.sent(second_ns, 0, 1448, true);
        idle.end();
        idle
    }

    #[test]
    fn a_burst_that_ends_and_goes_on_with_the_ack_was_cut() {
        let idle = followed(10, 180 * MS, true);
        assert_eq!(
            (idle.restarts, idle.round_trips, idle.cost_ns),
            (1, 1, 180 * MS)
        );
        assert_eq!(
            followed(20, 180 * MS, true).restarts,
            0,
            "more than Linux leaves"
        );
        assert_eq!(
            followed(10, 700 * MS, true).restarts,
            0,
            "the application came later"
        );
        assert_eq!(
            followed(10, 180 * MS, false).restarts,
            0,
            "the receive window was full"
        );
    }
}
