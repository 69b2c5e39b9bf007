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

    pub fn has_name(self, name: &str) -> bool {
        let column = COLUMNS.iter().position(|column| *column == name);
        column.is_some_and(|column| self.has(column))
    }

    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// Writes the table during a pass, which a write error stops.
pub trait RowSink: Sink {
    /// Write what is left. Return the number of rows.
    ///
    /// # Errors
    ///
    /// The first error of writing.
    fn finish(&mut self) -> io::Result<u64>;
}

/// Text that is written together.
const BLOCK_BYTES: usize = 1 << 18;
/// More than the longest row takes, with events and names of columns.
const ROW_BYTES: usize = 1 << 11;

/// Writes rows as text.
pub struct RowWriter<W: Write> {
    out: W,
    format: Format,
    only: Option<u32>,
    chosen: ChosenColumns,
    /// Rows that are not yet written.
    rows_text: Vec<u8>,
    /// Each at the place that its last bytes choose.
    addresses: Vec<Written>,
    error: Option<io::Error>,
    pub rows: u64,
}

/// Addresses whose text is kept; a power of two.
const WRITTEN: usize = 256;

/// An address and its text.
#[derive(Clone)]
struct Written {
    address: [u8; 16],
    /// As long as the longest address.
    text: [u8; 40],
    length: usize,
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
            rows_text: Vec::with_capacity(BLOCK_BYTES),
            addresses: vec![Written::of([0; 16]); WRITTEN],
            error: None,
            rows: 0,
        })
    }

    fn write_row(&mut self, segment: &Segment, annotation: &Annotation) -> io::Result<()> {
        if self.rows_text.len() > BLOCK_BYTES - ROW_BYTES {
            self.out.write_all(&self.rows_text)?;
            self.rows_text.clear();
        }
        let mut row = Row {
            line: &mut self.rows_text,
            is_json: self.format == Format::JsonLines,
            chosen: self.chosen,
            column: 0,
            is_first: true,
        };
        row.number(segment.frame);
        row.signed(segment.time_ns);
        row.number(annotation.connection.into());
        row.text(direction_name(annotation.is_from_initiator));
        row.address(segment.src, &mut self.addresses);
        row.number(segment.src_port.into());
        row.address(segment.dst, &mut self.addresses);
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
        Ok(())
    }
}

impl Written {
    fn of(address: [u8; 16]) -> Written {
        let written = address_text(&address);
        let mut text = [0; 40];
        let length = written.len().min(text.len());
        text[..length].copy_from_slice(&written.as_bytes()[..length]);
        Written {
            address,
            text,
            length,
        }
    }
}

impl<W: Write> RowSink for RowWriter<W> {
    fn finish(&mut self) -> io::Result<u64> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.out.write_all(&self.rows_text)?;
        self.rows_text.clear();
        self.out.flush()?;
        Ok(self.rows)
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

    #[inline(always)]
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

    #[inline(always)]
    fn text(&mut self, value: &str) {
        if self.begin() {
            self.quote();
            self.line.extend_from_slice(value.as_bytes());
            self.quote();
        }
    }

    #[inline(always)]
    fn address(&mut self, address: [u8; 16], known: &mut [Written]) {
        if self.begin() {
            self.quote();
            let place = usize::from(address[15] ^ address[14].rotate_left(4) ^ address[13]);
            let written = &mut known[place % WRITTEN];
            if written.address != address {
                *written = Written::of(address);
            }
            push_short(self.line, &written.text, written.length);
            self.quote();
        }
    }

    fn events(&mut self, events: Events) {
        if self.begin() {
            self.quote();
            if events != 0 {
                write_event_names(events, |part| self.line.extend_from_slice(part.as_bytes()));
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
fn push_decimal(line: &mut Vec<u8>, value: u64) {
    let digits = Digits::of(value);
    push_short(line, digits.rest(), digits.count());
}

/// Append the first `count` bytes: a copy of constant length takes a few instructions, one of variable length a call.
#[inline(always)]
fn push_short<const N: usize>(line: &mut Vec<u8>, text: &[u8; N], count: usize) {
    let length = line.len();
    line.extend_from_slice(text);
    line.truncate(length + count);
}

/// Digits of the longest number, u64's largest.
const MOST_DIGITS: usize = 20;

/// A number's decimal digits.
pub struct Digits {
    /// The digits end in the middle, so that as many bytes follow the first one, wherever it is.
    bytes: [u8; 2 * MOST_DIGITS],
    first: usize,
}

impl Digits {
    #[inline(always)]
    pub fn of(mut value: u64) -> Digits {
        let mut bytes = [0; 2 * MOST_DIGITS];
        let mut first = MOST_DIGITS;
        // Eight digits at a time need no division of 64 bits.
        while value >= 100_000_000 {
            let mut eight = (value % 100_000_000) as u32;
            value /= 100_000_000;
            for _ in 0..4 {
                first -= 2;
                bytes[first..first + 2].copy_from_slice(&PAIRS[(eight % 100) as usize]);
                eight /= 100;
            }
        }
        let mut rest = value as u32;
        while rest >= 100 {
            first -= 2;
            bytes[first..first + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
            rest /= 100;
        }
        let [ten, one] = PAIRS[(rest % 100) as usize];
        first -= 1;
        bytes[first] = one;
        if rest >= 10 {
            first -= 1;
            bytes[first] = ten;
        }
        Digits { bytes, first }
    }

    #[inline(always)]
    pub fn count(&self) -> usize {
        MOST_DIGITS - self.first
    }

    /// The digits, and zeros behind them.
    #[inline(always)]
    fn rest(&self) -> &[u8; MOST_DIGITS] {
        (self.bytes.get(self.first..))
            .and_then(<[u8]>::first_chunk)
            .unwrap_or(&[0; MOST_DIGITS])
    }

    #[inline(always)]
    pub fn text(&self) -> &str {
        let digits = self.bytes.get(self.first..MOST_DIGITS);
        std::str::from_utf8(digits.unwrap_or_default()).unwrap_or_default()
    }
}

/// The digits of 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

pub fn direction_name(is_from_initiator: bool) -> &'static str {
    if is_from_initiator {
        "a"
    } else {
        "b"
    }
}

/// Join the names of a set of events with `|`.
pub fn event_names(events: Events) -> String {
    let mut text = String::new();
    write_event_names(events, |part| text.push_str(part));
    text
}

fn write_event_names(mut events: Events, mut push: impl FnMut(&str)) {
    let mut separator = "";
    while events != 0 {
        push(separator);
        separator = "|";
        let name = NAMES.get(events.trailing_zeros() as usize);
        push(name.copied().unwrap_or_default());
        events &= events - 1;
    }
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
            writer.finish().unwrap();
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
            writer.finish().unwrap();
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
        for value in [
            0,
            7,
            10,
            99,
            100,
            1_000_000,
            99_999_999,
            100_000_000,
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut line = Vec::new();
            push_decimal(&mut line, value);
            assert_eq!(line, value.to_string().as_bytes());
        }
    }
}
