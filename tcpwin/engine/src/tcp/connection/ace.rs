//! AccECN's counter of marks (RFC 9768 §3.2.2): three flags of each segment after the SYNs, decoded.
//!
//! Comes in: the segments of a receiver, in order. Goes out: the number of marked packets that reached it. The counter wraps at
//! eight, so the marks between two of its segments are a minimum.

use crate::wire::{Segment, AE, CWR, ECE};

/// A receiver's initial counter. It is not zero, so that a middlebox that clears the flags shows (RFC 9768 §3.2.1).
const FIRST: u8 = 5;
/// Codes by which a client's first ACK reports an unmarked SYN/ACK (RFC 9768 §3.2.2.1, table 3).
const UNMARKED_SYN_ACK: [u8; 3] = [0b010, 0b011, 0b100];

/// The counter of one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ace {
    /// Its last value; None before the first.
    last: Option<u8>,
    /// It began with zero: the flags were cleared on the way (RFC 9768 §3.2.2.4).
    is_cleared: bool,
    pub marks: u64,
}

impl Ace {
    /// The three flags as a number.
    pub fn value(segment: &Segment) -> u8 {
        let bit = |flag: u16, place: u8| u8::from(segment.flags & flag != 0) << place;
        bit(AE, 2) | bit(CWR, 1) | bit(ECE, 0)
    }

    /// Read a segment of the receiver. `is_handshake`: it acknowledges only the SYN/ACK; `is_new`: it acknowledges more than
    /// any before it. Return the marks that it adds.
    pub fn take(&mut self, value: u8, is_handshake: bool, is_new: bool) -> u8 {
        if self.is_cleared || (is_handshake && UNMARKED_SYN_ACK.contains(&value)) {
            return 0;
        }
        let Some(last) = self.last else {
            self.is_cleared = value == 0;
            return self.advance(FIRST, value);
        };
        // An older segment that comes late would count seven marks too many.
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

    /// Return the count of marks; None before the first report, or if the flags are cleared.
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
        assert_eq!(ace.take(0b010, true, false), 0, "how the SYN/ACK came");
        assert_eq!(ace.counted(), None);
        assert_eq!(ace.take(5, true, false), 0);
        assert_eq!(ace.counted(), Some(0));
        let added: Vec<u8> = [6, 6, 0, 2]
            .map(|value| ace.take(value, false, true))
            .into();
        assert_eq!(added, [1, 0, 2, 2]);
        assert_eq!(ace.take(0, false, false), 0, "it was overtaken");
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
