//! The size of full segments as the sender has it now: what both SYNs allow, or less where path-MTU discovery, a route or a
//! tunnel left less.
//!
//! A full segment within a write is known by its missing PSH: stacks set that where a write ends (RFC 9293 §3.9.1). Several
//! of one size, with nothing but multiples of it between them (super-segments), while the window had room for more, are
//! cut to the size that is in use. A larger one that no offload explains raises it again.

use crate::sequence::Seq;
use crate::tcp::connection::direction::{Direction, LEAST_FULL};
use crate::wire::{Segment, PSH};

/// Whether a payload may tell of another size than `mss`: cut short of it within a write, or longer by less than another.
#[inline(always)]
pub(super) fn may_reveal_size(segment: &Segment, mss: u32) -> bool {
    let size = segment.payload_len;
    // Most are just as long.
    if size == mss {
        return false;
    }
    let is_of_one = size.wrapping_sub(LEAST_FULL) < (2 * mss).saturating_sub(LEAST_FULL);
    is_of_one & ((size > mss) | (segment.flags & PSH == 0))
}

impl Direction {
    /// New data at SND.MAX of a size that may tell how long full segments are. `is_scale_certain`: of the peer's windows.
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
                // No longer than the path carries: it carries more again.
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
