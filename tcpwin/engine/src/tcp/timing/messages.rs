//! One direction's messages, and its response times to the peer.
//!
//! A message is data without a pause and without data from the peer in between. It ends when the peer sends data, or
//! when all of it is acknowledged and the sender stays silent for more than two round trips. Its one-way delay, from
//! the first byte sent to the last byte received, is the time between its first and last segments at any capture point,
//! plus half a round trip.

use crate::tcp::timing::delays::Delays;
use crate::tcp::timing::schedule::Schedule;
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
    pub ids: TurnIds,
    pub schedule: Schedule,
}

/// IP IDs of a side's packets where its turns begin: by the rules of [`super::missing_acks`], a counter of one connection
/// that skips some shows packets that the capture lacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnIds {
    ones: u32,
    others: u32,
}

/// Steps of one that make a counter credible, and the most others to each.
const ONES_MIN: u32 = 8;
const OTHERS_PART: u32 = 4;
const STEP_MAX: i16 = 64;

impl TurnIds {
    /// Note the ID of a turn's first packet, and those of the side's newest packets before it, with data and without.
    /// Return whether packets between them are missing.
    pub fn note(&mut self, ip_id: u32, before: [u32; 2]) -> bool {
        let step = before
            .into_iter()
            .filter_map(|each| u16::try_from(each).ok())
            .zip(std::iter::repeat(ip_id as u16))
            .map(|(each, id)| id.wrapping_sub(each) as i16)
            .min_by_key(|step| step.unsigned_abs());
        match step {
            Some(1) => self.ones = self.ones.saturating_add(1),
            Some(_) => self.others = self.others.saturating_add(1),
            None => {}
        }
        step.is_some_and(|step| (2..=STEP_MAX).contains(&step))
            && self.ones >= ONES_MIN
            && self.others <= self.ones / OTHERS_PART
    }
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
    /// `ack_ns`: time from that data to the last ACK before the answer. `is_missing`: as in [`Waits::add_after_ack`].
    pub fn answer(&mut self, delay_ns: i64, leg_ns: i64, ack_ns: i64, is_missing: bool) {
        self.turns = self.turns.saturating_add(1);
        self.answers.add(delay_ns.max(0));
        self.waits
            .add_after_ack(delay_ns, leg_ns, ack_ns, is_missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::timing::missing_acks::NONE;

    #[test]
    fn a_counter_that_skips_one_shows_a_missing_packet() {
        let mut ids = TurnIds::default();
        // Data and an ACK alternate, across 0xffff.
        for id in 0xfff0..0x1_0000u32 {
            assert!(!ids.note(id, [id - 1, id.wrapping_sub(2)]));
        }
        assert!(!ids.note(0, [0xffff, 0xfffe]) && ids.note(2, [0xffff, 0]));
        assert!(!ids.note(9, [NONE, NONE]));
        // A host's counter of all its packets.
        let mut ids = TurnIds::default();
        assert!((0..100u32).all(|nth| !ids.note(
            nth * 5 % 200,
            [NONE, (nth * 5 % 200).saturating_sub(1 + nth % 4)]
        )));
    }
}
