//! Divides a direction's life by limit: the largest, the second, the time lost, and whether the loss is a problem.

use crate::tables::budget_item::{SenderState, SENDER_STATES};
use crate::tables::limit::{Limit, LIMITS};
use crate::verdict::budget::Items;

/// Minimum cost of a problem: what a person notices, and Linux's minimum retransmission timeout.
pub const MIN_COST_NS: i64 = 200_000_000;
/// Minimum cost as a share of the time in which the sender had work; anything smaller works as designed.
pub const MIN_SHARE: f64 = 0.1;
/// Number of exchanges from which a conversation is chatty; a page over TLS needs fewer.
pub const CHATTY_EXCHANGES: i64 = 10;
/// Limits that differ by less than this share of the duration are of similar size: rounds are a coarse measure.
const CLOSE_SHARE: f64 = 0.1;
/// Limits are also of similar size if the second has this share of the first's time.
const LIKE_SHARE: f64 = 2.0 / 3.0;

/// Nanoseconds of each limit, in the order of [`Limit::ALL`].
pub type Times = [i64; LIMITS];

/// Tie-break between limits with equal time: the order of their items, then the rest.
pub const ORDER: [Limit; LIMITS] = order();

const fn order() -> [Limit; LIMITS] {
    let mut order = [Limit::None; LIMITS];
    let mut has = [false; LIMITS];
    let (mut place, mut nth) = (0, 0);
    while nth < SENDER_STATES + LIMITS {
        let limit = if nth < SENDER_STATES {
            SenderState::ALL[nth].limit(false)
        } else {
            Limit::ALL[nth - SENDER_STATES]
        };
        if !has[limit as usize] {
            has[limit as usize] = true;
            order[place] = limit;
            place += 1;
        }
        nth += 1;
    }
    order
}

pub fn by_limit(items_ns: &Items, is_slow: bool) -> Times {
    let mut times = [0; LIMITS];
    for item in SenderState::ALL {
        times[item.limit(is_slow) as usize] += items_ns[item as usize];
    }
    times
}

/// Circumstances that decide whether lost time is a problem.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doubts {
    /// Whether a handshake segment was retransmitted or never answered: its time is lost.
    pub is_disturbed: bool,
    /// Whether the capture or a reset ended the connection in a stall.
    pub is_stalled: bool,
    /// Whether the capture contains only samples, which show no loss.
    pub is_sampled: bool,
    /// Exchanges of a conversation: with few of them, their round trips work as designed.
    pub exchanges: i64,
}

/// Time lost to limits that somebody can lift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    pub lost_ns: i64,
    /// Time in which the sender had work.
    pub busy_ns: i64,
    /// Whether the loss deserves attention: `MIN_COST_NS`, and `MIN_SHARE` or a final stall.
    pub is_problem: bool,
}

impl Loss {
    pub fn new(lost_ns: i64, busy_ns: i64, doubts: Doubts) -> Loss {
        let is_much = lost_ns >= MIN_COST_NS
            && (lost_ns as f64 >= MIN_SHARE * busy_ns as f64 || doubts.is_stalled);
        Loss {
            lost_ns,
            busy_ns,
            is_problem: is_much && !doubts.is_sampled,
        }
    }

    /// Compute the loss from a budget alone: either of the window's two limits can be lifted.
    pub fn of(items_ns: &Items, doubts: Doubts) -> Loss {
        let (_, loss) = lost(&by_limit(items_ns, false), &[0; LIMITS], doubts);
        loss
    }

    /// Return whether the connection's verdict is about the other direction: it lost more or, on a tie, carried more
    /// data.
    pub fn is_less_than(&self, other: &Loss, is_other_main: bool) -> bool {
        match (self.is_problem, other.is_problem) {
            (true, true) if self.lost_ns != other.lost_ns => other.lost_ns > self.lost_ns,
            (true, true) | (false, false) => is_other_main,
            (_, is_other) => is_other,
        }
    }
}

