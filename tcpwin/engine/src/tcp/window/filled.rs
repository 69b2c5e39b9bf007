//! Segments that were lost although the receive window had room for them, because unread data filled the buffer.
//!
//! A path loses segments wherever they lie in the window; a receiver that runs out of memory loses those near its edge.

use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::tcp::recovery::ranges::RangeSet;

/// A window that is smaller than its maximum by at least this part of it is filled by unread data.
const FILLED_PART: u32 = 5;
/// Distance to the right edge that counts as near: the window's maximum divided by this. The more memory a byte takes,
/// the earlier it runs out.
const NEAR_PART: u32 = 4;

/// Data sent near the edge of a filled window.
#[derive(Clone, Debug, Default)]
pub struct FilledWindow {
    /// The part in flight.
    near: RangeSet,
    pub sent_bytes: u64,
    pub lost: u32,
    /// How many times some were lost: each was sent after the retransmission of the one before.
    pub times: u32,
    resent_ns: i64,
}

impl Direction {
    /// Note the data sent near the edge of the window until now, before another is advertised.
    #[inline(always)]
    pub(in crate::tcp) fn note_window(&mut self) {
        let most = self.window.max_bytes;
        if self.window.bytes <= most - most / FILLED_PART {
            let near_from = self.window.edge.minus(most / NEAR_PART);
            if near_from.is_before(self.flight.nxt) {
                self.note_near(near_from);
            }
        }
    }

    #[cold]
    fn note_near(&mut self, near_from: Seq) {
        let (nxt, acked) = (self.flight.nxt, self.window.edge.minus(self.window.bytes));
        let filled = &mut self.cold_state().filled;
        let filled = filled.get_or_insert_with(Box::default);
        if filled.near.end().is_some_and(|end| end.is_after(nxt)) {
            // Sequence numbers wrapped around meanwhile.
            filled.near.clear();
        }
        filled.sent_bytes += u64::from(filled.near.insert(near_from.max(acked), nxt));
        filled.near.remove_below(acked);
    }

    /// Note the first retransmission of data that was captured before.
    pub(in crate::tcp) fn note_first_loss(&mut self, now_ns: i64, seq: Seq, end: Seq) {
        let Some(sent) = self.first_copy(seq) else {
            return;
        };
        self.note_window();
        let cold_state = self.cold_state();
        let episode = cold_state.episode();
        if episode.is_some_and(|episode| episode.newest_copy(seq).is_some()) {
            return;
        }
        cold_state.first_losses = cold_state.first_losses.saturating_add(1);
        let Some(filled) = &mut cold_state.filled else {
            return;
        };
        if filled.near.overlap(seq, end) > 0 {
            filled.lost = filled.lost.saturating_add(1);
            filled.times += u32::from(filled.lost == 1 || sent.time_ns > filled.resent_ns);
            filled.resent_ns = now_ns;
        }
    }
}
