//! The sender's recovery as shown by its retransmissions: its phase, the retransmissions, and those that proved
//! needless.

use std::collections::VecDeque;

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::recovery::answers::Answers;
use crate::tcp::recovery::cause::RetransmissionCause;
use crate::tcp::recovery::ranges::RangeSet;

/// Number of retransmissions kept in case a D-SACK or timestamp proves them needless.
const MAX_RESENDS: usize = 256;
/// Retransmissions are forgotten before sequence numbers wrap around.
const FORGET_AFTER_BYTES: u64 = 1 << 30;

/// Linux's congestion states that packets distinguish: Open includes Disorder and CWR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Open,
    /// Fast recovery (RFC 6675, RFC 6582).
    Fast,
    /// After a retransmission timeout.
    Loss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    pub seq: Seq,
    pub end: Seq,
    pub time_ns: i64,
    pub frame: u64,
    /// The timeout, without back-off, that it started.
    pub rto_ns: i64,
    pub tsval: Option<u32>,
    /// Whether its TSval certainly differs from the original's.
    is_distinct: bool,
    /// Its main kind, as in the row.
    pub events: Events,
    /// Whether it was sent in the current phase.
    is_of_phase: bool,
    is_needless: bool,
    /// Whether a DSACK showed that the preceding copy was not lost, or that this one was needless.
    is_disproved: bool,
    /// Total bytes acknowledged when it was sent.
    acked_bytes: u64,
}

/// A late segment above SND.UNA, and its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Late {
    seq: Seq,
    end: Seq,
    frame: u64,
}

pub fn holds(seq: Seq, left: Seq, right: Seq) -> bool {
    !seq.is_before(left) && seq.is_before(right)
}

#[derive(Clone, Debug, Default)]
pub struct Episode {
    pub phase: Phase,
    /// Whether the recovery repairs data for which the receiver had withdrawn the window, also after a timeout.
    pub is_refused: bool,
    /// SND.MAX when the phase began; its acknowledgment ends the phase.
    point: Seq,
    entered_ns: i64,
    /// Data above SND.UNA that was ever retransmitted or late: its round trip is ambiguous.
    pub ambiguous: RangeSet,
    /// Data retransmitted since the phase began.
    repeated: RangeSet,
    resends: VecDeque<Resend>,
    late: VecDeque<Late>,
    pub answers: Answers,
    /// End of an unacknowledged tail loss probe.
    probe_end: Option<Seq>,
    /// Consecutive timeouts.
    pub backoff: u32,
    /// Whether the sender probes for tail loss, if its timers showed it.
    pub sends_probes: Option<bool>,
    /// Whether F-RTO waits for the ACKs that show whether the timeout's retransmission was needed (RFC 5682).
    is_frto_armed: bool,
    /// TSval of the first retransmission since none was in flight (Linux `retrans_stamp`).
    first_tsval: Option<u32>,
    /// Data retransmitted in this phase and not proved needless.
    unproved: u32,
    /// Send time of the newest retransmission that certainly arrived.
    arrived_ns: Option<i64>,
    pub recoveries: u32,
    pub recovery_ns: i64,
    /// Number of separate spans of recovery.
    pub stretches: u32,
    pub fin: u32,
    pub fast_open: u32,
    pub zero_window: u32,
    pub unknown: u32,
    pub dsacks: u32,
    pub dsack_bytes: u64,
    pub by_dsack: u32,
    /// Copies sent for a lost retransmission although, by a DSACK, an earlier copy had arrived.
    pub lost_disproved: u32,
    pub by_timestamps: u32,
    pub by_frto: u32,
    pub reordering_max_bytes: u32,
    pub reordering_max_ns: i64,
}

/// An ACK that moves SND.UNA.
#[derive(Clone, Copy, Debug)]
pub struct Advance {
    pub una: Seq,
    pub ack: Seq,
    pub tsecr: Option<u32>,
    pub now_ns: i64,
    /// Bytes sent once, captured, and not reported by SACK before.
    pub plain_bytes: u32,
    /// Bytes that had been retransmitted.
    pub ambiguous_bytes: u32,
    pub had_duplicates: bool,
    pub has_sack: bool,
}

