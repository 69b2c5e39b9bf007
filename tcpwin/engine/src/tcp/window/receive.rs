//! The receive window that limits one direction: which advertisements a sender accepts, its right edge, its extremes.
//!
//! Acceptance is Linux's `tcp_may_update_window` (net/ipv4/tcp_input.c), the SND.WL1/SND.WL2 rule of RFC 9293 §3.10.7.4
//! made robust against old duplicates: a reordered old ACK must not look like a smaller window.

use super::{add_ns, elapsed_ns};
use crate::sequence::Seq;

#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    /// Accepted window in bytes; in raw units while the scale is unknown.
    pub bytes: u32,
    /// SND.WL1: sequence number of the segment that last set the window.
    wl1: Seq,
    /// Acknowledgment plus window of the accepted advertisement.
    pub edge: Seq,
    /// Highest right edge ever advertised.
    pub edge_max: Seq,
    pub initial_bytes: u32,
    pub min_bytes: u32,
    pub max_bytes: u32,
    /// Bytes × nanoseconds since the first advertisement.
    pub integral: f64,
    pub known_ns: i64,
    changed_ns: i64,
    /// The window field of the last segment, accepted or not.
    pub last_raw: u16,
    pub is_known: bool,
    /// Whether the next segment does not fit, while data in flight shows that there is one to send (Linux
    /// `tcp_snd_wnd_test`).
    pub is_blocked: bool,
}

/// One advertisement, as a segment of the receiver carries it.
#[derive(Clone, Copy, Debug)]
pub struct Advertisement {
    pub seq: Seq,
    pub ack: Seq,
    pub bytes: u32,
    /// One unit of the scaled field: smaller changes are rounding (RFC 7323 §2.4).
    pub unit_bytes: u32,
    /// Whether its acknowledgment is above SND.UNA.
    pub is_new_ack: bool,
    /// Whether it is older than one already seen: acknowledgment below SND.UNA, or an earlier timestamp.
    pub is_stale: bool,
}

/// Effect of an advertisement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    pub is_accepted: bool,
    /// Bytes by which the right edge moved to the left, if by a unit or more (RFC 9293 §3.8.6.2.1, SHLD-14).
    pub shrink_bytes: u32,
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        ReceiveWindow {
            bytes: 0,
            wl1: Seq(0),
            edge: Seq(0),
            edge_max: Seq(0),
            initial_bytes: 0,
            min_bytes: u32::MAX,
            max_bytes: 0,
            integral: 0.0,
            known_ns: 0,
            changed_ns: 0,
            last_raw: 0,
            is_known: false,
            is_blocked: false,
        }
    }
}

impl ReceiveWindow {
    #[inline]
    pub fn integrate(&mut self, now_ns: i64) {
        if let Some(elapsed_ns) = elapsed_ns(self.changed_ns, now_ns) {
            self.changed_ns = now_ns;
            self.integral += f64::from(self.bytes) * elapsed_ns as f64;
            self.known_ns = add_ns(self.known_ns, elapsed_ns);
        }
    }

    /// Give a window that came in a SYN, before this side's own, its place in the sequence space.
    pub fn anchor(&mut self, at: Seq) {
        self.edge = at + self.bytes;
        self.edge_max = self.edge;
    }

    #[inline]
    pub fn advertise(&mut self, now_ns: i64, advertisement: &Advertisement) -> Advertised {
        if !self.is_known {
            self.begin(now_ns, advertisement);
            return Advertised {
                is_accepted: true,
                shrink_bytes: 0,
            };
        }
        if advertisement.is_stale {
            return Advertised::default();
        }
        self.renew(now_ns, advertisement)
    }

    /// Start over from the last window, whose shift is known only now; earlier ones were recorded unscaled.
    pub fn begin_again(&mut self, shift: u8) {
        let bytes = u32::from(self.last_raw) << shift;
        self.edge = self.edge + bytes.wrapping_sub(self.bytes);
        self.edge_max = self.edge;
        (self.bytes, self.min_bytes, self.max_bytes) = (bytes, bytes, bytes);
        (self.integral, self.known_ns) = (0.0, 0);
    }

    fn begin(&mut self, now_ns: i64, advertisement: &Advertisement) {
        let bytes = advertisement.bytes;
        self.is_known = true;
        self.initial_bytes = bytes;
        (self.bytes, self.min_bytes, self.max_bytes) = (bytes, bytes, bytes);
        self.wl1 = advertisement.seq;
        self.edge = advertisement.ack + bytes;
        self.edge_max = self.edge;
        self.changed_ns = now_ns;
    }

