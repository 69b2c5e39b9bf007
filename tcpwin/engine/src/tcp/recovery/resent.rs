//! Diagnoses which of the sender's mechanisms retransmitted data.
//!
//! A pure function of what the sender knew: its state (RFC 5681, RFC 6675, RFC 8985), its timers (RFC 6298, RFC 8985 §7)
//! and the ACKs that had reached it.

use crate::tcp::recovery::cause::{Diagnosis, RetransmissionCause};
use crate::tcp::recovery::episode::Phase;

/// Number of duplicate ACKs that indicates loss (RFC 5681 §3.2).
pub const DUPLICATE_THRESHOLD: u32 = 3;
/// Minimum share of the estimated timer after which it may have expired: the sender's clock is coarser, and its samples
/// differ from ours.
const TIMER_SHARE_NUMERATOR: i64 = 85;
const TIMER_SHARE_DENOMINATOR: i64 = 100;
/// A sender reacts to an ACK within this time; later segments are sent by a timer.
const PROMPT_NS: i64 = 3_000_000;
/// Linux's allowance for a delayed ACK in the probe timer with one segment in flight (`tcp_schedule_loss_probe`).
const LONE_PROBE_EXTRA_NS: i64 = 200_000_000;
/// Number of timeouts after which a segment cannot be a probe. Probes are sent no later than the timeout, which the
/// capture may underestimate.
const OVERDUE: i64 = 4;

/// Facts known when data is captured a second time.
#[derive(Clone, Copy, Debug)]
pub struct ResendContext {
    pub phase: Phase,
    /// Whether it begins at SND.UNA (the head).
    pub is_head: bool,
    /// Whether it ends at SND.MAX (the tail).
    pub is_tail: bool,
    /// Whether part of it was already retransmitted (see `Episode::is_repeated`).
    pub is_repeated: bool,
    /// Whether an unacknowledged probe is in flight.
    pub is_probe_out: bool,
    pub is_lone: bool,
    /// Whether the sender probes for tail loss, if that is known.
    pub sends_probes: Option<bool>,
    /// Whether the capture point is next to the sender, so that nothing was lost before it.
    pub is_near: bool,
    pub has_sack: bool,
    /// Duplicate ACKs at SND.UNA that had reached the sender.
    pub duplicate_acks: u32,
    /// Bytes SACKed above it in reports that had reached the sender, and the number of their ranges.
    pub sacked_above: u32,
    pub sacked_ranges: u32,
    /// The capture holds enough reports of the loss for a repair, whether or not they can have reached the sender by the
    /// shortest round trip that was measured.
    pub is_reported: bool,
    pub mss: u32,
    /// Whether it was last retransmitted in this or an earlier fast recovery.
    pub was_recovered: bool,
    /// Whether SACK reports data above it that was retransmitted in this phase.
    pub is_sacked_again: bool,
    /// Whether anything was retransmitted within the last one and a half round trips.
    pub is_going_on: bool,
    /// Whether a later retransmission has arrived.
    pub is_overtaken: bool,
    /// Consecutive timeouts before it.
    pub backoff: u32,
    /// Time since the oldest segment in flight was sent.
    pub oldest_ns: i64,
    /// Time since the bytes were last sent.
    pub age_ns: i64,
    /// Whether the sender has sent something since the last ACK reached it.
    pub is_answered: bool,
    /// Time since SND.UNA moved.
    pub advance_ns: i64,
    /// Time since the sender last sent or received anything.
    pub quiet_ns: i64,
    /// The sender's smoothed RTT; None before any sample.
    pub smoothed_ns: Option<i64>,
    /// The sender's retransmission timeout, with back-off.
    pub rto_ns: i64,
    /// The timeout without back-off.
    pub base_rto_ns: i64,
}

impl ResendContext {
    fn reaches(elapsed_ns: i64, timer_ns: i64) -> bool {
        elapsed_ns >= timer_ns / TIMER_SHARE_DENOMINATOR * TIMER_SHARE_NUMERATOR
    }

    /// Return whether an ACK triggered it, or the reordering timer started by one (RFC 8985 §6.2: a quarter of an RTT).
    fn is_prompt(&self) -> bool {
        let grace_ns = self.smoothed_ns.unwrap_or(0) / 4;
        self.quiet_ns <= PROMPT_NS || (!self.is_answered && self.quiet_ns <= grace_ns)
    }

    fn is_timed_out(&self) -> bool {
        ResendContext::reaches(self.age_ns, self.rto_ns)
    }

