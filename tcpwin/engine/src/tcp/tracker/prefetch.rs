//! Prefetches the connections of the next segments into the cache.
//!
//! With thousands of connections nearly every segment's connection is uncached: a dozen lines behind three pointers.
//! Prefetches the lines of a whole batch at once, one level of pointers after the other. Never changes results.

use crate::cache::{ask_for, ask_for_all, from, LINE_BYTES};
use crate::sequence::Seq;
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::state::Connection;
use crate::tcp::path::pace::Pace;
use crate::tcp::timing::estimator::RttEstimator;
use crate::tcp::tracker::slot::Slot;
use crate::tcp::window::sender_view::{Known, SenderView};
use crate::wire::Segment;

/// Prefetch the fields that only the slow path reads.
#[inline(always)]
pub fn ask_for_rare(connection: &Connection) {
    for direction in &connection.directions {
        if let Some(cold_state) = &direction.cold_state {
            ask_for_all(cold_state.as_ref());
        }
    }
}

/// Placeholder for absent connections. Nothing is skipped, because a branch on presence is unpredictable.
pub struct Ahead {
    connection: Connection,
    pace: Pace,
    view: SenderView,
}

impl Default for Ahead {
    fn default() -> Self {
        let known = Known {
            una: Seq(0),
            edge: Seq(0),
        };
        Ahead {
            connection: Connection::new(&Segment::EMPTY, 0),
            pace: Pace::new(RttEstimator::default(), 0, Seq(0)),
            view: SenderView::new(0, known, Seq(0), 0),
        }
    }
}

impl Ahead {
    /// Prefetch everything that ordinary segments of these connections need.
    #[inline(never)]
    pub fn look<const N: usize>(&self, connections: &Arena, slots: &[Slot; N]) {
        let connections = slots.map(|slot| {
            let connection = connections.get(slot.0).unwrap_or(&self.connection);
            let start = from(connection);
            for line in 0..size_of::<Connection>().div_ceil(LINE_BYTES) {
                ask_for(start.wrapping_add(line * LINE_BYTES));
            }
            connection
        });
        let paces = connections.map(|connection| {
            // Data and its ACKs both update the direction that carries the data; the other has little to update.
            let [first, second] = &connection.directions;
            let busier = usize::from(first.payload_bytes < second.payload_bytes);
            self.pace(&connection.directions[busier])
        });
        let views = paces.map(|pace| self.view(pace));
        for view in views {
            ask_for(view.first_on_the_way().cast());
        }
    }

    #[inline(always)]
    fn pace<'a>(&'a self, direction: &'a Direction) -> &'a Pace {
        let pace = direction.pace().unwrap_or(&self.pace);
        ask_for(from(pace));
        ask_for(from(pace).wrapping_add(LINE_BYTES));
        ask_for(from(pace).wrapping_add(2 * LINE_BYTES));
        ask_for(from(&pace.late));
        pace
    }

    #[inline(always)]
    fn view<'a>(&'a self, pace: &'a Pace) -> &'a SenderView {
        let view = pace.view.as_deref().unwrap_or(&self.view);
        ask_for(from(view));
        ask_for(from(view).wrapping_add(LINE_BYTES));
        // An ACK removes several of the oldest entries, four per line; data is appended after the newest.
        let (older, newer) = pace.rest.as_slices();
        ask_for(older.as_ptr().cast());
        ask_for(older.as_ptr().cast::<u8>().wrapping_add(LINE_BYTES));
        let newest = if newer.is_empty() { older } else { newer };
        ask_for(newest.as_ptr_range().end.cast());
        view
    }
}
