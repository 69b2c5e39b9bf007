//! The fields of an event: the single list behind Python's tuples, the JSON Schema and Python's class.

use std::fmt::Write;

use crate::event::NAMES;
use crate::output::json::write_text;
use crate::tcp::recovery::cause::{Confidence, RetransmissionCause};
use crate::tcp::recovery::evidence::PARTS;

enum Values {
    /// Integers with an optional minimum and maximum.
    Int(Option<u32>, Option<u32>),
    Text,
    OneOf(Vec<&'static str>),
    Names,
}

struct EventField {
    name: &'static str,
    values: Values,
    doc: &'static str,
    /// Whether it is part of the evidence, which is null unless the segment was retransmitted or late.
    is_evidence: bool,
}

/// Return the fields in output order.
fn event_fields() -> impl Iterator<Item = EventField> {
    let number = Values::Int(Some(0), Some(u32::MAX));
    let on_the_wire = "The segment's, as on the wire.";
    let of_segment = [
        (
            "frame",
            Values::Int(Some(1), None),
            "Frame number of the segment.",
        ),
        (
            "time_ns",
            Values::Int(None, None),
            "Time in nanoseconds since the Unix epoch.",
        ),
        (
            "direction",
            Values::OneOf(vec!["a", "b"]),
            "Sender of the segment: a is the initiator.",
        ),
        (
            "names",
            Values::Names,
            "The events, in the order of the per-segment table.",
        ),
        ("seq", number, on_the_wire),
        ("ack", Values::Int(Some(0), Some(u32::MAX)), on_the_wire),
        ("length", Values::Int(Some(0), None), "Bytes of payload."),
        (
            "window_raw",
            Values::Int(Some(0), Some(u32::from(u16::MAX))),
            on_the_wire,
        ),
    ];
    let of_verdict = [
        (
            "cause",
            Values::OneOf(
                RetransmissionCause::ALL
                    .map(RetransmissionCause::name)
                    .into(),
            ),
            "Cause of the retransmission or of the late arrival.",
        ),
        ("reason", Values::Text, "The rule that decided, in words."),
        (
            "confidence",
            Values::OneOf(Confidence::ALL.map(Confidence::name).into()),
            "Confidence in the cause.",
        ),
    ];
    let of_evidence = PARTS
        .iter()
        .map(|part| (part.name, Values::Int(part.kind.least(), None), part.doc));
    let field = |is_evidence| {
        move |(name, values, doc)| EventField {
            name,
            values,
            doc,
            is_evidence,
        }
    };
    let why = of_verdict.into_iter().chain(of_evidence);
    of_segment
        .into_iter()
        .map(field(false))
        .chain(why.map(field(true)))
}

pub fn event_field_names() -> Vec<&'static str> {
    event_fields().map(|field| field.name).collect()
}

/// Return the JSON Schema of an event. Writing to a String cannot fail, so results are dropped.
pub fn event_schema() -> String {
    let mut out = String::from("{\"description\":");
    let text =
        "The events at a segment. The fields from cause on are null unless the segment was retransmitted or late.";
    write_text(&mut out, text);
    out.push_str(",\"type\":\"object\",\"required\":");
    write_names(&mut out, &event_field_names());
    out.push_str(",\"properties\":{");
    for (place, field) in event_fields().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{}\":{{\"description\":", field.name);
        write_text(&mut out, field.doc);
        write_values(&mut out, &field);
        out.push('}');
    }
    out.push_str("}}");
    out
}

fn write_values(out: &mut String, field: &EventField) {
    let plain = |kind: &str| match field.is_evidence {
        true => format!(",\"type\":[\"{kind}\",\"null\"]"),
        false => format!(",\"type\":\"{kind}\""),
    };
    match &field.values {
        Values::Int(least, most) => {
            out.push_str(&plain("integer"));
            for (bound, value) in [("minimum", least), ("maximum", most)] {
                if let Some(value) = value {
                    let _ = write!(out, ",\"{bound}\":{value}");
                }
            }
        }
        Values::Text => out.push_str(&plain("string")),
        Values::OneOf(values) => {
            out.push_str(",\"enum\":");
            write_names(out, values);
            if field.is_evidence {
                out.pop();
                out.push_str(",null]");
            }
        }
        Values::Names => {
            out.push_str(",\"type\":\"array\",\"minItems\":1,\"items\":{\"enum\":");
            write_names(out, &NAMES);
            out.push('}');
        }
    }
}

fn write_names(out: &mut String, names: &[&str]) {
    out.push('[');
    for (place, name) in names.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_text(out, name);
    }
    out.push(']');
}
