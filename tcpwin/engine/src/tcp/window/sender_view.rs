//! The sender's view of its flight, reconstructed from a capture further down the path.
//!
//! The sender's reaction to an ACK passes the capture point one round trip (between the two) after the ACK did. So each
//! ACK takes effect that much later relative to the data (rule 3.4).

use std::collections::VecDeque;

use crate::sequence::Seq;

/// Maximum number of ACKs on the way; beyond it the oldest takes effect at once.
const MAX_ON_THE_WAY: usize = 4096;

/// Value of `blocked_ns` while there is room.
const NOT_BLOCKED: i64 = i64::MIN;

/// Fields that every segment touches are in the first two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct SenderView {
    pub shift_ns: i64,
    /// Capture time of the first ACK on the way, so that most segments need not access the queue.
    first_ns: i64,
    on_the_way: VecDeque<(i64, Known)>,
    /// The newest ACK captured, and the newest that has reached the sender.
    newest: Known,
    known: Known,
    nxt: Seq,
    /// The room that lets the sender go on.
    least_room: u32,
    start_ns: i64,
    end_ns: i64,
    /// Time since which the window known to the sender had no room for another segment, or [`NOT_BLOCKED`].
    blocked_ns: i64,
    /// Flight over time: bytes × nanoseconds since the start of what left the flight, less what entered it.
    integral: f64,
    /// Last time at which the flight drained.
    pub drained_ns: i64,
    /// Maximum since [`SenderView::take_peak`].
    peak_bytes: u32,
    pub max_bytes: u32,
    /// Bytes in flight when the first ACK of data reached the sender.
    pub initial_bytes: Option<u32>,
    pub limited_ns: i64,
    /// When the newest known ACK reached the sender.
    known_ns: i64,
    /// Whether the right edges are in bytes, because the window scale was known from the start.
    pub has_edge: bool,
}

/// The content of an ACK: SND.UNA and the window's right edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub una: Seq,
    pub edge: Seq,
}

impl SenderView {
    pub fn new(shift_ns: i64, known: Known, nxt: Seq, now_ns: i64) -> Self {
        SenderView {
            shift_ns,
            first_ns: i64::MAX,
            on_the_way: VecDeque::new(),
            newest: known,
            known,
            nxt,
            least_room: 1,
            start_ns: now_ns,
            end_ns: now_ns,
            blocked_ns: NOT_BLOCKED,
            max_bytes: known.una.to(nxt).max(0) as u32,
            initial_bytes: None,
            peak_bytes: 0,
            integral: 0.0,
            limited_ns: 0,
            known_ns: i64::MIN,
            drained_ns: i64::MIN,
            has_edge: false,
        }
    }

    /// Return the address of the first ACK on the way, if there is one.
    #[inline(always)]
    pub fn first_on_the_way(&self) -> *const (i64, Known) {
        self.on_the_way.as_slices().0.as_ptr()
    }

    /// Return SND.UNA as known to the sender.
    #[inline(always)]
    pub fn una(&self) -> Seq {
        self.known.una
    }

