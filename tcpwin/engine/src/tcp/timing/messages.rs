//! Messages of one direction, and how soon it answers the other.
//!
//! A message is data without a word of the other side and without a pause: it ends when the peer sends data, or when
//! all of it was acknowledged and its sender stayed silent for longer than two round trips. Its one-way delay, from the
//! first byte sent to the last byte arrived, is the time between its first and last segment, wherever on the path they
//! are seen, and half a round trip.

use crate::tcp::timing::delays::Delays;

/// A shorter silence is the sender's own doing, not a pause between messages.
pub const PAUSE_MIN_NS: i64 = 5_000_000;

#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// When the current message began; none before the second.
    start_ns: Option<i64>,
    /// Messages that ended.
    pub messages: u32,
    /// From the first to the last segment of each.
    pub spreads: Delays,
    /// Times from the peer's last data to this side's first.
    pub answers: Delays,
    pub turns: u32,
}

impl Messages {
    /// The message that began at `start_ns`, or with the first data, ended with the last data before `now_ns`.
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

    pub fn answer(&mut self, delay_ns: i64) {
        self.turns = self.turns.saturating_add(1);
        self.answers.add(delay_ns.max(0));
    }
}
