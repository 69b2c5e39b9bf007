//! The per-segment table: one row per TCP segment, as CSV, JSON lines or columns.

use std::io::{self, Write};

use crate::event::{Events, NAMES};
use crate::output::address::address_text;
use crate::output::decimal::{push_decimal, Text};
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

/// The columns from `connection` to `dport`.
const ENDS: usize = 6;

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
    /// Rows that are not yet written, and room.
    block: Vec<u8>,
    filled: usize,
    /// Text common to all rows of a connection and direction; their numbers select the slot.
    shared: Vec<Shared>,
    error: Option<io::Error>,
    pub rows: u64,
}

/// Connections whose shared text is kept, times two for their directions; a power of two.
const SHARED: usize = 1 << 12;
/// More than the longest text, of JSON with IPv6.
const SHARED_BYTES: usize = 176;
/// More than the longest text of CSV with IPv4.
const SHORT_BYTES: usize = 64;

/// The columns from `connection` to `dport` of one direction's rows, as text.
#[derive(Clone)]
struct Shared {
    /// Twice the connection's number, and 1 for the initiator's rows; `u64::MAX` for no direction.
    key: u64,
    length: usize,
    text: [u8; SHARED_BYTES],
}

impl Shared {
    const NOTHING: Shared = Shared {
        key: u64::MAX,
        length: 0,
        text: [0; SHARED_BYTES],
    };
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
            block: vec![0; BLOCK_BYTES],
            filled: 0,
            shared: vec![Shared::NOTHING; SHARED],
            error: None,
            rows: 0,
        })
    }

    fn write_block(&mut self) -> io::Result<()> {
        let filled = std::mem::take(&mut self.filled);
        self.out
            .write_all(self.block.get(..filled).unwrap_or_default())
    }

    fn write(&mut self, segment: &Segment, annotation: &Annotation) -> io::Result<()> {
        if self.format == Format::Csv && self.chosen == ChosenColumns::ALL {
            self.write_row::<true>(segment, annotation)
        } else {
            self.write_row::<false>(segment, annotation)
        }
    }

    /// `IS_PLAIN`: as CSV with all columns, which needs no test for each column.
    fn write_row<const IS_PLAIN: bool>(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
    ) -> io::Result<()> {
        if self.filled > BLOCK_BYTES - ROW_BYTES {
            self.write_block()?;
        }
        let room = self.block.get_mut(self.filled..);
        let Some(bytes) = room.and_then(|room| room.first_chunk_mut()) else {
            return Ok(());
        };
        let mut row = Row::<IS_PLAIN> {
            line: Line { bytes, length: 0 },
            is_json: !IS_PLAIN && self.format == Format::JsonLines,
            chosen: self.chosen,
            column: 0,
            is_first: true,
        };
        row.number(segment.frame);
        row.signed(segment.time_ns);
        row.ends(segment, annotation, &mut self.shared);
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
        self.filled += row.line.length;
        Ok(())
    }
}

impl<W: Write> RowSink for RowWriter<W> {
    fn finish(&mut self) -> io::Result<u64> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.write_block()?;
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
        match self.write(segment, annotation) {
            Ok(()) => true,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}

/// The bytes of a row, which are enough for the longest.
struct Line<'a> {
    bytes: &'a mut [u8; ROW_BYTES],
    length: usize,
}

impl Line<'_> {
    /// Append the first `count` bytes: a copy of constant length takes a few instructions, one of variable length a
    /// call.
    #[inline(always)]
    fn push_short<const N: usize>(&mut self, text: &[u8; N], count: usize) {
        let room = self.bytes.get_mut(self.length..);
        if let Some(place) = room.and_then(|room| room.first_chunk_mut::<N>()) {
            *place = *text;
            self.length += count;
        }
    }

    #[inline(always)]
    fn push(&mut self, text: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + text.len()) {
            place.copy_from_slice(text);
            self.length += text.len();
        }
    }
}

impl Text for Line<'_> {
    #[inline(always)]
    fn push_digits(&mut self, digits: [u8; 8], count: usize) {
        self.push_short(&digits, count);
    }
}

/// A row being written. No value contains a character that either format must escape.
struct Row<'a, const IS_PLAIN: bool> {
    line: Line<'a>,
    is_json: bool,
    chosen: ChosenColumns,
    column: usize,
    is_first: bool,
}

