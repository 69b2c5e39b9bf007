//! How many packets of one direction fared how, and how long they took.

use super::clock::Piece;

/// What became of a packet between the two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Both captures have it.
    Delivered,
    /// The same, after one that left later.
    Late,
    /// A further sighting at the far point of one that left once.
    Duplicated,
    /// Acknowledged, and nothing else can have been: the far capture missed it.
    FarMissed,
    /// The far capture has it alone: the near one missed it.
    NearMissed,
    /// The receiver said that it lacked it.
    Lost,
    /// The far capture lacks it. Lost, if that capture misses nothing.
    Unseen,
    /// The far capture was not running, or may not have been.
    Outside,
    /// A further sighting at the near point: the capture has it twice.
    CapturedTwice,
    /// Seen at the far point only, from another distance than all others: sent by something in between.
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

/// Packets as captured, and as segments of the wire: an offloaded frame is several of these.
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

const MOST_SPANS: usize = 64;
const FIRST_WIDTH_NS: i64 = 100_000_000;
/// No queue changes the delay by so much at once.
const STEP_NS: i64 = 1_000_000_000;

/// Times on the way within a while, as differences of the two clocks.
#[derive(Clone, Copy, Debug)]
struct Span {
    first_ns: i64,
    pairs_before: u64,
    /// By A's clock, with the difference.
    least: (i64, i64),
    most: (i64, i64),
    count: u64,
    /// Relative to the first of the span.
    sum_time_ns: i128,
    sum_ns: i128,
}

/// Delays of one direction, to be corrected by the clocks once these are known.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    spans: Vec<Span>,
    width_ns: i64,
}

/// Delays of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    pub least_ns: i64,
    pub mean_ns: i64,
    pub most_ns: i64,
}

impl Delays {
    /// A packet's time by A's clock, and far less near, each by its own clock.
    pub fn add(&mut self, a_ns: i64, apart_ns: i64, pairs_before: u64) {
        let point = (a_ns, apart_ns);
        // Where a clock is set, a new span begins; packets that were on their way still belong to the one before.
        let from = self.spans.len().saturating_sub(2);
        let fitting = self.spans[from..].iter().rposition(|span| {
            let since_ns = a_ns.wrapping_sub(span.first_ns);
            let jump_ns = apart_ns.saturating_sub(span.least.1).saturating_abs();
            (-FIRST_WIDTH_NS..self.width_ns).contains(&since_ns) && jump_ns < STEP_NS
        });
        let at = fitting.map(|at| from + at);
        if at.is_none() {
            if self.spans.len() >= MOST_SPANS {
                self.halve();
            }
            self.width_ns = self.width_ns.max(FIRST_WIDTH_NS);
            self.spans.push(Span {
                first_ns: a_ns,
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
        self.spans = self
            .spans
            .chunks(2)
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

    /// Delays by one clock. `towards_b` tells which way the packets went.
    pub fn corrected(&self, pieces: &[Piece], towards_b: bool) -> Option<Delay> {
        let sign = if towards_b { 1 } else { -1 };
        let mut delay: Option<Delay> = None;
        let (mut sum, mut count) = (0i128, 0i128);
        for span in &self.spans {
            let piece = piece_of(pieces, span.pairs_before, |piece| {
                span.least.1 - sign * piece.offset_at(span.least.0)
            })?;
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

/// The piece in which a packet was paired: near the moment at which a clock was set, that by which it took less time.
fn piece_of(
    pieces: &[Piece],
    pairs_before: u64,
    delay_ns: impl Fn(&Piece) -> i64,
) -> Option<&Piece> {
    let after = pieces.partition_point(|piece| piece.pairs_before <= pairs_before);
    let around = after.saturating_sub(2)..(after + 1).min(pieces.len());
    let candidates = pieces.get(around)?.iter();
    candidates.min_by_key(|piece| delay_ns(piece).saturating_abs())
}
