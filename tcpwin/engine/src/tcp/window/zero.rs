//! Zero-window episodes and the probes sent into them.
//!
//! An episode lasts from the first accepted advertisement of zero to the first accepted one above it. The state of the
//! window distinguishes probes from keep-alives, since Linux sends the same segment for both (`tcp_xmit_probe_skb`,
//! net/ipv4/tcp_output.c: no payload, sequence number SND.UNA − 1).

/// Maximum number of episodes kept: the first ones and the last; those in between are only counted and summed.
pub const MAX_EPISODES: usize = 1024;

/// Allowance for queues and for a host's own delays.
const SOON_NS: i64 = 200_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// A segment that the receiver sent unprompted.
    Update,
    /// The answer to a probe: the update was lost, or never sent.
    ProbeAnswer,
    /// Data beyond every window that was captured: the capture lacks the update.
    Data,
    Reset,
    /// Still closed when the capture, or the connection, ended.
    Open,
}

impl EndedBy {
    pub fn name(self) -> &'static str {
        match self {
            EndedBy::Update => "update",
            EndedBy::ProbeAnswer => "probe_answer",
            EndedBy::Data => "data",
            EndedBy::Reset => "reset",
            EndedBy::Open => "open",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Episode {
    pub start_ns: i64,
    pub end_ns: i64,
    pub start_frame: u64,
    pub end_frame: u64,
    pub probes: u32,
    /// Time from the first zero window to the first probe; the next field is the time between the last two probes.
    pub first_probe_after_ns: i64,
    pub last_probe_interval_ns: i64,
    pub ended_by: EndedBy,
}

/// Probe state and episodes of one direction.
#[derive(Clone, Debug, Default)]
pub struct ZeroWindow {
    pub episodes: Vec<Episode>,
    pub episode_count: u32,
    pub total_ns: i64,
    pub longest_ns: i64,
    pub probes: u32,
    current: Option<Episode>,
    last_probe_ns: i64,
    /// Whether the sender is known to have more to send, though it did not probe.
    pub is_waited_for: bool,
    pub is_probe_unanswered: bool,
    /// Time and TSval of the segment that ended the last episode.
    ended: Option<(i64, Option<u32>)>,
    /// Time closed while the sender had more to send, as its probes or its prompt data after the opening show.
    pub waiting_ns: i64,
    /// Length of the last episode, while it is undecided what the sender waited for.
    undecided_ns: Option<i64>,
}

impl ZeroWindow {
    pub fn is_open(&self) -> bool {
        self.current.is_some()
    }

    pub fn current(&self) -> Option<&Episode> {
        self.current.as_ref()
    }

    pub fn begin(&mut self, frame: u64, now_ns: i64) {
        if self.current.is_none() {
            self.current = Some(Episode {
                start_ns: now_ns,
                end_ns: now_ns,
                start_frame: frame,
                end_frame: frame,
                probes: 0,
                first_probe_after_ns: 0,
                last_probe_interval_ns: 0,
                ended_by: EndedBy::Open,
            });
        }
    }

    pub fn probe(&mut self, now_ns: i64) {
        self.probes = self.probes.saturating_add(1);
        self.is_probe_unanswered = true;
        if let Some(episode) = &mut self.current {
            episode.probes = episode.probes.saturating_add(1);
            if episode.probes == 1 {
                episode.first_probe_after_ns = now_ns.saturating_sub(episode.start_ns).max(0);
                episode.last_probe_interval_ns = episode.first_probe_after_ns;
            } else {
                episode.last_probe_interval_ns = now_ns.saturating_sub(self.last_probe_ns).max(0);
            }
        }
        self.last_probe_ns = now_ns;
    }

    /// Return whether a segment from the receiver at `now_ns` can answer the last probe: no sooner than the round trip
    /// from the capture point to the receiver, if that is known.
    pub fn is_answer(&self, now_ns: i64, round_trip_ns: Option<u64>) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.last_probe_ns);
        let round_trip_ns = round_trip_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let earliest_ns = round_trip_ns.map_or(0, |ns| ns / 10 * 9);
        // A receiver answers a probe immediately; queues may delay the answer, but not for many round trips.
        let latest_ns =
            round_trip_ns.map_or(i64::MAX, |ns| ns.saturating_mul(2).saturating_add(SOON_NS));
        self.is_probe_unanswered && (earliest_ns..=latest_ns).contains(&elapsed_ns)
    }

    pub fn is_undecided(&self) -> bool {
        self.undecided_ns.is_some()
    }

    /// Decide, at the first data after an episode without probes, whether the data had been waiting: it follows promptly.
    pub fn decide(&mut self, now_ns: i64, path_ns: Option<i64>) {
        let (Some(closed_ns), Some((ended_ns, _))) = (self.undecided_ns, self.ended) else {
            return;
        };
        self.undecided_ns = None;
        let soon_ns = path_ns
            .unwrap_or(0)
            .saturating_mul(2)
            .saturating_add(SOON_NS);
        if now_ns.saturating_sub(ended_ns) <= soon_ns {
            self.waiting_ns = self.waiting_ns.saturating_add(closed_ns);
        }
    }

