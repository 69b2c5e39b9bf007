//! Results of pairing two captures: numbers per connection and direction, and the clocks.

use super::altered::Change;
use super::clock::Piece;
use super::flows::{Endpoint, Flow};
use super::packet::Side;
use super::path_direction::{PathDirection, MAX_LOST_FRAMES};
use super::resent::ResendCause;
use super::run::{Pair, Pairer, Rows};
use super::tally::{Count, Delay, Fate, Tally};
use super::waiting::NONE;
use crate::capture::CaptureFacts;

/// Both hosts of a connection, as named by one capture.
pub type Ends = [Endpoint; 2];

/// A direction of a paired connection.
#[derive(Debug)]
pub struct Lane {
    /// The point that its packets pass first.
    pub near: Side,
    pub tally: Tally,
    /// Whether packets were counted as segments on the wire, because the captures framed the bytes differently.
    pub is_resegmented: bool,
    /// Packets sent, according to the sender's IP IDs, but in neither capture.
    pub in_neither: u64,
    /// Whether each capture lacks packets that passed it.
    pub near_has_gaps: bool,
    pub far_has_gaps: bool,
    /// Whether the receiver lacked bytes that had arrived.
    pub refuses: bool,
    pub delay: Option<Delay>,
    /// Delay of the packets preceding the lost ones.
    pub delay_before_loss: Option<Delay>,
    /// Near-capture frames of some packets counted as lost.
    pub lost_frames: Vec<u64>,
    pub changes: Vec<Change>,
    pub altered: u64,
    /// Frames in captures A and B of the first packet with both sightings, or 0.
    pub first_frames: [u64; 2],
    pub resent: u64,
    pub resent_by_cause: [u64; ResendCause::ALL.len()],
    /// Payload in the near capture, including copies.
    pub bytes: u64,
    /// Minimum and maximum number of routers between the two points.
    pub hops: Option<(i16, i16)>,
    /// Capture B's sequence numbers minus capture A's.
    pub sequence_shift: u32,
}

/// A connection that both captures have.
#[derive(Debug)]
pub struct Paired {
    /// As named by capture A and capture B; direction 0 goes from the first to the second.
    pub ends: [Ends; 2],
    /// Its first frame in each capture.
    pub first_frames: [u64; 2],
    pub lanes: [Lane; 2],
    /// The point that its first direction passes first, if missing packets contradict the times: most packets seen only
    /// at the supposed far point were retransmitted, as lost packets are.
    pub turned: Option<Side>,
}

/// A connection that only one capture has.
#[derive(Debug)]
pub struct Alone {
    pub side: Side,
    pub ends: Ends,
    pub packets: [u64; 2],
    /// Payload without copies.
    pub bytes: [u64; 2],
    pub first_ns: i64,
    pub last_ns: i64,
    pub first_frame: u64,
    pub has_syn: [bool; 2],
}

/// The results of reading two captures.
#[derive(Debug)]
pub struct Outcome {
    pub pairs: Vec<Paired>,
    pub alone: Vec<Alone>,
    pub clock: Vec<Piece>,
    pub facts: [Vec<CaptureFacts>; 2],
    pub segments: [u64; 2],
    /// Packets that passed a point and are proven missing from its capture.
    pub missed: [u64; 2],
    /// Maximum number of packets stored at the same time.
    pub most_waiting: usize,
    /// Whether the progress function requested a stop before the end.
    pub was_stopped: bool,
}

impl Lane {
    /// Number of packets, or of segments if the captures framed them differently.
    pub fn count(&self, fate: Fate) -> u64 {
        let Count { frames, segments } = self.tally.of(fate);
        if self.is_resegmented {
            segments
        } else {
            frames
        }
    }

    pub fn late(&self) -> u64 {
        self.count(Fate::Late)
    }

    pub fn duplicated(&self) -> u64 {
        self.count(Fate::Duplicated)
    }

    pub fn sent(&self) -> u64 {
        self.delivered() + self.lost() + self.unknown()
    }

    pub fn delivered(&self) -> u64 {
        let seen = [Fate::Delivered, Fate::Late, Fate::NearMissed];
        let missed = if self.is_acked_proof() {
            self.count(Fate::FarMissed)
        } else {
            0
        };
        seen.map(|fate| self.count(fate)).iter().sum::<u64>() + missed
    }

    pub fn lost(&self) -> u64 {
        let all = self.count(Fate::Lost) + self.count(Fate::Unseen);
        all - self.doubtful()
    }

    /// Return the number of packets that were lost, or missed by the far capture.
    pub fn doubtful(&self) -> u64 {
        let claimed = if self.is_hole_proof() {
            0
        } else {
            self.count(Fate::Lost)
        };
        if self.far_has_gaps {
            self.count(Fate::Unseen) + claimed
        } else {
            0
        }
    }