    /// Return whether it repeats the known window with the same edge.
    #[inline(always)]
    pub fn is_repeated(&self, advertisement: &Advertisement) -> bool {
        (advertisement.bytes == self.bytes)
            & (advertisement.ack + advertisement.bytes == self.edge)
            & (self.wl1.to(advertisement.seq) >= 0)
    }

    /// Note that a segment that is not older repeated the known window.
    #[inline(always)]
    pub fn confirm(&mut self, seq: Seq) {
        self.wl1 = seq;
    }

    /// Apply an advertisement that is not stale to a known window.
    #[inline(always)]
    pub fn renew(&mut self, now_ns: i64, advertisement: &Advertisement) -> Advertised {
        let bytes = advertisement.bytes;
        let since_wl1 = self.wl1.to(advertisement.seq);
        let edge = advertisement.ack + bytes;
        let retreat = edge.to(self.edge);
        // A window of zero is accepted even on an equal sequence number: Linux 6.6 and later (800a666141de).
        let is_accepted = advertisement.is_new_ack
            || since_wl1 > 0
            || (since_wl1 == 0 && (bytes > self.bytes || bytes == 0));
        // A rejected smaller window came late or is ignored: its sender may have opened the window since.
        let is_shrink =
            is_accepted & (since_wl1 >= 0) & (retreat >= advertisement.unit_bytes as i32);
        let shrink_bytes = if is_shrink { retreat as u32 } else { 0 };
        if is_accepted {
            if bytes != self.bytes {
                self.integrate(now_ns);
                self.bytes = bytes;
                self.min_bytes = self.min_bytes.min(bytes);
                self.max_bytes = self.max_bytes.max(bytes);
            }
            self.wl1 = advertisement.seq;
            self.edge = edge;
            self.edge_max = self.edge_max.max(edge);
        }
        Advertised {
            is_accepted,
            shrink_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advertisement(seq: u32, ack: u32, bytes: u32, is_new_ack: bool) -> Advertisement {
        Advertisement {
            seq: Seq(seq),
            ack: Seq(ack),
            bytes,
            unit_bytes: 128,
            is_new_ack,
            is_stale: false,
        }
    }

    #[test]
    fn an_old_ack_does_not_shrink_the_window() {
        let mut window = ReceiveWindow::default();
        window.advertise(0, &advertisement(1, 1000, 50_000, true));
        window.advertise(10, &advertisement(1, 3000, 60_000, true));
        let old = Advertisement {
            is_stale: true,
            ..advertisement(1, 2000, 10_000, false)
        };
        assert_eq!(window.advertise(20, &old), Advertised::default());
        assert_eq!(
            (window.bytes, window.edge, window.min_bytes),
            (60_000, Seq(63_000), 50_000)
        );
    }

    #[test]
    fn a_retreat_below_one_unit_is_rounding() {
        let mut window = ReceiveWindow::default();
        window.advertise(0, &advertisement(1, 1000, 12_800, true));
        assert_eq!(
            window
                .advertise(1, &advertisement(1, 1100, 12_672, true))
                .shrink_bytes,
            0
        );
        assert_eq!(
            window
                .advertise(2, &advertisement(1, 1200, 12_416, true))
                .shrink_bytes,
            156
        );
    }

    #[test]
    fn equal_sequence_takes_larger_or_zero_only() {
        let mut window = ReceiveWindow::default();
        window.advertise(0, &advertisement(1, 1000, 12_800, true));
        assert!(
            !window
                .advertise(1, &advertisement(1, 1000, 6_400, false))
                .is_accepted
        );
        assert!(
            window
                .advertise(2, &advertisement(1, 1000, 25_600, false))
                .is_accepted
        );
        assert!(
            window
                .advertise(3, &advertisement(1, 1000, 0, false))
                .is_accepted
        );
        assert_eq!(window.edge_max, Seq(26_600));
    }

    #[test]
    fn mean_is_weighted_by_time() {
        let mut window = ReceiveWindow::default();
        window.advertise(0, &advertisement(1, 1000, 1_000, true));
        window.advertise(30, &advertisement(1, 1001, 2_000, true));
        window.integrate(40);
        assert_eq!(window.integral, 30.0 * 1_000.0 + 10.0 * 2_000.0);
        assert_eq!(window.known_ns, 40);
    }
}
