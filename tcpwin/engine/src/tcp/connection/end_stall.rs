//! The stall of a sender that still waits when a capture, or a reset, ends its connection.

/// The reason for the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A closed receive window to open.
    ZeroWindow,
    /// A receive window too small for the next segment to grow.
    SmallWindow,
    /// Data to be acknowledged, for longer than its retransmission timeout.
    Unacknowledged,
    /// Anything at all from a peer that answers no retransmission, probe or keep-alive.
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

    /// Whether it is the peer that does not answer, not its window that is too small.
    pub fn is_unanswered(self) -> bool {
        matches!(self, Kind::Unacknowledged | Kind::PeerSilent)
    }
}

/// A stall that nothing ended before the capture, or the connection, did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndStall {
    pub kind: Kind,
    pub start_ns: i64,
    pub end_ns: i64,
    /// Retransmissions, probes and keep-alives that nothing answered, each a timer's: see [`Tries`].
    pub tries: u32,
}

impl EndStall {
    pub fn duration_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}

/// Timers are further apart: Linux's shortest retransmission timeout. What follows sooner is of the same one.
const APART_NS: i64 = 200_000_000;

/// Retransmissions and probes since the peer's last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    pub count: u32,
    pub first_ns: i64,
    /// When data was sent last before the first of them.
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

    /// Time from the data before them to the last of them.
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
