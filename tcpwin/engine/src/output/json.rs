//! Connections as JSON text, written directly from the field list.

use std::fmt::Write;

use crate::output::address::write_address;
use crate::output::field::{ConnectionView, DirectionView, Value};
use crate::output::fields::{direction_values, CONNECTION_FIELDS};
use crate::tcp::connection::state::Connection;
use crate::tcp::window::zero::Episode;

/// Append a connection as an object. Writing to a String cannot fail, so results are dropped.
pub fn write_connection(out: &mut String, id: u32, connection: &Connection) {
    out.push('{');
    let view = ConnectionView { id, connection };
    write_fields(
        out,
        CONNECTION_FIELDS
            .iter()
            .map(|field| (field.name, (field.get)(&view))),
    );
    for (name, from_initiator) in [("a_to_b", true), ("b_to_a", false)] {
        let view = DirectionView::new(connection, from_initiator);
        let _ = write!(out, ",\"{name}\":{{");
        write_fields(out, direction_values(&view));
        out.push_str(",\"window_scale_evidence\":[");
        for (position, line) in view.scale_evidence().iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            write_text(out, line);
        }
        out.push_str("],\"zero_window_episodes\":[");
        for (position, episode) in view.episodes().iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            write_episode(out, episode);
        }
        out.push_str("]}");
    }
    out.push('}');
}

fn write_episode(out: &mut String, episode: &Episode) {
    let _ = write!(
        out,
        "{{\"start_ns\":{},\"end_ns\":{},\"start_frame\":{},\"end_frame\":{},\"probes\":{},\
         \"first_probe_after_ns\":{},\"last_probe_interval_ns\":{},\"ended_by\":\"{}\"}}",
        episode.start_ns,
        episode.end_ns,
        episode.start_frame,
        episode.end_frame,
        episode.probes,
        episode.first_probe_after_ns,
        episode.last_probe_interval_ns,
        episode.ended_by.name()
    );
}

fn write_fields(out: &mut String, fields: impl Iterator<Item = (&'static str, Value)>) {
    for (position, (name, value)) in fields.enumerate() {
        if position > 0 {
            out.push(',');
        }
        // Most values are zero or none; the number formatter costs several times as much.
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        match value {
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Int(0) => out.push('0'),
            Value::Int(value) => {
                let _ = write!(out, "{value}");
            }
            Value::Real(value) if value.is_finite() => {
                let _ = write!(out, "{value}");
            }
            Value::Text(value) => write_text(out, &value),
            Value::Address(address) => {
                out.push('"');
                let _ = write_address(out, &address);
                out.push('"');
            }
            Value::None | Value::Real(_) => out.push_str("null"),
        }
    }
}

/// Append a JSON string (RFC 8259 §7).
pub fn write_text(out: &mut String, text: &str) {
    out.push('"');
    if !(text.bytes()).any(|byte| byte == b'"' || byte == b'\\' || byte < b' ') {
        out.push_str(text);
        out.push('"');
        return;
    }
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        write_text(&mut out, "a\"b\\c\n");
        assert_eq!(out, "\"a\\\"b\\\\c\\u000a\"");
        out.clear();
        write_text(&mut out, "plain äöü");
        assert_eq!(out, "\"plain äöü\"");
    }
}
