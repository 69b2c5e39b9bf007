//! The per-segment table: one row a TCP segment, as CSV, JSON lines or columns.

use std::io::{self, Write};

use crate::connection::state::Connection;
use crate::event::{Events, NAMES};
use crate::output::address::address_text;
use crate::output::pass::Sink;
use crate::tracker::Annotation;
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

/// Writes rows as text. Stops the pass when writing fails.
pub struct RowWriter<W: Write> {
    out: W,
    format: Format,
    only: Option<u32>,
    line: Vec<u8>,
    pub error: Option<io::Error>,
    pub rows: u64,
}

impl<W: Write> RowWriter<W> {
    /// `only` limits the table to one connection.
    pub fn new(mut out: W, format: Format, only: Option<u32>) -> io::Result<Self> {
        if format == Format::Csv {
            writeln!(out, "{}", COLUMNS.join(","))?;
        }
        Ok(RowWriter {
            out,
            format,
            only,
            line: Vec::with_capacity(512),
            error: None,
            rows: 0,
        })
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write_row(&mut self, segment: &Segment, annotation: &Annotation) -> io::Result<()> {
        self.line.clear();
        let is_json = self.format == Format::JsonLines;
        let mut row = Row {
            line: &mut self.line,
            is_json,
            column: 0,
        };
        row.number(segment.frame)?;
        row.number(segment.time_ns)?;
        row.number(annotation.connection)?;
        row.text(direction_name(annotation))?;
        row.text(&address_text(&segment.src))?;
        row.number(segment.src_port)?;
        row.text(&address_text(&segment.dst))?;
        row.number(segment.dst_port)?;
        row.number(segment.seq)?;
        row.number(segment.ack)?;
        row.number(segment.payload_len)?;
        row.number(segment.flags)?;
        row.number(segment.window)?;
        row.optional(annotation.window_bytes)?;
        row.optional(annotation.shift)?;
        row.optional(annotation.flight_bytes)?;
        row.optional(annotation.pipe_bytes)?;
        row.optional(annotation.rtt_ns)?;
        row.text(&event_names(annotation.events))?;
        row.end()?;
        self.out.write_all(&self.line)
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

struct Row<'a> {
    line: &'a mut Vec<u8>,
    is_json: bool,
    column: usize,
}

impl Row<'_> {
    fn begin(&mut self) -> io::Result<()> {
        if self.is_json {
            let opening = if self.column == 0 { '{' } else { ',' };
            write!(self.line, "{opening}\"{}\":", COLUMNS[self.column])?;
        } else if self.column > 0 {
            self.line.push(b',');
        }
        self.column += 1;
        Ok(())
    }

    fn number(&mut self, value: impl std::fmt::Display) -> io::Result<()> {
        self.begin()?;
        write!(self.line, "{value}")
    }

    fn optional(&mut self, value: Option<impl std::fmt::Display>) -> io::Result<()> {
        match value {
            Some(value) => self.number(value),
            None => {
                self.begin()?;
                if self.is_json {
                    self.line.extend_from_slice(b"null");
                }
                Ok(())
            }
        }
    }

    /// Addresses, direction and event names hold no character that either format would have to escape.
    fn text(&mut self, value: &str) -> io::Result<()> {
        self.begin()?;
        if self.is_json {
            write!(self.line, "\"{value}\"")
        } else {
            self.line.extend_from_slice(value.as_bytes());
            Ok(())
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.line
            .extend_from_slice(if self.is_json { b"}\n" } else { b"\n" });
        Ok(())
    }
}

pub fn direction_name(annotation: &Annotation) -> &'static str {
    if annotation.is_from_initiator {
        "a"
    } else {
        "b"
    }
}

/// Names of a set of events joined by `|`.
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
        let annotation = Annotation {
            connection: 7,
            side: 1,
            is_from_initiator: false,
            events: ZERO_WINDOW | WINDOW_SHRINK,
            window_bytes: None,
            shift: None,
            flight_bytes: Some(0),
            pipe_bytes: Some(0),
            rtt_ns: Some(9),
            evidence: None,
            stall: None,
        };
        let write = |format| {
            let mut out = Vec::new();
            let mut writer = RowWriter::new(&mut out, format, None).unwrap();
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
}
