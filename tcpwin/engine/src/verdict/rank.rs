//! Ranks connections by lost time and lists those with a problem, from their packets alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::tables::limit::Limit;
use crate::tcp::connection::arena::Arena;
use crate::verdict::columns::Losses;
use crate::verdict::division::MIN_COST_NS;

/// Lost time, payload of both directions, and the connection's number. Larger is worse; ties go to the earlier connection.
pub type Ranked = (i64, u64, Reverse<u32>);

/// Connections, worst first.
#[derive(Debug, PartialEq, Eq)]
pub struct Ranking {
    /// At most the requested number.
    pub worst: Vec<Ranked>,
    /// All connections with a problem, each with the limit that cost it the most.
    pub problems: Vec<(Ranked, Limit)>,
}

/// Rank the connections and return the `most` worst.
pub fn rank(connections: &Arena, most: usize) -> Ranking {
    let mut worst = BinaryHeap::new();
    let mut problems = Vec::new();
    for (some, more) in connections.walk(|some| rank_some(connections, some, most)) {
        some.into_iter()
            .for_each(|Reverse(row)| keep_worst(&mut worst, most, row));
        problems.extend(more);
    }
    problems.sort_unstable_by_key(|(row, _)| Reverse(*row));
    let worst = worst.into_sorted_vec().into_iter();
    Ranking {
        worst: worst.map(|Reverse(row)| row).collect(),
        problems,
    }
}

/// Heap with the least bad connection at the top.
type Worst = BinaryHeap<Reverse<Ranked>>;

fn rank_some(connections: &Arena, some: Range<u32>, most: usize) -> (Worst, Vec<(Ranked, Limit)>) {
    let mut worst = BinaryHeap::new();
    let mut problems = Vec::new();
    for (id, connection) in some.clone().zip(connections.range(some)) {
        // A connection cannot lose more than its duration.
        let duration_ns = connection.end_ns.saturating_sub(connection.start_ns);
        let is_kept = worst.len() < most
            || (worst.peek())
                .is_some_and(|Reverse(least): &Reverse<Ranked>| duration_ns >= least.0);
        if duration_ns < MIN_COST_NS && !is_kept {
            continue;
        }
        let losses = Losses::of(connection);
        let payloads = connection
            .directions
            .each_ref()
            .map(|direction| direction.payload_bytes);
        let lost_ns = losses.loss[usize::from(losses.is_back)].lost_ns;
        let row = (
            lost_ns,
            payloads[0].saturating_add(payloads[1]),
            Reverse(id),
        );
        keep_worst(&mut worst, most, row);
        if losses.is_problem() {
            let (_, judged) = losses.judge(id, connection, false);
            let limit = judged.division.also.unwrap_or(judged.division.first);
            problems.push((row, limit));
        }
    }
    (worst, problems)
}

fn keep_worst(worst: &mut Worst, most: usize, row: Ranked) {
    if worst.len() < most {
        worst.push(Reverse(row));
    } else if let Some(mut least) = worst.peek_mut() {
        if row > least.0 {
            *least = Reverse(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::connection::state::Connection;
    use crate::wire::Segment;

    fn connections(payloads: &[u64], lossy: usize) -> Arena {
        let mut arena = Arena::default();
        for (number, payload_bytes) in payloads.iter().enumerate() {
            let mut connection = Connection::new(&Segment::EMPTY, 0);
            connection.end_ns = connection.start_ns + 300_000_000;
            connection.directions[1].payload_bytes = *payload_bytes;
            if number == lossy {
                connection.directions[1].cold_state().limited_ns = 250_000_000;
            }
            arena.push(connection);
        }
        arena
    }

    #[test]
    fn ranks_by_lost_time_then_payload_then_age() {
        let arena = connections(&[5, 9, 7, 9, 1, 8], 4);
        let worst = |most| {
            rank(&arena, most)
                .worst
                .iter()
                .map(|row| row.2 .0)
                .collect::<Vec<_>>()
        };
        assert!(worst(0).is_empty());
        assert_eq!(worst(3), [4, 1, 3]);
        assert_eq!(worst(9), [4, 1, 3, 5, 2, 0]);
        let problems = rank(&arena, 1).problems;
        let row = (250_000_000, 1, Reverse(4));
        assert_eq!(problems, [(row, Limit::ReceiverWindow)]);
    }
}
