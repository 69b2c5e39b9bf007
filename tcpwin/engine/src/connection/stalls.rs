//! Long silences of a connection: what each waited for, and their sums.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    HandshakeLoss,
    HandshakeDelay,
    Timeout,
    DoubleLoss,
    TailLoss,
    TailLossProbe,
    SpuriousTimeout,
    ZeroWindow,
    WindowUpdateLost,
    WindowFull,
    DelayedAck,
    PathDelay,
    Response,
    Application,
    Idle,
    Unknown,
}

pub const CAUSES: [&str; Cause::Unknown as usize + 1] = [
    "handshake_loss",
    "handshake_delay",
    "timeout",
    "double_loss",
    "tail_loss",
    "tail_loss_probe",
    "spurious_timeout",
    "zero_window",
    "window_update_lost",
    "window_full",
    "delayed_ack",
    "path_delay",
    "response",
    "application",
    "idle",
    "unknown",
];

impl Cause {
    pub fn name(self) -> &'static str {
        CAUSES[self as usize]
    }

    /// Nobody wanted to send, or the handshake of a long path: no time was lost to TCP or loss.
    pub fn is_idle(self) -> bool {
        matches!(
            self,
            Cause::HandshakeDelay | Cause::Response | Cause::Application | Cause::Idle
        )
    }
}

/// A silence and its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub start_ns: i64,
    pub end_ns: i64,
    pub after_frame: u64,
    pub cause: Cause,
    /// The side whose data waited, or that had nothing to send.
    pub waiting: u8,
    /// Of the waiting side, before the silence.
    pub flight_bytes: u32,
    pub window_bytes: Option<u32>,
}

/// How many stalls a connection had, and how long; those in which nobody wanted to send apart.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    pub count: u32,
    pub total_ns: i64,
    pub longest_ns: i64,
    pub idle: u32,
    pub idle_ns: i64,
}

impl Stalls {
    pub fn add(&mut self, stall: &Stall) {
        let span_ns = stall.end_ns.saturating_sub(stall.start_ns);
        if stall.cause.is_idle() {
            self.idle = self.idle.saturating_add(1);
            self.idle_ns = self.idle_ns.saturating_add(span_ns);
        } else {
            self.count = self.count.saturating_add(1);
            self.total_ns = self.total_ns.saturating_add(span_ns);
            self.longest_ns = self.longest_ns.max(span_ns);
        }
    }
}
