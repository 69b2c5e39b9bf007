//! What captures of both ends prove of a direction beyond what its sender's capture shows.
//!
//! In: counts of packets between the two points. Out: which limit time is due to, and whose it is.

use crate::tables::budget_item::SenderState;
use crate::tables::limit::Limit;
use crate::verdict::codes::codes;
use crate::verdict::confidence::Confidence;
use crate::verdict::opinion::{Fix, Meaning, Opinion};
use crate::verdict::owner::{End, Owner};
use crate::verdict::traits::QUEUED_SHARE;

/// Of the retransmissions: where so many were needless, the rest are no loss that a transfer feels.
const NEEDLESS_SHARE: f64 = 0.95;
/// Of the retransmissions: what more of them were for is what they were for.
const MOST_SHARE: f64 = 0.5;
/// Of the longest queue: where it was so long before the mean loss, its overflow was what lost packets. In the lab's
/// drawn worlds random losses meet at most 0.4 of it, overflows 0.7 and more.
const FULL_SHARE: f64 = 0.6;

/// What became of a direction's packets between its sender's capture and its receiver's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crossing {
    /// Packets that did not come.
    pub lost: i64,
    /// Retransmissions, and of these copies of what did not come, of what came while its ACKs did not, of what the
    /// receiver had, and of what came to the far point and was dropped after it.
    pub retransmissions: i64,
    pub for_lost: i64,
    pub for_lost_acks: i64,
    pub needless: i64,
    pub for_refused: i64,
    /// Packets that came after others that had left later.
    pub late: i64,
    /// By how much the mean packet took longer than the quickest, in each direction.
    pub queue_ns: Option<i64>,
    pub back_queue_ns: Option<i64>,
    pub longest_queue_ns: Option<i64>,
    /// Before the mean lost packet.
    pub queue_before_loss_ns: Option<i64>,
    /// Least time to the far point and back.
    pub round_trip_ns: Option<i64>,
    /// The far capture was made at the receiver itself.
    pub is_at_receiver: bool,
}

codes! {
    /// What both captures say of a limit.
    Witness:
    Silent "silent",
    /// Retransmissions followed packets that reached the far point and were dropped after it,
    RefusedBeyond "refused_beyond",
    /// by a receiver that takes no old timestamps,
    Reordered "reordered",
    /// or has no memory.
    RefusedByReceiver "refused_by_receiver",
    LostAcks "lost_acks",
    LostBetween "lost_between",
    QueueFull "queue_full",
    QueueThere "queue_there",
    QueueOnTheWayBack "queue_on_the_way_back",
    Needless "needless",
}

impl Crossing {
    /// Whether data were sent again, and almost none for anything that was lost or dropped.
    pub fn is_without_loss(&self) -> bool {
        let many = self.retransmissions as f64 * NEEDLESS_SHARE;
        0.0 < many && many <= self.needless as f64
    }

    /// Whether the losses were those of a full queue: a symptom of the path's rate.
    pub fn is_overflow(&self) -> bool {
        let (Some(round_trip_ns), Some(longest_ns), Some(before_ns)) = (
            self.round_trip_ns,
            self.longest_queue_ns,
            self.queue_before_loss_ns,
        ) else {
            return false;
        };
        let before_ns = before_ns as f64;
        round_trip_ns != 0
            && longest_ns != 0
            && before_ns >= QUEUED_SHARE * round_trip_ns as f64
            && self.for_lost as f64 > self.retransmissions as f64 * MOST_SHARE
            && before_ns >= FULL_SHARE * longest_ns as f64
    }

    /// The limit that an item's time is due to, where one capture alone takes it for another.
    pub fn limit_of(&self, item: SenderState, limit: Limit) -> Limit {
        match (limit, item) {
            (Limit::PathLoss, SenderState::FastRecovery | SenderState::AfterLoss)
                if self.is_without_loss() =>
            {
                Limit::CongestionControl
            }
            (Limit::PathLoss, SenderState::Timeout | SenderState::Tail)
                if self.is_without_loss() =>
            {
                Limit::RetransmissionTimer
            }
            (Limit::PathLoss, _) if self.is_without_loss() => limit,
            // A policer makes nothing wait before it drops.
            (Limit::PathLoss | Limit::PathPolicer, _) if self.is_overflow() => Limit::PathRate,
            _ => limit,
        }
    }