/// Facts shown by an ACK that moves SND.UNA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub is_partial: bool,
    /// Send time of the acknowledged copy, if timestamps show it.
    pub echoed_ns: Option<i64>,
    /// Whether the ACK echoes the newest copy: no later one can have triggered it.
    pub is_newest: bool,
    /// Send time of that copy.
    pub newest_ns: Option<i64>,
    /// Whether the ACK echoes the original: it had arrived, and the retransmission was needless.
    pub is_original: bool,
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug)]
pub struct Resent {
    pub seq: Seq,
    pub end: Seq,
    /// SND.MAX before.
    pub nxt: Seq,
    pub time_ns: i64,
    pub frame: u64,
    pub rto_ns: i64,
    pub tsval: Option<u32>,
    /// Whether the TSval certainly differs from the original's.
    pub is_distinct: bool,
    pub events: Events,
    /// Total bytes acknowledged before.
    pub acked_bytes: u64,
    /// Whether the receiver had withdrawn the window for the first byte.
    pub is_refused: bool,
}

impl Episode {
    /// Return whether nothing here affects the next segment.
    pub fn is_quiet(&self) -> bool {
        self.phase == Phase::Open && self.ambiguous.is_empty() && self.probe_end.is_none()
    }

    /// Return whether part of the range was already retransmitted in this phase.
    pub fn is_repeated(&self, seq: Seq, end: Seq) -> bool {
        self.repeated.overlap(seq, end) > 0
    }

    /// Return whether the range was last retransmitted in this or an earlier fast recovery.
    pub fn was_recovered(&self, seq: Seq, end: Seq) -> bool {
        let in_recovery = event::FAST_RETRANSMISSION | event::RECOVERY_RETRANSMISSION;
        let resend = self.last_resend(seq, end);
        resend.is_some_and(|resend| resend.events & in_recovery != 0)
    }

    /// Return whether any of these ranges above `seq` was retransmitted in this phase.
    pub fn is_any_repeated(&self, seq: Seq, mut ranges: impl Iterator<Item = (Seq, Seq)>) -> bool {
        !self.repeated.is_empty()
            && ranges
                .any(|(left, right)| seq.is_before(left) && self.repeated.overlap(left, right) > 0)
    }

    pub fn is_probe_out(&self) -> bool {
        self.probe_end.is_some()
    }

    /// Return the last retransmission of bytes from `seq` on.
    pub fn last_resend(&self, seq: Seq, end: Seq) -> Option<Resend> {
        let overlaps = |resend: &&Resend| seq.is_before(resend.end) && resend.seq.is_before(end);
        self.resends.iter().rev().find(overlaps).copied()
    }

    /// Return the newest retransmitted or late frame that holds the byte at `seq`. None if there is none, or if it has been
    /// forgotten, in which case the byte is still ambiguous.
    pub fn newest_copy(&self, seq: Seq) -> Option<u64> {
        let resends = self.resends.iter().rev();
        let resent = resends.map(|resend| (resend.seq, resend.end, resend.frame));
        // Data first captured late was not retransmitted before.
        let late = self
            .late
            .iter()
            .map(|late| (late.seq, late.end, late.frame));
        resent
            .chain(late)
            .find(|(left, right, _)| holds(seq, *left, *right))
            .map(|(_, _, frame)| frame)
    }

    /// Return whether the byte at `seq`, above SND.UNA, was captured late.
    pub fn is_late(&self, seq: Seq) -> bool {
        (self.late.iter()).any(|late| holds(seq, late.seq, late.end))
    }

    /// Shift earlier times after the capture's clock was set forward; data in flight from `una` to `nxt` has no round trip.
    pub fn step(&mut self, una: Seq, nxt: Seq, stepped_ns: i64) {
        self.ambiguous.insert(una, nxt);
        for resend in &mut self.resends {
            resend.time_ns = resend.time_ns.saturating_add(stepped_ns);
        }
    }

