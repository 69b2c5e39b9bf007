//! State that most directions never need, behind a single pointer to keep the record small.

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
use crate::tcp::window::filled::FilledWindow;
use crate::tcp::window::scale::{GivenShift, ScaleInference};
use crate::tcp::window::zero::{EndedBy, ZeroWindow};

/// Rarely needed state of a direction. The fields that decide whether it affects the next segment come first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct ColdState {
    /// Bytes above SND.UNA that SACK reported.
    pub sacked: RangeSet,
    /// Bytes below SND.MAX that were never captured.
    pub unseen: RangeSet,
    pub zero: Option<Box<ZeroWindow>>,
    episode: Option<Box<Episode>>,
    pub sacked_bytes: u32,
    /// Whether the episode affects the next segment (see [`Episode::is_quiet`]).
    is_disturbed: bool,
    /// Whether some windows were recorded unscaled, because their scale was unknown.
    pub has_unscaled_windows: bool,
    /// A RST was sent that was not obeyed, or after the first one.
    pub has_rst: bool,
    /// Whether the peer has sent nothing since a keep-alive.
    pub is_keep_alive_unanswered: bool,
    /// End of a one-byte zero-window probe. Its byte counts as sent and is retransmitted with the following data.
    pub probe_end: Option<Seq>,
    /// Time and frame of the newest ACK while data was lost, reported by SACK or retransmitted.
    pub last_answer: Option<(i64, u64)>,
    /// Time and frame of the first ACK that reported loss since SND.UNA advanced.
    pub loss_report: Option<(i64, u64)>,
    /// Time of the first duplicate ACK or SACK report since SND.UNA advanced.
    pub first_report_ns: Option<i64>,
    pub holes: Holes,
    /// Time in which the receive window had no room for the next segment.
    pub limited_ns: i64,
    pub limited_since_ns: i64,
    /// Acknowledged bytes that were never captured: lost by the capture, not the network.
    pub missed: Missed,
    /// Acknowledged bytes that were sent before the first captured byte.
    pub before_bytes: u64,
    /// Time at which uncaptured bytes were first acknowledged, or skipped by a segment of this side.
    pub unseen_since_ns: Option<i64>,
    /// Whether the last acknowledgment of a side that was never captured advanced by one.
    pub ends_with_one: bool,
    /// Kinds of Multipath TCP options that this side sent (see
    /// [`Options::multipath`](crate::wire::Options::multipath)).
    pub multipath: u16,
    pub resent_bytes: u64,
    pub resent_segments: u32,
    /// Segments longer than the MSS: captured before segmentation or after coalescing (TSO, GRO).
    pub super_segments: u32,
    /// [`Direction::mss`](crate::tcp::connection::direction::Direction::mss) before the path reduced it.
    pub allowed_mss: u16,
    pub cut_size: CutSize,
    pub window_near_full: u32,
    pub window_overrun: u32,
    pub inference: Option<Box<ScaleInference>>,
    /// Time from this side's SYN to the capture's first copy of it.
    pub syn_copy_ns: Option<i64>,
    /// How much earlier the current segment was captured than the time at which it counts.
    pub early_ns: i64,
    /// Total adjustment of the capture's clock.
    pub clock_step_ns: i64,
    /// The adjustment after the first data, and the end of its last step.
    pub transfer_step: Option<(i64, i64)>,
    /// Time at which a SYN or SYN/ACK was last retransmitted after the handshake.
    pub syn_resent_ns: Option<i64>,
    /// Initial sequence number of the previous SYN, if this side sent another.
    pub earlier_isn: Option<Seq>,
    /// Acknowledgment number of the peer's SYN/ACK, if it does not match a captured SYN of this side.
    pub answered: Option<Seq>,
    /// Shift in an earlier copy of the SYN whose last copy lacks the option.
    pub earlier_shift: Option<u8>,
    /// Shift of this side's windows from outside the capture.
    pub given_shift: Option<GivenShift>,
    pub syn_frames: Option<Box<SynFrames>>,
    pub waiting: Option<Box<Waiting>>,
    /// Frame and window field of the segment that confirmed this side's scale without the peer's SYN/ACK.
    pub scale_confirming: Option<(u64, u16)>,
    /// A sequence number beyond every window, from a single segment.
    pub claim: Option<Claim>,
    /// The receiver's AccECN counter.
    pub ace: Option<Box<Ace>>,
    /// Window that the peer withdrew.
    pub taken_back: Option<Box<TakenBack>>,
    /// Times at which data was lost, each after the retransmission of what was lost before.
    pub loss_times: u32,
    pub loss_resent_ns: i64,
    pub filled: Option<Box<FilledWindow>>,
}