/// Compute the avoidable time of each limit, and the loss.
fn lost(times_ns: &Times, mended_ns: &Times, doubts: Doubts) -> (Times, Loss) {
    const IDLE: [Limit; 5] = [
        Limit::None,
        Limit::SenderApplication,
        Limit::RequesterApplication,
        Limit::Idle,
        Limit::Handshake,
    ];
    let mut mended = *mended_ns;
    if doubts.is_disturbed {
        mended[Limit::Handshake as usize] = times_ns[Limit::Handshake as usize];
    }
    let mut lost_to = mended;
    for limit in Limit::ALL.iter().filter(|limit| limit.row().is_mendable) {
        lost_to[*limit as usize] = times_ns[*limit as usize];
    }
    let round_trips = &mut lost_to[Limit::RoundTrips as usize];
    *round_trips = if doubts.exchanges >= CHATTY_EXCHANGES {
        *round_trips / doubts.exchanges * (doubts.exchanges - 1)
    } else {
        0
    };
    let idle_ns: i64 = IDLE
        .iter()
        .map(|limit| times_ns[*limit as usize] - mended[*limit as usize])
        .sum();
    let busy_ns = times_ns.iter().sum::<i64>() - idle_ns;
    (lost_to, Loss::new(lost_to.iter().sum(), busy_ns, doubts))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    pub times_ns: Times,
    /// Avoidable part of each limit's time.
    pub lost_to_ns: Times,
    /// The connection's duration.
    pub total_ns: i64,
    /// The limit with the most time; `None` with 0 if there was no limit.
    pub first: Limit,
    pub first_ns: i64,
    /// A second limit of similar size.
    pub second: Option<Limit>,
    pub second_ns: i64,
    pub loss: Loss,
    /// The limit that lost the most, if there is a problem and the first limit lost nothing.
    pub also: Option<Limit>,
}

impl Division {
    /// Divide a life. `mended_ns`: avoidable time of limits that otherwise work as designed.
    pub fn of(times_ns: &Times, mended_ns: &Times, doubts: Doubts) -> Division {
        let (lost_to_ns, loss) = lost(times_ns, mended_ns, doubts);
        let total_ns: i64 = times_ns.iter().sum();
        let [(mut first, mut first_ns), (mut second, mut second_ns)] = largest_two(times_ns);
        let most_lost = costliest(&lost_to_ns);
        let is_large = second_ns as f64 >= LIKE_SHARE * first_ns as f64;
        let is_close = ((first_ns - second_ns) as f64) < CLOSE_SHARE * total_ns as f64;
        let is_like = second_ns > 0 && (is_close || is_large);
        // A faster path only moves the transfer to a limit that is just as close, so name that limit first. A congestion
        // window is the exception: growing faster, it only grows to the path's rate.
        let is_hidden = first == Limit::PathRate && second != Limit::CongestionControl
            || first == Limit::CongestionControl && second == Limit::PathRate;
        if is_like && is_large && is_hidden {
            std::mem::swap(&mut first, &mut second);
            std::mem::swap(&mut first_ns, &mut second_ns);
        }
        let is_beside = loss.is_problem && lost_to_ns[first as usize] == 0;
        Division {
            times_ns: *times_ns,
            lost_to_ns,
            total_ns,
            first,
            first_ns,
            second: is_like.then_some(second),
            second_ns: if is_like { second_ns } else { 0 },
            loss,
            also: (is_beside && most_lost != Limit::None).then_some(most_lost),
        }
    }

