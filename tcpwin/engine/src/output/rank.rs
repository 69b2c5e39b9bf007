//! Which connections deserve a look first: those that lost most time to what somebody can mend.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::connection::arena::Arena;
use crate::connection::state::Connection;
use crate::output::field::DirectionView;
use crate::output::limit::Loss;

fn losses(connection: &Connection) -> [Loss; 2] {
    [0, 1].map(|sender| DirectionView { connection, sender }.loss())
}

/// What connections are put in order by: time lost (the worse direction counts), then payload, then the earlier one.
fn rank(id: u32, connection: &Connection, losses: [Loss; 2]) -> (i64, u64, Reverse<u32>) {
    let payload = connection
        .directions
        .iter()
        .map(|direction| direction.payload_bytes)
        .sum();
    let [there, back] = losses.map(|loss| loss.lost_ns);
    (there.max(back), payload, Reverse(id))
}

/// Numbers of the `limit` connections that lost most time, with that time.
pub fn worst(connections: &Arena, limit: usize) -> Vec<(u32, i64)> {
    let mut heap = BinaryHeap::with_capacity(limit.saturating_add(1).min(1 << 16));
    for (id, connection) in (0u32..).zip(connections.iter()) {
        heap.push(Reverse(rank(id, connection, losses(connection))));
        if heap.len() > limit {
            heap.pop();
        }
    }
    in_order(heap.into_sorted_vec())
}

/// Numbers of the connections of which a direction lost so much that it is a problem, in the same order.
pub fn problems(connections: &Arena) -> Vec<(u32, i64)> {
    let mut found: Vec<_> = (0u32..)
        .zip(connections.iter())
        .map(|(id, connection)| (id, connection, losses(connection)))
        .filter(|(_, _, losses)| losses.iter().any(Loss::is_problem))
        .map(|(id, connection, losses)| Reverse(rank(id, connection, losses)))
        .collect();
    found.sort_unstable();
    in_order(found)
}

fn in_order(ranked: Vec<Reverse<(i64, u64, Reverse<u32>)>>) -> Vec<(u32, i64)> {
    ranked
        .into_iter()
        .map(|Reverse((lost_ns, _, Reverse(id)))| (id, lost_ns))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Segment;

    #[test]
    fn lost_time_then_payload_then_order() {
        let mut connections = Arena::default();
        for (limited_ns, payload_bytes) in [(5, 0), (9, 1), (9, 2), (5, 0)] {
            let mut connection = Connection::new(&Segment::EMPTY, 0);
            connection.end_ns = connection.start_ns + 100;
            connection.directions[1].rare().limited_ns = limited_ns;
            connection.directions[0].payload_bytes = payload_bytes;
            connections.push(connection);
        }
        assert_eq!(worst(&connections, 10), [(2, 9), (1, 9), (0, 5), (3, 5)]);
        assert_eq!(worst(&connections, 2), [(2, 9), (1, 9)]);
        assert_eq!(problems(&connections), []);
    }
}
