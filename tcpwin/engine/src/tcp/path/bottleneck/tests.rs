//! Rates, queues and policers of crafted rounds and trains: each case states the expected result.

use super::*;
use crate::sequence::Seq;
use crate::tables::budget_item::SenderState;
use crate::tcp::path::round_queue::EndedRound;

const MSS: u32 = 1000;
const ROUND: Record = Record::PLAIN;
const UNKNOWN: Bottleneck = Bottleneck {
    bytes_per_s: 0.0,
    base_us: Some(100_000),
    is_policed: false,
    is_steady: false,
};

#[test]
fn a_rate_that_does_not_follow_the_flight_is_the_paths() {
    let round = |step: usize| Record {
        peak_bytes: 100_000 + 10_000 * step as u32,
        delay_us: 110_000 + 10_000 * step as u32,
        ..ROUND
    };
    let rounds: Vec<_> = (0..10).map(round).collect();
    let found = UNKNOWN.by_rounds(&rounds, MSS).unwrap();
    assert!((found.bytes_per_s - 1e6).abs() < 1.0);
    let one_flight: Vec<_> = (0..10).map(|_| round(1)).collect();
    assert!(UNKNOWN.by_rounds(&one_flight, MSS).is_none());
    let of_few = Record {
        peak_bytes: 7_000,
        ..round(1)
    };
    assert!(UNKNOWN.by_rounds(&[of_few; 10], MSS).is_some());
    let unqueued = Record {
        delay_us: 100_000,
        ..of_few
    };
    assert!(UNKNOWN.by_rounds(&[unqueued; 10], MSS).is_none());
    assert!(UNKNOWN.by_rounds(&[unqueued; 16], MSS).is_some());
    let untimed = Bottleneck {
        base_us: None,
        ..UNKNOWN
    };
    assert!(untimed.by_rounds(&[unqueued; 16], MSS).is_some());
    // A loss every 31 rounds does not keep a flight at seven segments; a loss every ten rounds may.
    let lossy = Record {
        losses: 1,
        ..unqueued
    };
    let with_losses = |every: usize| -> Vec<_> {
        let round = |number: usize| if number % every == 0 { lossy } else { unqueued };
        (1..=60).map(round).collect()
    };
    assert!(UNKNOWN.by_rounds(&with_losses(31), MSS).is_some());
    assert!(UNKNOWN.by_rounds(&with_losses(10), MSS).is_none());
    // Few rounds were timed, and segments waited in all of them.
    let seldom = Record {
        delay_us: 0,
        ..of_few
    };
    let timed_once = [[of_few; 1].as_slice(), &[seldom; 11]].concat();
    assert!(UNKNOWN.by_rounds(&timed_once, MSS).is_some());
    let in_bursts = Record {
        gap_ns: 90_000_000,
        ..unqueued
    };
    assert!(UNKNOWN.by_rounds(&[in_bursts; 16], MSS).is_none());
    let follows = |step: u64| Record {
        delivered_bytes: 50_000 + 20_000 * step,
        ..round(step as usize)
    };
    let rounds: Vec<_> = (0..10).map(follows).collect();
    assert!(UNKNOWN.by_rounds(&rounds, MSS).is_none());
}

#[test]
fn a_card_that_takes_two_segments_at_a_time_shows_its_rate() {
    // 100 kB/s: 10 ms a segment over a round trip of 5 ms, and twice that where a second one waits for the first.
    let path = Bottleneck {
        base_us: Some(5_000),
        ..UNKNOWN
    };
    let card = Record {
        elapsed_ns: 80_000_000,
        delivered_bytes: 8_000,
        idle_ns: 20_000_000,
        gap_ns: 10_000_000,
        peak_bytes: 2_000,
        delay_us: 14_000,
        ..ROUND
    };
    let found = |record: Record, count: usize| path.by_few(&vec![record; count], MSS);
    assert!((found(card, 16).unwrap().bytes_per_s - 1e5).abs() < 1.0);
    assert!(path.by_rounds(&[card; 16], MSS).is_none());
    assert!(found(card, 15).is_none());
    let alone = Record {
        delay_us: 5_000,
        ..card
    };
    assert!(found(alone, 60).is_none(), "a writer, or pacing");
    let in_twos = Record {
        gap_ns: 30_000_000,
        ..card
    };
    assert!(found(in_twos, 60).is_none(), "a writer of several segments");
    let into_a_window = Record {
        full_ns: 40_000_000,
        ..card
    };
    assert!(found(into_a_window, 60).is_none());
    let many = Record {
        peak_bytes: 8_000,
        ..card
    };
    assert!(found(many, 60).is_none());
    let half = [[card; 16].as_slice(), &[in_twos; 18]].concat();
    assert!(path.by_few(&half, MSS).is_none());
}

