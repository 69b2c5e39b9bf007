//! Why data was sent again: the cause, the reason in words, how sure it is, and the frames that show it.

use crate::event::{self, Events};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Fast,
    Recovery,
    LostRetransmission,
    Rto,
    GoBackN,
    TailLossProbe,
    Spurious,
    Syn,
    SynAck,
    Fin,
    /// The SYN's data, which the SYN/ACK left out (RFC 7413 §4.2).
    FastOpen,
    ZeroWindow,
    Unknown,
    /// Not sent again: it came late.
    OutOfOrder,
    /// The capture wrote packets down in another order than it saw them.
    CaptureReordered,
}

impl Cause {
    pub const ALL: [Cause; Cause::CaptureReordered as usize + 1] = [
        Cause::Fast,
        Cause::Recovery,
        Cause::LostRetransmission,
        Cause::Rto,
        Cause::GoBackN,
        Cause::TailLossProbe,
        Cause::Spurious,
        Cause::Syn,
        Cause::SynAck,
        Cause::Fin,
        Cause::FastOpen,
        Cause::ZeroWindow,
        Cause::Unknown,
        Cause::OutOfOrder,
        Cause::CaptureReordered,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Cause::Fast => "fast",
            Cause::Recovery => "recovery",
            Cause::LostRetransmission => "lost_retransmission",
            Cause::Rto => "rto",
            Cause::GoBackN => "go_back_n",
            Cause::TailLossProbe => "tail_loss_probe",
            Cause::Spurious => "spurious",
            Cause::Syn => "syn",
            Cause::SynAck => "syn_ack",
            Cause::Fin => "fin",
            Cause::FastOpen => "fast_open",
            Cause::ZeroWindow => "zero_window",
            Cause::Unknown => "unknown",
            Cause::OutOfOrder => "out_of_order",
            Cause::CaptureReordered => "capture_reordered",
        }
    }

    /// The events of a segment sent for this cause.
    pub fn events(self) -> Events {
        match self {
            Cause::Fast => event::FAST_RETRANSMISSION,
            Cause::Recovery => event::RETRANSMISSION | event::RECOVERY_RETRANSMISSION,
            Cause::LostRetransmission => {
                event::RETRANSMISSION | event::RECOVERY_RETRANSMISSION | event::LOST_RETRANSMISSION
            }
            Cause::Rto => event::RTO_RETRANSMISSION,
            Cause::GoBackN => event::RETRANSMISSION | event::GO_BACK_N,
            Cause::TailLossProbe => event::TAIL_LOSS_PROBE,
            Cause::Spurious => event::SPURIOUS_RETRANSMISSION,
            Cause::Syn | Cause::SynAck => event::SYN_RETRANSMISSION | event::RETRANSMISSION,
            Cause::Fin | Cause::FastOpen | Cause::Unknown => event::RETRANSMISSION,
            Cause::ZeroWindow => event::RETRANSMISSION | event::ZERO_WINDOW_PROBE,
            Cause::OutOfOrder => event::OUT_OF_ORDER,
            Cause::CaptureReordered => event::CAPTURE_REORDERED,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    High,
    Medium,
    Low,
}

impl Confidence {
    pub const ALL: [Confidence; 3] = [Confidence::High, Confidence::Medium, Confidence::Low];

    pub fn name(self) -> &'static str {
        match self {
            Confidence::High => "high",
            Confidence::Medium => "medium",
            Confidence::Low => "low",
        }
    }
}

/// A verdict on one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub cause: Cause,
    pub reason: &'static str,
    pub confidence: Confidence,
}

impl Verdict {
    pub fn high(cause: Cause, reason: &'static str) -> Self {
        Verdict {
            cause,
            reason,
            confidence: Confidence::High,
        }
    }

    pub fn medium(cause: Cause, reason: &'static str) -> Self {
        Verdict {
            confidence: Confidence::Medium,
            ..Verdict::high(cause, reason)
        }
    }

    pub fn low(cause: Cause, reason: &'static str) -> Self {
        Verdict {
            confidence: Confidence::Low,
            ..Verdict::high(cause, reason)
        }
    }
}

/// A verdict with what shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub verdict: Verdict,
    /// Frame of the original, or of what overtook a late segment; none where the capture does not hold it.
    pub original_frame: Option<u64>,
    /// Frame of the ACK that set it off.
    pub trigger_frame: Option<u64>,
    /// Since the bytes were last sent, as far as the capture shows.
    pub age_ns: Option<i64>,
    /// The retransmission timeout that the sender had, back-off included.
    pub rto_ns: Option<i64>,
}
