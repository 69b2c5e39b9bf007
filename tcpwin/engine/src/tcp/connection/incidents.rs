//! Rare state of a connection as a whole: an earlier connection of its four-tuple, events, stalls, sampling, a reset.

use crate::tcp::connection::clock::Clock;
use crate::tcp::connection::journal::Journal;
use crate::tcp::connection::stalls::Stalls;

#[derive(Clone, Debug, Default)]
pub struct Incidents {
    pub journal: Option<Box<Journal>>,
    pub stalls: Option<Box<Stalls>>,
    /// Time and frame of the first RST of a connection that had data.
    pub reset: Option<(i64, u64)>,
    pub doubtful_reset: Option<DoubtfulReset>,
    /// The correction of a clock that was set back.
    pub clock: Clock,
    /// How many connections of its four-tuple came before.
    pub epoch: u16,
    /// Some of its segments are samples: the capture shows nothing of the others.
    pub is_sampled: bool,
}

impl Incidents {
    /// Return the incidents of a new connection.
    pub fn of_epoch(epoch: u16) -> Option<Box<Self>> {
        (epoch > 0).then(|| {
            Box::new(Incidents {
                epoch,
                ..Incidents::default()
            })
        })
    }
}

/// A RST that its receiver need not have obeyed, while nothing refutes that it did.
#[derive(Clone, Copy, Debug)]
pub struct DoubtfulReset {
    /// Side that sent it.
    pub side: u8,
    pub time_ns: i64,
    pub frame: u64,
}
