//! A direction's flight and window as known to its sender, at each segment and whenever an ACK reached the sender.
//!
//! [`SenderView`] applies ACKs when it needs them, which between two data segments may be much later than they arrived:
//! its curve would stay high during every silence. Here each ACK takes effect at its own time.

use std::collections::VecDeque;

use crate::sequence::Seq;
use crate::tcp::window::sender_view::{Known, SenderView};

/// Maximum ACKs in transit; beyond it the oldest takes effect immediately, as in the view.
const MAX_ON_THE_WAY: usize = 4096;

/// The sender's view from `time_ns` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub time_ns: i64,
    pub flight_bytes: u32,
    pub window_bytes: u32,
    /// Whether an ACK has reached the sender; until then, the window's edge is newer than the one that the sender knew.
    pub has_arrived: bool,
}

/// ACKs between the capture point and the sender, by capture time.
#[derive(Debug)]
pub struct SenderHistory {
    on_the_way: VecDeque<(i64, Known)>,
    newest: Known,
    known: Known,
    nxt: Seq,
    has_arrived: bool,
}

impl SenderHistory {
    pub fn of(view: &SenderView) -> Self {
        SenderHistory {
            on_the_way: view.on_the_way().collect(),
            newest: view.newest(),
            known: view.known(),
            nxt: view.nxt(),
            has_arrived: view.initial_bytes.is_some(),
        }
    }

    /// Visit each state from the previous segment up to and including this one, which the view has already processed.
    pub fn follow(&mut self, view: &SenderView, now_ns: i64, mut visit: impl FnMut(State)) {
        while let Some(&(captured_ns, known)) = self.on_the_way.front() {
            let time_ns = captured_ns.saturating_add(view.shift_ns);
            if time_ns > now_ns {
                break;
            }
            self.on_the_way.pop_front();
            self.known = known;
            self.has_arrived = true;
            visit(self.state(time_ns));
        }
        if view.newest() != self.newest {
            self.newest = view.newest();
            if self.on_the_way.len() >= MAX_ON_THE_WAY {
                if let Some((_, oldest)) = self.on_the_way.pop_front() {
                    self.known = oldest;
                }
            }
            self.on_the_way.push_back((now_ns, self.newest));
        }
        // The sender's behaviour showed that it knew more.
        let on_the_way = view.on_the_way().count();
        while self.on_the_way.len() > on_the_way {
            if let Some((_, known)) = self.on_the_way.pop_front() {
                (self.known, self.has_arrived) = (known, true);
            }
        }
        if self.on_the_way.len() == on_the_way {
            // The view may have skipped ACKs that the capture lost.
            self.known = view.known();
        }
        self.nxt = view.nxt();
        visit(self.state(now_ns));
    }

    fn state(&self, time_ns: i64) -> State {
        State {
            time_ns,
            flight_bytes: self.known.una.to(self.nxt).max(0) as u32,
            window_bytes: self.known.una.to(self.known.edge).max(0) as u32,
            has_arrived: self.has_arrived,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_takes_effect_when_it_reaches_the_sender() {
        let known = |una| Known {
            una: Seq(una),
            edge: Seq(una + 2500),
        };
        let mut view = SenderView::new(100, known(0), Seq(0), 0);
        let mut history = SenderHistory::of(&view);
        let mut states = Vec::new();
        let mut follow = |view: &SenderView, now_ns| {
            history.follow(view, now_ns, |each| {
                states.push((each.time_ns, each.flight_bytes));
            });
        };
        view.sent(Seq(1000), 1000, 0);
        follow(&view, 0);
        view.sent(Seq(2000), 1000, 5);
        follow(&view, 5);
        view.acked(known(1000), 10);
        follow(&view, 10);
        view.acked(known(2000), 20);
        follow(&view, 20);
        view.sent(Seq(2500), 1000, 9_000);
        follow(&view, 9_000);
        assert_eq!(
            states,
            [
                (0, 1000),
                (5, 2000),
                (10, 2000),
                (20, 2000),
                (110, 1000),
                (120, 0),
                (9_000, 500),
            ]
        );
        assert_eq!(view.bytes(), 500);
    }
}
