//! A sender's visible activity between two segments.

use crate::tables::budget_item::SenderState;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// No segment from the sender was captured yet.
    #[default]
    Unseen,
    /// Nothing in flight, or the last segment was small: nothing more to send.
    Idle,
    /// Data in flight, and the window has room for more.
    Busy,
    WindowFull,
    SmallWindow,
    ZeroWindow,
    FastRecovery,
    Timeout,
    /// Retransmitting data that the receiver dropped because it had withdrawn the window.
    Refused,
    Closed,
    Unknown,
}

impl Activity {
    /// Return the item that the time is charged to; None if it depends on the whole round.
    pub fn item(self) -> Option<SenderState> {
        Some(match self {
            Activity::Unseen | Activity::Busy => return None,
            Activity::Idle => SenderState::Application,
            Activity::WindowFull => SenderState::WindowFull,
            // The receiver dropped data because earlier data was unread.
            Activity::Refused => SenderState::Reader,
            Activity::SmallWindow => SenderState::SmallWindow,
            Activity::ZeroWindow => SenderState::ZeroWindow,
            Activity::FastRecovery => SenderState::FastRecovery,
            Activity::Timeout => SenderState::Timeout,
            Activity::Closed => SenderState::Closed,
            Activity::Unknown => SenderState::Unknown,
        })
    }

    /// Return whether nothing is lost and the window is open.
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
