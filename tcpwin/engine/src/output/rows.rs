//! The per-segment table: one row per TCP segment, as CSV, JSON lines or columns.

use std::io::{self, Write};

use crate::event::{Events, NAMES};
use crate::output::address::address_text;
use crate::output::pass::Sink;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::Segment;

pub const COLUMNS: [&str; 19] = [
    "frame",
    "time_ns",
    "connection",
    "direction",
    "src",
    "sport",
    "dst",
    "dport",
    "seq",
    "ack",
    "length",
    "flags",
    "window_raw",
    "window",
    "shift",
    "bytes_in_flight",
    "pipe",
    "rtt_ns",
    "events",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    JsonLines,
}

/// A subset of [`COLUMNS`], written in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenColumns(u32);

impl ChosenColumns {
    pub const ALL: ChosenColumns = ChosenColumns((1 << COLUMNS.len()) - 1);

    /// Return None if a name is not a column.
    pub fn of<'a>(names: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut chosen = 0;
        for name in names {
            chosen |= 1 << COLUMNS.iter().position(|column| *column == name)?;
        }
        Some(ChosenColumns(chosen))
    }

    #[inline(always)]
    fn has(self, column: usize) -> bool {
        self.0 >> column & 1 != 0
    }
}

/// Writes rows as text. A write error stops the pass.
pub struct RowWriter<W: Write> {
    out: W,
    format: Format,
    only: Option<u32>,
    chosen: ChosenColumns,
    line: Vec<u8>,
    addresses: [Written; 2],
    pub error: Option<io::Error>,
    pub rows: u64,
}

/// An address and its text, cached because a connection's two sides alternate.
#[derive(Default)]
struct Written {
    address: [u8; 16],
    text: String,
}

impl<W: Write> RowWriter<W> {
    /// Write the column names for CSV. `only` restricts the table to one connection.
    pub fn new(
        mut out: W,
        format: Format,
        only: Option<u32>,
        chosen: ChosenColumns,
    ) -> io::Result<Self> {
        if format == Format::Csv {
            let heads = COLUMNS.iter().enumerate();
            let heads = heads.filter(|(column, _)| chosen.has(*column));
            let heads: Vec<&str> = heads.map(|(_, name)| *name).collect();
            writeln!(out, "{}", heads.join(","))?;
        }
        Ok(RowWriter {
            out,
            format,
            only,
            chosen,
            line: Vec::with_capacity(512),
            addresses: Default::default(),
            error: None,
            rows: 0,
        })
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write_row(&mut self, segment: &Segment, annotation: &Annotation) -> io::Result<()> {
        self.line.clear();
        let [src, dst] = &mut self.addresses;
        if src.address != segment.src {
            std::mem::swap(src, dst);
        }
        let src = src.of(&segment.src);
        let dst = dst.of(&segment.dst);
        let mut row = Row {
            line: &mut self.line,
            is_json: self.format == Format::JsonLines,
            chosen: self.chosen,
            column: 0,
            is_first: true,
        };
        row.number(segment.frame);
        row.signed(segment.time_ns);
        row.number(annotation.connection.into());
        row.text(direction_name(annotation));
        row.text(src);
        row.number(segment.src_port.into());
        row.text(dst);
        row.number(segment.dst_port.into());
        row.number(segment.seq.into());
        row.number(segment.ack.into());
        row.number(segment.payload_len.into());
        row.number(segment.flags.into());
        row.number(segment.window.into());
        row.optional(annotation.window_bytes.map(u64::from));
        row.optional(annotation.shift.map(u64::from));
        row.optional(annotation.flight_bytes.map(u64::from));
        row.optional(annotation.pipe_bytes.map(u64::from));
        row.optional(annotation.rtt_ns);
        row.events(annotation.events);
        row.end();
        self.out.write_all(&self.line)
    }
}

impl Written {
    fn of(&mut self, address: &[u8; 16]) -> &str {
        if self.address != *address || self.text.is_empty() {
            *self = Written {
                address: *address,
                text: address_text(address),
            };
        }
        &self.text
    }
}

impl<W: Write> Sink for RowWriter<W> {
    fn take(&mut self, segment: &Segment, annotation: &Annotation, _: &Connection) -> bool {
        if self.only.is_some_and(|only| only != annotation.connection) {
            return true;
        }
        self.rows += 1;
        match self.write_row(segment, annotation) {
            Ok(()) => true,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}

/// A row being written. No value contains a character that either format must escape.
struct Row<'a> {
    line: &'a mut Vec<u8>,
    is_json: bool,
    chosen: ChosenColumns,
    column: usize,
    is_first: bool,
}

impl Row<'_> {
    /// Start the next column; false if it is not selected.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        let column = self.column;
        self.column += 1;
        if !self.chosen.has(column) {
            return false;
        }
        if self.is_json {
            let opening = if self.is_first { b'{' } else { b',' };
            self.line.extend_from_slice(&[opening, b'"']);
            let name = COLUMNS.get(column).copied().unwrap_or_default();
            self.line.extend_from_slice(name.as_bytes());
            self.line.extend_from_slice(b"\":");
        } else if !self.is_first {
            self.line.push(b',');
        }
        self.is_first = false;
        true
    }

