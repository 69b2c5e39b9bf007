//! One direction's messages, and its response times to the peer.
//!
//! A message is data without a pause and without data from the peer in between. It ends when the peer sends data, or
//! when all of it is acknowledged and the sender stays silent for more than two round trips. Its one-way delay, from
//! the first byte sent to the last byte received, is the time between its first and last segments at any capture point,
//! plus half a round trip.

use crate::tcp::timing::delays::Delays;
use crate::tcp::timing::waits::Waits;

/// Shorter silences are not pauses between messages.
pub const PAUSE_MIN_NS: i64 = 5_000_000;

#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Start of the current message; None during the first message.
    start_ns: Option<i64>,
    pub messages: u32,
    /// Time from the first to the last segment of each message.
    pub spreads: Delays,
    /// Time from the peer's last data to this side's first data.
    pub answers: Delays,
    pub turns: u32,
    pub waits: Waits,
}

impl Messages {
    /// End the current message and start the next at `now_ns`.
    pub fn next_message(&mut self, first_data_ns: i64, last_data_ns: i64, now_ns: i64) {
        self.close(first_data_ns, last_data_ns);
        self.start_ns = Some(now_ns);
    }

    pub fn close(&mut self, first_data_ns: i64, last_data_ns: i64) {
        let start_ns = self.start_ns.take().unwrap_or(first_data_ns);
        self.messages = self.messages.saturating_add(1);
        self.spreads
            .add(last_data_ns.saturating_sub(start_ns).max(0));
    }

    /// Record an answer `delay_ns` after the peer's last data. `leg_ns`: RTT between the capture point and this side.
    /// `ack_ns`: time from that data to the last ACK before the answer.
    pub fn answer(&mut self, delay_ns: i64, leg_ns: i64, ack_ns: i64) {
        self.turns = self.turns.saturating_add(1);
        self.answers.add(delay_ns.max(0));
        self.waits.add_after_ack(delay_ns, leg_ns, ack_ns);
    }
}
