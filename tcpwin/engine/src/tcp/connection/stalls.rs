//! Long silences of a connection, by cause and in total.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StallCause {
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

pub const CAUSES: [&str; StallCause::Unknown as usize + 1] = [
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

impl StallCause {
    pub fn name(self) -> &'static str {
        CAUSES[self as usize]
    }

    /// Return whether nobody wanted to send, or a long path delayed the handshake: neither TCP nor loss cost time.
    pub fn is_idle(self) -> bool {
        matches!(
            self,
            StallCause::HandshakeDelay
                | StallCause::Response
                | StallCause::Application
                | StallCause::Idle
        )
    }
}

/// A silence and its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub start_ns: i64,
    pub end_ns: i64,
    pub after_frame: u64,
    pub cause: StallCause,
    /// The side whose data waited, or that had nothing to send.
    pub waiting: u8,
    /// Bytes in flight of the waiting side before the silence.
    pub flight_bytes: u32,
    pub window_bytes: Option<u32>,
}

/// Number and total time of a connection's stalls, and separately of pauses in which nobody wanted to send.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    pub count: u32,
    pub total_ns: i64,
    pub longest_ns: i64,
    pub idle: u32,
    pub idle_ns: i64,
    /// The longest pauses of each side, longest first.
    pub pauses: [[Option<Pause>; PAUSES]; 2],
}

/// Number of pauses kept per side.
pub const PAUSES: usize = 3;

/// A silence in which a side had nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub start_ns: i64,
    pub end_ns: i64,
    /// Frame of the segment that ended it.
    pub after_frame: u64,
}

impl Stalls {
    pub fn add(&mut self, stall: &Stall) {
        let span_ns = stall.end_ns.saturating_sub(stall.start_ns);
        if stall.cause.is_idle() {
            if stall.cause != StallCause::HandshakeDelay {
                self.keep(stall);
            }
            self.idle = self.idle.saturating_add(1);
            self.idle_ns = self.idle_ns.saturating_add(span_ns);
        } else {
            self.count = self.count.saturating_add(1);
            self.total_ns = self.total_ns.saturating_add(span_ns);
            self.longest_ns = self.longest_ns.max(span_ns);
        }
    }

    /// Insert a pause among the longest of its side, after equal ones.
    fn keep(&mut self, stall: &Stall) {
        let new = Pause {
            start_ns: stall.start_ns,
            end_ns: stall.end_ns,
            after_frame: stall.after_frame,
        };
        let span_ns = |pause: &Pause| pause.end_ns.saturating_sub(pause.start_ns);
        let longest = &mut self.pauses[usize::from(stall.waiting & 1)];
        let is_shorter =
            |old: &Option<Pause>| old.as_ref().is_none_or(|old| span_ns(old) < span_ns(&new));
        if let Some(place) = longest.iter().position(is_shorter) {
            longest[place..].rotate_right(1);
            longest[place] = Some(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pauses_of_each_side_are_kept() {
        let mut stalls = Stalls::default();
        for (frame, (waiting, cause, span_ns)) in (1u64..).zip([
            (0, StallCause::Application, 5),
            (0, StallCause::Idle, 9),
            (1, StallCause::Response, 1),
            (0, StallCause::Application, 5),
            (0, StallCause::Timeout, 99),
            (0, StallCause::HandshakeDelay, 99),
            (0, StallCause::Application, 7),
        ]) {
            stalls.add(&Stall {
                start_ns: 0,
                end_ns: span_ns,
                after_frame: frame,
                cause,
                waiting,
                flight_bytes: 0,
                window_bytes: None,
            });
        }
        let frames = stalls
            .pauses
            .map(|side| side.map(|pause| pause.map(|pause| pause.after_frame)));
        assert_eq!(frames, [[Some(2), Some(7), Some(1)], [Some(3), None, None]]);
    }
}
