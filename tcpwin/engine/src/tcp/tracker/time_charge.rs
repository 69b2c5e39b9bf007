//! Updates, after each segment, whether the receive window limits the sender and then the sender's activity, which depends
//! on it, and charges the time to the budget.

use crate::tables::budget_item::SenderState;
use crate::tcp::budget::activity::Activity;
use crate::tcp::budget::unknown_scale::ScaleNeed;
use crate::tcp::connection::cold_state::ColdState;
use crate::tcp::connection::direction::Direction;
use crate::tcp::recovery::episode::Phase;

/// The payload of an Ethernet jumbo frame: segments larger than that were captured before segmentation.
const LARGEST_SEGMENT: u32 = 8960;

/// Return the activity of a sender with an open window and no loss. A sender that ran out of data waits only for its
/// application, whatever is in flight.
#[inline(always)]
pub fn open_state(is_blocked: bool, is_outstanding: bool, ran_out: bool) -> Activity {
    match (is_blocked, is_outstanding) {
        (true, true) => Activity::WindowFull,
        (true, false) => Activity::SmallWindow,
        (false, true) if !ran_out => Activity::Busy,
        (false, _) => Activity::Idle,
    }
}

impl Direction {
    /// Update, after a segment of this side, whether the window limits it, the silence that a timer ended and, after data
    /// or a FIN, the sender's activity.
    #[inline]
    pub(super) fn settle_sent(
        &mut self,
        now_ns: i64,
        is_certain: bool,
        silence: Option<(SenderState, i64)>,
        has_data: bool,
    ) {
        self.limit(now_ns, is_certain);
        if let Some((item, from_ns)) = silence {
            self.spend_silence(item, from_ns, now_ns);
        }
        if has_data {
            self.turn(now_ns, is_certain, true);
        }
    }

    /// Update the direction whose data a segment acknowledges.
    #[inline]
    pub(super) fn settle_acked(&mut self, now_ns: i64, is_certain: bool) {
        self.limit(now_ns, is_certain);
        self.turn(now_ns, is_certain, false);
    }

    /// Update at the peer's SYN: its window may limit data that was captured before it.
    pub(super) fn settle_heard(&mut self, now_ns: i64, is_certain: bool) {
        if self.data_segments > 0 && !self.has_only_syn {
            self.settle_acked(now_ns, is_certain);
        }
    }

    /// End the direction after a reset.
    pub(super) fn abort(&mut self, now_ns: i64) {
        self.end_limit(now_ns);
        self.begin_budget(now_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.late.budget.turn(Activity::Closed, now_ns);
        }
    }

    /// Close open measurements at the end of the connection.
    pub(super) fn finish(&mut self, end_ns: i64, keeps_rounds: bool) {
        let is_known = self.is_flight_known();
        self.flight.integrate(end_ns, is_known);
        if self.window.is_known {
            self.window.integrate(end_ns);
        }
        self.end_limit(end_ns);
        self.finish_pace(end_ns, keeps_rounds);
    }

    /// End the window limit at `from_ns`, from where a silent peer stalls the sender instead.
    pub(super) fn end_limit_at(&mut self, from_ns: i64) {
        let since_ns = self
            .cold_state
            .as_ref()
            .map_or(from_ns, |cold_state| cold_state.limited_since_ns);
        self.end_limit(from_ns.max(since_ns));
    }

    /// Account for the time in which the next segment does not fit the receive window while data is in flight, the
    /// condition of Linux's `tcp_snd_wnd_test` (net/ipv4/tcp_output.c).
    #[inline]
    fn limit(&mut self, now_ns: i64, is_scale_certain: bool) {
        let room = self.flight.nxt.to(self.window.edge);
        // A sender stopped by the window stays stopped until the window opens by a segment, even if its data is
        // acknowledged meanwhile.
        self.window.is_blocked = is_scale_certain
            && self.window.is_known
            && !self.has_fin()
            && self.is_flight_known()
            && (self.flight.is_outstanding() || self.window.is_blocked)
            && room < self.least_room() as i32;
        let is_limited = self.window.is_blocked && self.window.bytes > 0;
        if is_limited != self.is_limited {
            self.change_limit(now_ns, is_limited);
        }
    }

