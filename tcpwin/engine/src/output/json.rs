//! Connections as JSON text, written directly from the field list.

use std::fmt::Write;
use std::sync::OnceLock;

use crate::output::address;
use crate::output::decimal::push_decimal;
use crate::output::field::{ConnectionView, DirectionView, Field, Value, Within};
use crate::output::groups::{connection_groups, direction_groups, MEMBERS};
use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tcp::connection::state::Connection;
use crate::tcp::window::zero::Episode;

const BUDGET: &str = "budget";

/// Fields that are omitted together.
struct Run<Get: 'static> {
    fields: Vec<Key<Get>>,
    /// The only part of a direction's data that its fields are computed from, if none of them may be null.
    within: Option<Within>,
}

/// A field and its name as a JSON key.
struct Key<Get: 'static> {
    /// With the comma before it.
    text: String,
    is_nullable: bool,
    field: &'static Field<Get>,
}

type ConnectionGet = for<'a> fn(&ConnectionView<'a>) -> Value;
type DirectionGet = for<'a> fn(&DirectionView<'a>) -> Value;

/// Fields and groups to write for each connection.
pub struct Layout {
    connection: Vec<Run<ConnectionGet>>,
    direction: Vec<Run<DirectionGet>>,
    items: Vec<SenderState>,
    has_directions: bool,
    has_scale_evidence: bool,
    has_episodes: bool,
    pub has_verdict: bool,
    pub has_budget: bool,
    pub has_algorithm: bool,
    /// Whether to omit groups in which nothing occurred: each value is null or, if the field is not nullable, 0 or
    /// false.
    pub omits_absent: bool,
}

impl Layout {
    pub fn everything() -> &'static Layout {
        static EVERYTHING: OnceLock<Layout> = OnceLock::new();
        EVERYTHING.get_or_init(|| Layout::whole(false))
    }

    /// Return a layout of all fields, optionally without groups in which nothing occurred.
    pub fn whole(omits_absent: bool) -> Layout {
        Layout {
            omits_absent,
            ..Layout::new(|_, _| true)
        }
    }

    /// Return a layout of the named fields and groups, and the connection's number.
    ///
    /// # Errors
    ///
    /// Returns the first unknown name.
    pub fn chosen(names: &[String]) -> Result<Layout, String> {
        let is_chosen = |name: &str| names.iter().any(|each| each == name);
        let layout =
            Layout::new(|group, field| field == "id" || is_chosen(field) || is_chosen(group));
        let mut known: Vec<&str> = MEMBERS.iter().map(|(name, _)| *name).collect();
        for (group, run) in connection_groups() {
            known.push(group.name);
            known.extend(run.iter().map(|field| field.name));
        }
        for (group, run) in direction_groups() {
            known.push(group.name);
            known.extend(run.iter().map(|field| field.name));
        }
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(unknown.clone()),
            None => Ok(layout),
        }
    }

    /// Create a layout of the fields for which `is_chosen(group, field)` is true.
    fn new(is_chosen: impl Fn(&str, &str) -> bool) -> Layout {
        fn run<Get>(
            fields: Vec<&'static Field<Get>>,
            is_chosen: impl Fn(&str) -> bool,
        ) -> Run<Get> {
            let fields = fields.into_iter().filter(|field| is_chosen(field.name));
            let key = |field: &'static Field<Get>| Key {
                text: format!(",\"{}\":", field.name),
                is_nullable: field.marks.contains(&"nullable"),
                field,
            };
            let fields: Vec<_> = fields.map(key).collect();
            let within = fields.first().map(|key| key.field.within);
            let is_within = |key: &Key<Get>| Some(key.field.within) == within && !key.is_nullable;
            Run {
                within: within.filter(|_| fields.iter().all(is_within)),
                fields,
            }
        }
        let connection = connection_groups().into_iter();
        let directions = direction_groups().into_iter();
        let direction: Vec<_> = directions
            .filter(|(group, _)| group.name != BUDGET)
            .map(|(group, fields)| run(fields, |field| is_chosen(group.name, field)))
            .filter(|run| !run.fields.is_empty())
            .collect();
        let items: Vec<_> = SenderState::ALL
            .into_iter()
            .filter(|item| is_chosen(BUDGET, item.field()))
            .collect();
        let has = |name: &str| is_chosen(name, "");
        let (has_scale_evidence, has_episodes) = (has("window_scale"), has("zero_window"));
        Layout {
            connection: connection
                .map(|(group, fields)| run(fields, |field| is_chosen(group.name, field)))
                .filter(|run| !run.fields.is_empty())
                .collect(),
            has_directions: !direction.is_empty() || !items.is_empty(),
            direction,
            items,
            has_scale_evidence,
            has_episodes,
            has_verdict: has("verdict"),
            has_budget: has(BUDGET),
            has_algorithm: has("algorithm"),
            omits_absent: false,
        }
    }
}

