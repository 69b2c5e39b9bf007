//! Counts of a direction's packets by fate, and their delays.

use std::collections::VecDeque;

use super::clock::Piece;

/// The fate of a packet between the two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Both captures have it.
    Delivered,
    /// Delivered after a packet that left later.
    Late,
    /// Another sighting at the far point of a packet sent once.
    Duplicated,
    /// Acknowledged and not deliverable otherwise: the far capture missed it.
    FarMissed,
    /// Only the far capture has it: the near one missed it.
    NearMissed,
    /// The receiver reported it missing.
    Lost,
    /// The far capture lacks it. Lost, if that capture misses nothing.
    Unseen,
    /// The far capture was not running, or may not have been.
    Outside,
    /// Another sighting at the near point: the capture has it twice.
    CapturedTwice,
    /// Seen only at the far point, from a different distance than all others: sent by a device in between.
    Injected,
}

impl Fate {
    pub const ALL: [Fate; 10] = [
        Fate::Delivered,
        Fate::Late,
        Fate::Duplicated,
        Fate::FarMissed,
        Fate::NearMissed,
        Fate::Lost,
        Fate::Unseen,
        Fate::Outside,
        Fate::CapturedTwice,
        Fate::Injected,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Fate::Delivered => "delivered",
            Fate::Late => "late",
            Fate::Duplicated => "duplicated",
            Fate::FarMissed => "far_missed",
            Fate::NearMissed => "near_missed",
            Fate::Lost => "lost",
            Fate::Unseen => "unseen",
            Fate::Outside => "outside",
            Fate::CapturedTwice => "captured_twice",
            Fate::Injected => "injected",
        }
    }
}

/// Packets as captured, and as segments on the wire; an offloaded frame contains several of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub frames: u64,
    pub segments: u64,
}

/// Counts of one direction.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: [Count; Fate::ALL.len()],
}

impl Tally {
    pub fn add(&mut self, fate: Fate, frames: u64, segments: u64) {
        let count = &mut self.counts[fate as usize];
        count.frames += frames;
        count.segments += segments;
    }

    pub fn of(&self, fate: Fate) -> Count {
        self.counts[fate as usize]
    }
}

const MAX_SPANS: usize = 64;
const FIRST_WIDTH_NS: i64 = 100_000_000;
/// Packets waiting to be assigned to an epoch, when only one direction is active.
const MAX_PENDING: usize = 4_096;

/// Delays within a period, as differences of the two clocks.
#[derive(Clone, Copy, Debug)]
struct Span {
    first_ns: i64,
    epoch: u32,
    pairs_before: u64,
    /// By A's clock, with the difference.
    least: (i64, i64),
    most: (i64, i64),
    count: u64,
    /// Relative to the first packet of the span.
    sum_time_ns: i128,
    sum_ns: i128,
}

/// Delays of one direction, to be corrected once the clocks are known.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    spans: Vec<Span>,
    width_ns: i64,
    pending: VecDeque<Pending>,
}

/// A packet that may have arrived after a clock was set; packets of the other direction will show it.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Arrival time by the far capture's clock.
    far_ns: i64,
    a_ns: i64,
    apart_ns: i64,
    pairs_before: u64,
    epoch: u32,
}

/// Delays of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    pub least_ns: i64,
    pub mean_ns: i64,
    pub most_ns: i64,
}

impl Delays {
    /// Like `add`, for a packet at the far point at `far_ns` whose epoch the other direction may still correct.
    #[inline]
    pub fn await_epoch(&mut self, far_ns: i64, point: (i64, i64), pairs_before: u64, epoch: u32) {
        if self.pending.len() >= MAX_PENDING {
            self.add_oldest();
        }
        let (a_ns, apart_ns) = point;
        self.pending.push_back(Pending {
            far_ns,
            a_ns,
            apart_ns,
            pairs_before,
            epoch,
        });
    }

    /// Add the packets that arrived before a packet of the other direction left the far point: they preceded any clock
    /// setting.
    #[inline]
    pub fn confirm(&mut self, left_ns: i64) {
        while self
            .pending
            .front()
            .is_some_and(|oldest| oldest.far_ns <= left_ns)
        {
            self.add_oldest();
        }
    }

    /// Start an epoch after a clock was set. `is_after` decides by the difference of a waiting packet whether it
    /// arrived afterwards.
    pub fn set(&mut self, epoch: u32, is_after: impl Fn(i64) -> bool) {
        for pending in &mut self.pending {
            if is_after(pending.apart_ns) {
                pending.epoch = epoch;
            }
        }
    }

    pub fn add_pending(&mut self) {
        while !self.pending.is_empty() {
            self.add_oldest();
        }
    }

