//! A SYN on a four-tuple in use: the peer's answer shows whether another connection began.
//!
//! RFC 5961 §4.2, RFC 9293 §3.10.7.4: a host that still has the connection answers a SYN with a challenge ACK, which
//! acknowledges the old data, and continues. In: segments after the SYN. Out: the connection that each belongs to.

use std::collections::HashMap;

use crate::sequence::Seq;
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::state::Connection;
use crate::wire::{Segment, ACK, RST, SYN};

/// Maximum distance of a challenge ACK from its sender's earlier sequence numbers.
const NEAR: u32 = 1 << 20;

/// Connections apparently begun by a SYN while an earlier one was open.
#[derive(Default)]
pub struct Forks {
    /// The older connection by the newer, while it is undecided which of them continues.
    open: HashMap<u32, u32>,
    /// The newer connection by the older, which continued: the newer SYN may yet be answered.
    refused: HashMap<u32, u32>,
}

impl Forks {
    #[inline(always)]
    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Note that `newer` replaced `older`.
    pub fn begin(&mut self, connections: &Arena, older: u32, newer: u32) {
        let is_closed = |connection: &Connection| {
            connection.marks.reset_by().is_some()
                || connection.directions.iter().all(|each| each.has_fin())
        };
        if connections
            .get(older)
            .is_some_and(|before| !is_closed(before))
        {
            self.open.insert(newer, older);
        }
    }

    /// Return the older connection if a segment attributed to `newer` shows that the older continued.
    #[cold]
    pub fn gone_on(&mut self, connections: &Arena, newer: u32, segment: &Segment) -> Option<u32> {
        let older = *self.open.get(&newer)?;
        let [first, second] = &connections.get(newer)?.directions;
        if first.is_seen && second.is_seen {
            self.open.remove(&newer);
            return None;
        }
        let before = connections.get(older)?;
        let side = before.side_of(segment)?;
        let (own, peer) = (&before.directions[side], &before.directions[1 - side]);
        let (seq, ack) = (Seq(segment.seq), Seq(segment.ack));
        let is_ack =
            segment.flags & (ACK | RST) == ACK && own.flight.is_started && peer.flight.is_started;
        let fits = own.flight.nxt.to(seq).unsigned_abs() < NEAR
            && !ack.is_before(peer.flight.una)
            && !ack.is_after(peer.flight.nxt);
        if !is_ack || !fits {
            return None;
        }
        self.open.remove(&newer);
        self.refused.insert(older, newer);
        Some(older)
    }

    /// Return the newest connection of its four-tuple, including those begun by refused SYNs.
    pub fn latest(&self, older: u32) -> u32 {
        let mut latest = older;
        // Terminates: a newer connection has a higher number.
        while let Some(newer) = self.refused.get(&latest) {
            latest = *newer;
        }
        latest
    }

    /// Return the connection begun by a refused SYN if this is a copy of that SYN, or its answer.
    pub fn taken_up(&mut self, connections: &Arena, older: u32, segment: &Segment) -> Option<u32> {
        let newer = *self.refused.get(&older)?;
        let connection = connections.get(newer)?;
        let side = connection.side_of(segment)?;
        let isn = connection.directions[0].isn;
        let is_its_own = match (side, segment.flags & (SYN | ACK)) {
            (0, SYN) => Seq(segment.seq) == isn,
            (1, flags) => flags == SYN | ACK && Seq(segment.ack) == isn + 1,
            _ => false,
        };
        if !is_its_own {
            return None;
        }
        self.refused.remove(&older);
        self.open.insert(newer, older);
        Some(newer)
    }
}