    /// Name the round trips of a conversation before its losses, where these took round trips, too, about as long as timers:
    /// with shorter ones most of the repair would pass as well. `silent_ns`: time in which nothing came through.
    pub fn put_round_trips_before_losses(&mut self, silent_ns: &Times) {
        let [trips_ns, grown_ns, lost_ns] =
            [Limit::RoundTrips, Limit::CongestionControl, Limit::PathLoss]
                .map(|limit| self.times_ns[limit as usize]);
        let is_half = self.lost_to_ns[Limit::RoundTrips as usize] > 0 && trips_ns * 2 > lost_ns;
        let timers_ns = silent_ns[Limit::PathLoss as usize] as f64;
        let is_more = (trips_ns + grown_ns) as f64 > (1.0 - CLOSE_SHARE) * timers_ns;
        if self.first == Limit::PathLoss && is_half && is_more {
            let is_like = lost_ns as f64 * LIKE_SHARE < trips_ns as f64;
            (self.first, self.first_ns) = (Limit::RoundTrips, trips_ns);
            self.second = is_like.then_some(Limit::PathLoss);
            self.second_ns = if is_like { lost_ns } else { 0 };
        }
    }

    /// Put a fault first and call it a problem, unless the fault is not an error and another limit that somebody can
    /// lift lost more time.
    ///
    /// A fault may take no time: a reset ends a connection in an instant. Waiting by design takes time but needs no fix.
    pub fn put_first(&mut self, fault: Limit, is_error: bool) {
        let lost_ns = |limit: Limit| self.lost_to_ns[limit as usize];
        let others = Limit::ALL.iter().filter(|limit| **limit != fault);
        let most_ns = others.map(|limit| lost_ns(*limit)).max().unwrap_or(0);
        let is_larger = self.loss.is_problem && most_ns > lost_ns(fault);
        if is_larger && !is_error {
            return;
        }
        let is_other = is_larger && lost_ns(self.first) == most_ns;
        self.loss.is_problem = true;
        self.also = None;
        if self.first == fault {
            return;
        }
        let fault_ns = self.times_ns[fault as usize];
        let is_like = fault_ns as f64 >= LIKE_SHARE * self.first_ns as f64;
        self.second = ((is_like && self.first != Limit::None) || is_other).then_some(self.first);
        self.second_ns = if self.second.is_some() {
            self.first_ns
        } else {
            0
        };
        (self.first, self.first_ns) = (fault, fault_ns);
    }
}

/// Return the limit that lost the most. Round trips are a conversation's design, so of limits that lost about as much,
/// another is named: vantages differ on which is slightly larger.
fn costliest(lost_to_ns: &Times) -> Limit {
    let [(first, first_ns), (second, second_ns)] = largest_two(lost_to_ns);
    let is_close = second_ns as f64 > (1.0 - CLOSE_SHARE) * first_ns as f64;
    if first == Limit::RoundTrips && is_close {
        second
    } else {
        first
    }
}

