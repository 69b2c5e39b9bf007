//! Indicators of a capture's quality and total payload: sums over all connections, computed in a single pass.

use crate::output::field::DirectionView;
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::state::Connection;

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
        let parts = connections.walk(|some| {
            let mut quality = Quality::default();
            for connection in connections.range(some) {
                quality.take(connection);
            }
            quality
        });
        parts.into_iter().fold(Quality::default(), Quality::and)
    }

    fn take(&mut self, connection: &Connection) {
        let [first, second] = &connection.directions;
        self.without_syn += u64::from(!first.has_syn && !second.has_syn);
        self.sampled += u64::from(connection.is_sampled());
        self.one_way += u64::from(!second.is_seen && !first.has_only_syn);
        for from_initiator in [true, false] {
            let carried_bytes = DirectionView::new(connection, from_initiator).carried_bytes();
            self.carried_bytes = self.carried_bytes.saturating_add(carried_bytes);
        }
        for cold_state in connection
            .directions
            .iter()
            .filter_map(|direction| direction.cold_state.as_ref())
        {
            self.super_segments += u64::from(cold_state.super_segments);
            self.missed_bytes = self.missed_bytes.saturating_add(cold_state.missed.bytes());
        }
    }

    fn and(self, other: Self) -> Self {
        Quality {
            super_segments: self.super_segments + other.super_segments,
            missed_bytes: self.missed_bytes.saturating_add(other.missed_bytes),
            carried_bytes: self.carried_bytes.saturating_add(other.carried_bytes),
            without_syn: self.without_syn + other.without_syn,
            one_way: self.one_way + other.one_way,
            sampled: self.sampled + other.sampled,
        }
    }
}