    /// Apply `IsLost` of RFC 6675 §4: three ranges, or more than two segments' worth, SACKed above it.
    fn is_lost_by_sack(&self) -> bool {
        self.sacked_ranges >= DUPLICATE_THRESHOLD
            || (self.mss > 0 && self.sacked_above > (DUPLICATE_THRESHOLD - 1) * self.mss)
    }

    /// Return whether a probe cannot be a timeout's retransmission, which comes later or repeats the head.
    fn is_certain_probe(&self) -> bool {
        !self.is_head || (self.smoothed_ns.is_some() && !self.is_timed_out())
    }

    fn probe_ns(&self) -> i64 {
        let Some(smoothed_ns) = self.smoothed_ns else {
            return self.rto_ns;
        };
        let extra_ns = if self.is_lone { LONE_PROBE_EXTRA_NS } else { 0 };
        smoothed_ns
            .saturating_mul(2)
            .saturating_add(extra_ns)
            .min(self.rto_ns)
    }
}

/// Judge by a timer's retransmission whether its sender probes for tail loss (RFC 8985 §7; Linux since 3.10). Return
/// None if it shows neither.
///
/// A timeout retransmits the head, a probe the last segment. If only one is in flight these are the same; then the next
/// copy decides: after a probe the timer restarts (`tcp_send_loss_probe`, `tcp_rearm_rto`), after a timeout it is twice
/// as long.
pub fn shows_probing(context: &ResendContext, diagnosis: &Diagnosis) -> Option<bool> {
    match diagnosis.cause {
        RetransmissionCause::TailLossProbe => context.is_certain_probe().then_some(true),
        RetransmissionCause::Rto
            if context.is_probe_out && context.is_lone && context.backoff == 0 =>
        {
            let is_doubled =
                ResendContext::reaches(context.age_ns, context.base_rto_ns.saturating_mul(2));
            (context.sends_probes != Some(true)).then_some(!is_doubled)
        }
        RetransmissionCause::Rto => {
            let may_probe =
                context.has_sack && context.phase == Phase::Open && context.backoff == 0;
            let is_silent = context.duplicate_acks == 0 && context.sacked_above == 0;
            let is_unprobed = !context.is_probe_out && !context.is_lone && context.is_near;
            // A probe may be new data, sent later than the oldest data by this much.
            let spread_ns = context.oldest_ns.saturating_sub(context.quiet_ns);
            let is_one_flight =
                !ResendContext::reaches(spread_ns, context.smoothed_ns?.saturating_mul(2));
            let has_waited =
                is_one_flight && ResendContext::reaches(context.quiet_ns, context.rto_ns);
            (may_probe && is_silent && is_unprobed && has_waited).then_some(false)
        }
        _ => None,
    }
}

/// Diagnose the mechanism that retransmitted the data.
pub fn judge(context: &ResendContext) -> Diagnosis {
    match context.phase {
        Phase::Loss => judge_after_timeout(context),
        Phase::Fast => judge_in_recovery(context),
        Phase::Open => judge_open(context),
    }
}

fn judge_after_timeout(context: &ResendContext) -> Diagnosis {
    // Go-back-N is clocked by ACKs; without one, the timer retransmits, whatever its back-off.
    let is_timer =
        ResendContext::reaches(context.age_ns, context.base_rto_ns) && !context.is_prompt();
    if context.is_head && is_timer {
        return Diagnosis::certain(
            RetransmissionCause::Rto,
            "no data acknowledged during another timeout",
        );
    }
    if context.is_repeated && (context.is_sacked_again || context.is_lost_by_sack()) {
        return Diagnosis::likely(
            RetransmissionCause::LostRetransmission,
            "its retransmission after the timeout was lost: SACK reports later retransmissions",
        );
    }
    Diagnosis::certain(
        RetransmissionCause::GoBackN,
        "sent before the timeout, repeated after it",
    )
}

fn judge_in_recovery(context: &ResendContext) -> Diagnosis {
    // Without SACK only the timer shows that a retransmission was lost (RFC 6582 §3.2).
    let is_timer = !context.is_prompt() || (context.is_repeated && !context.has_sack);
    if context.is_head && context.is_timed_out() && is_timer {
        return Diagnosis::certain(
            RetransmissionCause::Rto,
            "no progress in recovery during the timeout",
        );
    }
    if context.is_repeated || context.was_recovered {
        return if context.has_sack {
            Diagnosis::certain(
                RetransmissionCause::LostRetransmission,
                "retransmitted before in this recovery: that retransmission was lost",
            )
        } else {
            Diagnosis::possible(
                RetransmissionCause::LostRetransmission,
                "retransmitted before in this recovery; without SACK the reason is unknown",
            )
        };
    }
    if context.has_sack {
        Diagnosis::certain(
            RetransmissionCause::Recovery,
            "a hole in the SACK reports, in recovery",
        )
    } else {
        Diagnosis::certain(
            RetransmissionCause::Recovery,
            "a partial ACK shows the next hole (NewReno)",
        )
    }
}