    /// Forget retransmissions so old that their sequence numbers may have wrapped around.
    pub fn forget_old(&mut self, acked_bytes: u64) {
        let is_old = |resend: &Resend| acked_bytes - resend.acked_bytes > FORGET_AFTER_BYTES;
        while self.resends.front().is_some_and(is_old) {
            self.resends.pop_front();
        }
    }

    /// Return the time of the last retransmission.
    pub fn newest_resend_ns(&self) -> Option<i64> {
        self.resends.back().map(|resend| resend.time_ns)
    }

    /// Return whether data sent at `sent_ns` is lost, because a later retransmission has arrived (RACK, RFC 8985 §6.2).
    pub fn is_overtaken(&self, sent_ns: i64) -> bool {
        self.arrived_ns
            .is_some_and(|arrived_ns| sent_ns < arrived_ns)
    }

    /// Process a retransmitted segment.
    pub fn resent(&mut self, cause: RetransmissionCause, copy: &Resent) {
        let (nxt, now_ns) = (copy.nxt, copy.time_ns);
        // F-RTO can judge only by the first retransmission after a timeout (RFC 5682 §2.1, step 2).
        self.is_frto_armed = false;
        match cause {
            RetransmissionCause::Fast => {
                self.enter(Phase::Fast, nxt, now_ns);
                self.recoveries = self.recoveries.saturating_add(1);
            }
            RetransmissionCause::Rto => {
                // Only the first of a phase, or one that follows another without an ACK (Linux `tcp_enter_loss`).
                let may_judge = self.phase == Phase::Open || self.backoff > 0;
                self.enter(Phase::Loss, nxt, now_ns);
                self.backoff = self.backoff.saturating_add(1);
                self.is_frto_armed = may_judge;
            }
            RetransmissionCause::TailLossProbe => self.probe_end = Some(copy.end),
            RetransmissionCause::Fin => self.fin = self.fin.saturating_add(1),
            RetransmissionCause::FastOpen => self.fast_open = self.fast_open.saturating_add(1),
            RetransmissionCause::ZeroWindow => {
                // Linux's `tcp_retransmit_timer` enters the loss state if the window closed on data in flight.
                self.enter(Phase::Loss, nxt, now_ns);
                self.backoff = self.backoff.saturating_add(1);
                self.zero_window = self.zero_window.saturating_add(1);
            }
            RetransmissionCause::Unknown => self.unknown = self.unknown.saturating_add(1),
            _ => {}
        }
        if matches!(
            cause,
            RetransmissionCause::Fast | RetransmissionCause::Rto | RetransmissionCause::ZeroWindow
        ) {
            self.is_refused |= copy.is_refused;
        }
        if cause != RetransmissionCause::Spurious {
            self.ambiguous.insert(copy.seq, copy.end);
            self.repeated.insert(copy.seq, copy.end);
        }
        let is_of_phase = self.phase != Phase::Open;
        self.first_tsval = self.first_tsval.or(copy.tsval);
        self.unproved = self.unproved.saturating_add(u32::from(is_of_phase));
        if self.resends.len() >= MAX_RESENDS {
            self.resends.pop_front();
        }
        self.resends.push_back(Resend {
            seq: copy.seq,
            end: copy.end,
            time_ns: now_ns,
            frame: copy.frame,
            rto_ns: copy.rto_ns,
            tsval: copy.tsval,
            is_distinct: copy.is_distinct,
            events: copy.events,
            is_of_phase,
            is_needless: false,
            is_disproved: false,
            acked_bytes: copy.acked_bytes,
        });
    }

    fn enter(&mut self, phase: Phase, point: Seq, now_ns: i64) {
        // A timeout continues the preceding phase, also for an undo (`tcp_enter_loss`).
        if self.phase != Phase::Open && phase == Phase::Loss {
            self.account(now_ns);
        } else {
            self.leave(now_ns);
            self.stretches = self.stretches.saturating_add(1);
        }
        self.phase = phase;
        self.point = point;
        self.entered_ns = now_ns;
        self.repeated.clear();
        self.probe_end = None;
    }

