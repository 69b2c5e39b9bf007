//! Fields of a direction: where the sender's time went. They add up to the connection's duration.

use crate::output::fields::{fields, DirectionField, DirectionView, Value};
use crate::timing::budget::{Item, ITEMS};

impl DirectionView<'_> {
    fn spent(&self, item: Item) -> Value {
        Value::Int(self.budget()[item as usize])
    }

    /// Nanoseconds of each item.
    pub fn budget(&self) -> [i64; ITEMS] {
        let connection = self.connection;
        let total_ns = connection.end_ns.saturating_sub(connection.start_ns).max(0);
        let mut spent = [0i64; ITEMS];
        let mut left_ns = total_ns;
        let mut take = |item: Item, ns: i64| {
            let ns = ns.clamp(0, left_ns);
            left_ns -= ns;
            spent[item as usize] += ns;
        };
        take(Item::Handshake, self.handshake_ns(total_ns));
        let data = self.data();
        match data.pace().map(|pace| &pace.budget) {
            Some(budget) if budget.has_begun() => {
                // Before a second segment was in flight: nothing to send yet, then the first.
                let first_ns = data.first_data_ns.saturating_sub(connection.start_ns);
                let began_ns = budget.began_ns.saturating_sub(connection.start_ns);
                let after_ns = self.handshake_ns(total_ns);
                take(Item::Application, first_ns.min(began_ns) - after_ns);
                take(Item::SlowStart, began_ns - first_ns.max(after_ns));
                let mut items = *budget.spent();
                self.restart(&mut items);
                for (item, ns) in Item::ALL.into_iter().zip(items) {
                    take(item, ns);
                }
            }
            _ => {
                take(Item::ZeroWindow, self.zero_ns());
                take(Item::WindowFull, data.limited_ns());
                take(Item::FastRecovery, self.recovery_ns());
                let is_known = data.data_segments == 0 || data.is_flight_known();
                let rest = if is_known {
                    Item::Application
                } else {
                    Item::Unknown
                };
                take(rest, i64::MAX);
            }
        }
        spent[Item::Unknown as usize] += left_ns;
        spent
    }

    /// What an idle restart cost was counted as its slow start, or as waiting for the congestion window.
    fn restart(&self, items: &mut [i64; ITEMS]) {
        let idle = self.data().pace().and_then(|pace| pace.idle.as_deref());
        let mut cost_ns = idle.map_or(0, |idle| idle.cost_ns);
        for item in [
            Item::SlowStart,
            Item::Congestion,
            Item::Path,
            Item::Application,
        ] {
            let moved_ns = cost_ns.clamp(0, items[item as usize]);
            items[item as usize] -= moved_ns;
            items[Item::IdleRestart as usize] += moved_ns;
            cost_ns -= moved_ns;
        }
    }

    /// From the first SYN to the ACK that completed the handshake; all of it where none did.
    fn handshake_ns(&self, total_ns: i64) -> i64 {
        let connection = self.connection;
        match (
            connection.established_ns(),
            connection.syn_ns().or(connection.syn_ack_ns()),
        ) {
            (Some(established_ns), _) => established_ns.saturating_sub(connection.start_ns),
            (None, Some(_)) if self.data().data_segments + self.answers().data_segments == 0 => {
                total_ns
            }
            _ => 0,
        }
    }
}

pub const BUDGET_FIELDS: &[DirectionField] = fields! {
    budget_handshake_ns Int "Time from the first segment to the end of the handshake." |v| v.spent(Item::Handshake);
    budget_zero_window_ns Int "Time in which the receiver's window was closed." |v| v.spent(Item::ZeroWindow);
    budget_small_window_ns Int "Time in which nothing was in flight and the window did not hold a full segment." |v| v.spent(Item::SmallWindow);
    budget_window_full_ns Int "Time in which data was in flight and the window did not hold another full segment." |v| v.spent(Item::WindowFull);
    budget_slow_start_ns Int "Time in round trips whose flight grew by a third and more: slow start." |v| v.spent(Item::SlowStart);
    budget_congestion_ns Int "Time in round trips that the congestion window limited, none of the other items." |v| v.spent(Item::Congestion);
    budget_after_loss_ns Int "Time in round trips after a loss, until the flight before it was regained." |v| v.spent(Item::AfterLoss);
    budget_fast_recovery_ns Int "Time in fast recovery." |v| v.spent(Item::FastRecovery);
    budget_timeout_ns Int "Time of silence before retransmission timeouts, and of recovery after them." |v| v.spent(Item::Timeout);
    budget_tail_ns Int "Time of silence before tail loss probes." |v| v.spent(Item::Tail);
    budget_idle_restart_ns Int "Time that idle restarts cost." |v| v.spent(Item::IdleRestart);
    budget_application_ns Int "Time in which the sender had nothing to send, as far as the packets show." |v| v.spent(Item::Application);
    budget_send_buffer_ns Int "Time in round trips of a flight that stayed the same below every other limit: a send buffer is suspected." |v| v.spent(Item::SendBuffer);
    budget_path_ns Int "Time in round trips with segments evenly spaced at the best rate seen: what the path gives." |v| v.spent(Item::Path);
    budget_closed_ns Int "Time after the sender had closed and all was acknowledged, or after a reset." |v| v.spent(Item::Closed);
    budget_unknown_ns Int "Time that the capture does not explain." |v| v.spent(Item::Unknown);
};
