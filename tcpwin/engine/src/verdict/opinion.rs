//! Opinions: the owner, confidence, meaning and fix of one limit of a direction.
//!
//! Considers each limit by itself; does not weigh limits against each other.

use crate::tables::budget_item::{Group, ItemTrait, SenderState};
use crate::tables::limit::{Limit, LimitOwner};
use crate::verdict::budget::Items;
use crate::verdict::codes::codes;
use crate::verdict::confidence::Confidence;
use crate::verdict::facts::{DirectionFacts, Facts};
use crate::verdict::owner::{End, Owner};
use crate::verdict::traits::{is_answering, is_growing, is_mostly_closed, is_mostly_recovering};

/// Share of the sender's wait for its receiver from which a single stop explains the wait: otherwise, the receiver
/// reads well.
const ONLY_SHARE: f64 = 0.8;
/// Ratio of a waiting round trip to the minimum RTT. In random lab worlds limited by the window it was at most 1.9.
const WAITING: f64 = 2.0;
/// Fewer consecutive full segments may be a single write that happens to end on a segment boundary.
const PACED_SEGMENTS: i64 = 16;
/// Share of the path's rate below which a transfer leaves capacity unused (SPARE, timing/full_path.rs).
const SPARE_SHARE: f64 = 0.7;

codes! {
    /// The explanation that follows a limit's name.
    Meaning:
    Plain "plain",
    /// The receiver stopped reading once. Number: for how long.
    ReadingStopped "reading_stopped",
    WindowKeptFull "window_kept_full",
    /// An end's SYN has no window scale option.
    ScalingOff "scaling_off",
    NothingToSend "nothing_to_send",
    /// A Multipath TCP subflow was silent.
    SubflowSilent "subflow_silent",
    PacedOrIdle "paced_or_idle",
    /// Numbers: the wait for the first byte of an answer; 1 if that is the median of several.
    Answering "answering",
    PathFilled "path_filled",
    /// Numbers: the transfer's rate and the path's.
    PathShared "path_shared",
    StillGrowing "still_growing",
    CutNeedlessly "cut_needlessly",
    Refused "refused",
    Unanswered "unanswered",
    Policed "policed",
    /// Everything was answered and the requester asked later. Numbers: its mean wait, and the number of exchanges.
    AskedLate "asked_late",
    /// Many exchanges, each a round trip. Numbers: the exchanges, and a round trip.
    Chatty "chatty",
    NothingAsked "nothing_asked",
    /// Both sides send whenever they like.
    Interleaved "interleaved",
    Scheduled "scheduled",
    /// Nagle's algorithm held small segments back until a delayed ACK came.
    NagleHeld "nagle_held",
}

codes! {
    /// The recommended change.
    Fix:
    Nothing "nothing",
    ReadFaster "read_faster",
    GrowWindow "grow_window",
    OfferScaling "offer_scaling",
    GrowSendBuffer "grow_send_buffer",
    FindLoss "find_loss",
    KeepWindowAfterIdle "keep_window_after_idle",
    WriteWholeMessages "write_whole_messages",
    CheckPeer "check_peer",
    RaisePolicer "raise_policer",
    AskForMore "ask_for_more",
    /// The fix follows from comparing two captures.
    OfCrossing "of_crossing",
    /// The fix of the finding that claims the time.
    OfFinding "of_finding",
}

