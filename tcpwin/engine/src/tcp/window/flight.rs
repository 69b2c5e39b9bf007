//! Bytes in flight of one direction: SND.UNA, SND.MAX and their integral over time.
//!
//! Updated by data and ACKs alike, like tcptrace's outstanding window; Wireshark updates its value on data packets only.

use super::{add_ns, elapsed_ns};
use crate::sequence::Seq;

#[derive(Clone, Debug, Default)]
pub struct Flight {
    /// SND.UNA: the highest acknowledgment accepted from the peer (RFC 9293 §3.3.1).
    pub una: Seq,
    /// SND.MAX: one past the highest sequence number that was sent, SYN and FIN counted.
    pub nxt: Seq,
    pub max_bytes: u32,
    /// Bytes × nanoseconds, over the time in which the flight was known.
    pub integral: f64,
    /// Nanoseconds in which the flight was known.
    pub known_ns: i64,
    changed_ns: i64,
    /// Unacknowledged SYN and FIN: they take sequence numbers but are not bytes.
    pub control: u8,
    /// Whether a sequence number is known.
    pub is_started: bool,
    /// Whether the peer's acknowledgments were captured, so that SND.UNA is known.
    pub is_acked: bool,
    pub unknown: Unknown,
}

/// The end of the flight that is unknown because the capture lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    #[default]
    Neither,
    /// An ACK covered bytes never captured: SND.MAX is unknown until new data reveals it.
    Max,
    /// Data arrived beyond every window: SND.UNA is unknown until a nearby ACK reveals it.
    Una,
}

impl Flight {
    /// Return whether anything sent, including SYN and FIN, is unacknowledged.
    #[inline]
    pub fn is_outstanding(&self) -> bool {
        self.una.is_before(self.nxt)
    }

    /// Return the bytes in flight: SND.MAX − SND.UNA without SYN and FIN.
    #[inline]
    pub fn bytes(&self) -> u32 {
        (self.una.to(self.nxt).max(0) as u32).saturating_sub(u32::from(self.control))
    }

    /// Begin at a sequence number, before anything was measured.
    pub fn start(&mut self, at: Seq, now_ns: i64) {
        self.una = at;
        self.nxt = at;
        self.control = 0;
        self.changed_ns = now_ns;
    }

    /// Like [`Flight::bytes`], while neither SYN nor FIN is in flight.
    #[inline(always)]
    pub fn span(&self) -> u32 {
        self.una.to(self.nxt) as u32
    }

    /// Account for the time since the last change. Time that runs backwards counts as none.
    #[inline]
    pub fn integrate(&mut self, now_ns: i64, known: bool) {
        if known {
            self.pass_time(now_ns, self.bytes());
        } else {
            self.changed_ns = self.changed_ns.max(now_ns);
        }
    }

    /// Account for the time since the last change, in which `bytes` were in flight.
    #[inline(always)]
    pub fn pass_time(&mut self, now_ns: i64, bytes: u32) {
        if let Some(elapsed_ns) = elapsed_ns(self.changed_ns, now_ns) {
            self.changed_ns = now_ns;
            self.integral += f64::from(bytes) * elapsed_ns as f64;
            self.known_ns = add_ns(self.known_ns, elapsed_ns);
        }
    }

    /// Return whether the time up to now is accounted for.
    pub fn is_counted_until(&self, now_ns: i64) -> bool {
        self.changed_ns >= now_ns
    }

    /// Move SND.MAX to `end`, after accounting for the time until now. Return its old value.
    #[inline]
    pub fn extend(&mut self, end: Seq, now_ns: i64, was_known: bool) -> Seq {
        self.integrate(now_ns, was_known);
        std::mem::replace(&mut self.nxt, end)
    }

    /// Like [`Flight::extend`], while everything is known and neither SYN nor FIN is in flight.
    #[inline(always)]
    pub fn extend_ordinary(&mut self, end: Seq, now_ns: i64) {
        self.pass_time(now_ns, self.span());
        self.nxt = end;
        self.max_bytes = self.max_bytes.max(self.span());
    }

    #[inline]
    pub fn note_max(&mut self) {
        self.max_bytes = self.max_bytes.max(self.bytes());
    }
}
