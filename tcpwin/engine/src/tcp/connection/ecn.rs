//! Explicit congestion notification: negotiation by the SYNs, and the meaning of the flags in later segments.

use crate::tcp::connection::syn::{syn_kind, SynOptions};
use crate::wire::{Segment, AE};

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// A SYN or SYN/ACK is missing.
    Unknown,
    Off,
    /// The client offered ECN and the server declined.
    Refused,
    /// RFC 3168: ECE reports a mark until CWR confirms it.
    Classic,
    /// RFC 9768: ECE, CWR and AE form a counter of marks.
    Accurate,
}

impl Ecn {
    /// Determine the result from a SYN and its SYN/ACK (RFC 3168 §6.1.1; RFC 9768 §3.1.1, table 2).
    pub fn agreed(asked: &SynOptions, answered: &SynOptions) -> Self {
        if asked.is_answer() || !answered.is_answer() {
            return Ecn::Unknown;
        }
        let (asked, answered) = (asked.kinds & syn_kind::ECN, answered.kinds & syn_kind::ECN);
        const CLASSIC: u8 = syn_kind::ECE | syn_kind::CWR;
        match (asked, answered) {
            (0, _) => Ecn::Off,
            // A SYN/ACK with the same flags as the SYN reflects them by mistake (RFC 9768 §3.1.1).
            (_, 0 | syn_kind::ECN) => Ecn::Refused,
            (CLASSIC | syn_kind::ECN, syn_kind::ECE) => Ecn::Classic,
            (syn_kind::ECN, answered) if answered == syn_kind::AE | syn_kind::ECE => Ecn::Classic,
            (syn_kind::ECN, _) => Ecn::Accurate,
            _ => Ecn::Refused,
        }
    }

    /// Like [`Ecn::agreed`], for SYN and SYN/ACK in either order.
    pub fn of(one: &SynOptions, other: &SynOptions) -> Self {
        if one.is_answer() {
            Ecn::agreed(other, one)
        } else {
            Ecn::agreed(one, other)
        }
    }

    pub fn name(self) -> Option<&'static str> {
        match self {
            Ecn::Unknown => None,
            Ecn::Off => Some("off"),
            Ecn::Refused => Some("refused"),
            Ecn::Classic => Some("ecn"),
            Ecn::Accurate => Some("accecn"),
        }
    }
}

/// Return whether a SYN offers or accepts AccECN.
#[inline]
pub fn may_count(one: &SynOptions, other: &SynOptions) -> bool {
    (one.kinds | other.kinds) & syn_kind::AE != 0
}

/// Return whether ECE and CWR after the handshake have their meanings from RFC 3168 §6.1: both SYNs negotiated it or,
/// if no SYN was captured, the segment lacks the flag that only the counter of RFC 9768 sets.
#[cold]
pub fn distinguishes(one: &SynOptions, other: &SynOptions, segment: &Segment) -> bool {
    match Ecn::of(one, other) {
        Ecn::Classic => true,
        Ecn::Unknown => segment.flags & AE == 0,
        Ecn::Off | Ecn::Refused | Ecn::Accurate => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(kinds: u8) -> SynOptions {
        SynOptions {
            kinds,
            ..SynOptions::default()
        }
    }

    #[test]
    fn both_syns_agree() {
        const E: u8 = syn_kind::ECE;
        const C: u8 = syn_kind::CWR;
        const A: u8 = syn_kind::AE;
        for (asked, answered, agreed) in [
            (0, 0, Ecn::Off),
            (0, E, Ecn::Off),
            (E | C, 0, Ecn::Refused),
            (E | C, E, Ecn::Classic),
            // Only the client's SYN has both flags: this SYN/ACK reflects them.
            (E | C, E | C, Ecn::Refused),
            // RFC 9768, table 2, from the top.
            (A | C | E, C, Ecn::Accurate),
            (A | C | E, C | E, Ecn::Accurate),
            (A | C | E, A, Ecn::Accurate),
            (A | C | E, A | C, Ecn::Accurate),
            (A | C | E, A | E, Ecn::Classic),
            (A | C | E, E, Ecn::Classic),
            (A | C | E, 0, Ecn::Refused),
            (A | C | E, A | C | E, Ecn::Refused),
        ] {
            let answer = syn(answered | syn_kind::ANSWER);
            assert_eq!(
                Ecn::agreed(&syn(asked), &answer),
                agreed,
                "{asked} {answered}"
            );
        }
        assert_eq!(Ecn::agreed(&syn(E | C), &syn(0)), Ecn::Unknown);
    }
}