const OF_A_WINDOW: Record = Record {
    full_ns: 80_000_000,
    ..ROUND
};

/// Return the bottleneck's rate found from rounds of one kind, with trains of `train_bytes` per 10 ms.
fn of_rounds(round: Record, train_bytes: u64, delay_us: u32) -> Option<f64> {
    let mut path = PathHistory::default();
    (0..100).for_each(|_| path.add_train(train_bytes, 10_000_000, MSS));
    let mut far = Delay::NONE;
    for (number, sample_us) in [(0, 100_000), (1, delay_us), (2, delay_us)] {
        far.add(sample_us);
        path.end_round(EndedRound::of(round), &mut far, (number + 1) * 100_000);
    }
    let found = Bottleneck::of(&path, &path.records(), &far, MSS);
    found.map(|found| found.bytes_per_s)
}

/// Check that a rate that something else sets counts as the path's only if packets queue, or trains are twice as fast.
fn assert_shown_by_a_queue_or_faster_trains(round: Record) {
    assert_eq!(of_rounds(round, 10_000, 100_000), None);
    let queued = of_rounds(round, 10_000, 150_000).unwrap();
    assert!((queued / 1e6 - 1.0).abs() < 0.05);
    let faster = of_rounds(round, 20_000, 100_000).unwrap();
    assert!((faster / 2e6 - 1.0).abs() < 0.05);
}

#[test]
fn the_pace_of_a_full_window_is_not_the_paths_rate() {
    assert_shown_by_a_queue_or_faster_trains(OF_A_WINDOW);
}

#[test]
fn nor_is_the_pace_at_which_an_application_writes() {
    let written = Record {
        item: SenderState::Application,
        busy_ns: 20_000_000,
        idle_ns: 80_000_000,
        ..ROUND
    };
    assert_shown_by_a_queue_or_faster_trains(written);
}

#[test]
fn much_of_a_flight_dropped_below_the_rate_while_nothing_waits_is_a_policers() {
    let policed = |delay_us: u32, holes: u32, delivered: u64| {
        let (mut path, mut far) = (PathHistory::default(), Delay::NONE);
        (0..100).for_each(|_| path.add_train(20_000, 10_000_000, MSS));
        for number in 0..3u64 {
            far.add(if number == 1 { delay_us } else { 100_000 });
            if number == 1 {
                path.note_loss(&far, 100_000);
                (0..holes).for_each(|hole| {
                    path.note_filled(Seq(hole * 3000), Seq(hole * 3000 + 1500));
                });
            }
            path.end_round(EndedRound::of(ROUND), &mut far, 1 + number * delivered);
        }
        let found = Bottleneck::of(&path, &path.records(), &far, MSS);
        found.unwrap().is_policed
    };
    assert!(policed(100_000, 10, 100_000));
    assert!(!policed(130_000, 10, 100_000), "a queue overflowed");
    assert!(!policed(100_000, 3, 100_000), "at random");
    assert!(!policed(100_000, 10, 180_000), "at the path's rate");
}

#[test]
fn few_bursts_show_the_rate_if_a_full_window_spaces_all_other_trains() {
    let rate = |full_ns| {
        let mut path = PathHistory::default();
        (0..2000).for_each(|_| path.add_train(24_000, 24_000_000, MSS));
        (0..5).for_each(|_| path.add_train(4_000, 1_000_000, MSS));
        let mut far = Delay::NONE;
        let round = Record { full_ns, ..ROUND };
        for delivered_bytes in [1, 95_001] {
            far.add(100_000);
            path.end_round(EndedRound::of(round), &mut far, delivered_bytes);
        }
        let found = Bottleneck::of(&path, &path.records(), &far, MSS);
        found.unwrap().bytes_per_s
    };
    assert!((rate(80_000_000) / 4e6 - 1.0).abs() < 0.05);
    assert!((rate(0) / 1e6 - 1.0).abs() < 0.05);
}

