use super::*;

const MSS: u32 = 1000;
/// 100 kB per round of 100 ms.
const PATH: Bottleneck = Bottleneck {
    bytes_per_s: 1e6,
    base_us: Some(100_000),
    is_policed: false,
    is_steady: false,
};
const ROUND: Record = Record {
    delivered_bytes: 95_000,
    ..Record::PLAIN
};

fn moved(records: &[Record]) -> Vec<(SenderState, SenderState, i64)> {
    let moves = reassignments(Some(&PATH), records, PATH.base_us, MSS);
    let brief = |each: &Reassignment| (each.item, each.into, each.span_ns / 1_000_000);
    moves.iter().map(brief).collect()
}

#[test]
fn a_round_at_the_rate_is_the_paths() {
    assert_eq!(
        moved(&[ROUND]),
        [(SenderState::Congestion, SenderState::Path, 100)]
    );
    let slow = Record {
        delivered_bytes: 60_000,
        ..ROUND
    };
    assert_eq!(moved(&[slow]), []);
    let was_best = Record {
        item: SenderState::Path,
        otherwise: SenderState::SendBuffer,
        ..slow
    };
    assert_eq!(
        moved(&[was_best]),
        [(SenderState::Path, SenderState::SendBuffer, 100)]
    );
}

#[test]
fn a_full_window_is_the_paths_above_a_queue_only() {
    let window = Record {
        busy_ns: 0,
        item: SenderState::WindowFull,
        full_ns: 100_000_000,
        ..ROUND
    };
    assert_eq!(moved(&[window]), []);
    let queued = Record {
        delay_us: 300_000,
        least_delay_us: 290_000,
        ..window
    };
    assert_eq!(
        moved(&[queued]),
        [(SenderState::WindowFull, SenderState::Path, 100)]
    );
}

#[test]
fn a_paced_writer_that_fills_no_queue_is_not_the_path() {
    let paced = Record {
        busy_ns: 50_000_000,
        idle_ns: 50_000_000,
        item: SenderState::Application,
        ..ROUND
    };
    assert_eq!(moved(&[paced]), []);
    let queued = Record {
        delay_us: 300_000,
        ..paced
    };
    let path = |ns| (SenderState::Application, SenderState::Path, ns);
    assert_eq!(moved(&[queued]), [path(50), path(50)]);
}

#[test]
fn a_queue_that_never_empties_keeps_the_path_full_whoever_fills_it() {
    let shared = Record {
        delivered_bytes: 20_000,
        delay_us: 180_000,
        least_delay_us: 150_000,
        ..ROUND
    };
    assert_eq!(
        moved(&[shared]),
        [(SenderState::Congestion, SenderState::Path, 100)]
    );
    let emptied = Record {
        least_delay_us: 100_000,
        ..shared
    };
    assert_eq!(moved(&[emptied]), []);
    // One burst per round, acknowledged late: its queue would have been empty by then.
    let silent = Record {
        gap_ns: 140_000_000,
        ..shared
    };
    assert_eq!(moved(&[silent]), []);
    let repairing = Record {
        losses: 1,
        ..silent
    };
    assert!(!moved(&[repairing]).is_empty());
}

#[test]
fn a_loss_by_which_a_full_queue_overflowed_is_the_paths_and_what_follows_too() {
    let before = Record {
        most_delay_us: 200_000,
        ..ROUND
    };
    let after = Record {
        delivered_bytes: 50_000,
        item: SenderState::AfterLoss,
        losses: 1,
        busy_ns: 60_000_000,
        recovery_ns: 40_000_000,
        ..ROUND
    };
    let by_the_queue = Record {
        loss_delay_us: 200_000,
        ..after
    };
    let regained = Record { losses: 0, ..after };
    assert_eq!(
        moved(&[before, by_the_queue, regained])[1..],
        [
            (SenderState::AfterLoss, SenderState::Path, 60),
            (SenderState::FastRecovery, SenderState::Path, 40),
            (SenderState::AfterLoss, SenderState::Path, 60),
            (SenderState::FastRecovery, SenderState::Path, 40),
        ]
    );
    let at_random = Record {
        loss_delay_us: 100_000,
        ..after
    };
    assert_eq!(moved(&[before, at_random, regained]).len(), 1);
}

#[test]
fn after_a_mark_the_path_asks_for_less_until_the_flight_is_regained() {
    let slow = |marked, peak_bytes| Record {
        delivered_bytes: 60_000,
        marked,
        peak_bytes,
        ..ROUND
    };
    let rounds = [
        slow(0, 90_000),
        slow(1, 80_000),
        slow(0, 85_000),
        slow(0, 91_000),
    ];
    let path = (SenderState::Congestion, SenderState::Path, 100);
    assert_eq!(moved(&rounds), [path, path]);
    assert_eq!(reassignments(None, &rounds, None, MSS).len(), 2);
}