    #[inline(always)]
    fn number(&mut self, value: u64) {
        if self.begin() {
            push_decimal(self.line, value);
        }
    }

    fn signed(&mut self, value: i64) {
        if self.begin() {
            if value < 0 {
                self.line.push(b'-');
            }
            push_decimal(self.line, value.unsigned_abs());
        }
    }

    #[inline(always)]
    fn optional(&mut self, value: Option<u64>) {
        if !self.begin() {
            return;
        }
        match value {
            Some(value) => push_decimal(self.line, value),
            None if self.is_json => self.line.extend_from_slice(b"null"),
            None => {}
        }
    }

    fn text(&mut self, value: &str) {
        if self.begin() {
            self.quote();
            self.line.extend_from_slice(value.as_bytes());
            self.quote();
        }
    }

    fn events(&mut self, events: Events) {
        if self.begin() {
            self.quote();
            if events != 0 {
                self.line.extend_from_slice(event_names(events).as_bytes());
            }
            self.quote();
        }
    }

    fn quote(&mut self) {
        if self.is_json {
            self.line.push(b'"');
        }
    }

    fn end(&mut self) {
        if self.is_json {
            let end: &[u8] = if self.is_first { b"{}\n" } else { b"}\n" };
            self.line.extend_from_slice(end);
        } else {
            self.line.push(b'\n');
        }
    }
}

/// Append a number in decimal.
#[inline(always)]
fn push_decimal(line: &mut Vec<u8>, mut value: u64) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        first -= 1;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(digits.get(first..).unwrap_or_default());
}

pub fn direction_name(annotation: &Annotation) -> &'static str {
    if annotation.is_from_initiator {
        "a"
    } else {
        "b"
    }
}

/// Join the names of a set of events with `|`.
pub fn event_names(mut events: Events) -> String {
    let mut text = String::new();
    while events != 0 {
        if !text.is_empty() {
            text.push('|');
        }
        text.push_str(
            NAMES
                .get(events.trailing_zeros() as usize)
                .copied()
                .unwrap_or_default(),
        );
        events &= events - 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{WINDOW_SHRINK, ZERO_WINDOW};

    fn annotation() -> Annotation {
        Annotation {
            connection: 7,
            side: 1,
            events: ZERO_WINDOW | WINDOW_SHRINK,
            flight_bytes: Some(0),
            pipe_bytes: Some(0),
            rtt_ns: Some(9),
            ..Annotation::default()
        }
    }

    #[test]
    fn csv_and_json_hold_the_same_row() {
        let segment = Segment {
            frame: 3,
            time_ns: 5,
            src_port: 80,
            window: 0,
            flags: 0x10,
            ..Segment::EMPTY
        };
        let annotation = annotation();
        let write = |format| {
            let mut out = Vec::new();
            let mut writer = RowWriter::new(&mut out, format, None, ChosenColumns::ALL).unwrap();
            writer.write_row(&segment, &annotation).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            write(Format::Csv).lines().nth(1).unwrap(),
            "3,5,7,b,::,80,::,0,0,0,0,16,0,,,0,0,9,zero_window|window_shrink"
        );
        let json = write(Format::JsonLines);
        assert!(json.starts_with(
            "{\"frame\":3,\"time_ns\":5,\"connection\":7,\"direction\":\"b\",\"src\":\"::\""
        ));
        assert!(json.ends_with("\"window\":null,\"shift\":null,\"bytes_in_flight\":0,\"pipe\":0,\"rtt_ns\":9,\"events\":\"zero_window|window_shrink\"}\n"));
    }

    #[test]
    fn chosen_columns_are_in_table_order() {
        let write = |format| {
            let mut out = Vec::new();
            let chosen = ChosenColumns::of(["window", "frame", "events"].into_iter()).unwrap();
            let mut writer = RowWriter::new(&mut out, format, None, chosen).unwrap();
            let segment = Segment {
                frame: 3,
                ..Segment::EMPTY
            };
            writer.write_row(&segment, &annotation()).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            write(Format::Csv),
            "frame,window,events\n3,,zero_window|window_shrink\n"
        );
        let json = "{\"frame\":3,\"window\":null,\"events\":\"zero_window|window_shrink\"}\n";
        assert_eq!(write(Format::JsonLines), json);
        assert_eq!(ChosenColumns::of(["nonsense"].into_iter()), None);
    }

    #[test]
    fn every_number_has_its_digits() {
        for value in [0, 7, 10, 99, 100, 1_000_000, u64::MAX - 1, u64::MAX] {
            let mut line = Vec::new();
            push_decimal(&mut line, value);
            assert_eq!(line, value.to_string().as_bytes());
        }
    }
}
