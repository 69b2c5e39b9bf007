use super::*;

const ROUND_NS: i64 = 50_000_000;

struct Sender {
    response: Response,
    now_ns: i64,
}

impl Sender {
    fn new() -> Self {
        Sender {
            response: Response::default(),
            now_ns: 0,
        }
    }

    fn round(&mut self, segments: f32, held_ns: i64, is_recovering: bool, is_marked: bool) {
        self.now_ns += ROUND_NS;
        self.response.end_round(&Moved {
            end_ns: self.now_ns,
            elapsed_ns: ROUND_NS,
            held_ns,
            peak_bytes: (segments * 1000.0) as u32,
            mss: 1000,
            is_recovering,
            is_marked,
        });
    }

    fn rounds(&mut self, of: impl IntoIterator<Item = f32>) {
        for segments in of {
            self.round(segments, 0, false, false);
        }
    }

    /// Simulate one loss, repaired in one round.
    fn lose(&mut self, segments: f32) {
        let pipe_bytes = (segments * 1000.0) as u32;
        self.response
            .note_resent(RetransmissionCause::Fast, pipe_bytes, 1000);
        self.round(segments * 1.4, 0, false, false);
    }

    fn name(&self) -> Option<&'static str> {
        self.response.algorithm().map(|(name, _)| name)
    }
}

/// Simulate five losses that cut the window to a share, each after a number of rounds of growth.
fn saw(mut window: f32, leaves: f32, rounds: u32, grow: fn(f32, u32) -> f32) -> Sender {
    let mut sender = Sender::new();
    sender.rounds([window; 2]);
    for _ in 0..5 {
        sender.lose(window);
        let (before, after) = (window, (window * leaves).floor() + 1.0);
        for round in 0..rounds {
            window = after + grow(before, round);
            sender.rounds([window]);
        }
    }
    sender.lose(window);
    sender
}

#[test]
fn reno_halves_and_grows_by_one_a_round() {
    let sender = saw(40.0, 0.5, 20, |_, round| round as f32);
    assert_eq!(
        sender.response.algorithm(),
        Some(("reno", Confidence::Likely))
    );
    assert!((sender.response.left().unwrap() - 0.53).abs() < 0.02);
}

#[test]
fn cubic_leaves_seven_tenths_and_grows_by_its_curve() {
    let grow = |before: f32, round: u32| {
        let rounds = round as f32;
        cubic_growth(before, rounds * 0.05).max(CUBIC_FAIR * rounds)
    };
    assert_eq!(saw(40.0, 0.7, 25, grow).name(), Some("cubic"));
    let at_once = saw(40.0, 0.7, 6, |before, round| {
        before * if round > 0 { 0.3 } else { 0.0 }
    });
    assert_eq!(
        at_once.name(),
        None,
        "a flight that returns at once was not cut"
    );
}

#[test]
fn an_unexplained_cut_fits_no_algorithm() {
    assert_eq!(saw(40.0, 0.6, 3, |_, _| 0.0).name(), None);
    assert_eq!(
        saw(5.0, 0.5, 4, |_, round| round as f32).name(),
        None,
        "too small to judge"
    );
    let timeouts = {
        let mut sender = Sender::new();
        for _ in 0..6 {
            sender.rounds([40.0, 40.0]);
            sender
                .response
                .note_resent(RetransmissionCause::Rto, 40_000, 1000);
            sender.round(40.0, 0, false, false);
            sender.rounds([21.0, 22.0, 23.0, 24.0, 25.0]);
        }
        sender
    };
    assert_eq!(timeouts.response.cuts, 0, "a timeout leaves one segment");
}

#[test]
fn a_limited_flight_is_not_a_cut() {
    let mut sender = Sender::new();
    for _ in 0..6 {
        sender.rounds([40.0, 40.0]);
        sender
            .response
            .note_resent(RetransmissionCause::Fast, 40_000, 1000);
        sender.round(40.0, 0, false, false);
        sender.round(21.0, ROUND_NS / 2, false, false);
    }
    assert_eq!(sender.response.cuts, 0);
}

#[test]
fn bbr_probes_and_falls_back_without_a_loss() {
    let mut sender = Sender::new();
    for _ in 0..4 {
        sender.rounds([100.0, 100.0, 118.0, 122.0, 101.0, 99.0, 100.0]);
    }
    assert_eq!(sender.response.probes, 4);
    assert_eq!(sender.name(), Some("bbr"));
    let mut reordered = Sender::new();
    for _ in 0..4 {
        reordered.rounds([100.0, 100.0]);
        reordered.response.note_disorder();
        reordered.rounds([122.0, 101.0, 99.0, 100.0]);
    }
    assert_eq!(reordered.response.probes, 0);
    let mut grows = Sender::new();
    grows.rounds((0..40).map(|round| 100.0 + 4.0 * round as f32));
    assert_eq!(grows.response.probes, 0);
}

#[test]
fn a_sender_that_no_loss_cuts_may_be_bbr() {
    let lost = |times| {
        let mut sender = Sender::new();
        for _ in 0..times {
            sender.rounds([48.0; 4]);
            sender.lose(48.0);
            sender.rounds([48.0; 2]);
        }
        sender.rounds([48.0; 4]);
        sender.lose(48.0);
        sender.response.algorithm()
    };
    assert_eq!(lost(4), None);
    assert_eq!(lost(9), Some(("bbr", Confidence::Possible)));
}

#[test]
fn a_mild_cut_after_marks_is_dctcps() {
    let mut dctcp = Sender::new();
    let mut cubic = Sender::new();
    for _ in 0..6 {
        for (sender, leaves) in [(&mut dctcp, 0.93), (&mut cubic, 0.72)] {
            sender.rounds([48.0, 49.0]);
            sender.round(50.0, 0, false, true);
            sender.rounds([50.0 * leaves, 50.0 * leaves + 1.0]);
        }
    }
    assert_eq!(dctcp.name(), Some("dctcp"));
    assert_eq!(cubic.name(), Some("cubic"));
    // Its losses are Reno's.
    let mut lossy = saw(40.0, 0.5, 20, |_, round| round as f32);
    lossy.round(30.0, 0, false, true);
    assert_eq!(lossy.name(), None);
}

#[test]
fn a_twentieth_a_round_before_any_loss_is_cubics() {
    let mut sender = Sender::new();
    sender.rounds([10.0, 20.0, 40.0, 80.0, 160.0]);
    sender.rounds((0..8).map(|round| 160.0 * 1.05_f32.powi(round)));
    assert_eq!(sender.name(), Some("cubic"));
    let mut reno = Sender::new();
    reno.rounds((0..30).map(|round| 100.0 + round as f32));
    assert_eq!(
        reno.name(),
        None,
        "one of a hundred is less than a twentieth"
    );
}
