//! An independent, minimal account of the packets, compared with the measurements.

use std::collections::HashMap;

use crate::event::{CAPTURE_DUPLICATE, KEEP_ALIVE};
use crate::output::detail::Detail;
use crate::output::field::{DirectionView, Value};
use crate::output::fields::direction_field;
use crate::output::invariants::room::Room;
use crate::output::invariants::{Ledger, Violation};
use crate::output::track::SERIES;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::{Segment, FIN, RST, SYN};

/// The captured packets of a connection.
#[derive(Default)]
struct Account {
    segments: [i64; 2],
    data_segments: [i64; 2],
    payload_bytes: [i64; 2],
    /// SYNs and FINs; a damaged one may occupy another segment's byte.
    controls: [i64; 2],
    /// Earliest and latest time.
    span_ns: Option<(i64, i64)>,
    /// Capture time of each frame.
    times_ns: HashMap<u64, i64>,
    room: Room,
}

#[derive(Default)]
pub struct Witness {
    accounts: HashMap<u32, Account>,
}

impl Witness {
    pub fn take(&mut self, segment: &Segment, annotation: &Annotation, connection: &Connection) {
        if annotation.events & CAPTURE_DUPLICATE != 0 {
            return;
        }
        let account = self.accounts.entry(annotation.connection).or_default();
        account.room.take(segment, annotation, connection);
        let side = usize::from(annotation.side);
        account.segments[side] += 1;
        account.controls[side] += i64::from(segment.flags & (SYN | FIN) != 0);
        // A keep-alive's byte is not data (RFC 9293 §3.8.4), nor is a reset's reason (§3.5.3).
        let is_data = segment.flags & RST == 0 && annotation.events & KEEP_ALIVE == 0;
        if is_data && segment.payload_len > 0 {
            account.data_segments[side] += 1;
            account.payload_bytes[side] += i64::from(segment.payload_len);
        }
        let now_ns = segment.time_ns;
        account.span_ns = Some(account.span_ns.map_or((now_ns, now_ns), |(first, last)| {
            (first.min(now_ns), last.max(now_ns))
        }));
        // A clock that ran backwards does not order events.
        let last_ns = account.span_ns.map_or(now_ns, |(_, last)| last);
        account.times_ns.insert(segment.frame, last_ns);
    }

    pub fn check(
        &mut self,
        id: u32,
        connection: &Connection,
        detail: &Detail,
        found: &mut Vec<Violation>,
    ) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let mut ledger = Ledger {
            found,
            connection: id,
            from_initiator: None,
        };
        let (first_ns, last_ns) = account.span_ns.unwrap_or_default();
        ledger.demand(
            connection.start_ns >= first_ns && connection.end_ns >= last_ns,
            "the life spans its packets",
            || {
                format!(
                    "{} to {}, captured {first_ns} to {last_ns}",
                    connection.start_ns, connection.end_ns
                )
            },
        );
        for from_initiator in [true, false] {
            ledger.from_initiator = Some(from_initiator);
            let view = DirectionView::new(connection, from_initiator);
            account.check(&view, detail, from_initiator, &mut ledger);
            account.room.check(&view, detail, &mut ledger);
        }
    }
}

impl Account {
    /// Check that delivered bytes are the captured ones plus those known to be missing, and that the rate matches.
    fn check_volume(&self, view: &DirectionView<'_>, ledger: &mut Ledger<'_>) {
        let get = |name| match direction_field(name).map(|field| (field.get)(view)) {
            Some(Value::Int(value)) => value,
            _ => 0,
        };
        let carried = get("unique_bytes") + get("missed_bytes") + self.controls[view.sender];
        if view.data().is_seen {
            ledger.demand_at_most(
                "acknowledged bytes are captured or known to be missing",
                ("acked_bytes", get("acked_bytes")),
                ("unique_bytes, missed_bytes and controls", carried),
            );
        }
        if let Some(Value::Real(goodput)) = direction_field("goodput_bps").map(|f| (f.get)(view)) {
            let rate = carried as f64 * 8e9 / view.transfer_ns() as f64;
            ledger.demand(
                !view.data().is_seen || goodput <= rate * (1.0 + 1e-9),
                "goodput does not exceed captured and missing bytes",
                || format!("goodput_bps {goodput} > {rate}"),
            );
        }
    }

    fn check(
        &self,
        view: &DirectionView<'_>,
        detail: &Detail,
        from_initiator: bool,
        ledger: &mut Ledger<'_>,
    ) {
        let (data, side) = (view.data(), view.sender);
        let law = "captured packets are counted exactly once";
        ledger.demand_equal(
            law,
            ("segments", i64::from(data.segments)),
            ("captured", self.segments[side]),
        );
        // Bytes before the SYN are not part of the connection.
        for (name, value, counted) in [
            (
                "data_segments",
                i64::from(data.data_segments),
                self.data_segments[side],
            ),
            (
                "payload_bytes",
                data.payload_bytes as i64,
                self.payload_bytes[side],
            ),
        ] {
            ledger.demand_at_most(law, (name, value), ("captured", counted));
        }
        self.check_volume(view, ledger);
        if !self.room.is_anomalous {
            check_transfer(view, detail, ledger);
        }
        // The sender acts one round trip after its trigger passed the capture point, at the earliest. The measured
        // minimum of that round trip may include a delay of the sender's host.
        let shift_ns = view.shift_ns().unwrap_or(0) / 5 * 4;
        let time_ns = |frame: &u64| self.times_ns.get(frame).copied();
        // After a step of the capture's clock, times do not show the order of events.
        let is_stepped = view.clock_step_ns() > 0;
        for event in detail.events.iter().filter(|_| !is_stepped) {
            let trigger = event
                .evidence
                .as_ref()
                .and_then(|evidence| evidence.trigger_frame);
            if let Some(trigger) = trigger.filter(|_| event.is_from_initiator == from_initiator) {
                let (heard_ns, now_ns) = (time_ns(&trigger), time_ns(&event.frame));
                ledger.demand(
                    heard_ns
                        .zip(now_ns)
                        .is_some_and(|(heard, now)| now - heard >= shift_ns),
                    "a trigger reaches the sender before it acts",
                    || {
                        format!(
                            "frame {} at {}, trigger {trigger} at {heard_ns:?}, shift {shift_ns}",
                            event.frame, event.time_ns
                        )
                    },
                );
            }
        }
    }
}

/// Check that the mean rate does not exceed the maximum: its time must span all delivered data.
fn check_transfer(view: &DirectionView<'_>, detail: &Detail, ledger: &mut Ledger<'_>) {
    for name in ["throughput", "goodput"] {
        let position = SERIES.iter().position(|known| *known == name);
        let series = position.map(|position| &detail.tracks[view.sender].series[position]);
        let Some((series, first, last)) = series.and_then(|series| {
            // A FIN captured late frees the byte that it seemed to occupy.
            let mut carried = series.buckets.iter().filter(|bucket| bucket.sum > 0);
            let first = carried.next()?;
            Some((series, first, carried.next_back().unwrap_or(first)))
        }) else {
            continue;
        };
        // A bucket may start before its contents, and capture times include adjustments of the clock.
        let carried_ns =
            series.time_ns(last) - series.time_ns(first) - series.width_ns - view.clock_step_ns();
        ledger.demand(
            // Without a duration there is no rate.
            view.transfer_ns() == 0 || carried_ns <= view.transfer_ns(),
            "the time of a rate spans all delivered data",
            || format!("{name} over {carried_ns}, a rate of {}", view.transfer_ns()),
        );
    }
}
