//! Connections that lost no time, told apart from those that may have, so that a million of them need no weighing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::output::field::DirectionView;
use crate::output::select::Condition;
use crate::tcp::connection::arena::Arena;

/// What a caller looks for.
pub struct Wanted<'a> {
    /// Places of the budget's items whose time is lost.
    pub items: &'a [usize],
    /// Of those whose time is lost where one of the doubts holds.
    pub doubtful: &'a [usize],
    pub doubts: &'a [Condition],
    /// So many of those that lost nothing, with most payload.
    pub light: usize,
    /// With more that may have lost something there is no answer.
    pub most: usize,
}

/// Payload of both directions, and a connection's number.
pub type Light = (u64, u32);

/// Connections by whether they may have lost time.
#[derive(Debug, PartialEq, Eq)]
pub struct Apart {
    /// Numbers of those that may, in order.
    pub heavy: Vec<u32>,
    /// The wanted ones that lost nothing, those with most payload first.
    pub light: Vec<Light>,
}

/// Tell the connections apart; None where too many may have lost something.
pub fn set_apart(wanted: &Wanted, connections: &Arena) -> Option<Apart> {
    let parts = connections.walk(|some| set_some_apart(wanted, connections, some));
    let mut heavy = Vec::new();
    let mut light = BinaryHeap::new();
    for part in parts {
        let (more_heavy, more_light) = part?;
        heavy.extend(more_heavy);
        for entry in more_light {
            keep_most(&mut light, wanted.light, entry);
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

/// Those with most payload stand last.
type Lightest = BinaryHeap<Reverse<(u64, Reverse<u32>)>>;

fn keep_most(kept: &mut Lightest, most: usize, entry: Reverse<(u64, Reverse<u32>)>) {
    if kept.len() < most {
        kept.push(entry);
    } else if let Some(mut least) = kept.peek_mut() {
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
        let ways = [true, false];
        let is_heavy = ways.iter().any(|from_initiator| {
            let spent = DirectionView::new(connection, *from_initiator).budget();
            let has_time = |items: &[usize]| {
                let mut times = items.iter().filter_map(|item| spent.get(*item));
                times.any(|ns| *ns != 0)
            };
            let is_doubted = || {
                let mut doubts = wanted.doubts.iter();
                doubts.any(|doubt| ways.iter().any(|way| doubt.holds(id, connection, *way)))
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
        keep_most(&mut light, wanted.light, entry);
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
    fn of_those_that_lost_nothing_the_largest_are_told_the_earlier_first() {
        for (light, told) in [
            (0, vec![]),
            (2, vec![(9, 1), (9, 3)]),
            (9, vec![(9, 1), (9, 3), (7, 2), (5, 0), (1, 4)]),
        ] {
            let heavy = vec![5];
            assert_eq!(
                apart(light, 1, &[], &[]),
                Some(Apart { heavy, light: told })
            );
        }
    }

    #[test]
    fn a_doubt_that_holds_makes_a_connection_heavy_which_has_the_time() {
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
    fn too_many_that_may_have_lost_something_give_no_answer() {
        assert_eq!(apart(1, 0, &[], &[]), None);
    }
}
