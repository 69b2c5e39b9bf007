//! Counts ACKs that did not reach the capture point, by gaps in the IP IDs.
//!
//! Linux numbers the packets of a connected TCP socket (`ip_select_ident_segs`, include/net/ip.h: inet_id grows by the
//! number of segments in each packet). If a side sends no data and the IP ID grows by more than one between two of its
//! ACKs, the ACKs in between were lost on the path or by the capture. Other hosts share one counter among all their
//! traffic or use random IDs: a direction whose IDs do not behave like a per-socket counter is not judged.

/// Steps of up to this are losses, or reordering if negative; larger steps rule out a per-socket counter.
const STEP_MAX: i16 = 64;
const LATE_MAX: i16 = -STEP_MAX;
/// Steps of one from which a counter is credible.
const STEPS_MIN: u32 = 16;
/// Sentinel for "no previous IP ID": neither this value nor the next is a valid 16-bit ID.
pub const NONE: u32 = 1 << 20;

#[derive(Clone, Debug)]
pub struct AckIds {
    last: u32,
    ones: u32,
    /// Steps that neither loss nor reordering explains.
    irregular: u32,
    missing: u32,
    /// Gaps after which the ACK acknowledges enough data for the missing ACKs and itself, and gaps after which it does
    /// not.
    borne_out: u32,
    contradicted: u32,
    /// Stretch ACKs immediately after missing ACKs.
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

    /// Skip a packet that is not a bare ACK or is out of order: its step is unknown.
    #[inline(always)]
    pub fn interrupt(&mut self) {
        self.last = NONE;
    }

    /// Record a bare ACK that advanced SND.UNA by `advance` bytes.
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
            // Wrapped from 0xffff to 0.
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
                // Reordered: the ACK was not missing. A repeated ID shows nothing.
                self.last = was;
                self.missing = self.missing.saturating_sub(u32::from(step < 0));
            }
            _ => self.irregular = self.irregular.saturating_add(1),
        }
    }

    /// Return whether the IDs behave like a counter of this side's packets.
    fn is_counter(&self) -> bool {
        self.ones >= STEPS_MIN
            && self.irregular.saturating_mul(20) <= self.ones
            && (self.borne_out + self.contradicted).saturating_mul(4) <= self.ones
            && self.contradicted.saturating_mul(4) <= self.borne_out
    }

    /// Return the missing ACKs and the stretch ACKs after them, or None if the IDs do not show them.
    pub fn judge(&self) -> Option<(u32, u32)> {
        self.is_counter().then_some((self.missing, self.stretched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// Judge ACKs of two segments each with the given IP IDs.
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
