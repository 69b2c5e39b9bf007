//! State that most directions never need, kept behind one pointer so that the record stays small.

use crate::sequence::Seq;
use crate::tcp::connection::ace::Ace;
use crate::tcp::connection::claim::Claim;
use crate::tcp::connection::cut_size::CutSize;
use crate::tcp::connection::end_stall::{EndStall, Tries};
use crate::tcp::connection::withdrawn_window::TakenBack;
use crate::tcp::recovery::episode::{Episode, Phase};
use crate::tcp::recovery::holes::Holes;
use crate::tcp::recovery::missed::Missed;
use crate::tcp::recovery::ranges::RangeSet;
use crate::tcp::window::scale::{GivenShift, ScaleInference};
use crate::tcp::window::zero::{EndedBy, ZeroWindow};

/// Rarely needed state of a direction. The fields that decide whether it matters to the next segment come first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct ColdState {
    /// Reported by SACK, above SND.UNA.
    pub sacked: RangeSet,
    /// Below SND.MAX and never captured.
    pub unseen: RangeSet,
    pub zero: Option<Box<ZeroWindow>>,
    episode: Option<Box<Episode>>,
    pub sacked_bytes: u32,
    /// The episode is not quiet (see [`Episode::is_quiet`]).
    is_disturbed: bool,
    /// Some windows were taken as they stood, their scale being unknown.
    pub has_unscaled_windows: bool,
    /// A keep-alive was sent and nothing has come back since.
    pub is_keep_alive_unanswered: bool,
    /// End of a one-byte zero-window probe: its byte counts as sent, and is retransmitted with the data after it.
    pub probe_end: Option<Seq>,
    /// The newest ACK that came while something was lost, reported or sent again: its time and frame.
    pub last_answer: Option<(i64, u64)>,
    /// The ACK that first spoke of loss since SND.UNA moved: its time and frame.
    pub loss_report: Option<(i64, u64)>,
    /// When the first duplicate ACK since then came, or the first report of SACK.
    pub first_report_ns: Option<i64>,
    pub holes: Holes,
    /// Time in which the receive window held the next segment back.
    pub limited_ns: i64,
    pub limited_since_ns: i64,
    /// Bytes acknowledged though they were never captured: the capture's loss, not the network's.
    pub missed: Missed,
    /// Sent before the first captured byte and acknowledged since, or in flight then.
    pub before_bytes: u64,
    /// When bytes never captured were first acknowledged, or skipped by a segment of this side.
    pub unseen_since_ns: Option<i64>,
    /// The last acknowledgment of a side that was never captured advanced by one sequence number.
    pub ends_with_one: bool,
    /// Kinds of Multipath TCP options that it sent (see [`Options::multipath`](crate::wire::Options::multipath)).
    pub multipath: u16,
    pub resent_bytes: u64,
    pub resent_segments: u32,
    /// Segments longer than the MSS: captured before segmentation or after coalescing (TSO, GRO).
    pub super_segments: u32,
    /// What [`Direction::mss`](crate::tcp::connection::direction::Direction::mss) was before the path left less.
    pub allowed_mss: u16,
    pub cut_size: CutSize,
    pub window_near_full: u32,
    pub window_overrun: u32,
    pub inference: Option<Box<ScaleInference>>,
    /// How long after this side's SYN it was captured again, the first time.
    pub syn_copy_ns: Option<i64>,
    /// By how much the clock of the segment that is being taken is before the time at which it counts.
    pub early_ns: i64,
    /// By how much the capture's clock was set, in all.
    pub clock_step_ns: i64,
    /// The part of that after the first data, and when the last of it ended.
    pub transfer_step: Option<(i64, i64)>,
    /// When a SYN or SYN/ACK was last sent again after the handshake.
    pub syn_resent_ns: Option<i64>,
    /// Initial sequence number of the SYN before, where this side sent another.
    pub earlier_isn: Option<Seq>,
    /// The number that the peer's SYN/ACK acknowledged, if no captured SYN of this side ends there.
    pub answered: Option<Seq>,
    /// Shift in an earlier copy of the SYN, whose last copy came without the option.
    pub earlier_shift: Option<u8>,
    /// Shift of this side's windows, known from elsewhere than the capture.
    pub given_shift: Option<GivenShift>,
    pub syn_frames: Option<Box<SynFrames>>,
    pub waiting: Option<Box<Waiting>>,
    /// Frame and window field of the segment that confirmed this side's offered scale without the peer's answer.
    pub scale_confirming: Option<(u64, u16)>,
    /// A sequence number outside every window, claimed by one segment.
    pub claim: Option<Claim>,
    /// Marks that the receiver counts, by AccECN.
    pub ace: Option<Box<Ace>>,
    /// Window that the peer offered and took back.
    pub taken_back: Option<Box<TakenBack>>,
}

