//! Window scaling: the shifts negotiated by the SYNs, or inferred if they were not captured.
//!
//! RFC 7323 §2.2: scaling holds only when both SYNs carry the option; the window of a SYN is never scaled;
//! §2.3: a shift above 14 is used as 14.

use std::collections::HashMap;

use crate::sequence::Seq;

/// The largest shift in use (RFC 7323 §2.3).
pub const MAX_SHIFT: u8 = 14;

/// A shift known from outside the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenShift {
    pub shift: u8,
    /// Whether a user supplied it, rather than a snapshot of the socket.
    pub is_by_hand: bool,
}

/// Given shifts by connection number, for the first segment's sender and the other side.
pub type GivenShifts = HashMap<u32, [Option<GivenShift>; 2]>;

/// How the shift of one side's advertisements is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleState {
    /// Neither SYN was captured, or too few to know.
    #[default]
    Unknown,
    /// Both SYNs, or the SYN/ACK alone, carried the option.
    Known,
    /// At least one SYN came without the option: windows are plain.
    Disabled,
    /// Only the SYN was captured; it carries the option, but nothing shows that the peer agreed.
    SynOnly,
    /// Not in the capture; from a snapshot of the socket, or by hand.
    Given,
    /// Only the SYN was captured, and the windows after it make sense only when scaled as it offers.
    SynConfirmed,
}

impl ScaleState {
    pub fn name(self) -> &'static str {
        match self {
            ScaleState::Unknown => "unknown",
            ScaleState::Known => "known",
            ScaleState::Disabled => "disabled",
            ScaleState::SynOnly => "syn_only",
            ScaleState::SynConfirmed => "syn_confirmed",
            ScaleState::Given => "given",
        }
    }

    /// Return whether windows can be given in bytes.
    #[inline]
    pub fn is_certain(self) -> bool {
        matches!(
            self,
            ScaleState::Known | ScaleState::Disabled | ScaleState::SynConfirmed | ScaleState::Given
        )
    }
}

/// The window scale that one side's SYN offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// No SYN of this side was captured.
    Unseen,
    Absent,
    Shift(u8),
}

/// Derive each side's scaling state and shift from both offers (RFC 7323 §2.2).
/// `is_answer`: whether each SYN was a SYN/ACK, which may carry the option only if the SYN did.
pub fn negotiate(offers: [Offer; 2], is_answer: [bool; 2]) -> [(ScaleState, u8); 2] {
    let own = |side: usize| match (offers[side], offers[1 - side]) {
        (Offer::Absent, _) | (_, Offer::Absent) => (ScaleState::Disabled, 0),
        (Offer::Shift(shift), Offer::Shift(_)) => (ScaleState::Known, shift.min(MAX_SHIFT)),
        (Offer::Shift(shift), Offer::Unseen) if is_answer[side] => {
            (ScaleState::Known, shift.min(MAX_SHIFT))
        }
        (Offer::Shift(_), Offer::Unseen) => (ScaleState::SynOnly, 0),
        (Offer::Unseen, _) => (ScaleState::Unknown, 0),
    };
    [own(0), own(1)]
}

/// Evidence that a shift is too small: more was sent than that shift's window would have allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightBound {
    pub frame: u64,
    /// SND.MAX − acknowledgment of the largest advertisement at that frame.
    pub flight_bytes: u32,
    /// The window field that should have covered it.
    pub window_raw: u16,
}

/// Number of segments that may pass an apparent edge because of an ACK missing from the capture.
const FIRM_SEGMENTS: u8 = 8;

/// The range of an unknown shift that the packets allow, with the evidence for its lower end.
///
/// A sender never sends beyond the right edge (RFC 9293 §3.8.6), so each shift whose furthest edge was passed is ruled
/// out; a sender that stops exactly at the edge of one shift again and again points to that shift.
#[derive(Clone, Debug)]
pub struct ScaleInference {
    edges: [Option<(Seq, Seq, u16)>; MAX_SHIFT as usize + 1],
    /// Edges of the current advertisement, to detect coincidences.
    current: Option<(Seq, u16)>,
    pub shift_min: u8,
    pub bound: Option<FlightBound>,
    /// The minimum if many segments passed each smaller edge, which a missing ACK does not explain.
    pub firm_min: u8,
    passed: [u8; MAX_SHIFT as usize],
    coincidences: [u16; MAX_SHIFT as usize + 1],
    /// Whether data passed even the largest edge, so that the captured windows do not belong to this data.
    pub is_contradicted: bool,
}

impl Default for ScaleInference {
    fn default() -> Self {
        ScaleInference {
            edges: [None; MAX_SHIFT as usize + 1],
            current: None,
            shift_min: 0,
            bound: None,
            firm_min: 0,
            passed: [0; MAX_SHIFT as usize],
            coincidences: [0; MAX_SHIFT as usize + 1],
            is_contradicted: false,
        }
    }
}