    /// Set the frames of the packets counted by [`Lane::lost`].
    fn name_lost(&mut self, claimed: Vec<u64>, unseen: Vec<u64>) {
        if !self.far_has_gaps || self.is_hole_proof() {
            self.lost_frames.extend(claimed);
        }
        if !self.far_has_gaps {
            self.lost_frames.extend(unseen);
        }
        self.lost_frames.sort_unstable();
        self.lost_frames.truncate(MAX_LOST_FRAMES);
    }

    pub fn unknown(&self) -> u64 {
        let unseen = self.doubtful();
        let missed = if self.is_acked_proof() {
            0
        } else {
            self.count(Fate::FarMissed)
        };
        self.count(Fate::Outside) + unseen + missed + self.in_neither
    }

    /// Return true if a gap at the receiver proves a loss. On a reordering path the receiver drops old timestamps, and
    /// a receiver without memory drops anything.
    pub fn is_hole_proof(&self) -> bool {
        self.late() == 0 && !self.refuses
    }

    /// Return true if an acknowledgment proves the arrival of the only copy seen: with gaps, two captures may both miss
    /// a second.
    pub fn is_acked_proof(&self) -> bool {
        !(self.near_has_gaps && self.far_has_gaps)
    }
}

impl Outcome {
    pub(super) fn of<R: Rows>(
        pairer: Pairer<'_, R>,
        facts: [Vec<CaptureFacts>; 2],
        was_stopped: bool,
    ) -> Self {
        let clock = pairer.bounds.pieces();
        let missed = pairer.progress.map(|progress| progress.missed);
        let segments = pairer.progress.map(|progress| progress.segments);
        let [a, b] = pairer.flows;
        let (a, b) = (a.flows, b.flows);
        let alone = [(Side::A, &a), (Side::B, &b)]
            .into_iter()
            .flat_map(|(side, flows)| {
                let unpaired = flows.iter().filter(|flow| flow.pair == NONE);
                unpaired.map(move |flow| Alone {
                    side,
                    ends: flow.ends,
                    packets: flow.packets,
                    bytes: flow.carried,
                    first_ns: flow.first_ns,
                    last_ns: flow.last_ns,
                    first_frame: flow.first_frame,
                    has_syn: flow.has_syn,
                })
            })
            .collect();
        let pairs = pairer
            .pairs
            .into_iter()
            .map(|pair| paired(pair, [&a, &b], &clock, missed))
            .collect();
        Self {
            pairs,
            alone,
            clock,
            facts,
            segments,
            missed,
            most_waiting: pairer.pending.most(),
            was_stopped,
        }
    }
}

fn paired(pair: Pair, flows: [&Vec<Flow>; 2], clock: &[Piece], missed: [u64; 2]) -> Paired {
    let own = [0, 1].map(|side| &flows[side][pair.flows[side] as usize]);
    let mut ends = own.map(|flow| flow.ends);
    if pair.is_flipped {
        ends[1].swap(0, 1);
    }
    let turned = turned(&pair);
    let mut direction = 0;
    let lanes = pair.directions.map(|mut path| {
        let there = [direction, direction ^ usize::from(pair.is_flipped)];
        direction += 1;
        let (near, far) = (path.near.index(), path.far().index());
        let dropped = own[near].dropped[there[near]];
        path.tally.add(Fate::Outside, dropped, dropped);
        let dropped = own[far].dropped[there[far]];
        path.tally.add(Fate::NearMissed, dropped, dropped);
        path.delays.add_pending();
        let near_has_gaps = missed[near] > 0;
        let in_neither = path.ids.missing().filter(|_| near_has_gaps).unwrap_or(0);
        let mut lane = Lane {
            near: path.near,
            delay: path.delays.corrected(clock, path.near == Side::A),
            delay_before_loss: path
                .delays_before_loss
                .corrected(clock, path.near == Side::A),
            is_resegmented: path.is_resegmented,
            in_neither,
            near_has_gaps,
            far_has_gaps: missed[far] > 0,
            refuses: path.refuses,
            tally: path.tally,
            changes: path.changes,
            altered: path.altered,
            first_frames: path.first_frames.unwrap_or_default(),
            resent: path.resent,
            resent_by_cause: path.resent_by_cause,
            bytes: own[near].bytes[there[near]],
            hops: path.hops,
            sequence_shift: path.shift,
            lost_frames: Vec::new(),
        };
        lane.name_lost(path.lost_frames, path.unseen_frames);
        lane
    });
    Paired {
        ends,
        first_frames: own.map(|flow| flow.first_frame),
        lanes,
        turned,
    }
}

/// Return the nearer point if the other one was assumed wrongly: most packets seen only at the far point were
/// retransmitted, which is not the case for packets that a capture missed.
fn turned(pair: &Pair) -> Option<Side> {
    let sum = |of: fn(&PathDirection) -> u64| pair.directions.iter().map(of).sum::<u64>();
    let (alone, resent) = (
        sum(|path| path.far_alone),
        sum(|path| path.far_alone_resent),
    );
    let is_loss = resent > sum(|path| path.lost_resent).max(1)
        && resent * 10 >= alone * 9
        && resent * 2 >= sum(|path| path.resent);
    (!pair.is_sure && is_loss).then_some(pair.directions[0].near.other())
}
