//! Flags of a connection packed into a few bits, because a capture may hold millions of connections.

/// The side that sent the first SYN, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// Known from a SYN or SYN/ACK.
    Known(u8),
    /// Guessed from the ports, or from the first captured segment.
    Guessed(u8),
}

/// A side, and whether it is set.
const SIDE: u8 = 0b01;
const IS_ANY: u8 = 0b10;

/// Bit positions.
const INITIATOR: u32 = 0;
const CLOSED_FIRST: u32 = 2;
const RESET_BY: u32 = 4;
const IS_HANDSHAKE_AMBIGUOUS: u8 = 1 << 6;
const IS_IPV6: u8 = 1 << 7;

/// The roles of the sides, and other flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    pub fn new(initiator: Initiator, ip_version: u8) -> Self {
        let mut marks = Marks(if ip_version == 6 { IS_IPV6 } else { 0 });
        marks.set_initiator(initiator);
        marks
    }

    pub fn initiator(self) -> Initiator {
        match self.side(INITIATOR) {
            Some(side) => Initiator::Known(side),
            None => Initiator::Guessed(self.0 >> INITIATOR & SIDE),
        }
    }

    /// Return the initiator's side, known or guessed.
    #[inline]
    pub fn initiator_side(self) -> usize {
        usize::from(self.0 >> INITIATOR & SIDE)
    }

    pub fn set_initiator(&mut self, initiator: Initiator) {
        let (side, known) = match initiator {
            Initiator::Known(side) => (side, IS_ANY),
            Initiator::Guessed(side) => (side, 0),
        };
        self.set(INITIATOR, side & SIDE | known);
    }

    /// Return the side whose FIN or RST came first.
    pub fn closed_first(self) -> Option<u8> {
        self.side(CLOSED_FIRST)
    }

    /// Record a FIN or RST of this side; only the first counts.
    pub fn close(&mut self, side: u8) {
        if self.closed_first().is_none() {
            self.set(CLOSED_FIRST, side & SIDE | IS_ANY);
        }
    }

    /// Return the side that sent the first RST.
    pub fn reset_by(self) -> Option<u8> {
        self.side(RESET_BY)
    }

    pub fn reset(&mut self, side: u8) {
        self.set(RESET_BY, side & SIDE | IS_ANY);
    }

    /// Return whether a SYN or SYN/ACK was retransmitted.
    pub fn is_handshake_ambiguous(self) -> bool {
        self.0 & IS_HANDSHAKE_AMBIGUOUS != 0
    }

    pub fn make_handshake_ambiguous(&mut self) {
        self.0 |= IS_HANDSHAKE_AMBIGUOUS;
    }

    pub fn ip_version(self) -> u8 {
        if self.0 & IS_IPV6 == 0 {
            4
        } else {
            6
        }
    }

    fn side(self, place: u32) -> Option<u8> {
        let bits = self.0 >> place;
        (bits & IS_ANY != 0).then_some(bits & SIDE)
    }

    fn set(&mut self, place: u32, bits: u8) {
        self.0 = self.0 & !((SIDE | IS_ANY) << place) | bits << place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_stands_for_itself() {
        for (initiator, ip_version) in [
            (Initiator::Known(0), 4),
            (Initiator::Known(1), 6),
            (Initiator::Guessed(0), 6),
            (Initiator::Guessed(1), 4),
        ] {
            let mut marks = Marks::new(Initiator::Known(1), ip_version);
            marks.set_initiator(initiator);
            assert_eq!((marks.closed_first(), marks.reset_by()), (None, None));
            assert!(!marks.is_handshake_ambiguous());
            marks.close(1);
            marks.close(0);
            marks.reset(0);
            marks.make_handshake_ambiguous();
            assert_eq!((marks.closed_first(), marks.reset_by()), (Some(1), Some(0)));
            assert!(marks.is_handshake_ambiguous());
            assert_eq!(
                (marks.initiator(), marks.ip_version()),
                (initiator, ip_version)
            );
        }
    }
}
