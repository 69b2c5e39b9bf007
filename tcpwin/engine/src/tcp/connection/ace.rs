//! Decodes AccECN's counter of congestion marks (RFC 9768 §3.2.2): three flags in each segment after the SYNs.
//!
//! In: the segments of a receiver, in order. Out: the number of marked packets that reached it. The counter wraps at
//! eight, so the number of marks between two segments is a lower bound.

use crate::wire::{Segment, AE, CWR, ECE};

/// A receiver's initial counter. It is not zero, so that a middlebox that clears the flags is detected (RFC 9768
/// §3.2.1).
const FIRST: u8 = 5;
/// Values with which a client's first ACK reports an unmarked SYN/ACK (RFC 9768 §3.2.2.1, table 3).
const UNMARKED_SYN_ACK: [u8; 3] = [0b010, 0b011, 0b100];

/// A receiver's counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ace {
    /// The last value; None before the first.
    last: Option<u8>,
    /// Whether the first value was zero: the flags were cleared on the path (RFC 9768 §3.2.2.4).
    is_cleared: bool,
    pub marks: u64,
}

impl Ace {
    /// Return the three flags as a number.
    pub fn value(segment: &Segment) -> u8 {
        let bit = |flag: u16, place: u8| u8::from(segment.flags & flag != 0) << place;
        bit(AE, 2) | bit(CWR, 1) | bit(ECE, 0)
    }

    /// Process a segment of the receiver and return the number of marks that it adds. `is_handshake`: it acknowledges
    /// only the SYN/ACK. `is_new`: it acknowledges more than any segment before it.
    pub fn take(&mut self, value: u8, is_handshake: bool, is_new: bool) -> u8 {
        if self.is_cleared || (is_handshake && UNMARKED_SYN_ACK.contains(&value)) {
            return 0;
        }
        let Some(last) = self.last else {
            self.is_cleared = value == 0;
            return self.advance(FIRST, value);
        };
        // An older segment that arrives late would add up to seven marks too many.
        if !is_new {
            return 0;
        }
        self.advance(last, value)
    }

    fn advance(&mut self, last: u8, value: u8) -> u8 {
        if self.is_cleared {
            return 0;
        }
        self.last = Some(value);
        let added = value.wrapping_sub(last) & 7;
        self.marks = self.marks.saturating_add(u64::from(added));
        added
    }

    /// Return the number of marks; None before the first report, or if the flags are cleared.
    pub fn counted(&self) -> Option<u64> {
        self.last.filter(|_| !self.is_cleared).map(|_| self.marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_wraps_is_followed() {
        let mut ace = Ace::default();
        assert_eq!(ace.take(0b010, true, false), 0, "report about the SYN/ACK");
        assert_eq!(ace.counted(), None);
        assert_eq!(ace.take(5, true, false), 0);
        assert_eq!(ace.counted(), Some(0));
        let added: Vec<u8> = [6, 6, 0, 2]
            .map(|value| ace.take(value, false, true))
            .into();
        assert_eq!(added, [1, 0, 2, 2]);
        assert_eq!(ace.take(0, false, false), 0, "an overtaken segment");
        assert_eq!(ace.counted(), Some(5));
    }

    #[test]
    fn a_marked_syn_ack_counts() {
        let mut ace = Ace::default();
        assert_eq!(ace.take(6, true, false), 1);
        assert_eq!(ace.counted(), Some(1));
    }

    #[test]
    fn flags_that_were_cleared_tell_nothing() {
        let mut ace = Ace::default();
        assert_eq!(ace.take(0, false, true), 0);
        assert_eq!(ace.take(3, false, true), 0);
        assert_eq!(ace.counted(), None);
    }
}
