//! How long one side kept the other waiting, turn by turn.
//!
//! A turn begins when a side has all of the other's data and ends with its own first byte. At the capture point the time
//! between the two segments also holds the round trip to that side: its data left half of it earlier, and the other's data
//! arrived half of it later.

/// A longer wait for the side that asks is rest, not a late request. A judgement: people pause for less between two pages,
/// and pools of connections are idle for longer.
pub const REST_NS: i64 = 30_000_000_000;

/// The turns of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub turns: u32,
    /// Data sent before all of the other side's had arrived: nobody waits for anybody.
    pub crossed: u32,
    /// Part of the waits that the path explains.
    pub path_ns: i64,
    /// Part in which the other side's data was still arriving: a queue held it.
    pub transit_ns: i64,
    /// The rest of the waits shorter than [`REST_NS`], and of the longer ones.
    pub own_ns: i64,
    pub rest_ns: i64,
    /// The longest of the side's own.
    pub longest_ns: i64,
}

impl Waits {
    /// Add a turn that began `wait_ns` after the other side's last data, with a round trip of `leg_ns` between the
    /// capture point and this side.
    pub fn add(&mut self, wait_ns: i64, leg_ns: i64) {
        self.add_after_ack(wait_ns, leg_ns, 0);
    }

    /// Add a turn as [`Waits::add`], with an ACK `ack_ns` after that data that did not acknowledge it all.
    pub fn add_after_ack(&mut self, wait_ns: i64, leg_ns: i64, ack_ns: i64) {
        let wait_ns = wait_ns.max(0);
        let path_ns = leg_ns.clamp(0, wait_ns);
        let transit_ns = (ack_ns - path_ns).clamp(0, wait_ns - path_ns);
        let own_ns = wait_ns - path_ns - transit_ns;
        self.transit_ns = self.transit_ns.saturating_add(transit_ns);
        self.turns = self.turns.saturating_add(1);
        self.path_ns = self.path_ns.saturating_add(path_ns);
        let sum_ns = if own_ns > REST_NS {
            &mut self.rest_ns
        } else {
            &mut self.own_ns
        };
        *sum_ns = sum_ns.saturating_add(own_ns);
        self.longest_ns = self.longest_ns.max(own_ns);
    }

    /// Note data that crossed the other side's on the path.
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
        // Its ACKs came until 50 ms after it was sent, over a round trip of 20 ms.
        waits.add_after_ack(54 * MS, 20 * MS, 50 * MS);
        assert_eq!((waits.path_ns, waits.transit_ns), (20 * MS, 30 * MS));
        assert_eq!(waits.own_ns, 4 * MS);
        // An ACK within the round trip, and one after the turn began.
        waits.add_after_ack(21 * MS, 20 * MS, 10 * MS);
        waits.add_after_ack(25 * MS, 20 * MS, 90 * MS);
        assert_eq!((waits.own_ns, waits.transit_ns), (5 * MS, 35 * MS));
    }

    #[test]
    fn a_long_wait_is_rest() {
        let mut waits = Waits::default();
        waits.add(REST_NS + 21 * MS, 20 * MS);
        assert_eq!((waits.rest_ns, waits.own_ns), (REST_NS + MS, 0));
    }
}