    /// Return the events of the newest retransmission from `seq` in the last `within_ns`, which the capture may hold
    /// twice.
    pub fn just_resent(&self, seq: Seq, now_ns: i64, within_ns: i64) -> Option<Events> {
        let resend = self.resends.iter().rev().find(|resend| resend.seq == seq)?;
        (now_ns.saturating_sub(resend.time_ns) <= within_ns).then_some(resend.events)
    }

    /// End the phase, also at the end of the connection.
    pub fn leave(&mut self, now_ns: i64) {
        self.account(now_ns);
        self.phase = Phase::Open;
        (self.unproved, self.is_refused) = (0, false);
        for resend in &mut self.resends {
            resend.is_of_phase = false;
        }
    }

    fn account(&mut self, now_ns: i64) {
        if self.phase != Phase::Open {
            let span_ns = now_ns.saturating_sub(self.entered_ns).max(0);
            self.recovery_ns = self.recovery_ns.saturating_add(span_ns);
        }
    }

    /// Note late bytes, which measure no round trip.
    pub fn note_late(&mut self, seq: Seq, end: Seq, frame: u64) {
        self.ambiguous.insert(seq, end);
        if self.late.len() >= MAX_RESENDS {
            self.late.pop_front();
        }
        self.late.push_back(Late { seq, end, frame });
    }

    pub fn acked(&mut self, advance: &Advance) -> Shown {
        let mut shown = self.judge_timestamps(advance);
        let is_dsacked = self.phase == Phase::Loss && self.unproved == 0;
        // An echo from before the first retransmission (Linux `tcp_packet_delayed`).
        let is_delayed = self
            .first_tsval
            .zip(advance.tsecr)
            .is_some_and(|(tsval, tsecr)| (tsecr.wrapping_sub(tsval) as i32) < 0);
        let is_undone = self.judge_frto(advance) || is_delayed || is_dsacked;
        self.backoff = 0;
        self.ambiguous.remove_below(advance.ack);
        self.repeated.remove_below(advance.ack);
        self.late.retain(|late| late.end.is_after(advance.ack));
        if self.probe_end.is_some_and(|end| !end.is_after(advance.ack)) {
            self.probe_end = None;
        }
        if self.phase == Phase::Open {
            self.forget_first();
            return shown;
        }
        let is_over = !advance.ack.is_before(self.point);
        // Linux undoes a false loss at once, and a recovery when no retransmission is in flight (`tcp_try_undo_loss`,
        // `tcp_try_undo_partial`).
        let is_undone = is_undone && (self.phase == Phase::Loss || self.ambiguous.is_empty());
        if is_over || is_undone {
            self.leave(advance.now_ns);
        } else {
            shown.is_partial = self.phase == Phase::Fast;
        }
        self.forget_first();
        shown
    }

    fn forget_first(&mut self) {
        if self.phase == Phase::Open && self.ambiguous.is_empty() {
            self.first_tsval = None;
        }
    }

    /// Judge by F-RTO: after a timeout, an ACK of data sent once proves that the originals arrived. Without SACK it must
    /// not cover retransmitted data, since data that the receiver held out of order is acknowledged with the retransmission
    /// (RFC 5682 §2.1 and §3.1; Linux `tcp_clean_rtx_queue` on FLAG_ORIG_SACK_ACKED). Timestamps are better evidence.
    fn judge_frto(&mut self, advance: &Advance) -> bool {
        if !self.is_frto_armed {
            return false;
        }
        let is_original = advance.plain_bytes > 0
            && (advance.has_sack || (advance.ambiguous_bytes == 0 && !advance.had_duplicates));
        self.is_frto_armed = advance.plain_bytes == 0 && !advance.had_duplicates;
        if is_original && advance.tsecr.is_none() {
            self.by_frto = self.by_frto.saturating_add(1);
        }
        is_original
    }

    /// Note the first SACK report of data sent once, up to `end`. After a timeout it is F-RTO's proof if the data was sent
    /// before (RFC 5682 §3.1; Linux FLAG_ORIG_SACK_ACKED in `tcp_sacktag_one`).
    pub fn note_original_reported(&mut self, end: Seq, has_timestamps: bool, now_ns: i64) {
        if !self.is_frto_armed || end.is_after(self.point) {
            return;
        }
        self.is_frto_armed = false;
        self.by_frto = self.by_frto.saturating_add(u32::from(!has_timestamps));
        self.leave(now_ns);
    }