codes! {
    /// The kind of evidence for a limit; its numbers are the direction's.
    Reason:
    /// The limit's default reason.
    Usual "usual",
    /// The finding that claims the time.
    Finding "finding",
    WindowTimes "window_times",
    WindowLow "window_low",
    WindowCloses "window_closes",
    WindowUnknown "window_unknown",
    QueueLikely "queue_likely",
    Paced "paced",
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opinion {
    pub owner: Owner,
    pub side: Option<End>,
    pub confidence: Confidence,
    pub reason: Reason,
    pub meaning: Meaning,
    /// The numbers of the meaning; 0 if it has none.
    pub numbers: [f64; 2],
    pub fix: Fix,
}

impl Opinion {
    fn new(owner: Owner, side: Option<End>, confidence: Confidence) -> Opinion {
        Opinion {
            owner,
            side,
            confidence,
            reason: Reason::Usual,
            meaning: Meaning::Plain,
            numbers: [0.0; 2],
            fix: Fix::Nothing,
        }
    }

    pub fn meaning(self, meaning: Meaning) -> Opinion {
        let numbers = [0.0; 2];
        Opinion {
            meaning,
            numbers,
            ..self
        }
    }

    fn numbers(self, numbers: [f64; 2]) -> Opinion {
        Opinion { numbers, ..self }
    }

    fn fix(self, fix: Fix) -> Opinion {
        Opinion { fix, ..self }
    }

    /// Restate the opinion for another owner; the meaning is kept only if the owner is the same.
    pub fn restated(self, owner: Owner, side: Option<End>, confidence: Confidence) -> Opinion {
        let (meaning, numbers) = if owner == self.owner {
            (self.meaning, self.numbers)
        } else {
            (Meaning::Plain, [0.0; 2])
        };
        Opinion {
            owner,
            side,
            confidence,
            meaning,
            numbers,
            ..self
        }
    }
}

/// The end that asks: it opened the connection.
const REQUESTER: End = End::Client;

/// Return the duration of the receiver's only stop, if that was nearly all of the sender's wait for it; else 0.
pub fn only_stop_ns(episodes: i64, zero_window_ns: i64, window_limited_ns: i64) -> i64 {
    let waited_ns = (zero_window_ns + window_limited_ns) as f64;
    if episodes == 1 && zero_window_ns as f64 >= ONLY_SHARE * waited_ns {
        zero_window_ns
    } else {
        0
    }
}

impl DirectionFacts {
    pub fn only_stop_ns(&self) -> i64 {
        only_stop_ns(
            self.zero_window_episode_count,
            self.zero_window_ns,
            self.window_limited_ns,
        )
    }
}

/// A direction to form opinions about.
pub struct Seen<'a> {
    pub facts: &'a Facts,
    pub items_ns: &'a Items,
    /// The sender's kernel counters, if available.
    pub kernel: Option<Kernel>,
}

/// How long the sender's kernel waited, by its chronographs (`tcp_chrono_start`, net/ipv4/tcp_output.c).
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub window_ns: i64,
    pub send_buffer_ns: i64,
}

