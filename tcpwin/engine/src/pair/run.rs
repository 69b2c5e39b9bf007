//! Read the two captures in step: always the packet that passed first, as far as the clocks are known by then.

use std::collections::{HashMap, VecDeque};

use super::ahead::Ahead;
use super::clock::Bounds;
use super::epochs::Epochs;
use super::flows::Flows;
use super::keys::Seed;
use super::outcome::Outcome;
use super::packet::{Side, Sighting};
use super::path_direction::PathDirection;
use super::resent::Resent;
use super::tally::Fate;
use super::waiting::{PendingSlots, NONE};
use crate::capture::MergedReader;
use crate::wire::Segment;

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 16;
/// A packet not seen at the other point for this long is given up.
pub(super) const PATIENCE_NS: i64 = 20_000_000_000;
/// Maximum credit for the time between two packets of a capture: its clock may have been set.
const MAX_IDLE_NS: i64 = 1_000_000_000;
const SWEEP_EVERY: u64 = 1 << 18;

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number of the pair.
    pub connection: u32,
    pub direction: u8,
    pub fate: Fate,
    /// Frames in captures A and B, 0 if missing.
    pub frames: [u64; 2],
    pub times_ns: [i64; 2],
    /// By capture A's numbers.
    pub seq: u32,
    pub ack: u32,
    pub payload_len: u32,
    pub flags: u16,
    pub is_resend: bool,
    /// Set for a retransmission.
    pub resent: Option<Resent>,
    pub pairs_before: u64,
    /// Number of clock settings before it.
    pub epoch: u32,
}

/// Receives the fate of each packet, in the order of decision.
pub trait Rows {
    const WANTED: bool = true;

    fn take(&mut self, row: Row);
}

/// For callers that need only the counts.
pub struct NoRows;

impl Rows for NoRows {
    const WANTED: bool = false;

    fn take(&mut self, _: Row) {}
}

/// A connection in both captures.
#[derive(Debug)]
pub(super) struct Pair {
    /// Its number in each capture's table.
    pub flows: [u32; 2],
    /// Whether direction 0 of capture A is direction 1 of capture B.
    pub is_flipped: bool,
    /// Whether routers or round trips show which point is nearer to which host.
    pub is_sure: bool,
    /// When the first SYN in both captures passed each point: both captures were running from then on.
    pub begun_ns: Option<[i64; 2]>,
    pub directions: [PathDirection; 2],
    /// Packets of one capture that were read before the other had advanced as far.
    pub early: VecDeque<(Side, u8, Sighting)>,
}

impl Pair {
    /// Return capture B's numbers minus capture A's for a direction's packets: sequence and acknowledgment.
    #[inline]
    pub fn shifts(&self, direction: u8) -> (u32, u32) {
        let own = usize::from(direction);
        (self.directions[own].shift, self.directions[1 - own].shift)
    }
}

/// Progress of one capture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub first_ns: Option<i64>,
    pub now_ns: i64,
    /// Time covered so far, excluding clock steps.
    pub run_ns: i64,
    pub is_over: bool,
    pub segments: u64,
    /// Packets that must have passed while it was running but are missing.
    pub missed: u64,
    /// When the first paired packet that left here passed it.
    pub first_paired_ns: Option<i64>,
}

/// State of both captures.
pub(super) struct Pairer<'r, R> {
    pub seed: Seed,
    pub flows: [Flows; 2],
    pub pairs: Vec<Pair>,
    pub pending: PendingSlots,
    pub bounds: Bounds,
    pub epochs: Epochs,
    pub progress: [Progress; 2],
    /// B's clock minus A's, as shown by packets from each side: with the delay added for the first, subtracted for the
    /// second.
    pub apart_ns: [Option<i64>; 2],
    pub first_offset_ns: i64,
    /// The point that a connection's first direction passes first, by first frame in A, if an earlier run has
    /// determined it.
    pub nearest: HashMap<u64, Side>,
    pub rows: &'r mut R,
}

impl<'r, R: Rows> Pairer<'r, R> {
    pub fn new(first_offset_ns: i64, nearest: HashMap<u64, Side>, rows: &'r mut R) -> Self {
        let seed = Seed::random();
        Self {
            seed,
            flows: [Flows::new(seed), Flows::new(seed)],
            pairs: Vec::new(),
            pending: PendingSlots::new(),
            bounds: Bounds::new(),
            epochs: Epochs::default(),
            progress: [Progress::default(); 2],
            apart_ns: [None; 2],
            first_offset_ns,
            nearest,
            rows,
        }
    }

