//! Which connections deserve a look first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::connection::arena::Arena;
use crate::connection::state::Connection;
use crate::output::fields::DirectionView;

/// Time that the receive window cost; the worse direction counts.
pub fn window_cost_ns(connection: &Connection) -> i64 {
    let cost = |sender| DirectionView { connection, sender }.window_cost_ns();
    cost(0).max(cost(1))
}

/// Numbers of the `limit` connections with the highest cost; more payload first on a tie, then the earlier one.
pub fn worst(connections: &Arena, limit: usize) -> Vec<u32> {
    let mut heap = BinaryHeap::with_capacity(limit.saturating_add(1).min(1 << 16));
    for (id, connection) in (0u32..).zip(connections.iter()) {
        let payload: u64 = connection
            .directions
            .iter()
            .map(|direction| direction.payload_bytes)
            .sum();
        heap.push(Reverse((window_cost_ns(connection), payload, Reverse(id))));
        if heap.len() > limit {
            heap.pop();
        }
    }
    heap.into_sorted_vec()
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