    /// Like [`Direction::limit`], if everything is known and the window is open.
    #[inline(always)]
    pub(super) fn limit_ordinary(&mut self, now_ns: i64) {
        let room = self.flight.nxt.to(self.window.edge);
        self.window.is_blocked = (self.flight.is_outstanding() | self.window.is_blocked)
            & (room < self.segment_size() as i32);
        if self.window.is_blocked {
            self.window.is_blocked = room < self.least_room() as i32;
        }
        if self.window.is_blocked != self.is_limited {
            self.change_limit(now_ns, self.window.is_blocked);
        }
    }

    #[cold]
    fn change_limit(&mut self, now_ns: i64, is_limited: bool) {
        let cold_state = self.cold_state();
        if is_limited {
            cold_state.limited_since_ns = now_ns;
        } else {
            let span_ns = now_ns.saturating_sub(cold_state.limited_since_ns).max(0);
            cold_state.limited_ns = cold_state.limited_ns.saturating_add(span_ns);
        }
        self.is_limited = is_limited;
    }

    fn end_limit(&mut self, now_ns: i64) {
        if self.is_limited {
            self.change_limit(now_ns, false);
        }
    }

    /// Charge the time so far and set the sender's activity.
    ///
    /// `is_data`: whether the segment was this side's own. An ACK's effect on a sender away from the capture point shows
    /// with its next data.
    fn turn(&mut self, now_ns: i64, is_certain: bool, is_data: bool) {
        if !is_certain || !self.is_mss_certain {
            self.turn_in_doubt(now_ns, is_certain, is_data);
            return;
        }
        let state = self.state();
        self.begin_budget(now_ns);
        let mss = self.segment_size();
        let flight_bytes = self.flight.bytes();
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        let budget = &mut pace.late.budget;
        let state = match &mut pace.view {
            Some(_) if !is_data && state.is_open() && budget.state.is_open() => return,
            Some(view) => {
                view.arrive(now_ns);
                let drained = open_state(view.is_blocked(), false, true);
                budget.drain(drained, view.drained_ns);
                if state.is_open() {
                    open_state(view.is_blocked(), view.bytes() > 0, pace.last_payload < mss)
                } else {
                    state
                }
            }
            None => state,
        };
        if state.is_recovery() && !budget.state.is_recovery() {
            let lost_at_bytes = pace.view.as_ref().map_or(flight_bytes, |view| view.bytes());
            budget.note_loss(lost_at_bytes, state == Activity::Refused);
            if let Some(path) = pace.path.as_mut().filter(|_| state != Activity::Refused) {
                path.note_loss(&pace.delay, lost_at_bytes);
            }
        }
        budget.turn_in(state, ScaleNeed::KNOWN, now_ns);
    }

    /// Like [`Direction::turn`], if the window's scale or the size of a full segment is unknown.
    #[cold]
    fn turn_in_doubt(&mut self, now_ns: i64, is_window_certain: bool, is_data: bool) {
        let certain = self.certain_state();
        self.begin_budget(now_ns);
        let flight_bytes = self.flight.bytes();
        let payload_len = self.pace().map_or(0, |pace| pace.last_payload);
        let ends_a_write = self.ends_a_write(payload_len);
        let segment = self.segment_size().clamp(1, LARGEST_SEGMENT);
        let (una, edge, is_blocked) = (self.flight.una, self.window.edge, self.window.is_blocked);
        let has_window = self.window.is_known;
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        // With an unknown scale, the edge is the window field's number of units above SND.UNA.
        let room_of = |window: u32, flight: u32| match (is_window_certain, has_window) {
            (true, _) => ScaleNeed::KNOWN,
            (false, true) => ScaleNeed::of(window, flight, segment),
            (false, false) => ScaleNeed::of(0, flight, segment),
        };
        let budget = &mut pace.late.budget;
        let (flight, window, is_blocked) = match &mut pace.view {
            Some(_) if !is_data && certain.is_none() && !budget.state.is_recovery() => return,
            Some(view) => {
                view.arrive(now_ns);
                let is_blocked = view.is_blocked() && is_window_certain;
                let room = room_of(view.window_bytes(), 0);
                budget.drain_in(open_state(is_blocked, false, true), room, view.drained_ns);
                (view.bytes(), view.window_bytes(), is_blocked)
            }
            None => (flight_bytes, una.to(edge).max(0) as u32, is_blocked),
        };
        let is_outstanding = match &pace.view {
            Some(_) => flight > 0,
            None => una.is_before(self.flight.nxt),
        };
        let state = match (certain, ends_a_write) {
            (Some(state), _) => state,
            (None, None) if is_outstanding && !is_blocked => Activity::Unknown,
            (None, ends) => open_state(is_blocked, is_outstanding, ends == Some(true)),
        };
        if state.is_recovery() && !budget.state.is_recovery() {
            let lost_at_bytes = pace.view.as_ref().map_or(flight_bytes, |view| view.bytes());
            budget.note_loss(lost_at_bytes, state == Activity::Refused);
            if let Some(path) = pace.path.as_mut().filter(|_| state != Activity::Refused) {
                path.note_loss(&pace.delay, lost_at_bytes);
            }
        }
        budget.turn_in(state, room_of(window, flight), now_ns);
    }

