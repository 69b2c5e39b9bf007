//! Check events, silences and series of a connection against its fields.

use crate::event::CAPTURE_DUPLICATE;
use crate::output::detail::{Detail, EventRecord};
use crate::output::field::{DirectionView, Value};
use crate::output::fields::direction_field;
use crate::output::invariants::{Ledger, Violation};
use crate::output::track::SERIES;
use crate::tcp::connection::state::Connection;
use crate::tcp::recovery::evidence::{Kind, PARTS};

/// Check that events are within the connection's life and refer to earlier frames.
pub fn check_events(connection: &Connection, events: &[EventRecord], ledger: &mut Ledger<'_>) {
    let life_ns = connection.end_ns.saturating_sub(connection.start_ns);
    for event in events {
        let frame = event.frame;
        ledger.demand(
            // A copy that the capture recorded later is not counted elsewhere.
            frame >= connection.first_frame
                && (event.time_ns <= connection.end_ns || event.events & CAPTURE_DUPLICATE != 0),
            "an event is within the life",
            || format!("frame {frame} at {}", event.time_ns),
        );
        let Some(evidence) = &event.evidence else {
            continue;
        };
        let cause = evidence.diagnosis.cause.name();
        for (part, value) in PARTS.iter().zip(evidence.parts()) {
            let Some(value) = value else {
                continue;
            };
            let name = part.name;
            if part.kind == Kind::Frame {
                ledger.demand(
                    value < frame as i64 && value >= connection.first_frame as i64,
                    "the evidence for a segment precedes it",
                    || format!("frame {frame} {cause}: {name} {value}"),
                );
                continue;
            }
            ledger.demand(value >= 0, "durations are not negative", || {
                format!("frame {frame} {cause}: {name} {value}")
            });
            ledger.demand(
                !part.kind.is_within_life() || value <= life_ns,
                "times do not exceed the life",
                || format!("frame {frame} {cause}: {name} {value} > {life_ns}"),
            );
        }
    }
}

/// Check the details recorded over a connection's whole life.
pub fn check_detail(id: u32, connection: &Connection, detail: &Detail, found: &mut Vec<Violation>) {
    let mut ledger = Ledger {
        found,
        connection: id,
        from_initiator: None,
    };
    check_events(connection, &detail.events, &mut ledger);
    for (_, stall) in &detail.stalls {
        ledger.demand(
            stall.start_ns <= stall.end_ns
                && stall.start_ns >= connection.start_ns
                && stall.end_ns <= connection.end_ns,
            "a silence is within the life",
            || format!("{} to {}", stall.start_ns, stall.end_ns),
        );
    }
    for from_initiator in [true, false] {
        ledger.from_initiator = Some(from_initiator);
        let view = DirectionView::new(connection, from_initiator);
        check_series(&view, detail, &mut ledger);
        check_budget(&view, detail, &mut ledger);
        let mut last_ns = connection.start_ns;
        for episode in &detail.zero_windows[view.sender] {
            ledger.demand(
                last_ns <= episode.start_ns && episode.start_ns <= episode.end_ns,
                "closed windows follow each other",
                || format!("{} to {} after {last_ns}", episode.start_ns, episode.end_ns),
            );
            last_ns = episode.end_ns;
        }
        ledger.demand(
            last_ns <= connection.end_ns,
            "a closed window is within the life",
            || format!("{last_ns} > {}", connection.end_ns),
        );
    }
}

/// Return minimum, maximum and sum of a series.
fn extent(detail: &Detail, side: usize, name: &str) -> Option<(i64, i64, i64)> {
    let position = SERIES.iter().position(|known| *known == name)?;
    let buckets = &detail.tracks[side].series.get(position)?.buckets;
    Some((
        buckets.iter().map(|bucket| bucket.min).min()?,
        buckets.iter().map(|bucket| bucket.max).max()?,
        buckets.iter().map(|bucket| bucket.sum).sum(),
    ))
}

fn check_series(view: &DirectionView<'_>, detail: &Detail, ledger: &mut Ledger<'_>) {
    let get = |name| match direction_field(name).map(|field| (field.get)(view)) {
        Some(Value::Int(value)) => Some(value),
        _ => None,
    };
    let of = |name| extent(detail, view.sender, name);
    let law = "a field matches its series";
    for (series, field) in [
        ("flight", "flight_max_bytes"),
        ("sender_flight", "sender_flight_max_bytes"),
    ] {
        if let (Some((_, most, _)), Some(value)) = (of(series), get(field)) {
            ledger.demand(most == value, law, || {
                format!("{field} {value}, most of the series {series} {most}")
            });
        }
    }
    // The series begins when the scale becomes certain; a SYN's window, which is never scaled, counts earlier.
    let initial = get("receive_window_initial_bytes");
    if let Some((least, most, _)) = of("receive_window") {
        for (field, shown, other) in [
            (
                "receive_window_min_bytes",
                least,
                initial.map(|bytes| bytes.min(least)),
            ),
            (
                "receive_window_max_bytes",
                most,
                initial.map(|bytes| bytes.max(most)),
            ),
        ] {
            let value = get(field);
            ledger.demand(
                value.is_none() || value == Some(shown) || value == other,
                law,
                || format!("{field} {value:?}, the series receive_window {shown}"),
            );
        }
    }
    // The round trip of an ACK for several segments is timed from the oldest, but the minimum uses the newest.
    if let (Some((least, ..)), Some(value)) = (of("rtt"), get("rtt_min_ns")) {
        ledger.demand(value <= least, law, || {
            format!("rtt_min_ns {value}, least of the series rtt {least}")
        });
    }
    for (series, field) in [
        ("throughput", "payload_bytes"),
        ("goodput", "acked_bytes"),
        ("resent", "resent_bytes"),
    ] {
        let (sum, value) = (
            of(series).map_or(0, |(.., sum)| sum),
            get(field).unwrap_or(0),
        );
        ledger.demand(sum == value, "a field is the sum of its series", || {
            format!("{field} {value}, sum of the series {series} {sum}")
        });
    }
    for (position, name) in SERIES.iter().enumerate() {
        let series = &detail.tracks[view.sender].series[position];
        if let (Some(first), Some(last)) = (series.buckets.first(), series.buckets.last()) {
            let (from_ns, to_ns) = (series.time_ns(first), series.time_ns(last));
            ledger.demand(
                from_ns >= view.connection.start_ns && to_ns <= view.connection.end_ns,
                "a series is within the life",
                || format!("{name} from {from_ns} to {to_ns}"),
            );
        }
    }
}

fn check_budget(view: &DirectionView<'_>, detail: &Detail, ledger: &mut Ledger<'_>) {
    let timeline = &detail.budgets[view.sender].timeline;
    let totals = timeline.totals_ns();
    let spent_ns = view.budget();
    ledger.demand(
        totals[..spent_ns.len()] == spent_ns && totals[spent_ns.len()..].iter().all(|ns| *ns == 0),
        "a budget is the sum of its band",
        || format!("{totals:?} is not {spent_ns:?}"),
    );
    let mut last_ns = view.connection.start_ns;
    for slot in timeline.slots() {
        ledger.demand(
            slot.start_ns == last_ns && slot.end_ns > slot.start_ns,
            "a budget's spans follow each other",
            || format!("{} to {} after {last_ns}", slot.start_ns, slot.end_ns),
        );
        last_ns = slot.end_ns;
    }
    ledger.demand(
        last_ns == view.connection.end_ns,
        "a budget's band covers the life",
        || format!("it ends at {last_ns}, not at {}", view.connection.end_ns),
    );
}
