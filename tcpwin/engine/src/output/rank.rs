//! Which connections deserve a look first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::connection::arena::Arena;
use crate::connection::state::Connection;
use crate::output::field::DirectionView;
use crate::window::zero::EndedBy;

/// Time that the receive window cost; the worse direction counts.
pub fn window_cost_ns(connection: &Connection) -> i64 {
    let cost = |sender| DirectionView { connection, sender }.window_cost_ns();
    cost(0).max(cost(1))
}

/// What connections are put in order by: cost, then payload, then the earlier one.
fn rank(id: u32, connection: &Connection) -> (i64, u64, Reverse<u32>) {
    let payload = connection
        .directions
        .iter()
        .map(|direction| direction.payload_bytes)
        .sum();
    (window_cost_ns(connection), payload, Reverse(id))
}

/// Numbers of the `limit` connections with the highest cost; more payload first on a tie, then the earlier one.
pub fn worst(connections: &Arena, limit: usize) -> Vec<u32> {
    let mut heap = BinaryHeap::with_capacity(limit.saturating_add(1).min(1 << 16));
    for (id, connection) in (0u32..).zip(connections.iter()) {
        heap.push(Reverse(rank(id, connection)));
        if heap.len() > limit {
            heap.pop();
        }
    }
    heap.into_sorted_vec()
        .into_iter()
        .map(|Reverse((_, _, Reverse(id)))| id)
        .collect()
}

/// Numbers of the connections, in the same order, whose window cost a direction at least `cost_ns` and this share of the
/// connection's duration, or any share where it was closed at the end.
pub fn held_back(connections: &Arena, cost_ns: i64, share: f64) -> Vec<u32> {
    let is_held_back = |connection: &Connection, sender: usize| {
        let view = DirectionView { connection, sender };
        let cost = view.window_cost_ns();
        let duration_ns = connection.end_ns.saturating_sub(connection.start_ns);
        let is_dead = || {
            let last = view.episodes().last();
            last.is_some_and(|last| matches!(last.ended_by, EndedBy::Open | EndedBy::Reset))
        };
        cost >= cost_ns && (cost as f64 >= share * duration_ns as f64 || is_dead())
    };
    let mut found: Vec<_> = (0u32..)
        .zip(connections.iter())
        .filter(|(_, connection)| (0..2).any(|sender| is_held_back(connection, sender)))
        .map(|(id, connection)| Reverse(rank(id, connection)))
        .collect();
    found.sort_unstable();
    found
        .into_iter()
        .map(|Reverse((_, _, Reverse(id)))| id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Segment;

    #[test]
    fn cost_then_payload_then_order() {
        let mut connections = Arena::default();
        for (limited_ns, payload_bytes) in [(5, 0), (9, 1), (9, 2), (5, 0)] {
            let mut connection = Connection::new(&Segment::EMPTY, 0);
            connection.directions[1].cold().limited_ns = limited_ns;
            connection.directions[0].payload_bytes = payload_bytes;
            connections.push(connection);
        }
        assert_eq!(worst(&connections, 10), [2, 1, 0, 3]);
        assert_eq!(worst(&connections, 2), [2, 1]);
    }
}