impl Seen<'_> {
    /// Return the confidence in a sender's limit, which depends on the capture point.
    fn by_place(&self) -> Confidence {
        if self.facts.data.view == "sender" {
            Confidence::Certain
        } else {
            Confidence::Likely
        }
    }

    /// Return the confidence in whose turn it was.
    fn by_turns(&self) -> Confidence {
        if self.facts.connection.turns_state == "overlapping" {
            Confidence::Possible
        } else {
            Confidence::Likely
        }
    }

    fn by_kernel(&self) -> Confidence {
        if self.is_confirmed(Limit::ReceiverWindow) {
            Confidence::Certain
        } else {
            self.by_place()
        }
    }

    /// Return whether the kernel counted most of a limit's time: that it counts at all confirms nothing.
    fn is_confirmed(&self, limit: Limit) -> bool {
        let Some(kernel) = self.kernel else {
            return false;
        };
        let counted_ns = match limit {
            Limit::SendBuffer => kernel.send_buffer_ns,
            _ => kernel.window_ns,
        };
        let items_ns: i64 = Self::items_of(limit)
            .map(|item| self.items_ns[item as usize])
            .sum();
        counted_ns > 0 && 2 * counted_ns >= items_ns
    }

    pub fn opinion(&self, limit: Limit) -> Opinion {
        let sender = self.facts.sender();
        let receiver = sender.other();
        let (owner, side) = match limit.row().owner {
            LimitOwner::SenderHost => (sender.host(), Some(sender)),
            LimitOwner::SenderApplication => (sender.application(), Some(sender)),
            LimitOwner::ReceiverHost => (receiver.host(), Some(receiver)),
            LimitOwner::ReceiverApplication => (receiver.application(), Some(receiver)),
            LimitOwner::RequesterApplication => (REQUESTER.application(), Some(REQUESTER)),
            LimitOwner::Network => (Owner::Network, None),
            LimitOwner::Nobody => (Owner::Nobody, None),
        };
        let usual = Opinion::new(owner, side, Confidence::Likely);
        let sure = |confidence| Opinion {
            confidence,
            ..usual
        };
        match limit {
            Limit::ReceiverApplication => self.reader(receiver),
            Limit::ReceiverWindow => self.window(receiver),
            Limit::SenderApplication => self.application(sender),
            Limit::RequesterApplication => sure(self.by_turns())
                .meaning(Meaning::AskedLate)
                .numbers(self.pace()),
            Limit::RoundTrips => sure(self.by_turns())
                .meaning(Meaning::Chatty)
                .numbers(self.round_trips())
                .fix(Fix::AskForMore),
            Limit::Idle => usual.meaning(Meaning::NothingAsked),
            Limit::SendBuffer if self.is_confirmed(limit) => {
                sure(Confidence::Certain).fix(Fix::GrowSendBuffer)
            }
            Limit::SendBuffer => sure(Confidence::Possible).fix(Fix::GrowSendBuffer),
            Limit::PathRate => self.path(usual),
            // Drops from a full queue are a symptom of the path's rate.
            Limit::PathLoss
                if is_mostly_recovering(self.items_ns) && !self.facts.data.is_queued() =>
            {
                sure(self.by_place()).fix(Fix::FindLoss)
            }
            Limit::PathLoss => usual.fix(Fix::FindLoss),
            // Without a rate, the losses may as well be random, or another's queue's; the receiver sees no queue before it.
            Limit::PathPolicer
                if self.facts.data.path_rate_bps == 0.0 || self.facts.data.view == "receiver" =>
            {
                sure(Confidence::Possible)
                    .meaning(Meaning::Policed)
                    .fix(Fix::RaisePolicer)
            }
            Limit::PathPolicer => usual.meaning(Meaning::Policed).fix(Fix::RaisePolicer),
            Limit::CongestionControl if is_growing(self.items_ns) => {
                usual.meaning(Meaning::StillGrowing)
            }
            Limit::IdleRestart => sure(self.by_place()).fix(Fix::KeepWindowAfterIdle),
            Limit::DelayedAck => usual
                .meaning(if self.facts.data.nagle_delays > 0 {
                    Meaning::NagleHeld
                } else {
                    Meaning::Plain
                })
                .fix(Fix::WriteWholeMessages),
            Limit::Nagle => usual.fix(Fix::WriteWholeMessages),
            Limit::Handshake => self.handshake(),
            Limit::PeerSilent => usual.fix(Fix::CheckPeer),
            Limit::Capture => sure(Confidence::Possible),
            _ => usual,
        }
    }

    fn reader(&self, receiver: End) -> Opinion {
        let data = &self.facts.data;
        let mut confidence = self.by_kernel();
        let mut reason = Reason::WindowTimes;
        if data.zero_window_episode_count > 0 {
            if is_mostly_closed(self.items_ns) {
                confidence = Confidence::Certain;
            }
        } else if self.items_ns[SenderState::Reader as usize] > 0 {
            confidence = Confidence::Likely;
        } else if data.receive_window_max_bytes.unwrap_or(0) > 0
            && data.receive_window_mean_bytes.is_some()
        {
            confidence = confidence.min(Confidence::Likely);
            reason = Reason::WindowLow;
        } else {
            reason = Reason::WindowCloses;
        }
        let stop_ns = data.only_stop_ns();
        let meaning = if stop_ns == 0 {
            Meaning::WindowKeptFull
        } else {
            Meaning::ReadingStopped
        };
        let opinion = Opinion::new(receiver.application(), Some(receiver), confidence);
        Opinion { reason, ..opinion }
            .meaning(meaning)
            .numbers([stop_ns as f64, 0.0])
            .fix(Fix::ReadFaster)
    }

    fn window(&self, receiver: End) -> Opinion {
        let data = &self.facts.data;
        let mut confidence = self.by_kernel();
        if data.window_scale_state == "disabled" {
            let by = if data.window_scale_disabled_by == "b" {
                End::Server
            } else {
                End::Client
            };
            let opinion = Opinion::new(by.host(), Some(by), confidence);
            return opinion.meaning(Meaning::ScalingOff).fix(Fix::OfferScaling);
        }
        let mut reason = Reason::Usual;
        match data.receive_window_max_bytes {
            None => (confidence, reason) = (Confidence::Possible, Reason::WindowUnknown),
            Some(most) if self.is_waiting(most) => {
                (confidence, reason) = (Confidence::Possible, Reason::QueueLikely);
            }
            Some(_) => {}
        }
        let opinion = Opinion::new(receiver.host(), Some(receiver), confidence);
        Opinion { reason, ..opinion }.fix(Fix::GrowWindow)
    }

    /// Return whether a full window spends most of its round trip in a queue and achieves less than half the rate it allows.
    ///
    /// A window of a few segments can fill a path that holds two. The queue is then too short to show in the delay, and a
    /// larger window gains nothing (docs/worlds.md, seed 4).
    fn is_waiting(&self, window_bytes: i64) -> bool {
        let (data, least_ns) = (&self.facts.data, self.facts.connection.path_rtt_ns);
        let (Some(smoothed_ns), Some(goodput_bps)) = (data.rtt_smoothed_ns, data.goodput_bps)
        else {
            return false;
        };
        if least_ns == 0 {
            return false;
        }
        let allowed_bps = window_bytes as f64 * 8e9 / least_ns as f64;
        smoothed_ns > WAITING * least_ns as f64 && allowed_bps > WAITING * goodput_bps
    }

    fn application(&self, sender: End) -> Opinion {
        if is_answering(self.items_ns) {
            return self.responder();
        }
        let mut opinion = Opinion::new(sender.application(), Some(sender), self.by_place());
        opinion.meaning = Meaning::NothingToSend;
        match self.facts.connection.turns_state {
            "interleaved" => {
                opinion = opinion.meaning(Meaning::Interleaved);
                opinion.confidence = Confidence::Possible;
            }
            "scheduled" => {
                opinion = opinion.meaning(Meaning::Scheduled);
                opinion.confidence = opinion.confidence.min(Confidence::Likely);
            }
            // It may have waited for an answer that another order hides.
            "overlapping" => opinion.confidence = Confidence::Possible,
            _ => {}
        }
        if self.facts.connection.multipath {
            opinion = opinion.meaning(Meaning::SubflowSilent);
        }
        if self.may_be_paced() {
            opinion = opinion.meaning(Meaning::PacedOrIdle);
            opinion.confidence = Confidence::Possible;
            opinion.reason = Reason::Paced;
        }
        opinion
    }

    /// Form an opinion about the wait for answers, whichever side's data is judged.
    fn responder(&self) -> Opinion {
        let responder = REQUESTER.other();
        let facts = self.facts;
        let (median_ns, longest_ns, turns) = if facts.is_back {
            let data = &facts.data;
            (data.work_p50_ns, data.work_max_ns, data.turns)
        } else {
            let back = &facts.back;
            (back.work_p50_ns, back.work_max_ns, back.turns)
        };
        // One answer may have taken most of the time.
        let is_one = longest_ns * 2 > self.items_ns[SenderState::Responder as usize];
        let numbers = match turns {
            0 | 1 => [median_ns as f64, 0.0],
            _ if is_one => [longest_ns as f64, 2.0],
            _ => [median_ns as f64, 1.0],
        };
        Opinion::new(responder.application(), Some(responder), self.by_turns())
            .meaning(Meaning::Answering)
            .numbers(numbers)
    }

    /// Return the requester's mean wait before a request, and the number of exchanges.
    fn pace(&self) -> [f64; 2] {
        let exchanges = self.facts.connection.exchanges.max(1) as f64;
        let requester_ns = self.items_ns[SenderState::Requester as usize] as f64;
        [requester_ns / exchanges, exchanges]
    }

    /// Return the number of exchanges, and the time of a round trip.
    fn round_trips(&self) -> [f64; 2] {
        let connection = &self.facts.connection;
        [connection.exchanges as f64, connection.path_rtt_ns as f64]
    }

    /// Return whether most of the idle time lies between full segments, each sent before the timeout.
    ///
    /// A sender that paces (BBR, fq) at less than one segment per round trip has nothing in flight between two segments,
    /// like one whose application has nothing to send. But an application's write rarely fills its last segment: if all
    /// segments but the last are full, no write ended in between.
    fn may_be_paced(&self) -> bool {
        let data = &self.facts.data;
        let (mss, segments) = (data.mss_bytes, data.data_segments);
        if segments < PACED_SEGMENTS || mss == 0 || data.max_payload_bytes > mss {
            // A segment captured before segmentation offload does not show where a write ended.
            return false;
        }
        let idle_ns = self.items_ns[SenderState::Application as usize];
        let is_full = data.payload_bytes > (segments - 1) * mss;
        let elsewhere_ns =
            (data.first_byte_p50_ns * data.turns) as f64 + (data.idle_ns + self.over_ns()) as f64;
        is_full && (idle_ns as f64 - elsewhere_ns) * 2.0 > idle_ns as f64
    }

    /// Return the time from the last data of either end to the connection's end.
    fn over_ns(&self) -> i64 {
        let last = self
            .facts
            .data
            .last_data_ns
            .max(self.facts.back.last_data_ns);
        last.map_or(0, |last_ns| self.facts.connection.end_ns - last_ns)
    }

    fn path(&self, opinion: Opinion) -> Opinion {
        let path_ns = self.items_ns[SenderState::Path as usize];
        let data = &self.facts.data;
        if data.path_rate_bps > 0.0 && path_ns > 0 && data.unique_bytes > 0 {
            let had_bps = data.unique_bytes as f64 * 8e9 / path_ns as f64;
            if had_bps < SPARE_SHARE * data.path_rate_bps {
                // Even if all data had been carried in this time, it would not have filled the path: others share its
                // queue.
                let numbers = [had_bps, data.path_rate_bps];
                return opinion.meaning(Meaning::PathShared).numbers(numbers);
            }
        }
        opinion.meaning(Meaning::PathFilled)
    }

    fn handshake(&self) -> Opinion {
        let facts = self.facts;
        let network = Opinion::new(Owner::Network, None, Confidence::Likely);
        match facts.connection.close {
            "refused" => Opinion::new(
                End::Server.application(),
                Some(End::Server),
                Confidence::Likely,
            )
            .meaning(Meaning::Refused),
            "unanswered" => Opinion {
                confidence: Confidence::Possible,
                ..network
            }
            .meaning(Meaning::Unanswered),
            _ if facts.data.syn_retransmissions + facts.back.syn_retransmissions > 0 => {
                network.fix(Fix::FindLoss)
            }
            _ => Opinion::new(Owner::Nobody, None, Confidence::Certain),
        }
    }

    /// Return the highest confidence in a limit that the knowledge of the window scale permits.
    pub fn most(&self, limit: Limit) -> Confidence {
        let is_scaled = !matches!(self.facts.data.window_scale_state, "unknown" | "syn_only");
        match limit {
            _ if is_scaled => Confidence::Certain,
            // A closed window is closed at every scale.
            Limit::ReceiverWindow | Limit::ReceiverApplication
                if is_mostly_closed(self.items_ns) =>
            {
                Confidence::Certain
            }
            Limit::ReceiverWindow | Limit::ReceiverApplication if !self.is_confirmed(limit) => {
                Confidence::Possible
            }
            _ if self.kernel.is_some() => Confidence::Certain,
            Limit::Handshake | Limit::None | Limit::Capture => Confidence::Certain,
            _ => Confidence::Likely,
        }
    }

    /// Return whether both SYNs and much of the data appear twice, which TW610 confirms.
    pub fn is_doubled(&self) -> bool {
        let facts = self.facts;
        facts.data.syn_retransmissions > 0
            && facts.back.syn_retransmissions > 0
            && facts.data.is_doubled()
    }

    /// Return the items attributed to the limit; both receiver limits share the window's items.
    pub fn items_of(limit: Limit) -> impl Iterator<Item = SenderState> {
        let is_windows = matches!(limit, Limit::ReceiverWindow | Limit::ReceiverApplication);
        SenderState::ALL
            .into_iter()
            .filter(move |item| match item.row().group {
                Group::Receiver if is_windows => item.has(ItemTrait::Window),
                _ => !is_windows && item.limit(false) == limit,
            })
    }
}
