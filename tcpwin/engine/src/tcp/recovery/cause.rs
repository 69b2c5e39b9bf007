//! Causes of retransmitted or late data, with reason and confidence.

use crate::event::*;

/// Defines each cause with its name and the events of a segment sent for it.
macro_rules! causes {
    ($($(#[$doc:meta])* $cause:ident $name:literal $events:expr,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RetransmissionCause {
            $($(#[$doc])* $cause,)*
        }

        impl RetransmissionCause {
            pub const ALL: [RetransmissionCause; [$($name),*].len()] = [$(RetransmissionCause::$cause),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(RetransmissionCause::$cause => $name,)*
                }
            }

            /// Return the events of a segment sent for this cause.
            pub fn events(self) -> Events {
                match self {
                    $(RetransmissionCause::$cause => $events,)*
                }
            }
        }
    };
}

causes! {
    Fast "fast" FAST_RETRANSMISSION,
    Recovery "recovery" RETRANSMISSION | RECOVERY_RETRANSMISSION,
    LostRetransmission "lost_retransmission" RETRANSMISSION | RECOVERY_RETRANSMISSION | LOST_RETRANSMISSION,
    Rto "rto" RTO_RETRANSMISSION,
    GoBackN "go_back_n" RETRANSMISSION | GO_BACK_N,
    TailLossProbe "tail_loss_probe" TAIL_LOSS_PROBE,
    Spurious "spurious" SPURIOUS_RETRANSMISSION,
    Syn "syn" SYN_RETRANSMISSION | RETRANSMISSION,
    SynAck "syn_ack" SYN_RETRANSMISSION | RETRANSMISSION,
    Fin "fin" RETRANSMISSION,
    /// Data of the SYN that the SYN/ACK did not acknowledge (RFC 7413 §4.2).
    FastOpen "fast_open" RETRANSMISSION,
    ZeroWindow "zero_window" RETRANSMISSION | ZERO_WINDOW_PROBE,
    Unknown "unknown" RETRANSMISSION,
    /// Not retransmitted, but late.
    OutOfOrder "out_of_order" OUT_OF_ORDER,
    /// The capture recorded packets in a different order than it saw them.
    CaptureReordered "capture_reordered" CAPTURE_REORDERED,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    Certain,
    Likely,
    Possible,
}

impl Confidence {
    pub const ALL: [Confidence; 3] = [
        Confidence::Certain,
        Confidence::Likely,
        Confidence::Possible,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        }
    }
}

/// The cause of one segment's retransmission or lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub cause: RetransmissionCause,
    pub reason: &'static str,
    pub confidence: Confidence,
}

impl Diagnosis {
    pub fn certain(cause: RetransmissionCause, reason: &'static str) -> Self {
        Diagnosis {
            cause,
            reason,
            confidence: Confidence::Certain,
        }
    }

    pub fn likely(cause: RetransmissionCause, reason: &'static str) -> Self {
        Diagnosis {
            confidence: Confidence::Likely,
            ..Diagnosis::certain(cause, reason)
        }
    }

    pub fn possible(cause: RetransmissionCause, reason: &'static str) -> Self {
        Diagnosis {
            confidence: Confidence::Possible,
            ..Diagnosis::certain(cause, reason)
        }
    }
}