/// Frames of SYNs that a later retransmission may repeat.
#[derive(Clone, Debug, Default)]
pub struct SynFrames {
    /// Frame of the newest SYN with Fast Open data.
    pub early_data: Option<u64>,
    /// Initial sequence number and frame of the newest retransmitted SYN.
    pub copy: Option<(Seq, u64)>,
}

/// State of a waiting sender, with its retransmissions and probes.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Since the peer's last segment.
    pub tries: Option<Tries>,
    /// Since the peer last acknowledged data.
    pub resent: Option<Tries>,
    /// The stall in progress when the capture or a reset ended the connection.
    pub end_stall: Option<EndStall>,
}

impl ColdState {
    pub fn syn_frames(&mut self) -> &mut SynFrames {
        self.syn_frames.get_or_insert_with(Box::default)
    }

    pub fn waiting(&mut self) -> &mut Waiting {
        self.waiting.get_or_insert_with(Box::default)
    }

    /// Return the stall in progress at the end of the capture or at a reset.
    pub fn end_stall(&self) -> Option<EndStall> {
        self.waiting.as_ref()?.end_stall
    }

    /// Return the recovery state, if anything was ever lost or retransmitted.
    pub fn episode(&self) -> Option<&Episode> {
        self.episode.as_deref()
    }

    /// Change the episode; create it if needed.
    pub fn change_episode<T>(&mut self, change: impl FnOnce(&mut Episode) -> T) -> T {
        let episode = self.episode.get_or_insert_with(Box::default);
        let changed = change(episode);
        self.is_disturbed = !episode.is_quiet();
        changed
    }

    /// Change the episode, if there is one.
    pub fn change_known_episode<T>(&mut self, change: impl FnOnce(&mut Episode) -> T) -> Option<T> {
        self.episode.is_some().then(|| self.change_episode(change))
    }

    pub fn zero(&mut self) -> &mut ZeroWindow {
        self.zero.get_or_insert_with(Box::default)
    }

    /// Return whether an ACK may cover bytes that were retransmitted, reported by SACK or never captured.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        !self.sacked.is_empty() || !self.unseen.is_empty() || self.is_disturbed
    }

    /// Return the sender's phase of recovery.
    #[inline]
    pub fn phase(&self) -> Phase {
        if !self.is_disturbed {
            return Phase::Open;
        }
        self.episode
            .as_ref()
            .map_or(Phase::Open, |episode| episode.phase)
    }

    /// Return whether the sender repairs data that the receiver refused, rather than the path lost.
    pub fn is_refused(&self) -> bool {
        (self.episode.as_ref()).is_some_and(|episode| episode.is_refused)
    }

    /// Forget the reports of loss, because SND.UNA advanced.
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

    /// Return whether nothing here affects the next segment of this direction.
    pub(super) fn is_quiet_to_send(&self) -> bool {
        !self.is_zero_open()
            && (self.waiting.as_ref()).is_none_or(|waiting| waiting.tries.is_none())
            && !self.is_probe_unanswered()
            && !self.is_keep_alive_unanswered
            && self.probe_end.is_none()
            // Every segment carries the AccECN counter.
            && self.ace.is_none()
            && self.zero.as_ref().is_none_or(|zero| !zero.is_undecided())
    }
}
