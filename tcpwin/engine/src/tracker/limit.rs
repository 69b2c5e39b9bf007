//! Whether the receive window holds a sender back, and for how long.

use crate::connection::direction::Direction;

impl Direction {
    /// Account for the time in which the next segment does not fit the receive window while data is in flight:
    /// what blocks Linux in `tcp_snd_wnd_test` (net/ipv4/tcp_output.c).
    #[inline]
    pub fn note_limit(&mut self, now_ns: i64, is_scale_certain: bool) {
        let room = self.flight.nxt.to(self.window.edge);
        // A sender that the window stopped stays stopped until it opens by a segment, whether or not what it had sent
        // is acknowledged meanwhile.
        self.window.is_blocked = is_scale_certain
            && self.window.is_known
            && !self.has_fin
            && self.is_flight_known()
            && (self.flight.is_outstanding() || self.window.is_blocked)
            && room < self.least_room() as i32;
        let is_limited = self.window.is_blocked && self.window.bytes > 0;
        if is_limited != self.is_limited {
            self.note_limit_change(now_ns, is_limited);
        }
    }

    /// [`Direction::note_limit`] where everything is known and the window is open.
    #[inline(always)]
    pub fn note_open_limit(&mut self, now_ns: i64) {
        let room = self.flight.nxt.to(self.window.edge);
        self.window.is_blocked = (self.flight.is_outstanding() | self.window.is_blocked)
            & (room < self.segment_size() as i32);
        if self.window.is_blocked {
            self.window.is_blocked = room < self.least_room() as i32;
        }
        if self.window.is_blocked != self.is_limited {
            self.note_limit_change(now_ns, self.window.is_blocked);
        }
    }

    #[cold]
    fn note_limit_change(&mut self, now_ns: i64, is_limited: bool) {
        let rare = self.rare();
        if is_limited {
            rare.limited_since_ns = now_ns;
        } else {
            let span_ns = now_ns.saturating_sub(rare.limited_since_ns).max(0);
            rare.limited_ns = rare.limited_ns.saturating_add(span_ns);
        }
        self.is_limited = is_limited;
    }

    pub fn note_unlimited(&mut self, now_ns: i64) {
        if self.is_limited {
            self.note_limit_change(now_ns, false);
        }
    }
}
