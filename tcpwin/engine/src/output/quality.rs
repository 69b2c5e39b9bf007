//! How far the numbers of a capture can be trusted, and what all its connections carried: sums over them, in one walk.

use crate::connection::arena::Arena;
use crate::output::field::DirectionView;

#[derive(Default)]
pub struct Quality {
    pub super_segments: u64,
    pub missed_bytes: u64,
    pub carried_bytes: u64,
    pub without_syn: u64,
    pub one_way: u64,
    pub sampled: u64,
}

impl Quality {
    pub fn of(connections: &Arena) -> Self {
        let mut quality = Quality::default();
        for connection in connections.iter() {
            let [first, second] = &connection.directions;
            quality.without_syn += u64::from(!first.has_syn && !second.has_syn);
            quality.sampled += u64::from(connection.is_sampled());
            quality.one_way += u64::from(!second.is_seen && !first.has_only_syn);
            for from_initiator in [true, false] {
                let carried_bytes = DirectionView::new(connection, from_initiator).carried_bytes();
                quality.carried_bytes = quality.carried_bytes.saturating_add(carried_bytes);
            }
            for rare in connection
                .directions
                .iter()
                .filter_map(|direction| direction.rare.as_ref())
            {
                quality.super_segments += u64::from(rare.super_segments);
                quality.missed_bytes = quality.missed_bytes.saturating_add(rare.missed.bytes());
            }
        }
        quality
    }
}