#[test]
fn what_drops_at_a_constant_rate_and_queues_nothing_is_a_policer() {
    let steady = Steady {
        bytes_per_s: 1e6,
        count: 5,
        rate_spread: 0.05,
        size_spread: 0.3,
    };
    let policed = |steady, delays: [u32; 4], trains: &[(u64, u32)]| {
        let (mut path, mut far) = (PathHistory::default(), Delay::NONE);
        for (bytes, count) in trains {
            (0..*count).for_each(|_| path.add_train(*bytes, 10_000_000, MSS));
        }
        for (number, delay_us) in (1..).zip(delays) {
            far.add(delay_us);
            path.note_loss(&far, 0);
            path.end_round(EndedRound::of(ROUND), &mut far, number * 100_000);
        }
        let known = Bottleneck {
            base_us: path.base_us(&far),
            ..UNKNOWN
        };
        known
            .at_steady(steady, &path, &path.records(), MSS)
            .is_policed
    };
    let queued = [100_000, 120_000, 130_000, 140_000];
    assert!(policed(steady, [100_000; 4], &[]));
    assert!(!policed(steady, queued, &[]));
    let at_random = Steady {
        size_spread: 0.9,
        ..steady
    };
    assert!(!policed(at_random, [100_000; 4], &[]));
    assert!(!policed(steady, [100_000; 4], &[(10_000, 19), (20_000, 1)]));
    assert!(policed(steady, queued, &[(10_000, 15), (20_000, 5)]));
    assert!(
        !policed(steady, [100_000; 4], &[(10_000, 8)]),
        "few trains, all of them spaced"
    );
    assert!(policed(steady, [100_000; 4], &[(10_000, 7), (20_000, 1)]));
}

#[test]
fn losses_in_the_queue_of_another_flow_are_not_a_policers() {
    // 6 ms per segment on the link; every second segment belongs to the other flow.
    let half = Bottleneck {
        base_us: Some(18_000),
        ..UNKNOWN
    }
    .at(125_000.0);
    let lost = |loss_delay_us: u32| Record {
        losses: 1,
        loss_delay_us,
        ..ROUND
    };
    let shared = [lost(18_000), lost(24_000), lost(30_000)].repeat(5);
    assert!(!half.drops_unqueued(&shared, 1_448));
    let policed = [[lost(18_000); 5], [lost(24_000); 5]].concat();
    assert!(half.drops_unqueued(&policed, 1_448));
}

#[test]
fn at_a_rate_near_nothing_segments_wait_for_ever_not_less() {
    let slow = UNKNOWN.at(1e-3);
    assert_eq!(slow.waits_us(MSS).map(|waits| waits.0), Some(u32::MAX));
}

#[test]
fn a_plateau_is_the_highest_rate_that_many_trains_had() {
    let rates: Rates = vec![(10, 50), (40, 9), (41, 3), (90, 1)];
    assert_eq!(plateau(&rates, 0.08, 4), Some(40));
    assert_eq!(plateau(&rates, 0.3, 4), Some(10));
    assert_eq!(plateau(&rates, 0.0, 1), Some(90));
    assert_eq!(plateau(&rates, 0.0, 60), None);
}

#[test]
fn initial_bursts_show_the_rate_if_nothing_ever_queued() {
    let path = |delay_us: u32| {
        let mut path = PathHistory::default();
        for _ in 0..100 {
            path.add_train(24_000, 24_000_000, MSS);
        }
        for _ in 0..5 {
            path.add_train(4_000, 1_000_000, MSS);
        }
        let mut far = Delay::NONE;
        for (delivered_bytes, sample_us) in [(1, 100_000), (95_001, delay_us)] {
            far.add(sample_us);
            path.end_round(EndedRound::of(ROUND), &mut far, delivered_bytes);
        }
        Bottleneck::of(&path, &path.records(), &far, MSS)
            .unwrap()
            .bytes_per_s
    };
    assert!((path(100_500) / 4e6 - 1.0).abs() < 0.05);
    assert!((path(200_000) / 1e6 - 1.0).abs() < 0.05);
}