    fn add_oldest(&mut self) {
        if let Some(oldest) = self.pending.pop_front() {
            let Pending {
                a_ns,
                apart_ns,
                pairs_before,
                epoch,
                ..
            } = oldest;
            self.add(a_ns, apart_ns, pairs_before, epoch);
        }
    }

    /// Add a packet's time by A's clock, and its far minus near time, each by its own clock.
    pub fn add(&mut self, a_ns: i64, apart_ns: i64, pairs_before: u64, epoch: u32) {
        let point = (a_ns, apart_ns);
        // Packets in flight when a clock was set belong to the previous span.
        let from = self.spans.len().saturating_sub(2);
        let fitting = self.spans[from..].iter().rposition(|span| {
            let since_ns = a_ns.wrapping_sub(span.first_ns);
            span.epoch == epoch && (-FIRST_WIDTH_NS..self.width_ns).contains(&since_ns)
        });
        let at = fitting.map(|at| from + at);
        if at.is_none() {
            if self.spans.len() >= MAX_SPANS {
                self.halve();
            }
            self.width_ns = self.width_ns.max(FIRST_WIDTH_NS);
            self.spans.push(Span {
                first_ns: a_ns,
                epoch,
                pairs_before,
                least: point,
                most: point,
                count: 0,
                sum_time_ns: 0,
                sum_ns: 0,
            });
        }
        let at = at.unwrap_or(self.spans.len() - 1);
        if let Some(span) = self.spans.get_mut(at) {
            span.least = std::cmp::min_by_key(span.least, point, |p| p.1);
            span.most = std::cmp::max_by_key(span.most, point, |p| p.1);
            span.count += 1;
            span.sum_time_ns += i128::from(a_ns.wrapping_sub(span.first_ns));
            span.sum_ns += i128::from(apart_ns);
        }
    }

    fn halve(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        self.spans.sort_by_key(|span| span.epoch);
        self.spans = self
            .spans
            .chunk_by(|a, b| a.epoch == b.epoch)
            .flat_map(|epoch| epoch.chunks(2))
            .map(|pair| {
                let mut first = pair[0];
                if let Some(second) = pair.get(1) {
                    let later = i128::from(second.first_ns.wrapping_sub(first.first_ns));
                    first.least = std::cmp::min_by_key(first.least, second.least, |p| p.1);
                    first.most = std::cmp::max_by_key(first.most, second.most, |p| p.1);
                    first.sum_time_ns += second.sum_time_ns + later * i128::from(second.count);
                    first.sum_ns += second.sum_ns;
                    first.count += second.count;
                }
                first
            })
            .collect();
    }

    /// Return the delays by one clock. `towards_b` is the direction of the packets.
    pub fn corrected(&self, pieces: &[Piece], towards_b: bool) -> Option<Delay> {
        let sign = if towards_b { 1 } else { -1 };
        let mut delay: Option<Delay> = None;
        let (mut sum, mut count) = (0i128, 0i128);
        for (index, span) in self.spans.iter().enumerate() {
            let piece = piece_of(pieces, span.epoch, span.pairs_before)?;
            // A clock was set within the span: its minimum and maximum may belong to either setting.
            let next = self.spans.get(index + 1);
            let is_mixed = next.is_some_and(|next| {
                next.epoch == span.epoch
                    && piece_of(pieces, next.epoch, next.pairs_before) != Some(piece)
            });
            if is_mixed && self.spans.len() > 2 {
                continue;
            }
            let at = |point: (i64, i64)| point.1 - sign * piece.offset_at(point.0);
            let (least_ns, most_ns) = (at(span.least), at(span.most));
            let number = i128::from(span.count).max(1);
            let middle_ns = span.first_ns + (span.sum_time_ns / number) as i64;
            sum += span.sum_ns - number * i128::from(sign * piece.offset_at(middle_ns));
            count += number;
            let known = delay.get_or_insert(Delay {
                least_ns,
                mean_ns: 0,
                most_ns,
            });
            known.least_ns = known.least_ns.min(least_ns);
            known.most_ns = known.most_ns.max(most_ns);
        }
        if let Some(delay) = &mut delay {
            delay.mean_ns = (sum / count.max(1)) as i64;
        }
        delay
    }
}

/// Return the piece of an epoch in which a packet was paired, or the nearest one.
fn piece_of(pieces: &[Piece], epoch: u32, pairs_before: u64) -> Option<&Piece> {
    let first = pieces.partition_point(|piece| piece.epoch < epoch);
    let end = pieces.partition_point(|piece| piece.epoch <= epoch);
    let own = &pieces[first..end];
    let after = own.partition_point(|piece| piece.pairs_before <= pairs_before);
    own.get(after.saturating_sub(1))
        .or_else(|| pieces.get(first))
        .or_else(|| pieces.last())
}