    /// Update the activity after an ordinary segment; `is_data` if it is this side's own.
    #[inline(never)]
    pub(super) fn turn_ordinary(&mut self, state: Activity, now_ns: i64, is_data: bool) {
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        if pace.view.is_some() {
            self.turn_in_view(now_ns, is_data);
        } else if pace.late.budget.state == Activity::Unseen {
            self.turn(now_ns, true, is_data);
        } else {
            pace.late.budget.turn_ordinary(state, now_ns);
        }
    }

    /// Begin to charge time, if that has not begun.
    #[inline(always)]
    fn begin_budget(&mut self, now_ns: i64) {
        if self
            .pace()
            .is_some_and(|pace| !pace.late.budget.has_begun())
        {
            self.begin_budget_now(now_ns);
        }
    }

    #[cold]
    fn begin_budget_now(&mut self, now_ns: i64) {
        let limited_ns = self.limited_until_ns(now_ns);
        if let Some(pace) = self.ledger.pace_mut() {
            pace.late.budget.begin(now_ns, limited_ns);
        }
    }

    fn turn_in_view(&mut self, now_ns: i64, is_data: bool) {
        let mss = self.segment_size();
        let Some(pace) = self.ledger.pace_mut() else {
            return;
        };
        let budget = &mut pace.late.budget;
        match &mut pace.view {
            Some(view) if budget.state.is_open() => {
                view.arrive(now_ns);
                let drained = open_state(view.is_blocked(), false, true);
                budget.drain(drained, view.drained_ns);
                let ran_out = pace.last_payload < mss;
                budget.turn(
                    open_state(view.is_blocked(), view.bytes() > 0, ran_out),
                    now_ns,
                );
            }
            _ => self.turn(now_ns, true, is_data),
        }
    }

    fn state(&self) -> Activity {
        self.certain_state().unwrap_or_else(|| {
            let mss = self.segment_size();
            let ran_out = self.pace().is_some_and(|pace| pace.ran_out(mss));
            open_state(
                self.window.is_blocked,
                self.flight.is_outstanding(),
                ran_out,
            )
        })
    }

    /// Return the activity that depends neither on the window nor on segment sizes; None with an open window.
    fn certain_state(&self) -> Option<Activity> {
        let cold_state = self.cold_state.as_deref();
        let phase = cold_state.map_or(Phase::Open, ColdState::phase);
        let is_outstanding = self.flight.is_outstanding();
        if self.has_fin() && !is_outstanding {
            Some(Activity::Closed)
        } else if cold_state.is_some_and(ColdState::is_zero_open) {
            Some(Activity::ZeroWindow)
        } else if phase != Phase::Open && cold_state.is_some_and(ColdState::is_refused) {
            Some(Activity::Refused)
        } else if phase == Phase::Fast {
            Some(Activity::FastRecovery)
        } else if phase == Phase::Loss {
            Some(Activity::Timeout)
        } else if !self.is_flight_known() {
            Some(Activity::Unknown)
        } else {
            None
        }
    }

    /// Charge a silence from `from_ns` that ended with a timer's retransmission.
    #[cold]
    pub(super) fn spend_silence(&mut self, item: SenderState, from_ns: i64, now_ns: i64) {
        let una = self.flight.una;
        let is_refused = self
            .cold_state
            .as_deref()
            .is_some_and(ColdState::is_refused);
        let item = if is_refused && item == SenderState::Timeout {
            SenderState::Reader
        } else {
            item
        };
        self.ledger.pace_from(una);
        self.begin_budget(from_ns);
        let pace = self.ledger.pace_from(una);
        pace.late.budget.silence(item, from_ns, now_ns);
    }
}