    /// Return the ACKs that have not taken effect, with their capture times.
    pub fn on_the_way(&self) -> impl Iterator<Item = (i64, Known)> + '_ {
        self.on_the_way.iter().copied()
    }

    /// Return the newest ACK captured.
    pub fn newest(&self) -> Known {
        self.newest
    }

    /// Return the newest ACK that had reached the sender at the last query.
    pub fn known(&self) -> Known {
        self.known
    }

    /// Return the end of the last data seen.
    pub fn nxt(&self) -> Seq {
        self.nxt
    }

    /// Return the bytes in flight as known to the sender, after the last captured data.
    #[inline(always)]
    pub fn bytes(&self) -> u32 {
        self.known.una.to(self.nxt).max(0) as u32
    }

    /// Return the window known to the sender, from its SND.UNA.
    pub fn window_bytes(&self) -> u32 {
        self.known.una.to(self.known.edge).max(0) as u32
    }

    /// Return whether the window known to the sender stopped it.
    #[inline(always)]
    pub fn is_blocked(&self) -> bool {
        self.blocked_ns != NOT_BLOCKED
    }

    /// Return whether the window known to the sender has room for another segment after `nxt`.
    pub fn has_room(&self, nxt: Seq, mss: u32) -> bool {
        nxt.to(self.known.edge) >= mss as i32
    }

    /// Return whether data sent now leaves as an ACK reaches the sender that leaves other data in flight: within
    /// `within_ns`, so that a later ACK did not cause it.
    pub fn is_clocked(&mut self, now_ns: i64, within_ns: i64) -> bool {
        self.arrive(now_ns);
        self.bytes() > 0 && now_ns.saturating_sub(self.known_ns) <= within_ns
    }

    #[inline]
    pub fn acked(&mut self, known: Known, now_ns: i64) {
        if known != self.newest {
            self.queue(known, now_ns);
        }
    }

    fn queue(&mut self, known: Known, now_ns: i64) {
        self.newest = known;
        if self.on_the_way.len() >= MAX_ON_THE_WAY {
            if let Some((_, oldest)) = self.on_the_way.pop_front() {
                self.known = oldest;
            }
        }
        self.on_the_way.push_back((now_ns, known));
        self.note_first();
    }

    #[inline(always)]
    fn note_first(&mut self) {
        let first = self.on_the_way.front();
        self.first_ns = first.map_or(i64::MAX, |(captured_ns, _)| *captured_ns);
    }

    #[inline]
    pub fn sent(&mut self, nxt: Seq, least_room: u32, now_ns: i64) {
        self.arrive(now_ns);
        self.allow(nxt, now_ns);
        self.account(-self.nxt.to(nxt).max(0), now_ns);
        self.nxt = self.nxt.max(nxt);
        self.least_room = least_room.max(1);
        self.judge_room(now_ns);
        self.note_peak();
    }

    #[inline]
    fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes.max(self.bytes());
        self.max_bytes = self.max_bytes.max(self.peak_bytes);
    }

    pub fn take_peak(&mut self) -> u32 {
        let now = self.bytes();
        std::mem::replace(&mut self.peak_bytes, now)
    }

    /// Let the ACKs take effect that reached the sender by `now_ns`.
    #[inline]
    pub fn arrive(&mut self, now_ns: i64) {
        if !self.on_the_way.is_empty() && self.first_ns.wrapping_add(self.shift_ns) <= now_ns {
            self.take_arrived(now_ns);
        }
    }

    /// Deliver ACKs early: data beyond the window that the sender knew shows that a newer ACK had reached it. Where the
    /// path's delay varies, that may be sooner than after the least delay observed.
    #[inline]
    fn allow(&mut self, nxt: Seq, now_ns: i64) {
        while self.has_edge && nxt.is_after(self.known.edge) && !self.on_the_way.is_empty() {
            self.take_first(now_ns);
        }
    }

    /// Skip to a place before which everything was sent and acknowledged without being captured.
    #[cold]
    pub fn skip_to(&mut self, place: Seq, now_ns: i64) {
        self.arrive(now_ns);
        self.on_the_way.clear();
        self.note_first();
        self.account(self.known.una.to(self.nxt).max(0), now_ns);
        self.release(now_ns);
        let room_bytes = self.window_bytes();
        self.known = Known {
            una: place,
            edge: place + room_bytes,
        };
        (self.newest, self.nxt) = (self.known, place);
    }

    #[inline(never)]
    fn take_arrived(&mut self, now_ns: i64) {
        while let Some(&(captured_ns, _)) = self.on_the_way.front() {
            let arrival_ns = captured_ns.wrapping_add(self.shift_ns);
            if arrival_ns > now_ns {
                break;
            }
            self.take_first(arrival_ns);
        }
    }

    fn take_first(&mut self, arrival_ns: i64) {
        if let Some((_, known)) = self.on_the_way.pop_front() {
            if self.initial_bytes.is_none() {
                self.note_initial(known);
            }
            self.account(self.known.una.to(known.una), arrival_ns);
            let is_less = known.una.is_before(self.known.una);
            (self.known, self.known_ns) = (known, arrival_ns);
            if is_less {
                // Not all of the skipped ACKs need have arrived, only as much as the window needed.
                self.allow(self.nxt, arrival_ns);
                self.note_peak();
            }
            if self.nxt.is_before(known.una) {
                self.account(-self.nxt.to(known.una), arrival_ns);
                self.nxt = known.una;
            }
            self.judge_room(arrival_ns);
            if !known.una.is_before(self.nxt) {
                self.drained_ns = arrival_ns;
            }
        }
        self.note_first();
    }

    #[cold]
    fn note_initial(&mut self, known: Known) {
        if known == self.known || self.known.una.is_before(known.una) {
            self.initial_bytes = Some(self.bytes());
        }
    }

    /// Let time pass to the end of the connection.
    pub fn finish(&mut self, end_ns: i64) {
        self.arrive(end_ns);
        self.account(self.known.una.to(self.nxt).max(0), end_ns);
        self.release(end_ns);
    }

    /// Note that the first ACK of data reached the sender before this view began.
    pub fn miss_initial(&mut self) {
        self.initial_bytes = Some(0);
    }

    /// Process the first SACK report, which ends the initial flight as an ACK does.
    pub fn reported(&mut self, now_ns: i64) {
        if self.initial_bytes.is_none() {
            self.queue(self.newest, now_ns);
        }
    }

    #[inline]
    fn judge_room(&mut self, now_ns: i64) {
        let is_outstanding = self.known.una.is_before(self.nxt);
        let has_room = self.nxt.to(self.known.edge) >= self.least_room as i32;
        let is_blocked = (is_outstanding | self.is_blocked()) & !has_room;
        if is_blocked != self.is_blocked() {
            self.release(now_ns);
            if is_blocked {
                self.blocked_ns = now_ns;
            }
        }
    }

    #[cold]
    fn release(&mut self, now_ns: i64) {
        if self.is_blocked() {
            let span_ns = now_ns.saturating_sub(self.blocked_ns).max(0);
            self.limited_ns = self.limited_ns.saturating_add(span_ns);
            self.blocked_ns = NOT_BLOCKED;
        }
    }

    /// Account for bytes that left the flight or, if negative, entered it.
    #[inline]
    fn account(&mut self, bytes: i32, now_ns: i64) {
        let since_ns = now_ns.wrapping_sub(self.start_ns);
        self.integral += f64::from(bytes) * since_ns as f64;
        self.end_ns = self.end_ns.max(now_ns);
    }

    /// Return the mean over the observed time.
    pub fn mean_bytes(&self) -> Option<f64> {
        let elapsed_ns = self.end_ns.saturating_sub(self.start_ns);
        (elapsed_ns > 0).then(|| self.integral.max(0.0) / elapsed_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(una: u32) -> Known {
        Known {
            una: Seq(una),
            edge: Seq(una + 2500),
        }
    }

    #[test]
    fn a_skip_acknowledges_no_more_than_the_window() {
        let mut view = SenderView::new(100, known(0), Seq(0), 0);
        view.has_edge = true;
        view.skip_to(Seq(50_000), 10);
        view.acked(known(48_500), 20);
        view.acked(known(49_500), 30);
        view.sent(Seq(51_500), 1000, 40);
        // The first ACK allows 51,000: the second had arrived, too.
        view.sent(Seq(52_000), 1000, 125);
        assert_eq!((view.bytes(), view.max_bytes), (2500, 2500));
    }

    #[test]
    fn an_ack_takes_effect_one_shift_later() {
        let mut view = SenderView::new(100, known(0), Seq(0), 0);
        view.sent(Seq(1000), 1000, 0);
        view.acked(known(1000), 1);
        view.sent(Seq(2000), 1000, 50);
        assert_eq!((view.bytes(), view.max_bytes), (2000, 2000));
        view.sent(Seq(3000), 1000, 101);
        assert_eq!((view.bytes(), view.max_bytes), (2000, 2000));
        assert_eq!(
            view.limited_ns, 51,
            "from the second segment to the first ACK"
        );
        view.acked(known(3000), 102);
        view.finish(202);
        assert_eq!(view.bytes(), 0);
        let mean = (1000.0 * 50.0 + 2000.0 * 152.0) / 202.0;
        assert!((view.mean_bytes().unwrap() - mean).abs() < 1e-9);
    }
}
