//! The sender's current size of full segments: the MSS of both SYNs, or less after path-MTU discovery or through a tunnel.
//!
//! A full segment within a write lacks PSH, which stacks set where a write ends (RFC 9293 §3.9.1). Several segments of one
//! size, with only multiples of it between them (super-segments), while the window had room for more, show the size in use.
//! A larger one that offload does not explain raises it again.

use crate::sequence::Seq;
use crate::tcp::connection::direction::{Direction, LEAST_FULL};
use crate::wire::{Segment, PSH};

/// Return true if a payload may reveal another size than `mss`: shorter within a write, or longer by less than a segment.
#[inline(always)]
pub(super) fn may_reveal_size(segment: &Segment, mss: u32) -> bool {
    let size = segment.payload_len;
    // Most payloads have exactly this length.
    if size == mss {
        return false;
    }
    let is_of_one = size.wrapping_sub(LEAST_FULL) < (2 * mss).saturating_sub(LEAST_FULL);
    is_of_one & ((size > mss) | (segment.flags & PSH == 0))
}

impl Direction {
    /// Learn the size of full segments from new data at SND.MAX. `is_scale_certain`: for the peer's windows.
    #[cold]
    pub(super) fn follow_segment_size(&mut self, segment: &Segment, is_scale_certain: bool) {
        let (size, mss) = (segment.payload_len, u32::from(self.mss));
        if Seq(segment.seq) != self.flight.nxt {
            return;
        }
        if size > mss {
            let allowed = u32::from(
                self.cold_state
                    .as_ref()
                    .map_or(0, |cold_state| cold_state.allowed_mss),
            );
            if size <= allowed {
                // The path has carried segments of this size before, so it does again.
                self.mss = size as u16;
            }
            return;
        }
        let end = self.flight.nxt + size;
        let has_room = is_scale_certain
            && self.window.is_known
            && self.window.max_bytes >= 2 * mss
            && end.to(self.window.edge) >= mss as i32;
        if !has_room {
            return;
        }
        let sent_bytes = self.payload_bytes;
        let cold_state = self.cold_state();
        if cold_state.cut_size.note(size, sent_bytes) {
            cold_state.allowed_mss = cold_state.allowed_mss.max(mss as u16);
            self.mss = size as u16;
        }
    }
}
