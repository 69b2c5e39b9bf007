//! The stall of a sender that is still waiting when the capture or a reset ends its connection.

/// The event that the sender is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A closed receive window to open.
    ZeroWindow,
    /// Room for the next segment in the receive window.
    SmallWindow,
    /// An ACK, for longer than the retransmission timeout.
    Unacknowledged,
    /// Any segment from a peer that answers no retransmission, probe or keep-alive.
    PeerSilent,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::ZeroWindow => "zero_window",
            Kind::SmallWindow => "small_window",
            Kind::Unacknowledged => "unacknowledged",
            Kind::PeerSilent => "peer_silent",
        }
    }

    /// Return whether the peer does not answer at all.
    pub fn is_unanswered(self) -> bool {
        matches!(self, Kind::Unacknowledged | Kind::PeerSilent)
    }
}

/// A stall in progress at the end of the capture or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndStall {
    pub kind: Kind,
    pub start_ns: i64,
    pub end_ns: i64,
    /// Unanswered retransmissions, probes and keep-alives, counted once per timer: see [`Tries`].
    pub tries: u32,
}

impl EndStall {
    pub fn duration_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}

/// Minimum time between timers: Linux's minimum retransmission timeout. Segments closer together belong to the same
/// timer.
const APART_NS: i64 = 200_000_000;

/// Retransmissions and probes since the peer's last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    pub count: u32,
    pub first_ns: i64,
    /// Time of the last data before the first try.
    pub before_ns: i64,
    last_ns: i64,
}

impl Tries {
    pub fn new(now_ns: i64, before_ns: i64) -> Self {
        Tries {
            count: 1,
            first_ns: now_ns,
            before_ns,
            last_ns: now_ns,
        }
    }

    /// Return the time from the last data before the first try to the last try.
    pub fn lasted_ns(self) -> i64 {
        self.last_ns.saturating_sub(self.before_ns).max(0)
    }

    pub fn add(&mut self, now_ns: i64) {
        if now_ns.saturating_sub(self.last_ns) >= APART_NS {
            self.count = self.count.saturating_add(1);
            self.last_ns = now_ns;
        }
    }
}
