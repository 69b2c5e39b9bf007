//! Check the fields of a connection and its directions against each other.

use crate::output::detail::EventRecord;
use crate::output::field::{ConnectionView, DirectionView, Value};
use crate::output::fields::{
    connection_field, direction_field, direction_fields, CONNECTION_FIELDS,
};
use crate::output::invariants::{detail, Ledger, Violation};
use crate::output::vantage::path_rtt_ns;
use crate::tcp::connection::state::Connection;

/// Durations within the connection, which must not exceed its life.
const WITHIN_LIFE: [&str; 16] = [
    "window_limited_ns",
    "window_cost_ns",
    "zero_window_ns",
    "zero_window_longest_ns",
    "recovery_ns",
    "reordering_max_ns",
    "rtt_min_ns",
    "sender_shift_ns",
    "sender_window_limited_ns",
    "slow_start_ns",
    "idle_ns",
    "idle_restart_cost_ns",
    "nagle_delay_ns",
    "first_byte_p50_ns",
    "first_byte_p95_ns",
    "first_byte_p99_ns",
];

const CONNECTION_WITHIN_LIFE: [&str; 6] = [
    "handshake_rtt_ns",
    "handshake_rtt_a_ns",
    "handshake_rtt_b_ns",
    "stall_ns",
    "stall_longest_ns",
    "pause_ns",
];

/// The first must not exceed the second, if both are known.
const ORDERED: [(&str, &str); 31] = [
    ("data_segments", "segments"),
    ("data_segments", "payload_bytes"),
    ("max_payload_bytes", "payload_bytes"),
    ("unique_bytes", "payload_bytes"),
    ("resent_bytes", "payload_bytes"),
    ("resent_segments", "segments"),
    ("first_data_ns", "last_data_ns"),
    ("window_scale_min", "window_scale_max"),
    ("window_scale_min", "window_scale_shift"),
    ("window_scale_shift", "window_scale_max"),
    ("receive_window_min_bytes", "receive_window_mean_bytes"),
    ("receive_window_mean_bytes", "receive_window_max_bytes"),
    ("receive_window_last_bytes", "receive_window_max_bytes"),
    ("receive_window_min_bytes", "receive_window_last_bytes"),
    ("flight_mean_bytes", "flight_max_bytes"),
    ("sender_flight_mean_bytes", "sender_flight_max_bytes"),
    ("sender_flight_max_bytes", "cwnd_estimate_max_bytes"),
    ("flight_max_bytes", "cwnd_estimate_max_bytes"),
    ("zero_window_longest_ns", "zero_window_ns"),
    ("window_near_full", "data_segments"),
    ("retransmissions", "segments"),
    ("fast_retransmissions", "retransmissions"),
    ("rto_retransmissions", "retransmissions"),
    ("tail_loss_probes", "retransmissions"),
    ("spurious_retransmissions", "retransmissions"),
    ("lost_retransmissions", "recovery_retransmissions"),
    ("idle_restarts", "idle_gaps"),
    ("message_delay_p50_ns", "message_delay_p95_ns"),
    ("message_delay_p95_ns", "message_delay_p99_ns"),
    ("first_byte_p50_ns", "first_byte_p95_ns"),
    ("first_byte_p95_ns", "first_byte_p99_ns"),
];

/// Shares of a whole.
const SHARES: [&str; 1] = ["recovery_share"];

/// The smoothed round trip is stored in 30 bits, in eighths.
const LONGEST_NS: f64 = 134e9;
/// Linux smooths in whole microseconds, and eighths of them.
const ROUNDING_NS: f64 = 2_000.0;

/// Return true if `one` exceeds `other` by more than rounding.
fn is_above(one: f64, other: f64) -> bool {
    one > other * (1.0 + 1e-9) + 1e-6
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Real(value) => Some(*value),
        _ => None,
    }
}

/// Check the fields of a connection and its directions, and its recorded events.
pub fn check_connection(id: u32, connection: &Connection, found: &mut Vec<Violation>) {
    let view = ConnectionView { id, connection };
    let mut ledger = Ledger {
        found,
        connection: id,
        from_initiator: None,
    };
    check_life(&view, &mut ledger);
    for from_initiator in [true, false] {
        ledger.from_initiator = Some(from_initiator);
        check_direction(&DirectionView::new(connection, from_initiator), &mut ledger);
    }
    ledger.from_initiator = None;
    let initiator = connection.initiator_side();
    let events: Vec<EventRecord> = connection
        .journal()
        .iter()
        .map(|entry| EventRecord::of(entry, initiator))
        .collect();
    detail::check_events(connection, &events, &mut ledger);
}

