//! What few connections have, of both sides together: events, silences, samples, a reset.

use crate::connection::journal::Journal;
use crate::connection::stalls::Stalls;
use crate::connection::state::Connection;

#[derive(Clone, Debug, Default)]
pub struct Incidents {
    pub journal: Option<Box<Journal>>,
    pub stalls: Option<Box<Stalls>>,
    /// Frame of the first RST of a connection that had data.
    pub reset_frame: Option<u64>,
    pub doubtful_reset: Option<DoubtfulReset>,
    /// Some of its segments are samples: of what else was sent the capture tells nothing.
    pub is_sampled: bool,
}

/// A RST that its receiver need not have obeyed, while nothing refutes that it did.
#[derive(Clone, Copy, Debug)]
pub struct DoubtfulReset {
    /// Side that sent it.
    pub side: u8,
    pub time_ns: i64,
    pub frame: u64,
}

impl Connection {
    /// What there is to write into, from the first incident on.
    pub fn incidents_mut(&mut self) -> &mut Incidents {
        self.incidents.get_or_insert_with(Box::default)
    }

    /// Whether some of its segments are samples.
    pub fn is_sampled(&self) -> bool {
        (self.incidents.as_ref()).is_some_and(|incidents| incidents.is_sampled)
    }

    pub fn journal(&self) -> Option<&Journal> {
        self.incidents.as_ref()?.journal.as_deref()
    }

    pub fn stalls(&self) -> Option<&Stalls> {
        self.incidents.as_ref()?.stalls.as_deref()
    }

    pub fn reset_frame(&self) -> Option<u64> {
        self.incidents.as_ref()?.reset_frame
    }

    #[inline]
    pub fn doubtful_reset(&self) -> Option<DoubtfulReset> {
        self.incidents.as_ref()?.doubtful_reset
    }
}