impl<const IS_PLAIN: bool> Row<'_, IS_PLAIN> {
    /// Start the next column; false if it is not selected.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        let column = self.column;
        self.column += 1;
        if !IS_PLAIN && !self.chosen.has(column) {
            return false;
        }
        if self.is_json {
            let name = COLUMNS.get(column).copied().unwrap_or_default();
            self.line.push(if self.is_first { b"{\"" } else { b",\"" });
            self.line.push(name.as_bytes());
            self.line.push(b"\":");
        } else if !self.is_first {
            self.line.push(b",");
        }
        self.is_first = false;
        true
    }

    #[inline(always)]
    fn number(&mut self, value: u64) {
        if self.begin() {
            push_decimal(&mut self.line, value);
        }
    }

    #[inline(always)]
    fn signed(&mut self, value: i64) {
        if self.begin() {
            if value < 0 {
                self.line.push(b"-");
            }
            push_decimal(&mut self.line, value.unsigned_abs());
        }
    }

    #[inline(always)]
    fn optional(&mut self, value: Option<u64>) {
        if !self.begin() {
            return;
        }
        match value {
            Some(value) => push_decimal(&mut self.line, value),
            None if self.is_json => self.line.push(b"null"),
            None => {}
        }
    }

    #[inline(always)]
    fn text(&mut self, value: &str) {
        if self.begin() {
            self.quote();
            self.line.push(value.as_bytes());
            self.quote();
        }
    }

    /// Write what all rows of the segment's direction share.
    #[inline(always)]
    fn ends(&mut self, segment: &Segment, annotation: &Annotation, shared: &mut [Shared]) {
        let key = u64::from(annotation.connection) << 1 | u64::from(annotation.is_from_initiator);
        let Some(known) = shared.get_mut(key as usize % SHARED) else {
            return;
        };
        if known.key == key {
            match known.text.first_chunk::<SHORT_BYTES>() {
                Some(text) if known.length <= SHORT_BYTES => {
                    self.line.push_short(text, known.length);
                }
                _ => self.line.push_short(&known.text, known.length),
            }
            self.column += ENDS;
            self.is_first &= known.length == 0;
            return;
        }
        let begin = self.line.length;
        self.number(annotation.connection.into());
        self.text(direction_name(annotation.is_from_initiator));
        self.text(&address_text(&segment.src));
        self.number(segment.src_port.into());
        self.text(&address_text(&segment.dst));
        self.number(segment.dst_port.into());
        let written = self.line.bytes.get(begin..self.line.length);
        let written = written.unwrap_or_default();
        if let Some(text) = known.text.get_mut(..written.len()) {
            text.copy_from_slice(written);
            (known.key, known.length) = (key, written.len());
        }
    }

    fn events(&mut self, events: Events) {
        if self.begin() {
            self.quote();
            if events != 0 {
                write_event_names(events, |part| self.line.push(part.as_bytes()));
            }
            self.quote();
        }
    }

    fn quote(&mut self) {
        if self.is_json {
            self.line.push(b"\"");
        }
    }

    fn end(&mut self) {
        if self.is_json {
            self.line
                .push(if self.is_first { b"{}" } else { &b"}"[..] });
        }
        self.line.push(b"\n");
    }
}

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
            writer.write(&segment, &annotation).unwrap();
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
    fn the_longest_row_fits_and_repeats() {
        let segment = Segment {
            frame: u64::MAX,
            time_ns: i64::MIN,
            src: [0xab; 16],
            dst: [0xcd; 16],
            src_port: u16::MAX,
            dst_port: u16::MAX,
            seq: u32::MAX,
            ack: u32::MAX,
            payload_len: u32::MAX,
            flags: 4095,
            window: u16::MAX,
            ..Segment::EMPTY
        };
        let annotation = Annotation {
            connection: u32::MAX,
            events: (0..NAMES.len()).fold(0, |events, place| events | 1 << place),
            window_bytes: Some(u32::MAX),
            shift: Some(14),
            flight_bytes: Some(u32::MAX),
            pipe_bytes: Some(u32::MAX),
            rtt_ns: Some(u64::MAX),
            ..Annotation::default()
        };
        for format in [Format::Csv, Format::JsonLines] {
            let mut out = Vec::new();
            let mut writer = RowWriter::new(&mut out, format, None, ChosenColumns::ALL).unwrap();
            for _ in 0..1_000 {
                writer.write(&segment, &annotation).unwrap();
            }
            writer.finish().unwrap();
            let text = String::from_utf8(out).unwrap();
            let rows: Vec<&str> = text
                .lines()
                .skip(usize::from(format == Format::Csv))
                .collect();
            assert!(rows.len() == 1_000 && rows.iter().all(|row| *row == rows[0]));
            assert!(rows[0].len() < ROW_BYTES - SHARED_BYTES);
            assert!(rows[0].contains(&event_names(annotation.events)));
            assert!(
                rows[0].contains("-9223372036854775808")
                    && rows[0].contains("18446744073709551615")
            );
            assert!(rows[0].contains("abab:abab:abab:abab:abab:abab:abab:abab"));
        }
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
            writer.write(&segment, &annotation()).unwrap();
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
}
