//! The per-segment table as columns in memory, for a whole capture or for the segments of a view.

use crate::event::Events;
use crate::output::pass::Sink;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::{Segment, ACK};

/// Additional columns of a view's rows, all signed 64-bit.
pub const VIEW_COLUMNS: [&str; 11] = [
    "sequence",
    "acknowledged",
    "right_edge",
    "sack_left_1",
    "sack_right_1",
    "sack_left_2",
    "sack_right_2",
    "sack_left_3",
    "sack_right_3",
    "sack_left_4",
    "sack_right_4",
];

/// Placeholder for no cause.
pub const NO_CAUSE: u8 = u8::MAX;

/// Rows as columns. Memory grows with the number of rows, as the caller asked for all of them.
#[derive(Clone, Default)]
pub struct RowColumns {
    pub only: Option<u32>,
    pub frame: Vec<u64>,
    pub time_ns: Vec<i64>,
    pub connection: Vec<u32>,
    pub is_from_initiator: Vec<bool>,
    pub endpoints: Vec<([u8; 16], u16, [u8; 16], u16)>,
    pub seq: Vec<u32>,
    pub ack: Vec<u32>,
    pub length: Vec<u32>,
    pub flags: Vec<u16>,
    pub window_raw: Vec<u16>,
    pub window: Vec<Option<u32>>,
    pub shift: Vec<Option<u8>>,
    pub bytes_in_flight: Vec<Option<u32>>,
    pub pipe: Vec<Option<u32>>,
    pub rtt_ns: Vec<Option<u64>>,
    pub events: Vec<Events>,
    /// Cause of a retransmitted or late segment: an index into
    /// [`crate::tcp::recovery::cause::RetransmissionCause::ALL`], or [`NO_CAUSE`].
    pub cause: Vec<u8>,
}

impl RowColumns {
    /// Create empty columns. `only` restricts the rows to one connection.
    pub fn of(only: Option<u32>) -> Self {
        RowColumns {
            only,
            ..Self::default()
        }
    }

    pub fn len(&self) -> usize {
        self.frame.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    pub fn push(&mut self, segment: &Segment, annotation: &Annotation) {
        self.frame.push(segment.frame);
        self.time_ns.push(segment.time_ns);
        self.connection.push(annotation.connection);
        self.is_from_initiator.push(annotation.is_from_initiator);
        self.endpoints
            .push((segment.src, segment.src_port, segment.dst, segment.dst_port));
        self.seq.push(segment.seq);
        self.ack.push(segment.ack);
        self.length.push(segment.payload_len);
        self.flags.push(segment.flags);
        self.window_raw.push(segment.window);
        self.window.push(annotation.window_bytes);
        self.shift.push(annotation.shift);
        self.bytes_in_flight.push(annotation.flight_bytes);
        self.pipe.push(annotation.pipe_bytes);
        self.rtt_ns.push(annotation.rtt_ns);
        self.events.push(annotation.events);
        let evidence = annotation.evidence.as_ref();
        self.cause
            .push(evidence.map_or(NO_CAUSE, |found| found.diagnosis.cause as u8));
    }
}

impl Sink for RowColumns {
    fn take(&mut self, segment: &Segment, annotation: &Annotation, _: &Connection) -> bool {
        if self.only.is_none_or(|only| only == annotation.connection) {
            self.push(segment, annotation);
        }
        true
    }
}

/// The rows of a view, unless there are too many.
pub struct ViewRows {
    most: usize,
    is_over: bool,
    rows: RowColumns,
    /// In the order of [`VIEW_COLUMNS`].
    positions: [Vec<Option<i64>>; VIEW_COLUMNS.len()],
}

impl ViewRows {
    /// Keep at most `most` rows; with more, keep none.
    pub fn new(most: usize) -> Self {
        ViewRows {
            most,
            is_over: false,
            rows: RowColumns::default(),
            positions: Default::default(),
        }
    }

    /// Append a row. `sent` and `acked` map the sequence numbers of the sender and of the other side to the axes of
    /// their directions.
    pub fn push(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        sent: impl Fn(u32) -> Option<i64>,
        acked: impl Fn(u32) -> Option<i64>,
    ) {
        if self.is_over {
            return;
        }
        if self.rows.len() >= self.most {
            *self = ViewRows::new(self.most);
            self.is_over = true;
            return;
        }
        self.rows.push(segment, annotation);
        let has_ack = segment.flags & ACK != 0;
        let acknowledged = acked(segment.ack).filter(|_| has_ack);
        let edge = acknowledged
            .zip(annotation.window_bytes)
            .map(|(at, bytes)| at + i64::from(bytes));
        let blocks = segment.options.sack_blocks();
        let ends = (0..4).flat_map(|number| {
            let block = blocks.get(number);
            [
                block.and_then(|block| acked(block.0)),
                block.and_then(|block| acked(block.1)),
            ]
        });
        let values = [sent(segment.seq), acknowledged, edge].into_iter();
        for (column, value) in self.positions.iter_mut().zip(values.chain(ends)) {
            column.push(value);
        }
    }

    /// Return the rows and their positions, or None if there were too many.
    pub fn get(&self) -> Option<(&RowColumns, &[Vec<Option<i64>>])> {
        (!self.is_over).then_some((&self.rows, &self.positions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation() -> Annotation {
        Annotation {
            window_bytes: Some(100),
            shift: Some(0),
            ..Annotation::default()
        }
    }

    #[test]
    fn positions_are_on_the_axis_of_their_direction() {
        let mut rows = ViewRows::new(1);
        let mut segment = Segment {
            seq: 7,
            ack: 50,
            flags: ACK,
            ..Segment::EMPTY
        };
        (segment.options.sack_count, segment.options.sack[0]) = (1, (60, 70));
        rows.push(
            &segment,
            &annotation(),
            |seq| Some(i64::from(seq) + 1_000),
            |seq| Some(i64::from(seq) + 2_000),
        );
        let (columns, positions) = rows.get().unwrap();
        assert_eq!((columns.len(), columns.is_empty()), (1, false));
        let row: Vec<_> = positions.iter().map(|column| column[0]).collect();
        assert_eq!(row[..3], [Some(1_007), Some(2_050), Some(2_150)]);
        assert_eq!(row[3..6], [Some(2_060), Some(2_070), None]);
    }

    #[test]
    fn more_rows_than_allowed_leave_none() {
        let mut rows = ViewRows::new(1);
        for _ in 0..3 {
            rows.push(&Segment::EMPTY, &annotation(), |_| None, |_| None);
        }
        assert!(rows.get().is_none());
        assert!(ViewRows::new(0).get().is_some());
    }
}