    /// Judge by Eifel (RFC 3522 §3.2): if the ACK that first covers a retransmission echoes an older timestamp, the
    /// original had arrived. Only the bytes at SND.UNA decide which timestamp is echoed (RFC 7323 §4.3).
    fn judge_timestamps(&mut self, advance: &Advance) -> Shown {
        let covers = |resend: &Resend| {
            !advance.una.is_before(resend.seq)
                && advance.una.is_before(resend.end)
                && !resend.end.is_after(advance.ack)
        };
        let mut shown = Shown::default();
        let mut is_first = true;
        let mut newest_ns = None;
        for resend in self.resends.iter_mut().filter(|resend| covers(resend)) {
            newest_ns = Some(resend.time_ns);
            shown.is_newest = false;
            let (Some(tsval), Some(tsecr)) = (resend.tsval, advance.tsecr) else {
                continue;
            };
            if tsecr.wrapping_sub(tsval) as i32 >= 0 {
                // The same value on both copies shows nothing.
                shown.echoed_ns = resend.is_distinct.then_some(resend.time_ns);
                shown.is_newest = tsecr == tsval;
            } else if is_first && !resend.is_needless {
                shown.is_original = true;
                resend.is_needless = true;
                self.unproved = self.unproved.saturating_sub(u32::from(resend.is_of_phase));
            }
            is_first = false;
        }
        self.by_timestamps = self
            .by_timestamps
            .saturating_add(u32::from(shown.is_original));
        if let (Some(newest_ns), false) = (newest_ns, shown.is_original) {
            self.arrived_ns = Some(newest_ns);
        }
        shown.newest_ns = newest_ns;
        shown
    }

    /// Process a report of bytes that the receiver already had (RFC 2883).
    pub fn note_dsack(&mut self, left: Seq, right: Seq, is_advance: bool, now_ns: i64) {
        self.dsacks = self.dsacks.saturating_add(1);
        self.dsack_bytes += left.to(right).max(0) as u64;
        self.disprove_losses(left, right);
        let overlaps = |resend: &&mut Resend| {
            !resend.is_needless && left.is_before(resend.end) && resend.seq.is_before(right)
        };
        let Some(resend) = self.resends.iter_mut().find(overlaps) else {
            return;
        };
        resend.is_needless = true;
        self.by_dsack = self.by_dsack.saturating_add(1);
        if resend.is_of_phase {
            self.unproved = self.unproved.saturating_sub(1);
            // All retransmissions of the phase were needless: Linux undoes a recovery at once (`tcp_try_undo_dsack`), a
            // loss with an ACK that moves SND.UNA (`tcp_process_loss`).
            if self.unproved == 0 && (is_advance || self.phase == Phase::Fast) {
                self.leave(now_ns);
            }
        }
    }

    /// Record that one more copy of these bytes arrived than was assumed: the newest retransmission that was blamed on
    /// the loss of an earlier one was needless.
    fn disprove_losses(&mut self, left: Seq, right: Seq) {
        let mut upto: Option<Seq> = None;
        for resend in self.resends.iter_mut().rev() {
            let is_within = left.is_before(resend.end) && resend.seq.is_before(right);
            let is_other = upto.is_none_or(|upto| !resend.end.is_after(upto));
            if is_within
                && is_other
                && !resend.is_disproved
                && resend.events & event::LOST_RETRANSMISSION != 0
            {
                resend.is_disproved = true;
                self.lost_disproved = self.lost_disproved.saturating_add(1);
                upto = Some(resend.seq);
            }
        }
    }

    pub fn note_reordering(&mut self, bytes: u32, elapsed_ns: i64) {
        self.reordering_max_bytes = self.reordering_max_bytes.max(bytes);
        self.reordering_max_ns = self.reordering_max_ns.max(elapsed_ns);
    }
}

#[cfg(test)]
mod tests;
