//! A sender's visible activity between two segments.

use crate::tables::budget_item::SenderState;

/// A sender's visible activity after a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// No segment of it was captured yet.
    #[default]
    Unseen,
    /// Nothing in flight, or a small segment last: nothing more to send.
    Idle,
    /// Data in flight, and room for more.
    Busy,
    WindowFull,
    SmallWindow,
    ZeroWindow,
    FastRecovery,
    Timeout,
    /// Repairing what was sent into a window that its receiver took back.
    Refused,
    Closed,
    Unknown,
}

impl Activity {
    /// The item that its time is charged to; None if only the whole round shows it.
    pub fn item(self) -> Option<SenderState> {
        Some(match self {
            Activity::Unseen | Activity::Busy => return None,
            Activity::Idle => SenderState::Application,
            Activity::WindowFull => SenderState::WindowFull,
            // The receiver dropped arriving data because earlier data lay unread.
            Activity::Refused => SenderState::Reader,
            Activity::SmallWindow => SenderState::SmallWindow,
            Activity::ZeroWindow => SenderState::ZeroWindow,
            Activity::FastRecovery => SenderState::FastRecovery,
            Activity::Timeout => SenderState::Timeout,
            Activity::Closed => SenderState::Closed,
            Activity::Unknown => SenderState::Unknown,
        })
    }

    /// Nothing lost, and the window not closed.
    #[inline(always)]
    pub fn is_open(self) -> bool {
        matches!(
            self,
            Activity::Idle | Activity::Busy | Activity::WindowFull | Activity::SmallWindow
        )
    }

    pub fn is_recovery(self) -> bool {
        matches!(
            self,
            Activity::FastRecovery | Activity::Timeout | Activity::Refused
        )
    }
}
