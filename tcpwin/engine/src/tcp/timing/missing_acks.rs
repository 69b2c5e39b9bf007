//! ACKs that never reached the capture point, counted by the IP identification of those that did.
//!
//! Linux counts the packets of a connected TCP socket (`ip_select_ident_segs`, include/net/ip.h: inet_id grows by the
//! segments of each packet). Between two ACKs in a row of a side that sends no data a step of more than one is therefore
//! so many ACKs that were lost on their way, or by the capture. Other hosts count for all their traffic or draw lots:
//! a direction whose steps do not look like that counter is not judged.

/// Steps up to this are losses, or reordering when backwards; larger ones are not a counter's.
const STEP_MAX: i16 = 64;
const LATE_MAX: i16 = -STEP_MAX;
/// Steps of one that make a counter credible.
const STEPS_MIN: u32 = 16;
/// Sentinel for "no previous IP ID": neither this value nor the next is a valid 16-bit ID.
const NONE: u32 = 1 << 20;

#[derive(Clone, Debug)]
pub struct AckIds {
    last: u32,
    ones: u32,
    /// Steps that are neither a loss nor lateness.
    irregular: u32,
    missing: u32,
    /// Gaps whose ACK acknowledges as much as the missing ones and itself would, and those whose ACK does not.
    borne_out: u32,
    contradicted: u32,
    /// Stretch ACKs right after missing ones.
    stretched: u32,
}

impl AckIds {
    pub const EMPTY: AckIds = AckIds {
        last: NONE,
        ones: 0,
        irregular: 0,
        missing: 0,
        borne_out: 0,
        contradicted: 0,
        stretched: 0,
    };

    /// Skip a packet that is not a bare ACK, or is out of order: its step of the counter is unknown.
    #[inline(always)]
    pub fn interrupt(&mut self) {
        self.last = NONE;
    }

    /// A bare ACK that moved SND.UNA by `advance` bytes.
    #[inline(always)]
    pub fn note(&mut self, ip_id: u32, advance: u32, mss: u32) {
        if ip_id == self.last.wrapping_add(1) {
            self.ones = self.ones.wrapping_add(1);
            self.last = ip_id;
        } else if ip_id <= u32::from(u16::MAX) {
            self.note_step(ip_id as u16, advance, mss);
        }
    }

    #[cold]
    fn note_step(&mut self, id: u16, advance: u32, mss: u32) {
        let was = self.last;
        self.last = u32::from(id);
        let Ok(before) = u16::try_from(was) else {
            return;
        };
        let step = id.wrapping_sub(before) as i16;
        match step {
            // From 0xffff to 0.
            1 => self.ones = self.ones.wrapping_add(1),
            2..=STEP_MAX => {
                let missing = step as u32 - 1;
                self.missing = self.missing.saturating_add(missing);
                let is_borne_out = advance > missing.saturating_mul(mss);
                self.borne_out += u32::from(is_borne_out);
                self.contradicted += u32::from(advance > 0 && !is_borne_out);
                self.stretched += u32::from(advance > mss.saturating_mul(2));
            }
            LATE_MAX..=0 => {
                // It came after all, behind others; the same one again says nothing.
                self.last = was;
                self.missing = self.missing.saturating_sub(u32::from(step < 0));
            }
            _ => self.irregular = self.irregular.saturating_add(1),
        }
    }

    /// Whether the steps are those of a counter of this side's packets.
    fn is_counter(&self) -> bool {
        self.ones >= STEPS_MIN
            && self.irregular.saturating_mul(20) <= self.ones
            && (self.borne_out + self.contradicted).saturating_mul(4) <= self.ones
            && self.contradicted.saturating_mul(4) <= self.borne_out
    }

    /// Return the missing ACKs, and the stretch ACKs that followed them; None if the IDs do not show it.
    pub fn judge(&self) -> Option<(u32, u32)> {
        self.is_counter().then_some((self.missing, self.stretched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// ACKs of two segments each, with these identifications.
    fn judged(ids: impl IntoIterator<Item = u32>) -> Option<(u32, u32)> {
        let mut acks = AckIds::EMPTY;
        let mut last = None;
        for id in ids {
            let step = last.map_or(1, |was: u32| {
                u32::from((id as u16).wrapping_sub(was as u16))
            });
            let advance = if step < 100 { step * 2 * MSS } else { 2 * MSS };
            acks.note(id, advance, MSS);
            last = Some(id);
        }
        acks.judge()
    }

    #[test]
    fn a_counter_without_gaps_lost_nothing() {
        assert_eq!(judged(65_530..65_536), None, "too few to judge");
        let round_the_corner = (65_500u32..65_560).map(|id| id & 0xffff);
        assert_eq!(judged(round_the_corner), Some((0, 0)));
    }

    #[test]
    fn gaps_of_the_counter_are_lost_acks() {
        let ids = (100u32..200).filter(|id| ![120, 150, 151].contains(id));
        assert_eq!(judged(ids), Some((3, 2)));
    }

    #[test]
    fn an_ack_that_comes_late_is_not_missing() {
        let mut ids: Vec<u32> = (100..200).collect();
        ids.swap(40, 41);
        assert_eq!(judged(ids), Some((0, 1)));
    }

    #[test]
    fn an_identification_drawn_by_lot_or_shared_tells_nothing() {
        let drawn = (0..200u32).map(|number| number.wrapping_mul(40_503) & 0xffff);
        assert_eq!(judged(drawn), None);
        assert_eq!(judged((0..200).map(|_| 0)), None, "always zero");
        assert_eq!(judged((0..200).map(|_| u32::MAX)), None, "IPv6");
        let shared = (0..200u32).map(|number| number * 2);
        assert_eq!(judged(shared), None);
    }

    #[test]
    fn gaps_at_acks_that_acknowledge_one_segment_are_another_connections_packets() {
        let mut acks = AckIds::EMPTY;
        for number in 0..200u32 {
            acks.note(number + number / 10, MSS, MSS);
        }
        assert_eq!(acks.judge(), None);
    }

    #[test]
    fn data_between_two_acks_leaves_the_step_unjudged() {
        let mut acks = AckIds::EMPTY;
        for id in 0..40 {
            acks.note(id, 2 * MSS, MSS);
        }
        acks.interrupt();
        acks.note(50, 2 * MSS, MSS);
        assert_eq!(acks.judge(), Some((0, 0)));
    }
}