    /// Return B's clock minus A's, approximately.
    pub fn offset_ns(&self) -> i64 {
        match self.apart_ns {
            [Some(there), Some(back)] => there / 2 + back / 2,
            _ => self.first_offset_ns,
        }
    }

    /// Translate a time of one capture to the other's clock.
    pub fn translated(&self, time_ns: i64, from: Side) -> i64 {
        match from {
            Side::A => time_ns.saturating_add(self.offset_ns()),
            Side::B => time_ns.saturating_sub(self.offset_ns()),
        }
    }

    /// Process the next packet of one capture.
    pub fn pass(&mut self, side: Side, segment: &Segment) {
        let progress = &mut self.progress[side.index()];
        if progress.first_ns.is_some() {
            let since_ns = segment.time_ns.saturating_sub(progress.now_ns);
            progress.run_ns += since_ns.clamp(0, MAX_IDLE_NS);
        }
        progress.first_ns.get_or_insert(segment.time_ns);
        progress.now_ns = segment.time_ns;
        progress.segments += 1;
        self.meet(side, segment, Sighting::of(segment));
        self.give_up_old(side.other());
    }

    /// Give up packets that have waited too long, measured by the other capture's progress.
    fn give_up_old(&mut self, waiting: Side) {
        let run_ns = self.progress[waiting.other().index()].run_ns;
        loop {
            let oldest = self.pending.oldest(waiting);
            if oldest == NONE || run_ns - self.pending.get(oldest).mark.other_run_ns <= PATIENCE_NS
            {
                return;
            }
            self.give_up(oldest);
        }
    }

    /// Drop expired packets of connections without a mate.
    fn sweep(&mut self) {
        for side in Side::BOTH {
            let now_ns = self.progress[side.index()].now_ns;
            self.flows[side.index()].sweep(now_ns);
        }
    }

    /// Finish after the end of both captures.
    pub fn finish(&mut self) {
        for side in Side::BOTH {
            self.progress[side.index()].is_over = true;
        }
        self.settle_candidates();
        for number in 0..self.pairs.len() {
            self.take_early(number as u32, true);
        }
        for side in Side::BOTH {
            while self.pending.oldest(side) != NONE {
                self.give_up(self.pending.oldest(side));
            }
        }
        for number in 0..2 * self.pairs.len() {
            self.close_all_resent(number as u32);
        }
    }
}

/// Pair two captures. `first_offset_ns`: first estimate of B's clock minus A's. `nearest`: `Paired::turned` of an
/// earlier run, by first frame in A. `report` is called periodically with the bytes read so far; returning false ends
/// the run.
pub fn pair<R: Rows>(
    inputs: [MergedReader; 2],
    first_offset_ns: i64,
    nearest: HashMap<u64, Side>,
    rows: &mut R,
    mut report: impl FnMut(u64) -> bool,
) -> Outcome {
    let mut pairer = Pairer::new(first_offset_ns, nearest, rows);
    let mut ahead = inputs.map(Ahead::new);
    let mut count = 0u64;
    let mut was_stopped = false;
    loop {
        if count % REPORT_EVERY == 0 {
            let bytes_read = ahead.iter().map(Ahead::bytes_read).sum();
            if !report(bytes_read) {
                was_stopped = true;
                break;
            }
        }
        count += 1;
        if count % SWEEP_EVERY == 0 {
            pairer.sweep();
        }
        let side = match (ahead[0].first(), ahead[1].first()) {
            (Some(a), Some(b)) if pairer.translated(a.time_ns, Side::A) <= b.time_ns => Side::A,
            (Some(_), None) => Side::A,
            (_, Some(_)) => Side::B,
            (None, None) => break,
        };
        let Some(segment) = ahead[side.index()].take() else {
            break;
        };
        // A clock setting makes one capture run ahead of the other; the packets that left are still processed first.
        if let Some(key) = pairer.unseen_key(side, &segment) {
            let other = side.other();
            let distance = ahead[other.index()].distance(&pairer.seed, key);
            for _ in 0..distance.unwrap_or(0) {
                if let Some(earlier) = ahead[other.index()].take() {
                    pairer.pass(other, &earlier);
                }
            }
        }
        pairer.pass(side, &segment);
        for side in Side::BOTH {
            pairer.progress[side.index()].is_over = ahead[side.index()].first().is_none();
        }
    }
    pairer.finish();
    let facts = ahead.map(Ahead::into_facts);
    Outcome::of(pairer, facts, was_stopped)
}
