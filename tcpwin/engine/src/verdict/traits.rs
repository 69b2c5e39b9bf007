//! Yes-or-no properties of a direction that its verdict depends on.

use crate::tables::budget_item::{ItemTrait, SenderState};
use crate::verdict::budget::{sum_of, Items};
use crate::verdict::facts::DirectionFacts;

/// Share of the data missing from the capture above which flights and their limits are uncertain.
const MISSED_SHARE: f64 = 0.01;
/// Share of the window's time in which ACKs waited for the reader that shows a slow reader.
const READER_SHARE: f64 = 0.04;
/// Share of retransmitted data that suggests duplicates: a capture of both ends holds every segment twice.
const DOUBLED_SHARE: f64 = 0.4;
/// With fewer segments, a few real losses can reach that share.
const DOUBLED_SEGMENTS: i64 = 10;
/// Share of the minimum RTT above which the mean queueing delay means a standing queue.
pub const QUEUED_SHARE: f64 = 0.25;
/// Share of the window's time above which a closed window means a slow reader; below, the window is merely small.
const CLOSED_SHARE: f64 = 0.1;

/// Return whether the window limited the sender because its reader is slow: it was closed or low, or ACKs waited.
pub fn is_slow(data: &DirectionFacts, items_ns: &Items) -> bool {
    let window_ns = sum_of(items_ns, ItemTrait::Window) as f64;
    let reader_ns = items_ns[SenderState::Reader as usize];
    let mean = data.receive_window_mean_bytes.unwrap_or(0.0);
    let most = data.receive_window_max_bytes.unwrap_or(0);
    let is_closed = data.zero_window_episode_count > 0
        && data.zero_window_ns as f64 >= CLOSED_SHARE * window_ns;
    let is_unread = reader_ns > 0 && reader_ns as f64 >= READER_SHARE * window_ns;
    // A window that merely grew late is small on average, too.
    let has_fallen = data.window_low_acked_bytes > 0;
    let is_below = mean > 0.0 && mean < most as f64 / 2.0;
    let is_low = data.window_scale_state != "disabled" && is_below && has_fallen;
    is_closed || is_low || is_unread
}

/// Return whether slow start took at least as much time as the grown congestion window.
pub fn is_growing(items_ns: &Items) -> bool {
    items_ns[SenderState::SlowStart as usize] >= items_ns[SenderState::Congestion as usize]
}

/// Return whether the window was closed for at least half of its time.
pub fn is_mostly_closed(items_ns: &Items) -> bool {
    items_ns[SenderState::ZeroWindow as usize] * 2 >= sum_of(items_ns, ItemTrait::Window)
}

/// Return whether loss recovery took at least as much time as the smaller flights after it.
pub fn is_mostly_recovering(items_ns: &Items) -> bool {
    sum_of(items_ns, ItemTrait::Recovery) >= items_ns[SenderState::AfterLoss as usize]
}

impl DirectionFacts {
    /// Return whether the capture lacks so much data that flights are uncertain.
    pub fn is_missed(&self) -> bool {
        self.missed_bytes as f64 > MISSED_SHARE * self.acked_bytes.max(1) as f64
    }

    /// Return whether much of the data appears twice, as in a capture of both ends.
    pub fn is_doubled(&self) -> bool {
        self.data_segments >= DOUBLED_SEGMENTS
            && self.retransmissions as f64 >= DOUBLED_SHARE * self.data_segments as f64
    }

    /// Return whether packets queued for much of the minimum RTT.
    pub fn is_queued(&self) -> bool {
        self.queue_mean_ns > 0.0 && self.queue_mean_ns >= QUEUED_SHARE * self.rtt_min_ns
    }
}

/// Return whether most of the sender's idle time was spent preparing answers.
pub fn is_answering(items_ns: &Items) -> bool {
    let responder_ns = items_ns[SenderState::Responder as usize];
    responder_ns > 0 && responder_ns >= items_ns[SenderState::Application as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_grew_late_is_not_a_slow_readers() {
        let grown = DirectionFacts {
            window_scale_state: "known",
            receive_window_mean_bytes: Some(17_300.0),
            receive_window_max_bytes: Some(90_520),
            acked_bytes: 72_100,
            ..DirectionFacts::default()
        };
        let items_ns = Items::default();
        assert!(!is_slow(&grown, &items_ns));
        let fallen = DirectionFacts {
            window_low_acked_bytes: 30_000,
            ..grown
        };
        assert!(is_slow(&fallen, &items_ns));
    }
}
