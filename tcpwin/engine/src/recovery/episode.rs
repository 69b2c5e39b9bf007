//! The sender's recovery as its retransmissions show it: its phase, what was sent again, and what proved needless.

use std::collections::VecDeque;

use crate::recovery::cause::Cause;
use crate::recovery::ranges::RangeSet;
use crate::sequence::Seq;

/// Retransmissions remembered, for the D-SACK or the timestamp that may yet prove one needless.
const MAX_RESENDS: usize = 256;

/// Linux's congestion states, as far as packets tell them apart: Open stands for Open, Disorder and CWR.
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
    pub tsval: Option<u32>,
    is_needless: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Episode {
    pub phase: Phase,
    /// SND.MAX when the phase began: its acknowledgment ends it.
    point: Seq,
    entered_ns: i64,
    /// Above SND.UNA and sent again, at any time, or late: its round trip is ambiguous.
    pub ambiguous: RangeSet,
    /// Sent again since the phase began.
    repeated: RangeSet,
    resends: VecDeque<Resend>,
    /// End of a tail loss probe that was not acknowledged yet.
    probe_end: Option<Seq>,
    /// Timeouts in a row.
    pub backoff: u32,
    /// The timeout's retransmission awaits its first ACK, which tells whether it was needed (RFC 5682).
    is_frto_armed: bool,
    pub recoveries: u32,
    pub recovery_ns: i64,
    pub fin: u32,
    pub zero_window: u32,
    pub unknown: u32,
    pub dsacks: u32,
    pub dsack_bytes: u64,
    pub by_dsack: u32,
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
    /// Bytes of it that had been sent once, captured, and not been reported by SACK.
    pub plain_bytes: u32,
    pub had_duplicates: bool,
}

/// What such an ACK shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub is_partial: bool,
    /// When the copy was sent whose arrival it acknowledges, where timestamps tell.
    pub echoed_ns: Option<i64>,
    /// The original had arrived: what was sent again was needless.
    pub is_original: bool,
}

impl Episode {
    /// Whether nothing here bears on the next segment.
    pub fn is_quiet(&self) -> bool {
        self.phase == Phase::Open && self.ambiguous.is_empty() && self.probe_end.is_none()
    }

    pub fn is_repeated(&self, seq: Seq, end: Seq) -> bool {
        self.repeated.overlap(seq, end) > 0
    }

    pub fn is_probe_out(&self) -> bool {
        self.probe_end.is_some()
    }

    /// When bytes from `seq` on were last sent again, and in which frame.
    pub fn last_resend(&self, seq: Seq, end: Seq) -> Option<Resend> {
        let overlaps = |resend: &&Resend| seq.is_before(resend.end) && resend.seq.is_before(end);
        self.resends.iter().rev().find(overlaps).copied()
    }

    /// A segment was sent again. `nxt` is SND.MAX.
    pub fn resent(
        &mut self,
        cause: Cause,
        resend: (Seq, Seq),
        nxt: Seq,
        at: (i64, u64),
        tsval: Option<u32>,
    ) {
        let ((seq, end), (now_ns, frame)) = (resend, at);
        match cause {
            Cause::Fast => {
                self.enter(Phase::Fast, nxt, now_ns);
                self.recoveries = self.recoveries.saturating_add(1);
            }
            Cause::Rto => {
                self.enter(Phase::Loss, nxt, now_ns);
                self.backoff = self.backoff.saturating_add(1);
                self.is_frto_armed = self.backoff == 1;
            }
            Cause::TailLossProbe => self.probe_end = Some(end),
            Cause::Fin => self.fin = self.fin.saturating_add(1),
            Cause::ZeroWindow => self.zero_window = self.zero_window.saturating_add(1),
            Cause::Unknown => self.unknown = self.unknown.saturating_add(1),
            _ => {}
        }
        if cause != Cause::Spurious {
            self.ambiguous.insert(seq, end);
            self.repeated.insert(seq, end);
        }
        if self.resends.len() >= MAX_RESENDS {
            self.resends.pop_front();
        }
        self.resends.push_back(Resend {
            seq,
            end,
            time_ns: now_ns,
            frame,
            tsval,
            is_needless: false,
        });
    }

    fn enter(&mut self, phase: Phase, point: Seq, now_ns: i64) {
        self.leave(now_ns);
        self.phase = phase;
        self.point = point;
        self.entered_ns = now_ns;
        self.repeated.clear();
        self.probe_end = None;
    }

    /// End the phase: also where the connection ends.
    pub fn leave(&mut self, now_ns: i64) {
        if self.phase != Phase::Open {
            let span_ns = now_ns.saturating_sub(self.entered_ns).max(0);
            self.recovery_ns = self.recovery_ns.saturating_add(span_ns);
        }
        self.phase = Phase::Open;
    }

    /// Bytes that came late are no evidence of a round trip.
    pub fn note_late(&mut self, seq: Seq, end: Seq) {
        self.ambiguous.insert(seq, end);
    }