#[test]
fn what_a_policer_drops_is_its_and_a_steady_rate_is_the_paths() {
    let after = Record {
        delivered_bytes: 75_000,
        item: SenderState::AfterLoss,
        losses: 1,
        loss_delay_us: 100_000,
        busy_ns: 60_000_000,
        recovery_ns: 40_000_000,
        ..ROUND
    };
    let into = |is_policed| {
        let bottleneck = Bottleneck {
            is_steady: true,
            is_policed,
            ..PATH
        };
        let moves = reassignments(Some(&bottleneck), &[after], PATH.base_us, MSS);
        moves
            .iter()
            .map(|each| (each.item, each.into))
            .collect::<Vec<_>>()
    };
    let of_both = |into| {
        [
            (SenderState::AfterLoss, into),
            (SenderState::FastRecovery, into),
        ]
    };
    assert_eq!(into(true), of_both(SenderState::Policer));
    assert_eq!(into(false), of_both(SenderState::Path));
    assert_eq!(moved(&[after]), []);
}

#[test]
fn short_segments_into_a_full_window_are_no_ends_of_writes() {
    let short = Record {
        delivered_bytes: 60_000,
        item: SenderState::Application,
        busy_ns: 60_000_000,
        idle_ns: 40_000_000,
        peak_bytes: 62_000,
        window_bytes: 64_000,
        gap_ns: 1_000_000,
        ..ROUND
    };
    let window = |ns| (SenderState::Application, SenderState::WindowFull, ns);
    let both = [window(60), window(40)];
    assert_eq!(moved(&[short]), both);
    let at_the_rate = Record {
        delivered_bytes: 90_000,
        ..short
    };
    assert_eq!(moved(&[at_the_rate]), both);
    assert_eq!(reassignments(None, &[short], None, MSS).len(), 2);
    let deferred = Record {
        gap_ns: 50_000_000,
        ..short
    };
    assert_eq!(
        moved(&[deferred]),
        both,
        "until a third of the window is free"
    );
    let silent = Record {
        gap_ns: 80_000_000,
        ..short
    };
    assert_eq!(moved(&[silent]), []);
    let unmeasured = |gap_ns| Record {
        delay_us: 0,
        gap_ns,
        ..short
    };
    assert_eq!(moved(&[unmeasured(1_000_000)]), both);
    assert_eq!(moved(&[unmeasured(20_000_000)]), []);
    let by_the_window = Record {
        full_ns: 80_000_000,
        ..silent
    };
    assert_eq!(
        moved(&[by_the_window]),
        both,
        "the window silenced the sender"
    );
    let with_room = Record {
        window_bytes: 80_000,
        ..short
    };
    assert_eq!(moved(&[with_room]), []);
}

#[test]
fn a_flight_that_does_not_grow_is_the_buffers() {
    let flat = Record {
        delivered_bytes: 30_000,
        peak_bytes: 30_000,
        ..ROUND
    };
    let grown = |round: u32| Record {
        peak_bytes: 30_000 + round * 500,
        ..flat
    };
    assert!(moved(&[flat; 16])
        .iter()
        .all(|(_, into, _)| *into == SenderState::SendBuffer));
    assert_eq!(moved(&[flat; 16]).len(), 16);
    assert_eq!(moved(&(0..16).map(grown).collect::<Vec<_>>()), []);
    assert_eq!(moved(&[flat; 8]).len(), 8, "to the byte");
    assert_eq!(moved(&[flat; 7]), []);
    let about = |round: u32| Record {
        peak_bytes: 30_000 + (round % 2) * 2_500,
        ..flat
    };
    assert_eq!(moved(&(0..16).map(about).collect::<Vec<_>>()).len(), 16);
    assert_eq!(moved(&(0..15).map(about).collect::<Vec<_>>()), []);
}

/// A send buffer's flights differ by parts of a burst: 300 ms, 10 MB, in a lab where only the send buffer was small. Its
/// first rounds are still those of a flight that grows.
#[test]
fn an_uneven_flight_that_does_not_grow_is_the_buffers_unless_something_was_lost() {
    let round = |peak_bytes| Record {
        delivered_bytes: 40_000,
        peak_bytes,
        ..ROUND
    };
    let uneven = |segments: u32| round(10_000_000 + segments * MSS);
    let sizes = [0, 12, 12, 0, 12, 12, 0, 12, 12];
    let steady: Vec<_> = sizes.into_iter().map(uneven).collect();
    assert_eq!(moved(&steady).len(), 9);
    let grown: Vec<_> = (0..9).map(|place| uneven(place * 2)).collect();
    assert_eq!(
        moved(&grown),
        [],
        "two segments a round are a window's growth"
    );
    let settling = [[round(9_600_000), round(9_900_000)].as_slice(), &steady].concat();
    assert_eq!(moved(&settling).len(), 11);
    let far = [[round(9_000_000)].as_slice(), &steady].concat();
    assert_eq!(moved(&far).len(), 9);
    let loss = Record {
        losses: 1,
        item: SenderState::AfterLoss,
        ..round(20_000_000)
    };
    assert_eq!(moved(&[[loss].as_slice(), &steady].concat()), []);
}

