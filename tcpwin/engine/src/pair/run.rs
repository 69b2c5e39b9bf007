//! The two captures read in step: always the packet that passed first, as far as the clocks are known by then.

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
/// A packet that was not seen at the other point for so long is given up.
pub(super) const PATIENCE_NS: i64 = 20_000_000_000;
/// Of a longer time between two packets of a capture only so much counts: its clock may have been set.
const MOST_IDLE_NS: i64 = 1_000_000_000;
const SWEEP_EVERY: u64 = 1 << 18;

/// What became of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number of the pair.
    pub connection: u32,
    pub direction: u8,
    pub fate: Fate,
    /// Frames in capture A and B, 0 where it is not there.
    pub frames: [u64; 2],
    pub times_ns: [i64; 2],
    /// By capture A's numbers.
    pub seq: u32,
    pub ack: u32,
    pub payload_len: u32,
    pub flags: u16,
    pub is_resend: bool,
    /// Why it was sent again.
    pub resent: Option<Resent>,
    /// Packets paired before it.
    pub pairs_before: u64,
    /// Between two settings of a clock.
    pub epoch: u32,
}

/// Takes what became of each packet, in the order in which it was found out.
pub trait Rows {
    const WANTED: bool = true;

    fn take(&mut self, row: Row);
}

/// For who wants the counts only.
pub struct NoRows;

impl Rows for NoRows {
    const WANTED: bool = false;

    fn take(&mut self, _: Row) {}
}

/// One connection in both captures.
#[derive(Debug)]
pub(super) struct Pair {
    /// Its number in each capture's table.
    pub flows: [u32; 2],
    /// Direction 0 of capture A is direction 1 of capture B.
    pub is_flipped: bool,
    /// Routers or round trips tell which point is nearer to which host.
    pub is_sure: bool,
    /// When the first SYN that is in both captures passed each point: both were running from then on.
    pub begun_ns: Option<[i64; 2]>,
    pub directions: [PathDirection; 2],
    /// Packets of one capture that were read before the other had come as far.
    pub early: VecDeque<(Side, u8, Sighting)>,
}

impl Pair {
    /// Capture B's numbers less capture A's, of a direction's packets: sequence and acknowledgment.
    #[inline]
    pub fn shifts(&self, direction: u8) -> (u32, u32) {
        let own = usize::from(direction);
        (self.directions[own].shift, self.directions[1 - own].shift)
    }
}

/// What is known of one capture while it is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub first_ns: Option<i64>,
    pub now_ns: i64,
    /// How long it was read for, whatever its clock was set by.
    pub run_ns: i64,
    pub is_over: bool,
    pub segments: u64,
    /// Packets that must have passed while it was running and that it lacks.
    pub missed: u64,
    /// When the first packet that is paired passed it, of those that left here.
    pub first_paired_ns: Option<i64>,
}

/// Both captures' state.
pub(super) struct Pairer<'r, R> {
    pub seed: Seed,
    pub flows: [Flows; 2],
    pub pairs: Vec<Pair>,
    pub pending: PendingSlots,
    pub bounds: Bounds,
    pub epochs: Epochs,
    pub progress: [Progress; 2],
    /// B's clock less A's, as packets from each side show it: the first with the delay added, the second less it.
    pub apart_ns: [Option<i64>; 2],
    pub first_offset_ns: i64,
    /// Which point the packets of a connection's first direction pass first, by its first frame in A, where an earlier
    /// reading has shown it.
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

    /// B's clock less A's, roughly.
    pub fn offset_ns(&self) -> i64 {
        match self.apart_ns {
            [Some(there), Some(back)] => there / 2 + back / 2,
            _ => self.first_offset_ns,
        }
    }

    /// A time of one capture by the other's clock.
    pub fn translated(&self, time_ns: i64, from: Side) -> i64 {
        match from {
            Side::A => time_ns.saturating_add(self.offset_ns()),
            Side::B => time_ns.saturating_sub(self.offset_ns()),
        }
    }

    /// Take the next packet of one capture.
    pub fn pass(&mut self, side: Side, segment: &Segment) {
        let progress = &mut self.progress[side.index()];
        if progress.first_ns.is_some() {
            let since_ns = segment.time_ns.saturating_sub(progress.now_ns);
            progress.run_ns += since_ns.clamp(0, MOST_IDLE_NS);
        }
        progress.first_ns.get_or_insert(segment.time_ns);
        progress.now_ns = segment.time_ns;
        progress.segments += 1;
        self.meet(side, segment, Sighting::of(segment));
        self.give_up_old(side.other());
    }

    /// Give up what waits at the one point for longer than the reading of the other's capture has come.
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

    /// Forget what connections without a mate kept for too long.
    fn sweep(&mut self) {
        for side in Side::BOTH {
            let now_ns = self.progress[side.index()].now_ns;
            self.flows[side.index()].sweep(now_ns);
        }
    }

    /// Both captures are at their end.
    pub fn finish(&mut self) {
        for side in Side::BOTH {
            self.progress[side.index()].is_over = true;
        }
        self.settle_courtships();
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

/// Pair two captures. `first_offset_ns`: B's clock less A's, as a first guess. `nearest`: what [`Paired::turned`] of an
/// earlier reading says, by the first frame in A. `report` is called now and then with the
/// bytes read so far; where it returns false, the reading ends there.
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
        // A clock that was set makes one capture run before the other: the packets that left come first nevertheless.
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