fn judge_open(context: &ResendContext) -> Diagnosis {
    let by_duplicates = context.is_head && context.duplicate_acks >= DUPLICATE_THRESHOLD;
    let by_sack = context.is_lost_by_sack();
    let has_evidence = context.duplicate_acks > 0 || context.sacked_above > 0;
    // With data SACKed the sender does not probe, and the timer restarts with each ACK that moves SND.UNA.
    let is_timer = context.is_head
        && context.is_timed_out()
        && !context.is_prompt()
        && (!has_evidence || ResendContext::reaches(context.advance_ns, context.rto_ns));
    if (by_duplicates || by_sack) && !is_timer {
        return Diagnosis::certain(
            RetransmissionCause::Fast,
            if by_sack {
                "SACK reports more than two segments above it (RFC 6675)"
            } else {
                "three duplicate ACKs (RFC 5681)"
            },
        );
    }
    let probe_ns = context.probe_ns();
    let may_probe = context.has_sack
        && context.is_tail
        && (!context.is_head || context.is_lone)
        && !context.is_probe_out
        && !has_evidence
        && context.backoff == 0
        && (!context.is_head || context.sends_probes != Some(false));
    // The probe comes no later than the timeout of the oldest segment (`tcp_schedule_loss_probe`).
    let is_probe_time = ResendContext::reaches(context.quiet_ns, probe_ns)
        || (ResendContext::reaches(context.oldest_ns, context.rto_ns) && !context.is_prompt());
    let is_overdue =
        ResendContext::reaches(context.quiet_ns, context.rto_ns.saturating_mul(OVERDUE));
    if may_probe && is_probe_time && !is_overdue {
        return if context.is_certain_probe() {
            Diagnosis::certain(
                RetransmissionCause::TailLossProbe,
                "the last segment, after two round trips without an ACK",
            )
        } else if context.sends_probes == Some(true) {
            Diagnosis::likely(
                RetransmissionCause::TailLossProbe,
                "the only segment in flight, at the timeout: this sender sends probes",
            )
        } else {
            Diagnosis::possible(
                RetransmissionCause::TailLossProbe,
                "the only segment in flight, at the timeout: a probe, or a timeout if this sender sends no probes",
            )
        };
    }
    if is_timer || (context.is_head && context.is_timed_out() && !has_evidence) {
        return Diagnosis::certain(
            RetransmissionCause::Rto,
            "no data acknowledged during the timeout",
        );
    }
    if has_evidence && (context.sacked_above > 0 || context.is_head) {
        return Diagnosis::likely(
            RetransmissionCause::Fast,
            "fewer than three duplicate ACKs, but later data had arrived (RACK, early retransmit)",
        );
    }
    // The timer started when the sender last heard of something new, or later.
    let waited_ns = context.smoothed_ns.unwrap_or(0);
    let may_be_timer =
        ResendContext::reaches(context.advance_ns.saturating_add(waited_ns), context.rto_ns);
    if context.is_reported && context.is_head && !may_be_timer {
        // Each measured round trip is at least the path's: the one of a handshake may hold a wait.
        return Diagnosis::likely(
            RetransmissionCause::Fast,
            "three duplicate ACKs or their like, answered sooner than any round trip that was measured",
        );
    }
    if context.has_sack && context.is_overtaken && context.is_prompt() {
        return Diagnosis::likely(
            RetransmissionCause::Fast,
            "a later retransmission has arrived (RACK)",
        );
    }
    if context.is_head && context.is_prompt() {
        return if !context.has_sack && context.is_going_on {
            Diagnosis::possible(
                RetransmissionCause::Recovery,
                "the next hole after a retransmission, right after an ACK (NewReno)",
            )
        } else {
            Diagnosis::possible(
                RetransmissionCause::Unknown,
                "right after an ACK that reports no loss",
            )
        };
    }
    if context.is_head && context.quiet_ns > waited_ns {
        return Diagnosis::possible(
            RetransmissionCause::Rto,
            "no data acknowledged, but sooner than Linux's timeout",
        );
    }
    Diagnosis::possible(
        RetransmissionCause::Unknown,
        "neither a timer nor an ACK explains it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::recovery::cause::Confidence;

    const MS: i64 = 1_000_000;

    fn context() -> ResendContext {
        ResendContext {
            phase: Phase::Open,
            is_head: true,
            is_tail: false,
            is_repeated: false,
            is_probe_out: false,
            is_lone: false,
            sends_probes: None,
            is_near: true,
            has_sack: true,
            duplicate_acks: 0,
            sacked_above: 0,
            sacked_ranges: 0,
            is_reported: false,
            mss: 1000,
            was_recovered: false,
            is_sacked_again: false,
            is_going_on: false,
            is_overtaken: false,
            backoff: 0,
            oldest_ns: 60 * MS,
            age_ns: 60 * MS,
            is_answered: false,
            advance_ns: 255 * MS,
            quiet_ns: MS,
            smoothed_ns: Some(50 * MS),
            rto_ns: 250 * MS,
            base_rto_ns: 250 * MS,
        }
    }

    fn cause(context: ResendContext) -> RetransmissionCause {
        judge(&context).cause
    }

    #[test]
    fn acks_take_precedence_over_timers() {
        let by_duplicates = ResendContext {
            duplicate_acks: 3,
            ..context()
        };
        assert_eq!(cause(by_duplicates), RetransmissionCause::Fast);
        let late = ResendContext {
            age_ns: 255 * MS,
            quiet_ns: 255 * MS,
            ..by_duplicates
        };
        assert_eq!(cause(late), RetransmissionCause::Rto);
        let by_sack = ResendContext {
            sacked_above: 2001,
            ..context()
        };
        assert_eq!(cause(by_sack), RetransmissionCause::Fast);
        let early = ResendContext {
            sacked_above: 1000,
            ..context()
        };
        assert_eq!(judge(&early).confidence, Confidence::Likely);
        assert_eq!(
            cause(ResendContext {
                age_ns: 250 * MS,
                quiet_ns: 250 * MS,
                ..context()
            }),
            RetransmissionCause::Rto
        );
    }

    #[test]
    fn the_tail_is_probed_after_two_round_trips_where_sack_allows() {
        let tail = ResendContext {
            is_head: false,
            is_tail: true,
            age_ns: 101 * MS,
            quiet_ns: 101 * MS,
            ..context()
        };
        assert_eq!(
            judge(&tail),
            Diagnosis::certain(
                RetransmissionCause::TailLossProbe,
                "the last segment, after two round trips without an ACK"
            )
        );
        assert_ne!(
            cause(ResendContext {
                has_sack: false,
                ..tail
            }),
            RetransmissionCause::TailLossProbe
        );
        assert_ne!(
            cause(ResendContext {
                is_probe_out: true,
                ..tail
            }),
            RetransmissionCause::TailLossProbe
        );
        let lone = ResendContext {
            is_head: true,
            is_lone: true,
            age_ns: 251 * MS,
            quiet_ns: 251 * MS,
            ..tail
        };
        assert_eq!(judge(&lone).confidence, Confidence::Possible);
        let shown = ResendContext {
            sends_probes: Some(true),
            ..lone
        };
        assert_eq!(judge(&shown).confidence, Confidence::Likely);
        let not = ResendContext {
            sends_probes: Some(false),
            ..lone
        };
        assert_eq!(cause(not), RetransmissionCause::Rto);
        assert_eq!(
            cause(ResendContext {
                is_probe_out: true,
                ..lone
            }),
            RetransmissionCause::Rto
        );
    }

    #[test]
    fn states_decide_what_follows() {
        let in_recovery = ResendContext {
            phase: Phase::Fast,
            ..context()
        };
        assert_eq!(cause(in_recovery), RetransmissionCause::Recovery);
        assert_eq!(
            cause(ResendContext {
                is_repeated: true,
                ..in_recovery
            }),
            RetransmissionCause::LostRetransmission
        );
        let after = ResendContext {
            phase: Phase::Loss,
            ..context()
        };
        assert_eq!(cause(after), RetransmissionCause::GoBackN);
        let again = ResendContext {
            is_repeated: true,
            age_ns: 500 * MS,
            quiet_ns: 500 * MS,
            rto_ns: 500 * MS,
            ..after
        };
        assert_eq!(cause(again), RetransmissionCause::Rto);
    }
}