/// Append a connection as an object, without its closing brace. Writing to a String cannot fail, so results are dropped.
pub fn write_connection(
    out: &mut String,
    layout: &Layout,
    id: u32,
    connection: &Connection,
    budgets: &[[i64; SENDER_STATES]; 2],
) {
    out.push('{');
    let view = ConnectionView { id, connection };
    let mut values = Vec::new();
    let mut separator = "";
    for run in &layout.connection {
        write_run(out, &mut separator, run, layout, &mut values, |field| {
            (field.get)(&view)
        });
    }
    if !layout.has_directions {
        return;
    }
    for ((name, from_initiator), items_ns) in [("a_to_b", true), ("b_to_a", false)]
        .into_iter()
        .zip(budgets)
    {
        let view = DirectionView::new(connection, from_initiator);
        out.push_str(separator);
        separator = ",";
        let _ = write!(out, "\"{name}\":{{");
        write_direction(out, layout, &view, items_ns, &mut values);
        out.push('}');
    }
}

fn write_direction(
    out: &mut String,
    layout: &Layout,
    view: &DirectionView<'_>,
    items_ns: &[i64; SENDER_STATES],
    values: &mut Vec<Value>,
) {
    let mut separator = "";
    let has = |part| match part {
        Within::Record => true,
        Within::ColdState => view.data().cold_state.is_some(),
        Within::Incidents => view.connection.incidents.is_some(),
        Within::Pace => view.data().pace().is_some(),
    };
    for run in &layout.direction {
        if layout.omits_absent && run.within.is_some_and(|part| !has(part)) {
            continue;
        }
        write_run(out, &mut separator, run, layout, values, |field| {
            if has(field.within) {
                (field.get)(view)
            } else {
                Value::Int(0)
            }
        });
    }
    for item in &layout.items {
        let ns = items_ns[*item as usize];
        if ns != 0 || !layout.omits_absent {
            out.push_str(separator);
            separator = ",";
            out.push('"');
            out.push_str(item.field());
            out.push_str("\":");
            write_int(out, ns);
        }
    }
    if layout.has_scale_evidence {
        out.push_str(separator);
        separator = ",";
        out.push_str("\"window_scale_evidence\":[");
        for (position, line) in view.scale_evidence().iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            write_text(out, line);
        }
        out.push(']');
    }
    if layout.has_episodes && !(layout.omits_absent && view.episodes().is_empty()) {
        out.push_str(separator);
        out.push_str("\"zero_window_episodes\":[");
        for (position, episode) in view.episodes().iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            write_episode(out, episode);
        }
        out.push(']');
    }
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

/// Append a run of fields, unless nothing in it occurred and the layout omits such runs.
#[inline(always)]
fn write_run<Get>(
    out: &mut String,
    separator: &mut &str,
    run: &Run<Get>,
    layout: &Layout,
    values: &mut Vec<Value>,
    value_of: impl Fn(&Field<Get>) -> Value,
) {
    values.clear();
    let mut fields = run.fields.iter();
    let mut has_occurred = !layout.omits_absent;
    // The fields up to the first that occurred; the others are written at once.
    while let Some(key) = (!has_occurred).then(|| fields.next()).flatten() {
        let value = value_of(key.field);
        has_occurred = !is_absent(&value, key.is_nullable);
        values.push(value);
    }
    if !has_occurred {
        return;
    }
    let mut write = |key: &Key<Get>, value: &Value| {
        out.push_str(key.text.get(1 - separator.len()..).unwrap_or_default());
        *separator = ",";
        write_value(out, value);
    };
    for (key, value) in run.fields.iter().zip(values.iter()) {
        write(key, value);
    }
    for key in fields {
        write(key, &value_of(key.field));
    }
}

