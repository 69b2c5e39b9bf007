//! Collect header fields of chosen connections that the per-segment table lacks; they distinguish devices from hosts.

use std::collections::BTreeSet;

use crate::output::pass::Sink;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::Segment;

/// A segment's header.
#[derive(Clone, Copy, Debug)]
pub struct HeaderRow {
    pub connection: u32,
    pub is_from_initiator: bool,
    pub segment: Segment,
    pub events: u64,
}

/// Collects the headers of some connections, at most a given number.
pub struct HeaderRows {
    wanted: BTreeSet<u32>,
    most: usize,
    pub rows: Vec<HeaderRow>,
}

impl HeaderRows {
    pub fn of(wanted: BTreeSet<u32>, most: usize) -> Self {
        HeaderRows {
            wanted,
            most,
            rows: Vec::new(),
        }
    }
}

impl Sink for HeaderRows {
    fn take(&mut self, segment: &Segment, annotation: &Annotation, _: &Connection) -> bool {
        if self.wanted.contains(&annotation.connection) {
            self.rows.push(HeaderRow {
                connection: annotation.connection,
                is_from_initiator: annotation.is_from_initiator,
                segment: *segment,
                events: annotation.events.into(),
            });
        }
        self.rows.len() < self.most
    }
}