    pub fn acked(&mut self, advance: &Advance) -> Shown {
        let mut shown = self.judge_timestamps(advance);
        let by_frto = self.is_frto_armed
            && advance.plain_bytes > 0
            && advance.tsecr.is_none()
            && !advance.had_duplicates;
        if by_frto {
            self.by_frto = self.by_frto.saturating_add(1);
            shown.is_original = true;
        }
        self.is_frto_armed = false;
        self.backoff = 0;
        self.ambiguous.remove_below(advance.ack);
        self.repeated.remove_below(advance.ack);
        if self.probe_end.is_some_and(|end| !end.is_after(advance.ack)) {
            self.probe_end = None;
        }
        if self.phase != Phase::Open {
            if advance.ack.is_before(self.point) {
                shown.is_partial = self.phase == Phase::Fast;
            } else {
                self.leave(advance.now_ns);
            }
        }
        shown
    }

    /// Eifel (RFC 3522 §3.2): the ACK that first covers a retransmission echoes a timestamp older than its own, so the
    /// original had arrived. Only the bytes at SND.UNA decide what is echoed (RFC 7323 §4.3).
    fn judge_timestamps(&mut self, advance: &Advance) -> Shown {
        let Some(tsecr) = advance.tsecr else {
            return Shown::default();
        };
        let covers = |resend: &Resend| {
            !advance.una.is_before(resend.seq)
                && advance.una.is_before(resend.end)
                && !resend.end.is_after(advance.ack)
        };
        let mut echoed_ns = None;
        let mut is_first = true;
        let mut is_original = false;
        for resend in self.resends.iter_mut().filter(|resend| covers(resend)) {
            let Some(tsval) = resend.tsval else {
                return Shown::default();
            };
            if tsecr.wrapping_sub(tsval) as i32 >= 0 {
                echoed_ns = Some(resend.time_ns);
            } else if is_first && !resend.is_needless {
                is_original = true;
                resend.is_needless = true;
            }
            is_first = false;
        }
        if is_original {
            self.by_timestamps = self.by_timestamps.saturating_add(1);
        }
        Shown {
            is_partial: false,
            echoed_ns,
            is_original,
        }
    }

    /// The receiver reported bytes that it had already (RFC 2883).
    pub fn note_dsack(&mut self, left: Seq, right: Seq) {
        self.dsacks = self.dsacks.saturating_add(1);
        self.dsack_bytes += left.to(right).max(0) as u64;
        let overlaps = |resend: &&mut Resend| {
            !resend.is_needless && left.is_before(resend.end) && resend.seq.is_before(right)
        };
        if let Some(resend) = self.resends.iter_mut().find(overlaps) {
            resend.is_needless = true;
            self.by_dsack = self.by_dsack.saturating_add(1);
        }
    }

    pub fn note_reordering(&mut self, bytes: u32, elapsed_ns: i64) {
        self.reordering_max_bytes = self.reordering_max_bytes.max(bytes);
        self.reordering_max_ns = self.reordering_max_ns.max(elapsed_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advance(ack: u32, tsecr: Option<u32>) -> Advance {
        Advance {
            una: Seq(0),
            ack: Seq(ack),
            tsecr,
            now_ns: 300,
            plain_bytes: 0,
            had_duplicates: false,
        }
    }

    fn after(cause: Cause, tsval: Option<u32>) -> Episode {
        let mut episode = Episode::default();
        episode.resent(cause, (Seq(0), Seq(100)), Seq(500), (200, 9), tsval);
        episode
    }

    #[test]
    fn recovery_ends_where_it_began() {
        let mut episode = after(Cause::Fast, None);
        assert!(episode.acked(&advance(100, None)).is_partial);
        assert_eq!(episode.phase, Phase::Fast);
        assert!(!episode.acked(&advance(500, None)).is_partial);
        assert!(episode.is_quiet());
        assert_eq!((episode.recoveries, episode.recovery_ns), (1, 100));
    }

    #[test]
    fn timestamps_tell_which_copy_arrived() {
        let shown = after(Cause::Rto, Some(50)).acked(&advance(100, Some(50)));
        assert_eq!((shown.echoed_ns, shown.is_original), (Some(200), false));
        let mut episode = after(Cause::Rto, Some(50));
        let shown = episode.acked(&advance(100, Some(49)));
        assert_eq!((shown.echoed_ns, shown.is_original), (None, true));
        assert_eq!(episode.by_timestamps, 1);
        episode.note_dsack(Seq(0), Seq(100));
        assert_eq!((episode.dsacks, episode.by_dsack), (1, 0), "proved already");
    }

    #[test]
    fn frto_needs_data_that_was_sent_once() {
        let jump = |plain_bytes, had_duplicates| {
            let mut episode = after(Cause::Rto, None);
            episode.acked(&Advance {
                plain_bytes,
                had_duplicates,
                ..advance(300, None)
            });
            episode.by_frto
        };
        assert_eq!(
            (jump(200, false), jump(0, false), jump(200, true)),
            (1, 0, 0)
        );
    }

    #[test]
    fn a_dsack_proves_the_first_copy_needless() {
        let mut episode = after(Cause::Fast, None);
        episode.note_dsack(Seq(0), Seq(100));
        episode.note_dsack(Seq(0), Seq(100));
        assert_eq!((episode.dsacks, episode.by_dsack), (2, 1));
    }
}
