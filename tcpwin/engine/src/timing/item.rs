//! What an instant of a sender's time may belong to. It decides nothing.

/// What an instant belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Item {
    Handshake,
    ZeroWindow,
    SmallWindow,
    WindowFull,
    SlowStart,
    Congestion,
    AfterLoss,
    FastRecovery,
    Timeout,
    Tail,
    IdleRestart,
    Application,
    SendBuffer,
    Path,
    Closed,
    Unknown,
}

pub const ITEMS: usize = Item::Unknown as usize + 1;

impl Item {
    pub const ALL: [Item; ITEMS] = [
        Item::Handshake,
        Item::ZeroWindow,
        Item::SmallWindow,
        Item::WindowFull,
        Item::SlowStart,
        Item::Congestion,
        Item::AfterLoss,
        Item::FastRecovery,
        Item::Timeout,
        Item::Tail,
        Item::IdleRestart,
        Item::Application,
        Item::SendBuffer,
        Item::Path,
        Item::Closed,
        Item::Unknown,
    ];
}