/// Frames of SYNs that a later retransmission may repeat.
#[derive(Clone, Debug, Default)]
pub struct SynFrames {
    /// Frame of the newest SYN with Fast Open data.
    pub early_data: Option<u64>,
    /// Initial sequence number and frame of the newest SYN that was sent again.
    pub copy: Option<(Seq, u64)>,
}

/// The state of a waiting sender, and the number of its probes.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Since the peer was heard of.
    pub tries: Option<Tries>,
    /// Since it last acknowledged anything.
    pub resent: Option<Tries>,
    /// In progress when the capture, or a reset, ended the connection.
    pub end_stall: Option<EndStall>,
}

impl ColdState {
    pub fn syn_frames(&mut self) -> &mut SynFrames {
        self.syn_frames.get_or_insert_with(Box::default)
    }

    pub fn waiting(&mut self) -> &mut Waiting {
        self.waiting.get_or_insert_with(Box::default)
    }

    /// Return the stall that the end of the capture, or a reset, cuts off.
    pub fn end_stall(&self) -> Option<EndStall> {
        self.waiting.as_ref()?.end_stall
    }

    /// Return the recovery state, if anything was ever lost or retransmitted.
    pub fn episode(&self) -> Option<&Episode> {
        self.episode.as_deref()
    }

    /// Change the episode; the first change makes it.
    pub fn change_episode<T>(&mut self, change: impl FnOnce(&mut Episode) -> T) -> T {
        let episode = self.episode.get_or_insert_with(Box::default);
        let changed = change(episode);
        self.is_disturbed = !episode.is_quiet();
        changed
    }

    /// Change the episode if there is one.
    pub fn change_known_episode<T>(&mut self, change: impl FnOnce(&mut Episode) -> T) -> Option<T> {
        self.episode.is_some().then(|| self.change_episode(change))
    }

    pub fn zero(&mut self) -> &mut ZeroWindow {
        self.zero.get_or_insert_with(Box::default)
    }

    /// Whether an ACK may cover bytes that were sent again, reported by SACK or never captured.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        !self.sacked.is_empty() || !self.unseen.is_empty() || self.is_disturbed
    }

    /// The phase of recovery that the sender is in.
    #[inline]
    pub fn phase(&self) -> Phase {
        if !self.is_disturbed {
            return Phase::Open;
        }
        self.episode
            .as_ref()
            .map_or(Phase::Open, |episode| episode.phase)
    }

    /// Whether the sender repairs what its receiver had no window for any more, not what the path lost.
    pub fn is_refused(&self) -> bool {
        (self.episode.as_ref()).is_some_and(|episode| episode.is_refused)
    }

    /// SND.UNA moved: nothing was reported since.
    pub fn forget_reports(&mut self) {
        (self.loss_report, self.first_report_ns) = (None, None);
    }

    pub fn is_zero_open(&self) -> bool {
        self.zero.as_ref().is_some_and(|zero| zero.is_open())
    }

    pub fn is_probe_unanswered(&self) -> bool {
        self.zero
            .as_ref()
            .is_some_and(|zero| zero.is_probe_unanswered)
    }

    pub fn end_zero(&mut self, frame: u64, now_ns: i64, ended_by: EndedBy) {
        if let Some(zero) = &mut self.zero {
            zero.end(frame, now_ns, ended_by);
        }
    }

    /// Whether nothing here bears on the next segment of this direction.
    pub(super) fn is_quiet_to_send(&self) -> bool {
        !self.is_zero_open()
            && (self.waiting.as_ref()).is_none_or(|waiting| waiting.tries.is_none())
            && !self.is_probe_unanswered()
            && !self.is_keep_alive_unanswered
            && self.probe_end.is_none()
            // Every segment carries its counter.
            && self.ace.is_none()
            && self.zero.as_ref().is_none_or(|zero| !zero.is_undecided())
    }
}
