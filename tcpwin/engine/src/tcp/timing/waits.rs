//! How long one side kept the other waiting, turn by turn.
//!
//! A side's turn begins when it has received all of the other side's data, and ends with its own first byte. At the
//! capture point, the time between those two segments also includes the round trip to that side: the other side's data
//! arrives there half a round trip later, and its own first byte left half a round trip earlier.

/// If the side that asks waits longer, the connection was idle rather than the request late. A judgement: people pause
/// for less between two pages, and pooled connections are idle for longer.
pub const REST_NS: i64 = 30_000_000_000;

/// A retransmission timeout takes at least this long (Linux: TCP_RTO_MIN, minus the variation of the path's delay).
const TIMER_NS: i64 = 150_000_000;

/// The turns of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub turns: u32,
    /// Data sent before all of the other side's data had arrived: nobody was waiting.
    pub crossed: u32,
    /// Part of the waits that the path's round trip explains.
    pub path_ns: i64,
    /// Part in which the other side's data was still arriving, delayed by a queue.
    pub transit_ns: i64,
    /// The rest: waits of up to [`REST_NS`], and longer waits.
    pub own_ns: i64,
    pub rest_ns: i64,
    /// Longest wait without the path's part.
    pub longest_ns: i64,
    /// Waits for a message's first data, or to fill its holes, that a loss before the capture point explains: while a timer
    /// of its sender ran, and the rest.
    pub lost_ns: i64,
    pub repair_ns: i64,
    /// Silences after data that did not end a message: as long as a timer, and the rest.
    pub unfinished_ns: [i64; 2],
}

impl Waits {
    /// Add a turn that began `wait_ns` after the other side's last data. `leg_ns`: RTT between the capture point and
    /// this side.
    pub fn add(&mut self, wait_ns: i64, leg_ns: i64) {
        self.add_after_ack(wait_ns, leg_ns, 0, false);
    }

    /// Add a turn like [`Waits::add`]. An ACK `ack_ns` after the other side's last data did not yet acknowledge all of
    /// it. `is_missing`: the capture lacks the packet before the turn's first.
    pub fn add_after_ack(&mut self, wait_ns: i64, leg_ns: i64, ack_ns: i64, is_missing: bool) {
        let wait_ns = wait_ns.max(0);
        let path_ns = leg_ns.clamp(0, wait_ns);
        let transit_ns = (ack_ns - path_ns).clamp(0, wait_ns - path_ns);
        let own_ns = wait_ns - path_ns - transit_ns;
        self.transit_ns = self.transit_ns.saturating_add(transit_ns);
        self.turns = self.turns.saturating_add(1);
        self.path_ns = self.path_ns.saturating_add(path_ns);
        if is_missing && own_ns > TIMER_NS {
            self.lost_ns = self.lost_ns.saturating_add(own_ns);
            return;
        }
        let sum_ns = if own_ns > REST_NS {
            &mut self.rest_ns
        } else {
            &mut self.own_ns
        };
        *sum_ns = sum_ns.saturating_add(own_ns);
        self.longest_ns = self.longest_ns.max(own_ns);
    }

    /// Add a silence within a message, whose data so far is captured.
    pub fn add_unfinished(&mut self, wait_ns: i64) {
        let sum_ns = &mut self.unfinished_ns[usize::from(wait_ns <= TIMER_NS)];
        *sum_ns = sum_ns.saturating_add(wait_ns.max(0));
    }

    /// Add the wait for data that fills a hole.
    pub fn add_repair(&mut self, wait_ns: i64) {
        let sum_ns = if wait_ns > TIMER_NS {
            &mut self.lost_ns
        } else {
            &mut self.repair_ns
        };
        *sum_ns = sum_ns.saturating_add(wait_ns.max(0));
    }

    /// Count data that crossed the other side's data on the path.
    pub fn cross(&mut self) {
        self.crossed = self.crossed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_path_explains_its_round_trip_of_each_wait() {
        let mut waits = Waits::default();
        for wait_ms in [21, 22, 5] {
            waits.add(wait_ms * MS, 20 * MS);
        }
        assert_eq!((waits.path_ns, waits.own_ns), (45 * MS, 3 * MS));
        assert_eq!((waits.turns, waits.longest_ns), (3, 2 * MS));
    }

    #[test]
    fn data_that_still_arrives_is_not_waited_for() {
        let mut waits = Waits::default();
        // ACKs for the data kept arriving until 50 ms after it was sent; the round trip is 20 ms.
        waits.add_after_ack(54 * MS, 20 * MS, 50 * MS, false);
        assert_eq!((waits.path_ns, waits.transit_ns), (20 * MS, 30 * MS));
        assert_eq!(waits.own_ns, 4 * MS);
        // An ACK within the round trip, and one after the turn ended.
        waits.add_after_ack(21 * MS, 20 * MS, 10 * MS, false);
        waits.add_after_ack(25 * MS, 20 * MS, 90 * MS, false);
        assert_eq!((waits.own_ns, waits.transit_ns), (5 * MS, 35 * MS));
    }

    #[test]
    fn a_long_wait_is_rest() {
        let mut waits = Waits::default();
        waits.add(REST_NS + 21 * MS, 20 * MS);
        assert_eq!((waits.rest_ns, waits.own_ns), (REST_NS + MS, 0));
    }

    #[test]
    fn a_timer_explains_a_wait_after_a_missing_packet() {
        let mut waits = Waits::default();
        waits.add_after_ack(251 * MS, 20 * MS, 0, true);
        // Too soon for a timer.
        waits.add_after_ack(51 * MS, 20 * MS, 0, true);
        waits.add_repair(200 * MS);
        waits.add_repair(30 * MS);
        assert_eq!((waits.lost_ns, waits.own_ns), (431 * MS, 31 * MS));
        assert_eq!((waits.repair_ns, waits.turns), (30 * MS, 2));
    }
}
