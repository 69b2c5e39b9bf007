//! Which limit an item of the time budget belongs to, and which limits somebody can mend. What the rules and the hosts'
//! snapshots add to it, Python judges.

use crate::connection::state::Connection;
use crate::event;
use crate::output::field::DirectionView;
use crate::output::fields::close_state;
use crate::timing::item::{Item, ITEMS};

/// Less is below what a person notices, and below Linux's shortest retransmission timeout.
pub const MIN_COST_NS: i64 = 200_000_000;
/// Of the time in which the sender had work: what costs less is at work as designed.
pub const MIN_SHARE: f64 = 0.1;

/// What limits a direction by its packets alone; with each, whether somebody can mend it.
///
/// A handshake is mended only where it was disturbed. Slow start, a congestion window without losses and a full path are
/// at work as designed.
pub const MENDABLE: &[(&str, bool)] = &[
    ("receiver_window", true),
    ("receiver_application", true),
    ("sender_application", false),
    ("send_buffer", true),
    ("path_rate", false),
    ("path_loss", true),
    ("path_policer", true),
    ("congestion_control", false),
    ("idle_restart", true),
    ("retransmission_timer", true),
    ("delayed_ack", true),
    ("handshake", false),
    ("peer_silent", true),
    ("capture", false),
    ("none", false),
];

/// The limit that an item is about.
pub fn limit_of(item: Item) -> &'static str {
    match item {
        Item::Handshake => "handshake",
        Item::ZeroWindow => "receiver_application",
        Item::SmallWindow | Item::WindowFull => "receiver_window",
        Item::SlowStart | Item::Congestion => "congestion_control",
        Item::AfterLoss | Item::FastRecovery | Item::Timeout | Item::Tail => "path_loss",
        Item::IdleRestart => "idle_restart",
        Item::Application => "sender_application",
        Item::SendBuffer => "send_buffer",
        Item::Path => "path_rate",
        Item::Closed => "none",
        Item::PeerSilent => "peer_silent",
        Item::Unknown => "capture",
    }
}

fn is_mendable(item: Item) -> bool {
    let limit = limit_of(item);
    MENDABLE.contains(&(limit, true))
}

/// Time that a direction lost to what somebody can mend, and the time in which its sender had work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    pub lost_ns: i64,
    pub busy_ns: i64,
    /// The capture, or a reset, ended it in a stall: whoever waits may wait for good.
    pub is_stalled: bool,
}

impl Loss {
    /// By the time of each item.
    pub fn of(spent_ns: &[i64; ITEMS], is_handshake_disturbed: bool, is_stalled: bool) -> Self {
        let mut found = Loss {
            is_stalled,
            ..Loss::default()
        };
        for item in Item::ALL {
            let ns = spent_ns[item as usize];
            let (is_lost, is_busy) = match item {
                Item::Handshake => (is_handshake_disturbed, is_handshake_disturbed),
                Item::Application | Item::Closed => (false, false),
                other => (is_mendable(other), true),
            };
            found.lost_ns += if is_lost { ns } else { 0 };
            found.busy_ns += if is_busy { ns } else { 0 };
        }
        found
    }

    /// Whether so much time was lost that it is worth somebody's.
    pub fn is_problem(&self) -> bool {
        self.lost_ns >= MIN_COST_NS
            && (self.is_stalled || self.lost_ns as f64 >= MIN_SHARE * self.busy_ns as f64)
    }
}

impl DirectionView<'_> {
    /// What the direction lost, by its packets alone.
    pub fn loss(&self) -> Loss {
        let is_stalled = self.end_stall().is_some();
        Loss::of(
            &self.budget(),
            is_handshake_disturbed(self.connection),
            is_stalled,
        )
    }
}

/// Whether a segment of the handshake was sent again, or nobody answered.
fn is_handshake_disturbed(connection: &Connection) -> bool {
    let mut sides = connection.directions.iter();
    sides.any(|side| side.event_count(event::SYN_RETRANSMISSION) > 0)
        || close_state(connection) == "unanswered"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(items: &[(Item, i64)]) -> [i64; ITEMS] {
        let mut spent = [0; ITEMS];
        for &(item, ms) in items {
            spent[item as usize] = ms * 1_000_000;
        }
        spent
    }

    #[test]
    fn each_limit_of_an_item_is_listed() {
        for item in Item::ALL {
            assert!(MENDABLE.iter().any(|&(name, _)| name == limit_of(item)));
        }
    }

    #[test]
    fn pauses_and_what_works_as_designed_are_no_loss() {
        let items = spent(&[
            (Item::Application, 9000),
            (Item::SlowStart, 300),
            (Item::Path, 2000),
            (Item::Timeout, 400),
            (Item::WindowFull, 300),
        ]);
        let loss = Loss::of(&items, false, false);
        assert_eq!(loss.lost_ns, 700_000_000);
        assert_eq!(loss.busy_ns, 3_000_000_000);
        assert!(loss.is_problem());
    }

    #[test]
    fn a_problem_takes_a_fifth_of_a_second_and_a_tenth_of_the_work() {
        let problem = |lost, path, stalled| {
            let items = spent(&[(Item::Timeout, lost), (Item::Path, path)]);
            Loss::of(&items, false, stalled).is_problem()
        };
        assert!(problem(200, 1800, false));
        assert!(!problem(199, 100, false));
        assert!(!problem(200, 1801, false));
        assert!(problem(200, 1801, true));
        assert!(!problem(199, 0, true));
    }

    #[test]
    fn a_handshake_is_lost_time_only_where_it_was_disturbed() {
        let items = spent(&[(Item::Handshake, 1000)]);
        assert_eq!(Loss::of(&items, false, false).lost_ns, 0);
        assert_eq!(Loss::of(&items, true, false).lost_ns, 1_000_000_000);
    }
}