/// Return the two limits with the most time, except `None`.
fn largest_two(times_ns: &Times) -> [(Limit, i64); 2] {
    let mut largest = [(Limit::None, 0); 2];
    for limit in ORDER.into_iter().filter(|limit| *limit != Limit::None) {
        let ns = times_ns[limit as usize];
        if ns > largest[0].1 {
            largest = [(limit, ns), largest[0]];
        } else if ns > largest[1].1 {
            largest[1] = (limit, ns);
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn divided(times: &[(Limit, i64)]) -> Division {
        let mut times_ns = [0; LIMITS];
        times
            .iter()
            .for_each(|(limit, ms)| times_ns[*limit as usize] = ms * MS);
        Division::of(&times_ns, &[0; LIMITS], Doubts::default())
    }

    #[test]
    fn two_limits_of_similar_size_are_reported_as_two() {
        // Within a tenth of the life, or two thirds of the first's time (judgement.md section 3: report them as two).
        for (second_ms, is_second) in [(650, true), (467, true), (466, false)] {
            let found = divided(&[
                (Limit::PathLoss, 700),
                (Limit::SenderApplication, second_ms),
            ]);
            assert_eq!(found.second, is_second.then_some(Limit::SenderApplication));
        }
    }

    #[test]
    fn a_fault_is_named_before_waiting_by_design_but_not_before_a_larger_loss() {
        let times = [(Limit::SenderApplication, 9000), (Limit::PathMtu, 1000)];
        let mut waiting = divided(&times);
        waiting.put_first(Limit::PathMtu, false);
        assert_eq!(
            (waiting.first, waiting.first_ns),
            (Limit::PathMtu, 1000 * MS)
        );
        assert_eq!((waiting.second, waiting.also), (None, None));
        let mut reset = divided(&times[..1]);
        reset.put_first(Limit::Middlebox, true);
        assert_eq!((reset.first, reset.first_ns), (Limit::Middlebox, 0));
        assert!(reset.loss.is_problem);
        let mut lossy = divided(&[(Limit::PathLoss, 900), (Limit::PathMtu, 300)]);
        lossy.put_first(Limit::PathMtu, false);
        assert_eq!(lossy.first, Limit::PathLoss);
        lossy.put_first(Limit::PathMtu, true);
        assert_eq!(
            (lossy.first, lossy.second),
            (Limit::PathMtu, Some(Limit::PathLoss))
        );
    }

    #[test]
    fn the_path_is_named_after_the_next_limit() {
        // judgement.md section 4, mechanism 1: losses of a full queue are a symptom, but a limit just as close is named.
        let lossy = divided(&[(Limit::PathRate, 700), (Limit::PathLoss, 500)]);
        assert_eq!(
            (lossy.first, lossy.second),
            (Limit::PathLoss, Some(Limit::PathRate))
        );
        let grown = divided(&[(Limit::PathRate, 500), (Limit::CongestionControl, 700)]);
        assert_eq!(
            (grown.first, grown.second),
            (Limit::PathRate, Some(Limit::CongestionControl))
        );
    }

    #[test]
    fn a_problem_is_a_fifth_of_a_second_and_a_tenth_of_the_work() {
        for (lost_ms, busy_ms, is_problem) in
            [(200, 1800, true), (199, 0, false), (200, 1801, false)]
        {
            let times = [
                (Limit::PathLoss, lost_ms),
                (Limit::PathRate, busy_ms),
                (Limit::SenderApplication, 99_999),
            ];
            let found = divided(&times);
            assert_eq!(
                (found.loss.is_problem, found.loss.busy_ns),
                (is_problem, (lost_ms + busy_ms) * MS)
            );
            assert_eq!(found.also, is_problem.then_some(Limit::PathLoss));
        }
    }

    #[test]
    fn what_can_be_fixed_is_rather_a_fault_than_the_round_trips() {
        for (trips_ms, also) in [
            (1000, Limit::IdleRestart),
            (1100, Limit::IdleRestart),
            (1200, Limit::RoundTrips),
        ] {
            let mut times_ns = [0; LIMITS];
            times_ns[Limit::RoundTrips as usize] = trips_ms * MS;
            times_ns[Limit::IdleRestart as usize] = 1000 * MS;
            times_ns[Limit::SenderApplication as usize] = 9000 * MS;
            let doubts = Doubts {
                exchanges: 1000,
                ..Doubts::default()
            };
            let found = Division::of(&times_ns, &[0; LIMITS], doubts);
            assert_eq!(found.also, Some(also));
        }
    }

    #[test]
    fn a_handshake_is_lost_only_where_it_was_disturbed() {
        let mut times_ns = [0; LIMITS];
        times_ns[Limit::Handshake as usize] = 300 * MS;
        for is_disturbed in [false, true] {
            let doubts = Doubts {
                is_disturbed,
                ..Doubts::default()
            };
            let found = Division::of(&times_ns, &[0; LIMITS], doubts);
            assert_eq!((found.loss.is_problem, found.also), (is_disturbed, None));
        }
    }

    #[test]
    fn the_verdict_is_that_of_the_direction_that_lost_more() {
        let loss = |lost_ns| Loss {
            lost_ns,
            busy_ns: 0,
            is_problem: lost_ns > 1,
        };
        assert!(loss(2).is_less_than(&loss(3), false));
        assert!(!loss(3).is_less_than(&loss(1), true));
        assert!(loss(3).is_less_than(&loss(3), true));
        assert!(
            loss(0).is_less_than(&loss(1), true),
            "neither is a problem: more data"
        );
    }
}