/// Return whether the value equals the default of an omitted field: null if it is nullable, else 0 or false.
fn is_absent(value: &Value, is_nullable: bool) -> bool {
    match value {
        Value::None => is_nullable,
        Value::Real(value) if !value.is_finite() => is_nullable,
        Value::Bool(is_so) => !is_so && !is_nullable,
        Value::Int(value) => *value == 0 && !is_nullable,
        Value::Real(value) => *value == 0.0 && !is_nullable,
        Value::Text(_) | Value::Address(_) => false,
    }
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(value) => write_int(out, *value),
        Value::Real(value) if value.is_finite() => write_real(out, *value),
        Value::Text(value) => write_text(out, value),
        Value::Address(address) => {
            out.push('"');
            write_address(out, address);
            out.push('"');
        }
        Value::None | Value::Real(_) => out.push_str("null"),
    }
}

/// Append a number. Formatting by the standard library would dominate the time of a document.
pub fn write_int(out: &mut String, number: i64) {
    if number < 0 {
        out.push('-');
    }
    push_decimal(out, number.unsigned_abs());
}

/// Numbers below this are exact as floating point.
const EXACT: f64 = 9e15;

fn write_real(out: &mut String, number: f64) {
    if number.fract() == 0.0 && number.abs() < EXACT && (number != 0.0 || number.is_sign_positive())
    {
        write_int(out, number as i64);
    } else {
        let _ = write!(out, "{number}");
    }
}

/// Append an address in canonical form.
fn write_address(out: &mut String, address: &[u8; 16]) {
    if let [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, octets @ ..] = address {
        for (nth, octet) in octets.iter().enumerate() {
            if nth > 0 {
                out.push('.');
            }
            write_int(out, i64::from(*octet));
        }
    } else {
        let _ = address::write_address(out, address);
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
    use crate::wire::Segment;

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        write_text(&mut out, "a\"b\\c\n");
        assert_eq!(out, "\"a\\\"b\\\\c\\u000a\"");
        out.clear();
        write_text(&mut out, "plain äöü");
        assert_eq!(out, "\"plain äöü\"");
    }

    #[test]
    fn numbers_are_those_of_the_formatter() {
        for number in [
            0,
            7,
            -7,
            10,
            99,
            100,
            101,
            -250,
            1_234_567_890,
            i64::MAX,
            i64::MIN,
        ] {
            let mut out = String::new();
            write_int(&mut out, number);
            assert_eq!(out, number.to_string());
        }
        for number in [0.0, -0.0, 3.0, -3.0, 0.1, 1e15, 1e16, 5e-324, f64::MAX] {
            let mut out = String::new();
            write_real(&mut out, number);
            assert_eq!(out, number.to_string());
        }
    }

    fn written(layout: &Layout) -> String {
        let connection = Connection::new(&Segment::EMPTY, 0);
        let mut out = String::new();
        let mut budgets = [[0; SENDER_STATES]; 2];
        budgets[1][SenderState::Path as usize] = 9;
        write_connection(&mut out, layout, 3, &connection, &budgets);
        out
    }

    #[test]
    fn groups_that_did_not_occur_are_omitted() {
        let whole = written(&Layout::whole(false));
        let compact = written(&Layout::whole(true));
        for name in [
            "retransmissions",
            "nagle_delays",
            "zero_window_episodes",
            "ecn",
        ] {
            let key = format!("\"{name}\":");
            assert!(whole.contains(&key) && !compact.contains(&key), "{name}");
        }
        assert!(compact.contains("\"budget_path_ns\":9") && !compact.contains("budget_tail_ns"));
        assert!(compact.contains("\"window_scale_evidence\":[]"));
    }

    #[test]
    fn chosen_fields_are_written_whatever_their_values() {
        let chosen = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            Layout::chosen(&names)
        };
        let layout = chosen(&["close", "retransmissions", "keep_alive"]).unwrap();
        let direction = "{\"keep_alives\":0,\"retransmissions\":0}";
        assert_eq!(
            written(&layout),
            format!("{{\"id\":3,\"close\":\"open\",\"a_to_b\":{direction},\"b_to_a\":{direction}")
        );
        assert!(!layout.has_verdict && chosen(&["verdict"]).unwrap().has_verdict);
        assert_eq!(written(&chosen(&["verdict"]).unwrap()), "{\"id\":3");
        assert_eq!(
            chosen(&["id", "nonsense"]).err().as_deref(),
            Some("nonsense")
        );
    }
}