#[test]
fn a_flight_that_stays_the_same_because_it_comes_to_the_window_is_the_windows() {
    let flat = Record {
        delivered_bytes: 30_000,
        peak_bytes: 30_000,
        window_bytes: 30_500,
        full_ns: 10_000_000,
        ..ROUND
    };
    let into = |record: Record, count: usize| {
        let moved = moved(&vec![record; count]).into_iter();
        moved.map(|(_, into, _)| into).collect::<Vec<_>>()
    };
    assert_eq!(into(flat, 16), [SenderState::WindowFull; 16]);
    let judged = Record {
        item: SenderState::SendBuffer,
        ..flat
    };
    assert_eq!(into(judged, 3), [SenderState::WindowFull; 3]);
    for item in [SenderState::SendBuffer, SenderState::Path] {
        let unknown = reassignments(None, &[Record { item, ..flat }], None, MSS);
        assert_eq!(unknown.len(), 1);
        assert_eq!(unknown[0].into, SenderState::WindowFull);
    }
    // A burst of which only a part fits waits, so the flight stays below the edge.
    let never_full = Record {
        window_bytes: 31_990,
        full_ns: 0,
        ..flat
    };
    assert_eq!(into(never_full, 16), [SenderState::WindowFull; 16]);
    let with_room = Record {
        window_bytes: 32_000,
        ..never_full
    };
    assert_eq!(into(with_room, 16), [SenderState::SendBuffer; 16]);
}

#[test]
fn a_flight_that_comes_to_the_same_again_and_again_and_never_beyond_is_the_buffers() {
    let round = |peak_bytes| Record {
        delivered_bytes: 40_000,
        peak_bytes,
        ..ROUND
    };
    // Paced: two of three rounds stay below the end of the buffer.
    let paced = |rounds: usize, cap: &dyn Fn(usize) -> u32| -> Vec<_> {
        let peak = |place: usize| match place % 3 {
            0 => cap(place),
            other => 40_000 + other as u32 * 3_000,
        };
        (0..rounds).map(|place| round(peak(place))).collect()
    };
    assert_eq!(moved(&paced(46, &|_| 50_000)).len(), 46);
    assert_eq!(moved(&paced(43, &|_| 50_000)), [], "too few");
    let grows = |place: usize| 50_000 + place as u32 * 300;
    assert_eq!(moved(&paced(60, &grows)), []);
    let mut probed = paced(46, &|_| 50_000);
    probed[20].peak_bytes = 60_000;
    assert_eq!(moved(&probed), [], "a flight exceeded the cap");
    let after = (0..15).map(|place| round(30_000 + place * 400)).collect();
    let once = [paced(46, &|_| 50_000), after].concat();
    assert_eq!(moved(&once).len(), 46);
}

#[test]
fn a_flight_that_has_come_back_to_where_a_loss_struck_and_stays_is_the_buffers() {
    let loss = Record {
        delivered_bytes: 40_000,
        peak_bytes: 45_000,
        losses: 1,
        loss_delay_us: 100_000,
        item: SenderState::AfterLoss,
        ..ROUND
    };
    let held = |item| Record {
        delivered_bytes: 40_000,
        peak_bytes: 42_000,
        item,
        ..ROUND
    };
    let then = |item| moved(&[[loss].as_slice(), &[held(item); 16]].concat()).len();
    assert_eq!(then(SenderState::Congestion), 16);
    assert_eq!(then(SenderState::AfterLoss), 0, "CUBIC's plateau");
}

#[test]
fn a_flight_that_is_held_far_below_the_last_loss_is_the_buffers_too() {
    let overflows = Record {
        peak_bytes: 200_000,
        most_delay_us: 200_000,
        losses: 1,
        loss_delay_us: 200_000,
        recovery_ns: 40_000_000,
        item: SenderState::AfterLoss,
        ..ROUND
    };
    let held = |peak_bytes| Record {
        delivered_bytes: 40_000,
        item: SenderState::AfterLoss,
        peak_bytes,
        ..ROUND
    };
    let then = |rounds: &[Record]| {
        let all = [&[overflows][..], rounds].concat();
        let moved = moved(&all).into_iter().skip(2);
        moved.map(|(_, into, _)| into).collect::<Vec<_>>()
    };
    assert_eq!(then(&[held(40_000); 16]), [SenderState::SendBuffer; 16]);
    assert_eq!(
        then(&[held(140_000); 16]),
        [SenderState::Path; 16],
        "a plateau"
    );
    let grown: Vec<_> = (0..16).map(|round| held(40_000 + round * 500)).collect();
    assert_eq!(then(&grown), [SenderState::Path; 16]);
}
