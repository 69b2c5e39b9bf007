//! Separates connections that lost no time from those that may have, so that a million of them need not be judged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::output::field::DirectionView;
use crate::output::select::Condition;
use crate::tcp::connection::arena::Arena;

/// The search criteria.
pub struct Wanted<'a> {
    /// Indices of the budget items that count as lost time.
    pub items: &'a [usize],
    /// Indices of the items that count as lost if one of the doubts applies.
    pub doubtful: &'a [usize],
    pub doubts: &'a [Condition],
    /// Number of unaffected connections to return, largest payload first.
    pub light: usize,
    /// Give up if more connections than this may have lost time.
    pub most: usize,
}

/// Payload of both directions, and the connection's number.
pub type Light = (u64, u32);

/// Connections by whether they may have lost time.
#[derive(Debug, PartialEq, Eq)]
pub struct Apart {
    /// Numbers of those that may have, in order.
    pub heavy: Vec<u32>,
    /// The requested ones that lost none, largest payload first.
    pub light: Vec<Light>,
}

/// Separate the connections; None if too many may have lost time.
pub fn set_apart(wanted: &Wanted, connections: &Arena) -> Option<Apart> {
    let parts = connections.walk(|some| set_some_apart(wanted, connections, some));
    let mut heavy = Vec::new();
    let mut light = BinaryHeap::new();
    for part in parts {
        let (more_heavy, more_light) = part?;
        heavy.extend(more_heavy);
        for entry in more_light {
            keep_largest(&mut light, wanted.light, entry);
        }
    }
    if heavy.len() > wanted.most {
        return None;
    }
    let light = light.into_sorted_vec().into_iter();
    Some(Apart {
        heavy,
        light: light
            .map(|Reverse((payload_bytes, Reverse(id)))| (payload_bytes, id))
            .collect(),
    })
}

/// A heap with the smallest payload on top.
type Lightest = BinaryHeap<Reverse<(u64, Reverse<u32>)>>;

fn keep_largest(largest: &mut Lightest, most: usize, entry: Reverse<(u64, Reverse<u32>)>) {
    if largest.len() < most {
        largest.push(entry);
    } else if let Some(mut least) = largest.peek_mut() {
        if entry < *least {
            *least = entry;
        }
    }
}

fn set_some_apart(
    wanted: &Wanted,
    connections: &Arena,
    some: Range<u32>,
) -> Option<(Vec<u32>, Lightest)> {
    let mut heavy = Vec::new();
    let mut light = BinaryHeap::new();
    for (id, connection) in some.clone().zip(connections.range(some)) {
        let directions = [true, false];
        let is_heavy = directions.iter().any(|from_initiator| {
            let spent = DirectionView::new(connection, *from_initiator).budget();
            let has_time = |items: &[usize]| {
                let mut times = items.iter().filter_map(|item| spent.get(*item));
                times.any(|ns| *ns != 0)
            };
            let is_doubted = || {
                let mut doubts = wanted.doubts.iter();
                doubts.any(|doubt| {
                    directions
                        .iter()
                        .any(|way| doubt.holds(id, connection, *way))
                })
            };
            has_time(wanted.items) || has_time(wanted.doubtful) && is_doubted()
        });
        if is_heavy {
            if heavy.len() == wanted.most {
                return None;
            }
            heavy.push(id);
            continue;
        }
        let payloads = connection.directions.each_ref();
        let payload_bytes = payloads
            .map(|direction| direction.payload_bytes)
            .iter()
            .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let entry = Reverse((payload_bytes, Reverse(id)));
        keep_largest(&mut light, wanted.light, entry);
    }
    Some((heavy, light))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget_item::SenderState;
    use crate::output::field::Value;
    use crate::output::select::Comparison;
    use crate::tcp::connection::state::Connection;
    use crate::wire::Segment;

    fn connections(payloads: &[u64], lost: u32) -> Arena {
        let mut arena = Arena::default();
        for (number, payload_bytes) in (0u32..).zip(payloads) {
            let mut connection = Connection::new(&Segment::EMPTY, 0);
            connection.end_ns = connection.start_ns + 1;
            connection.directions[1].payload_bytes = *payload_bytes;
            if number == lost {
                connection.directions[1].cold_state().limited_ns = 1;
            }
            arena.push(connection);
        }
        arena
    }

    fn apart(light: usize, most: usize, doubtful: &[usize], doubts: &[Condition]) -> Option<Apart> {
        let items = [SenderState::WindowFull as usize];
        let wanted = Wanted {
            items: &items,
            doubtful,
            doubts,
            light,
            most,
        };
        set_apart(&wanted, &connections(&[5, 9, 7, 9, 1, 8], 5))
    }

    #[test]
    fn unaffected_connections_are_ordered_by_payload_then_number() {
        for (light, expected) in [
            (0, vec![]),
            (2, vec![(9, 1), (9, 3)]),
            (9, vec![(9, 1), (9, 3), (7, 2), (5, 0), (1, 4)]),
        ] {
            let heavy = vec![5];
            assert_eq!(
                apart(light, 1, &[], &[]),
                Some(Apart {
                    heavy,
                    light: expected
                })
            );
        }
    }

    #[test]
    fn a_doubt_that_applies_makes_a_connection_with_doubtful_time_heavy() {
        let doubt = Condition::new(true, "payload_bytes", Comparison::Equal, Value::Int(7));
        let doubts = [doubt.unwrap()];
        for (doubtful, heavy) in [
            (SenderState::Unknown, vec![2, 5]),
            (SenderState::Timeout, vec![5]),
        ] {
            let found = apart(1, 9, &[doubtful as usize], &doubts).unwrap();
            assert_eq!((found.heavy, found.light), (heavy, vec![(9, 1)]));
        }
    }

    #[test]
    fn too_many_heavy_connections_give_no_answer() {
        assert_eq!(apart(1, 0, &[], &[]), None);
    }
}
