//! What an instant of a sender's time may belong to. It decides nothing.

/// What an instant belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Item {
    Handshake,
    ZeroWindow,
    SmallWindow,
    WindowFull,
    Reader,
    SlowStart,
    Congestion,
    AfterLoss,
    FastRecovery,
    Timeout,
    Tail,
    PeerSilent,
    IdleRestart,
    Application,
    SendBuffer,
    Path,
    Policer,
    Closed,
    Unknown,
}

pub const ITEMS: usize = Item::Unknown as usize + 1;

/// Items that are told by what is in flight as the sender sees it.
pub const OF_THE_FLIGHT: [Item; 11] = [
    Item::SmallWindow,
    Item::WindowFull,
    Item::SlowStart,
    Item::Congestion,
    Item::AfterLoss,
    Item::IdleRestart,
    Item::Application,
    Item::SendBuffer,
    Item::Path,
    Item::Policer,
    Item::Reader,
];

/// Give the time of these items to what is unknown.
pub fn forget_flight(spent_ns: &mut [i64; ITEMS]) {
    for item in OF_THE_FLIGHT {
        let ns = std::mem::take(&mut spent_ns[item as usize]);
        let unknown = &mut spent_ns[Item::Unknown as usize];
        *unknown = unknown.saturating_add(ns);
    }
}

impl Item {
    pub const ALL: [Item; ITEMS] = [
        Item::Handshake,
        Item::ZeroWindow,
        Item::SmallWindow,
        Item::WindowFull,
        Item::Reader,
        Item::SlowStart,
        Item::Congestion,
        Item::AfterLoss,
        Item::FastRecovery,
        Item::Timeout,
        Item::Tail,
        Item::PeerSilent,
        Item::IdleRestart,
        Item::Application,
        Item::SendBuffer,
        Item::Path,
        Item::Policer,
        Item::Closed,
        Item::Unknown,
    ];
}
