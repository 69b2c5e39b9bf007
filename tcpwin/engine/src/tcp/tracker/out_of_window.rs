//! Rejects impossible sequence numbers: segments beyond every right edge, and ACKs of more than could have been sent.
//!
//! No receiver accepts such a segment (RFC 9293 §3.10.7.4, first check), and one damaged number must not move SND.UNA or
//! SND.MAX. But a capture that lost packets also lost the windows that allowed them, so two agreeing segments are believed.

use crate::sequence::Seq;
use crate::tcp::connection::claim::Claim;
use crate::tcp::connection::direction::Direction;
use crate::tcp::tracker::send::MAX_JUMP;
use crate::tcp::window::flight::Unknown;
use crate::wire::Segment;

/// Limit if the windows are unknown: a capture rarely loses more at once.
const UNSEEN_BYTES: i32 = 1 << 20;

impl Direction {
    /// Return true if an acknowledgment of bytes beyond SND.MAX must be ignored.
    #[inline]
    pub(super) fn doubts_ack(&mut self, segment: &Segment, is_scale_certain: bool) -> bool {
        let ack = Seq(segment.ack);
        let claim = Claim {
            left: ack,
            right: ack,
        };
        self.flight.is_started
            && self.flight.nxt.is_before(ack)
            && self.is_beyond(ack, is_scale_certain)
            && !self.is_confirmed(claim, segment.time_ns, is_scale_certain)
    }

    /// Return true if a segment that begins beyond SND.MAX must be ignored. If it is accepted, SND.UNA is unknown: the ACKs
    /// that made room for it were not captured.
    #[inline]
    pub(super) fn doubts_data(&mut self, segment: &Segment, is_scale_certain: bool) -> bool {
        let seq = Seq(segment.seq);
        if !self.is_beyond(seq, is_scale_certain) {
            return false;
        }
        let claim = Claim {
            left: seq,
            right: seq + segment.payload_len,
        };
        if !self.is_confirmed(claim, segment.time_ns, is_scale_certain) {
            return true;
        }
        self.lose_una(seq, segment.time_ns);
        false
    }

    /// Mark SND.UNA unknown: data begins where only uncaptured ACKs could have made room.
    fn lose_una(&mut self, place: Seq, now_ns: i64) {
        let is_known = self.is_flight_known();
        self.flight.integrate(now_ns, is_known);
        self.flight.unknown = Unknown::Una;
        if let Some(view) = self.ledger.pace_mut().and_then(|pace| pace.view.as_mut()) {
            view.skip_to(place, now_ns);
        }
    }

    #[inline]
    fn is_beyond(&self, place: Seq, is_scale_certain: bool) -> bool {
        let nxt = self.flight.nxt;
        if is_scale_certain && self.window.is_known && !nxt.is_after(self.window.edge_max) {
            // One more byte is a probe's, or a FIN.
            self.window.edge_max.to(place) > 1
        } else {
            nxt.to(place) > UNSEEN_BYTES
        }
    }

    /// Return whether an earlier segment claimed nearly the same place; otherwise note this claim.
    #[cold]
    fn is_confirmed(&mut self, claim: Claim, now_ns: i64, is_scale_certain: bool) -> bool {
        let most_bytes = self.likely_window_bytes(is_scale_certain);
        let known = &mut self.cold_state().claim;
        let first = known.take().filter(|first| {
            let apart = first.right.to(claim.left);
            apart.unsigned_abs() <= most_bytes.max(first.len())
        });
        match first {
            Some(first) => self.admit(first, now_ns),
            None => self.cold_state().claim = Some(claim),
        }
        first.is_some()
    }

    /// Count the data that was ignored at first.
    fn admit(&mut self, first: Claim, now_ns: i64) {
        let nxt = self.flight.nxt;
        if first.is_empty() || first.left.is_before(nxt) {
            return;
        }
        self.lose_una(first.left, now_ns);
        self.flight.nxt = first.right;
        if self.is_seen {
            self.cold_state().unseen.insert(nxt, first.left);
        }
        self.count_data(&Segment {
            payload_len: first.len(),
            time_ns: now_ns,
            ..Segment::EMPTY
        });
    }

    /// Return the maximum distance between two segments of one flight.
    pub(super) fn likely_window_bytes(&self, is_scale_certain: bool) -> u32 {
        if is_scale_certain && self.window.is_known {
            self.window.max_bytes.min(MAX_JUMP)
        } else {
            UNSEEN_BYTES as u32
        }
    }
}