impl ScaleInference {
    /// Add an accepted advertisement.
    pub fn advertise(&mut self, ack: Seq, raw: u16) {
        self.current = Some((ack, raw));
        for (shift, furthest) in self.edges.iter_mut().enumerate() {
            let edge = ack + (u32::from(raw) << shift);
            if furthest.is_none_or(|(known, _, _)| known.is_before(edge)) {
                *furthest = Some((edge, ack, raw));
            }
        }
    }

    /// Add data up to `end`.
    pub fn send(&mut self, frame: u64, end: Seq) {
        let Some((ack, raw)) = self.current else {
            return;
        };
        if raw == 0 {
            // A probe goes beyond a closed window by design.
            return;
        }
        while let Some((edge, from, at_raw)) = self.edges[usize::from(self.shift_min)] {
            if !edge.is_before(end) {
                break;
            }
            if self.shift_min == MAX_SHIFT {
                self.is_contradicted = true;
                break;
            }
            self.bound = Some(FlightBound {
                frame,
                flight_bytes: from.to(end).max(0) as u32,
                window_raw: at_raw,
            });
            self.shift_min += 1;
        }
        self.note_passed(end);
        for shift in self.shift_min..=MAX_SHIFT {
            if ack + (u32::from(raw) << shift) == end {
                let count = &mut self.coincidences[usize::from(shift)];
                *count = count.saturating_add(1);
            }
        }
    }

    fn note_passed(&mut self, end: Seq) {
        while self.firm_min < self.shift_min {
            let shift = usize::from(self.firm_min);
            let is_beyond = self.edges[shift].is_some_and(|(edge, _, _)| edge.is_before(end));
            self.passed[shift] += u8::from(is_beyond);
            if self.passed[shift] < FIRM_SEGMENTS {
                break;
            }
            self.firm_min += 1;
        }
    }

    /// Return the only shift at whose edge the data stopped, if it stopped there at least three times.
    pub fn coincidence(&self) -> Option<(u8, u16)> {
        let mut hits = (self.shift_min..=MAX_SHIFT).filter_map(|shift| {
            match self.coincidences[usize::from(shift)] {
                0 => None,
                count => Some((shift, count)),
            }
        });
        match (hits.next(), hits.next()) {
            (Some((shift, count)), None) if count >= 3 => Some((shift, count)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_syns_must_carry_the_option() {
        let agreed = negotiate([Offer::Shift(7), Offer::Shift(15)], [false, true]);
        assert_eq!(agreed, [(ScaleState::Known, 7), (ScaleState::Known, 14)]);
        for offers in [
            [Offer::Absent, Offer::Shift(3)],
            [Offer::Shift(3), Offer::Absent],
            [Offer::Unseen, Offer::Absent],
        ] {
            assert_eq!(
                negotiate(offers, [false, true]),
                [(ScaleState::Disabled, 0); 2]
            );
        }
    }

    #[test]
    fn a_lone_syn_proves_nothing_a_lone_answer_its_own_shift() {
        let lone_syn = negotiate([Offer::Shift(7), Offer::Unseen], [false, false]);
        assert_eq!(
            lone_syn,
            [(ScaleState::SynOnly, 0), (ScaleState::Unknown, 0)]
        );
        let lone_answer = negotiate([Offer::Unseen, Offer::Shift(9)], [false, true]);
        assert_eq!(
            lone_answer,
            [(ScaleState::Unknown, 0), (ScaleState::Known, 9)]
        );
    }

    #[test]
    fn flight_beyond_the_raw_window_rules_shifts_out() {
        // 12,312 bytes against a field of 382: 382 << 5 = 12,224 is too small, 382 << 6 = 24,448 is enough.
        let mut inference = ScaleInference::default();
        inference.advertise(Seq(1000), 382);
        inference.send(9, Seq(1000) + 12_312);
        assert_eq!(inference.shift_min, 6);
        assert_eq!(
            inference.bound,
            Some(FlightBound {
                frame: 9,
                flight_bytes: 12_312,
                window_raw: 382
            })
        );
        assert_eq!(inference.coincidence(), None);
    }

    #[test]
    fn stopping_at_one_edge_points_to_its_shift() {
        let mut inference = ScaleInference::default();
        for round in 0..3u32 {
            let ack = Seq(5000) + round * 1448;
            inference.advertise(ack, 300);
            inference.send(u64::from(round), ack + (300 << 4));
        }
        assert_eq!(inference.shift_min, 4);
        assert_eq!(inference.coincidence(), Some((4, 3)));
    }
}
