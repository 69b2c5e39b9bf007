//! Evidence from captures at both ends that the sender's capture alone lacks.
//!
//! In: counts of packets between the two capture points. Out: the true limit of each item's time, and its owner.

use crate::tables::budget_item::SenderState;
use crate::tables::limit::Limit;
use crate::verdict::codes::codes;
use crate::verdict::confidence::Confidence;
use crate::verdict::opinion::{Fix, Meaning, Opinion};
use crate::verdict::owner::{End, Owner};
use crate::verdict::traits::QUEUED_SHARE;

/// Share of needless retransmissions above which the remaining losses do not matter to the transfer.
const NEEDLESS_SHARE: f64 = 0.95;
/// Share of the retransmissions above which a cause explains them.
const MOST_SHARE: f64 = 0.5;
/// Share of the longest queueing delay above which the mean delay before losses shows an overflowing queue. In the
/// lab's random worlds, random losses reach at most 0.4 and overflows at least 0.7.
const FULL_SHARE: f64 = 0.6;

/// The fate of a direction's packets between the sender's capture and the receiver's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crossing {
    /// Packets that did not arrive.
    pub lost: i64,
    /// All retransmissions; the next four fields count them by cause.
    pub retransmissions: i64,
    /// Copies of segments that did not arrive.
    pub for_lost: i64,
    /// Copies of segments that arrived but whose ACKs were lost.
    pub for_lost_acks: i64,
    /// Copies of segments that the receiver already had.
    pub needless: i64,
    /// Copies of segments that reached the far capture point and were dropped beyond it.
    pub for_refused: i64,
    /// Packets that arrived after others sent later.
    pub late: i64,
    /// Mean transit time minus the minimum, in this direction; `back_queue_ns` in the other.
    pub queue_ns: Option<i64>,
    pub back_queue_ns: Option<i64>,
    pub longest_queue_ns: Option<i64>,
    /// Mean queueing delay just before a lost packet.
    pub queue_before_loss_ns: Option<i64>,
    /// Minimum time to the far capture point and back.
    pub round_trip_ns: Option<i64>,
    /// Whether the far capture was made on the receiver itself.
    pub is_at_receiver: bool,
    /// Bits of the receiver's window scale that a device on the path took away.
    pub shift_lost: i64,
}

codes! {
    /// Evidence of both captures about a limit.
    Witness:
    Silent "silent",
    /// Packets that reached the far capture point were dropped beyond it and retransmitted.
    RefusedBeyond "refused_beyond",
    /// The receiver discarded reordered packets because their timestamps were old.
    Reordered "reordered",
    /// The receiver discarded packets, for example for lack of memory.
    RefusedByReceiver "refused_by_receiver",
    LostAcks "lost_acks",
    LostBetween "lost_between",
    QueueFull "queue_full",
    QueueThere "queue_there",
    QueueOnTheWayBack "queue_on_the_way_back",
    Needless "needless",
    /// The receiver's windows came smaller than it offered them.
    ScaleChanged "scale_changed",
}

impl Crossing {
    /// Return whether data was retransmitted, but almost none of it because of a loss or drop.
    pub fn is_without_loss(&self) -> bool {
        let many = self.retransmissions as f64 * NEEDLESS_SHARE;
        0.0 < many && many <= self.needless as f64
    }

    /// Return whether the losses came from a full queue: a symptom of the path's rate.
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

    /// Return the limit that an item's time belongs to; a single capture shows `limit`.
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
            // If everything is refused for a while, the sender's packets show an outage.
            (Limit::PathLoss | Limit::PathOutage, _)
                if self.of_loss() == Witness::RefusedByReceiver =>
            {
                Limit::ReceiverMemory
            }
            (Limit::ReceiverWindow, _) if self.shift_lost > 0 => Limit::Middlebox,
            // A policer drops without queueing, so a queue rules it out.
            (Limit::PathLoss | Limit::PathPolicer, _) if self.is_overflow() => Limit::PathRate,
            _ => limit,
        }
    }

    /// Return whether both captures contradict a fault that the findings of one report.
    pub fn contradicts(&self, fault: Limit) -> bool {
        fault == Limit::PathOutage && self.of_loss() == Witness::RefusedByReceiver
    }

    /// Refine an opinion with the evidence of both captures.
    pub fn opinion(&self, limit: Limit, receiver: End, opinion: Opinion) -> (Opinion, Witness) {
        let witness = match limit {
            Limit::PathLoss | Limit::ReceiverMemory => self.of_loss(),
            Limit::PathRate => self.of_rate(),
            Limit::Middlebox if self.shift_lost > 0 => Witness::ScaleChanged,
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
            Witness::LostAcks | Witness::LostBetween | Witness::ScaleChanged => {
                network(Confidence::Certain)
            }
            Witness::RefusedByReceiver => {
                let opinion =
                    opinion.restated(receiver.host(), Some(receiver), Confidence::Certain);
                Opinion {
                    fix: Fix::OfCrossing,
                    ..opinion
                }
            }
            Witness::Needless if limit == Limit::CongestionControl => {
                network(Confidence::Likely).meaning(Meaning::CutNeedlessly)
            }
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
    fn what_the_receiver_refused_is_its_memorys() {
        let refused = Crossing {
            retransmissions: 10,
            for_refused: 9,
            is_at_receiver: true,
            ..Crossing::default()
        };
        let limit = |crossing: Crossing| crossing.limit_of(SenderState::Tail, Limit::PathLoss);
        let outage = refused.limit_of(SenderState::Timeout, Limit::PathOutage);
        assert_eq!(outage, Limit::ReceiverMemory);
        assert!(refused.contradicts(Limit::PathOutage) && !refused.contradicts(Limit::PathMtu));
        assert_eq!(limit(refused), Limit::ReceiverMemory);
        let beyond = Crossing {
            is_at_receiver: false,
            ..refused
        };
        assert_eq!(limit(beyond), Limit::PathLoss);
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