    /// What a limit means where both captures speak of it.
    pub fn opinion(&self, limit: Limit, receiver: End, opinion: Opinion) -> (Opinion, Witness) {
        let witness = match limit {
            Limit::PathLoss => self.of_loss(),
            Limit::PathRate => self.of_rate(),
            Limit::CongestionControl | Limit::RetransmissionTimer if self.is_without_loss() => {
                Witness::Needless
            }
            _ => Witness::Silent,
        };
        let network = |confidence| {
            let opinion = opinion.restated(Owner::Network, None, confidence);
            Opinion {
                fix: Fix::OfCrossing,
                ..opinion
            }
        };
        let opinion = match witness {
            Witness::Silent | Witness::QueueFull | Witness::QueueThere => opinion,
            Witness::QueueOnTheWayBack => Opinion {
                confidence: Confidence::Possible,
                ..opinion
            },
            Witness::RefusedBeyond | Witness::Reordered => network(Confidence::Likely),
            Witness::LostAcks | Witness::LostBetween => network(Confidence::Certain),
            Witness::RefusedByReceiver => {
                let opinion =
                    opinion.restated(receiver.host(), Some(receiver), Confidence::Certain);
                Opinion {
                    fix: Fix::OfCrossing,
                    ..opinion
                }
            }
            Witness::Needless if limit == Limit::CongestionControl => Opinion {
                meaning: Meaning::CutNeedlessly,
                ..network(Confidence::Likely)
            },
            Witness::Needless => network(Confidence::Likely),
        };
        (opinion, witness)
    }

    fn of_loss(&self) -> Witness {
        let many = self.retransmissions as f64 * MOST_SHARE;
        match () {
            () if self.for_refused as f64 > many && !self.is_at_receiver => Witness::RefusedBeyond,
            () if self.for_refused as f64 > many && self.late >= self.for_refused => {
                Witness::Reordered
            }
            () if self.for_refused as f64 > many => Witness::RefusedByReceiver,
            () if self.for_lost_acks as f64 > many => Witness::LostAcks,
            () if self.lost > 0 => Witness::LostBetween,
            () => Witness::Silent,
        }
    }

    fn of_rate(&self) -> Witness {
        if self.is_overflow() {
            return Witness::QueueFull;
        }
        let (Some(queue_ns), Some(back_ns), Some(round_trip_ns)) =
            (self.queue_ns, self.back_queue_ns, self.round_trip_ns)
        else {
            return Witness::Silent;
        };
        let least_ns = QUEUED_SHARE * round_trip_ns as f64;
        match (queue_ns as f64, back_ns as f64) {
            _ if round_trip_ns == 0 => Witness::Silent,
            (there, back) if there >= least_ns.max(back) => Witness::QueueThere,
            (there, back) if back >= least_ns.max(there) => Witness::QueueOnTheWayBack,
            _ => Witness::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_a_full_queue_are_the_paths() {
        // judgement.md section 3: losses when the delay is near its highest are a symptom of the full path.
        let full = Crossing {
            retransmissions: 10,
            for_lost: 9,
            longest_queue_ns: Some(100),
            queue_before_loss_ns: Some(90),
            round_trip_ns: Some(100),
            ..Crossing::default()
        };
        assert_eq!(
            full.limit_of(SenderState::Timeout, Limit::PathLoss),
            Limit::PathRate
        );
        let random = Crossing {
            queue_before_loss_ns: Some(40),
            ..full
        };
        assert_eq!(
            random.limit_of(SenderState::Timeout, Limit::PathLoss),
            Limit::PathLoss
        );
    }

    #[test]
    fn needless_retransmissions_are_no_loss() {
        // judgement.md section 4, mechanism 14.
        let needless = Crossing {
            retransmissions: 20,
            needless: 19,
            ..Crossing::default()
        };
        assert_eq!(
            needless.limit_of(SenderState::AfterLoss, Limit::PathLoss),
            Limit::CongestionControl
        );
        assert_eq!(
            needless.limit_of(SenderState::Tail, Limit::PathLoss),
            Limit::RetransmissionTimer
        );
    }
}