    /// Note the segment of the receiver that opened the window.
    pub fn note_opening(&mut self, now_ns: i64, tsval: Option<u32>) {
        self.ended = Some((now_ns, tsval));
    }

    /// Return whether a probe captured after the window opened left before the sender knew: it echoes an older timestamp,
    /// or follows within the path's round trip.
    pub fn is_crossing(&self, now_ns: i64, tsecr: Option<u32>, path_ns: Option<i64>) -> bool {
        match (self.ended, tsecr) {
            (Some((_, Some(tsval))), Some(tsecr)) => (tsval.wrapping_sub(tsecr) as i32) > 0,
            (Some((ended_ns, _)), _) => {
                path_ns.is_some_and(|path_ns| now_ns.saturating_sub(ended_ns) < path_ns)
            }
            (None, _) => false,
        }
    }

    /// Count a probe that was on the way when the window opened in the preceding episode.
    pub fn probe_crossing(&mut self) {
        self.probes = self.probes.saturating_add(1);
        if let Some(last) = self.episodes.last_mut() {
            last.probes = last.probes.saturating_add(1);
        }
    }

    pub fn end(&mut self, frame: u64, now_ns: i64, ended_by: EndedBy) {
        let Some(mut episode) = self.current.take() else {
            return;
        };
        episode.end_ns = now_ns.max(episode.start_ns);
        episode.end_frame = frame;
        episode.ended_by = ended_by;
        let duration_ns = episode.end_ns.saturating_sub(episode.start_ns);
        self.episode_count = self.episode_count.saturating_add(1);
        self.total_ns = self.total_ns.saturating_add(duration_ns);
        self.longest_ns = self.longest_ns.max(duration_ns);
        self.undecided_ns = None;
        if episode.probes > 0 || std::mem::take(&mut self.is_waited_for) {
            self.waiting_ns = self.waiting_ns.saturating_add(duration_ns);
        } else if matches!(ended_by, EndedBy::Update | EndedBy::ProbeAnswer) {
            self.undecided_ns = Some(duration_ns);
        }
        if self.episodes.len() == MAX_EPISODES {
            // The last episode shows how the connection ended.
            self.episodes.pop();
        }
        self.episodes.push(episode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_keeps_its_probes_and_its_end() {
        let mut zero = ZeroWindow::default();
        zero.begin(10, 1_000);
        zero.begin(11, 1_500);
        for now_ns in [1_300, 1_900, 3_100] {
            zero.probe(now_ns);
        }
        assert!(zero.is_answer(3_150, Some(50)));
        assert!(!zero.is_answer(3_120, Some(50)));
        zero.end(20, 3_150, EndedBy::ProbeAnswer);
        let episode = zero.episodes[0];
        assert_eq!(
            (episode.start_ns, episode.end_ns, episode.probes),
            (1_000, 3_150, 3)
        );
        assert_eq!(
            (episode.first_probe_after_ns, episode.last_probe_interval_ns),
            (300, 1_200)
        );
        assert_eq!(
            (zero.episode_count, zero.total_ns, zero.longest_ns),
            (1, 2_150, 2_150)
        );
        assert!(!zero.is_open());
    }

    #[test]
    fn a_probe_that_crossed_the_update_belongs_to_the_episode() {
        let mut zero = ZeroWindow::default();
        zero.begin(1, 0);
        zero.note_opening(500, Some(90));
        zero.end(2, 500, EndedBy::Update);
        assert!(
            zero.is_crossing(900_000, Some(80), None),
            "echoes what came before the update"
        );
        assert!(
            !zero.is_crossing(900_000, Some(90), Some(2_000_000)),
            "echoes the update"
        );
        assert!(
            zero.is_crossing(900, None, Some(1_000)) && !zero.is_crossing(1_600, None, Some(1_000))
        );
        zero.probe_crossing();
        assert_eq!(
            (
                zero.probes,
                zero.episodes[0].probes,
                zero.episodes[0].ended_by
            ),
            (1, 1, EndedBy::Update)
        );
    }

    #[test]
    fn beyond_the_bound_the_last_episode_is_kept_and_all_are_counted() {
        let mut zero = ZeroWindow::default();
        for n in 0..(MAX_EPISODES as i64 + 5) {
            zero.begin(1, n * 10);
            zero.end(2, n * 10 + 4, EndedBy::Update);
        }
        assert_eq!(zero.episodes.len(), MAX_EPISODES);
        let start_of = |place: usize| zero.episodes[place].start_ns;
        let most = MAX_EPISODES as i64;
        assert_eq!(start_of(MAX_EPISODES - 2), (most - 2) * 10);
        assert_eq!(start_of(MAX_EPISODES - 1), (most + 4) * 10);
        assert_eq!(zero.episode_count as usize, MAX_EPISODES + 5);
        assert_eq!(zero.total_ns, (MAX_EPISODES as i64 + 5) * 4);
    }
}