fn check_life(view: &ConnectionView<'_>, ledger: &mut Ledger<'_>) {
    for field in CONNECTION_FIELDS {
        demand_sound(field.name, &(field.get)(view), ledger);
    }
    let get = |name| connection_field(name).and_then(|field| as_number(&(field.get)(view)));
    let life_ns = get("duration_ns").unwrap_or(0.0);
    for name in CONNECTION_WITHIN_LIFE {
        if let Some(ns) = get(name) {
            ledger.demand(ns <= life_ns, "times do not exceed the life", || {
                format!("{name} {ns} > {life_ns}")
            });
        }
    }
    let (stalled, paused) = (
        get("stall_ns").unwrap_or(0.0),
        get("pause_ns").unwrap_or(0.0),
    );
    ledger.demand(
        stalled + paused <= life_ns,
        "silences are within the life",
        || format!("{stalled} + {paused} > {life_ns}"),
    );
    let longest = get("stall_longest_ns").unwrap_or(0.0);
    ledger.demand(
        longest <= stalled,
        "a part does not exceed its whole",
        || format!("stall_longest_ns {longest} > stall_ns {stalled}"),
    );
    let (start, end) = (get("start_ns"), get("end_ns"));
    for name in ["syn_ns", "syn_ack_ns", "established_ns"] {
        if let Some(ns) = get(name) {
            ledger.demand(
                start <= Some(ns) && Some(ns) <= end,
                "a time is within the life",
                || format!("{name} {ns} outside {start:?} to {end:?}"),
            );
        }
    }
}

/// Check that a value is possible.
fn demand_sound(name: &'static str, value: &Value, ledger: &mut Ledger<'_>) {
    let is_time = |name: &str| name == "start_ns" || name == "end_ns" || !name.ends_with("_ns");
    match value {
        Value::Real(value) => ledger.demand(
            value.is_finite() && *value >= 0.0,
            "numbers are finite and not negative",
            || format!("{name} {value}"),
        ),
        Value::Int(value) if !is_time(name) && !is_instant(name) => {
            ledger.demand(*value >= 0, "durations are not negative", || {
                format!("{name} {value}")
            });
        }
        Value::Int(value) if is_time(name) && !name.ends_with("_ns") => {
            ledger.demand(*value >= 0, "counts are not negative", || {
                format!("{name} {value}")
            });
        }
        _ => {}
    }
}

/// Return whether the field is a clock time, which may be before 1970.
fn is_instant(name: &str) -> bool {
    matches!(
        name,
        "syn_ns" | "syn_ack_ns" | "established_ns" | "first_data_ns" | "last_data_ns"
    )
}

fn check_direction(view: &DirectionView<'_>, ledger: &mut Ledger<'_>) {
    for field in direction_fields() {
        demand_sound(field.name, &(field.get)(view), ledger);
    }
    let connection = view.connection;
    let life_ns = connection.end_ns.saturating_sub(connection.start_ns);
    let value = |name| direction_field(name).map(|field| (field.get)(view));
    let get = |name| value(name).and_then(|value| as_number(&value));
    for name in WITHIN_LIFE {
        if let Some(ns) = get(name) {
            ledger.demand(ns <= life_ns as f64, "times do not exceed the life", || {
                format!("{name} {ns} > {life_ns}")
            });
        }
    }
    for (part, whole) in ORDERED {
        if let (Some(one), Some(other)) = (get(part), get(whole)) {
            ledger.demand(
                !is_above(one, other),
                "a part does not exceed its whole",
                || format!("{part} {one} > {whole} {other}"),
            );
        }
    }
    for name in SHARES {
        if let Some(share) = get(name) {
            ledger.demand(
                (0.0..=1.0).contains(&share),
                "a share is between 0 and 1",
                || format!("{name} {share}"),
            );
        }
    }
    // The last byte arrives half a round trip after it was sent, possibly after the last packet.
    let arrived_ns = life_ns.saturating_add(path_rtt_ns(connection).unwrap_or(0));
    if let Some(ns) = get("message_delay_p99_ns") {
        ledger.demand(
            ns <= arrived_ns as f64,
            "times do not exceed the life",
            || format!("message_delay_p99_ns {ns} > {arrived_ns}"),
        );
    }
    if let (Some(least), Some(smoothed)) = (get("rtt_min_ns"), get("rtt_smoothed_ns")) {
        ledger.demand(
            least.min(LONGEST_NS) <= smoothed + ROUNDING_NS,
            "a mean is not below the minimum",
            || format!("rtt_min_ns {least} > rtt_smoothed_ns {smoothed}"),
        );
    }
    let spent = view.budget();
    ledger.demand(
        spent.iter().all(|ns| *ns >= 0) && spent.iter().sum::<i64>() == life_ns.max(0),
        "the items add up to the life",
        || format!("{spent:?} is not {life_ns}"),
    );
    check_volume(view, ledger);
}

/// Check that delivered bytes fit the sequence space.
fn check_volume(view: &DirectionView<'_>, ledger: &mut Ledger<'_>) {
    let get = |name| match direction_field(name).map(|field| (field.get)(view)) {
        Some(Value::Int(value)) => value,
        _ => 0,
    };
    let acked = get("acked_bytes");
    let largest_advance = i64::from(u32::MAX) / 2 * i64::from(view.answers().segments.max(1));
    ledger.demand_at_most(
        "acknowledged bytes fit the sequence space",
        ("acked_bytes", acked),
        ("half of it an ACK", largest_advance),
    );
}
