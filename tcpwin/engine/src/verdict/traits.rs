//! What a direction is like, as far as its verdict asks.

use crate::tables::budget_item::{ItemTrait, SenderState};
use crate::verdict::budget::{sum_of, Items};
use crate::verdict::facts::DirectionFacts;

/// Of the data: a capture that lacks more makes flights, and what limited them, uncertain.
const MISSED_SHARE: f64 = 0.01;
/// Of the window's time in which ACKs waited for the reader: enough to say who keeps the window full.
const READER_SHARE: f64 = 0.04;
/// Of the data sent again: where a capture holds both ends, half of it are copies.
const DOUBLED_SHARE: f64 = 0.4;
/// Of fewer segments a few that were really lost may be as many.
const DOUBLED_SEGMENTS: i64 = 10;
/// Of the least round trip: a mean queue that is longer stood while packets were lost.
pub const QUEUED_SHARE: f64 = 0.25;
/// Of the window's time: a window that is closed for longer closes because its reader is slow; below, it is merely small.
const CLOSED_SHARE: f64 = 0.1;
/// Of the time in which a sender had nothing to send: a larger part before its answers is what took the time.
const ANSWER_SHARE: f64 = 0.5;
/// A first byte after more of them is late by its application: away from the sender a round trip is in it.
const ANSWER_ROUND_TRIPS: f64 = 10.0;

/// Whether a window that held the sender did so because its reader is slow: it was closed, or low, or ACKs waited.
pub fn is_slow(data: &DirectionFacts, items_ns: &Items) -> bool {
    let window_ns = sum_of(items_ns, ItemTrait::Window) as f64;
    let reader_ns = items_ns[SenderState::Reader as usize];
    let mean = data.receive_window_mean_bytes.unwrap_or(0.0);
    let most = data.receive_window_max_bytes.unwrap_or(0);
    let is_closed = data.zero_window_episode_count > 0
        && data.zero_window_ns as f64 >= CLOSED_SHARE * window_ns;
    let is_unread = reader_ns > 0 && reader_ns as f64 >= READER_SHARE * window_ns;
    let is_low = data.window_scale_state != "disabled" && mean > 0.0 && mean < most as f64 / 2.0;
    is_closed || is_low || is_unread
}

/// Whether at least as much time went to slow start as to a congestion window that had grown.
pub fn is_growing(items_ns: &Items) -> bool {
    items_ns[SenderState::SlowStart as usize] >= items_ns[SenderState::Congestion as usize]
}

/// Whether at least half of the window's time it was closed.
pub fn is_mostly_closed(items_ns: &Items) -> bool {
    items_ns[SenderState::ZeroWindow as usize] * 2 >= sum_of(items_ns, ItemTrait::Window)
}

/// Whether at least as much time went to recovery of losses as to the smaller flights after it.
pub fn is_mostly_recovering(items_ns: &Items) -> bool {
    sum_of(items_ns, ItemTrait::Recovery) >= items_ns[SenderState::AfterLoss as usize]
}

impl DirectionFacts {
    /// Whether the capture lacks so much of the data that flights are uncertain.
    pub fn is_missed(&self) -> bool {
        self.missed_bytes as f64 > MISSED_SHARE * self.acked_bytes.max(1) as f64
    }

    /// Whether much of the data is there again, as where a capture holds both ends.
    pub fn is_doubled(&self) -> bool {
        self.data_segments >= DOUBLED_SEGMENTS
            && self.retransmissions as f64 >= DOUBLED_SHARE * self.data_segments as f64
    }

    /// Whether packets waited in a queue for much of the least round trip.
    pub fn is_queued(&self) -> bool {
        self.queue_mean_ns > 0.0 && self.queue_mean_ns >= QUEUED_SHARE * self.rtt_min_ns
    }

    /// Whether most of the time in which it had nothing to send passed before its answers.
    pub fn is_answering(&self, items_ns: &Items) -> bool {
        let idle_ns = items_ns[SenderState::Application as usize] as f64;
        (self.first_byte_p50_ns * self.turns) as f64 > ANSWER_SHARE * idle_ns
            && self.first_byte_p50_ns as f64 > ANSWER_ROUND_TRIPS * self.rtt_min_ns
    }
}
