//! What a sender is seen to do between two segments.

use crate::timing::sender_state::SenderState;

/// What a sender was seen to do after a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Before anything was seen of it.
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

impl State {
    /// The item of its time; None where only the round tells it.
    pub fn item(self) -> Option<SenderState> {
        Some(match self {
            State::Unseen | State::Busy => return None,
            State::Idle => SenderState::Application,
            State::WindowFull => SenderState::WindowFull,
            // What came was dropped as earlier data lay unread.
            State::Refused => SenderState::Reader,
            State::SmallWindow => SenderState::SmallWindow,
            State::ZeroWindow => SenderState::ZeroWindow,
            State::FastRecovery => SenderState::FastRecovery,
            State::Timeout => SenderState::Timeout,
            State::Closed => SenderState::Closed,
            State::Unknown => SenderState::Unknown,
        })
    }

    /// Nothing lost, and the window not closed.
    #[inline(always)]
    pub fn is_open(self) -> bool {
        matches!(
            self,
            State::Idle | State::Busy | State::WindowFull | State::SmallWindow
        )
    }

    pub fn is_recovery(self) -> bool {
        matches!(self, State::FastRecovery | State::Timeout | State::Refused)
    }
}
