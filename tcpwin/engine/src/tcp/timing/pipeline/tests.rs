use super::*;
use crate::wire::ACK;

const MS: i64 = 1_000_000;

fn pipeline() -> Pipeline {
    let newest = Newest {
        end: Seq(0),
        goes_on: false,
    };
    Pipeline::new([Waits::default(); 2], [newest; 2], 0, 0)
}

fn segment(time_ns: i64, nth: u32, acked: u32) -> Segment {
    Segment {
        time_ns,
        seq: nth * 10,
        payload_len: 10,
        ack: acked * 10,
        flags: ACK,
        ..Segment::EMPTY
    }
}

/// Run a client with several requests under way against a server that answers them one by one, over a round trip of
/// 40 ms, of which `behind_ms` are between the client and the capture point. The first `joined` answers end with the
/// next one. Return path, work, think and overlapped time in milliseconds.
fn run(depth: usize, [work_ms, think_ms, behind_ms]: [i64; 3], joined: usize) -> [i64; 4] {
    const COUNT: usize = 12;
    let (leg_ns, back_ns) = ((40 - behind_ms) * MS, behind_ms * MS);
    let mut pipeline = pipeline();
    let mut answered_ns = Vec::new();
    let mut free_ns = 0;
    let mut steps = Vec::new();
    for nth in 0..COUNT {
        // At the client; the server and the capture point are half of their round trips away.
        let heard_ns = nth
            .checked_sub(depth)
            .map_or(0, |nth| answered_ns[nth] + 20 * MS);
        let asked_ns = heard_ns + think_ms * MS + 1000;
        free_ns = free_ns.max(asked_ns + 20 * MS) + work_ms * MS;
        answered_ns.push(free_ns);
        let acked = (nth + 1).saturating_sub(depth) as u32;
        steps.push((asked_ns + back_ns / 2, false, nth as u32, acked));
        steps.push((free_ns + leg_ns / 2, true, nth as u32, 0));
    }
    steps.sort_unstable();
    for (time_ns, is_answer, nth, acked) in steps {
        let ends = !is_answer || nth as usize >= joined;
        pipeline.take(
            is_answer,
            &segment(time_ns, nth, acked),
            ends,
            [back_ns, leg_ns],
        );
    }
    let found = pipeline.pipelined().unwrap();
    let Chain {
        path_ns,
        work_ns,
        think_ns,
        ..
    } = found.chain;
    [path_ns, work_ns, think_ns, found.overlapped_ns].map(|ns| ns / MS)
}

#[test]
fn the_chain_is_the_same_wherever_it_was_captured() {
    for (depth, work_ms, think_ms, expected) in [
        // One at a time: 12 round trips.
        (1, 5, 3, [480, 60, 36, 0]),
        // Two at a time: half of them, in which the server prepares every second answer.
        (2, 5, 0, [240, 35, 0, 25]),
        // Busy for 12 times 15 ms, the server hides all but the first one.
        (4, 15, 0, [40, 180, 0, 0]),
    ] {
        for behind_ms in [0, 14, 40] {
            let found = run(depth, [work_ms, think_ms, behind_ms], 0);
            // Some capture points miss a part of the time before the first request.
            for (found, (expected, slack)) in found.iter().zip(expected.iter().zip([20, 1, 3, 1])) {
                let is_near = (expected - found).abs() <= slack;
                assert!(
                    is_near,
                    "{found} for {expected} at depth {depth}, {behind_ms} ms away"
                );
            }
        }
    }
}

#[test]
fn answers_joined_by_a_window_do_not_make_the_server_busy() {
    let found = run(2, [5, 0, 14], 1);
    assert!(found[0] > 4 * found[1], "{found:?}");
}

#[test]
fn a_client_that_does_not_wait_for_answers_asks_by_its_own_clock() {
    let mut pipeline = pipeline();
    for nth in 0..300i64 {
        // Every 5 ms, answered after 40 ms; the clocks drift.
        let (asked, answered) = (nth as u32, (nth - 8).max(0) as u32);
        pipeline.take(
            false,
            &segment(nth * 5 * MS, asked, answered),
            true,
            [0, 40 * MS],
        );
        if nth >= 8 {
            let time_ns = nth * 5 * MS + nth * MS / 100 + MS;
            pipeline.take(true, &segment(time_ns, answered, 0), true, [0, 40 * MS]);
        }
    }
    let chain = pipeline.pipelined().unwrap().chain;
    assert_eq!((chain.path_ns, chain.work_ns), (0, 0));
    assert!(chain.think_ns > 1000 * MS, "{chain:?}");
}

#[test]
fn a_client_sends_by_its_own_clock_though_each_answer_leaves_before_the_next_request_comes() {
    let mut pipeline = pipeline();
    for nth in 0..300i64 {
        // At the server: every 10 ms, by a clock that drifts, and answered after 3 ms; the client is 35 ms away.
        let (asked, heard) = (nth as u32, (nth - 3).max(0) as u32);
        let time_ns = nth * 10 * MS + nth * MS / 40;
        let legs_ns = [35 * MS, 0];
        pipeline.take(false, &segment(time_ns, asked, heard), true, legs_ns);
        let answer = segment(time_ns + 3 * MS - nth % 5 * MS / 2, asked, asked);
        pipeline.take(true, &answer, true, legs_ns);
    }
    let chain = pipeline.pipelined().unwrap().chain;
    assert_eq!((chain.path_ns, chain.work_ns), (0, 0));
    assert!(chain.think_ns > 2000 * MS, "{chain:?}");
}

#[test]
fn a_client_that_asks_at_even_times_does_not_wait_for_the_path() {
    // Request `nth` leaves at `asked_ns(nth, answers)`; the server takes `work_ns` for each and answers one by one.
    let of = |asked_ns: &dyn Fn(usize, &[i64]) -> i64, work_ns: i64| {
        let mut pipeline = pipeline();
        let (mut steps, mut answers) = (Vec::new(), Vec::<i64>::new());
        for nth in 0..60usize {
            let now_ns = asked_ns(nth, &answers);
            let free_ns = answers.last().map_or(0, |last_ns| last_ns - 15 * MS);
            answers.push(free_ns.max(now_ns + 15 * MS) + work_ns + 15 * MS);
            let acked = answers
                .iter()
                .filter(|heard_ns| **heard_ns <= now_ns)
                .count();
            steps.push((now_ns, false, nth, acked));
            steps.push((answers[nth], true, nth, 0));
        }
        steps.sort_unstable();
        for (time_ns, is_answer, nth, acked) in steps {
            let each = segment(time_ns, nth as u32, acked as u32);
            pipeline.take(is_answer, &each, true, [0, 30 * MS]);
        }
        pipeline.pipelined().unwrap().chain
    };
    // Each request leaves 20 ms after the answer to the one before the last.
    let even = of(&|nth, _| 25 * MS * nth as i64, 0);
    assert_eq!((even.path_ns, even.work_ns), (0, 0), "{even:?}");
    let uneven = of(
        &|nth, _| 25 * MS * nth as i64 + 5 * MS * (nth % 2) as i64,
        0,
    );
    assert!(uneven.path_ns > 400 * MS, "{uneven:?}");
    // Each request waits for an answer and is spaced by a server that is always busy.
    let closed =
        |nth: usize, answers: &[i64]| nth.checked_sub(3).map_or(0, |nth| answers[nth] + 5 * MS);
    let busy = of(&closed, 20 * MS);
    assert!(busy.work_ns > 800 * MS, "{busy:?}");
    let idle = of(&closed, 0);
    assert!(idle.path_ns > 500 * MS, "{idle:?}");
}

#[test]
fn short_answers_belong_to_requests_that_a_buffer_joined() {
    const COUNT: i64 = 24;
    // At the client: two chunks under way, the next as soon as one is acknowledged; 5 ms of work for each.
    let run = |ends_requests: bool| {
        let mut pipeline = pipeline();
        let legs_ns = [0, 40 * MS];
        let mut free_ns = 0;
        let mut heard_ns = VecDeque::from([0, MS]);
        for nth in 0..COUNT {
            let asked_ns = heard_ns.pop_front().unwrap();
            free_ns = (free_ns).max(asked_ns + 40 * MS) + 5 * MS;
            heard_ns.push_back(free_ns);
            if nth > 1 {
                let answer = segment(asked_ns, nth as u32 - 2, 0);
                pipeline.take(true, &answer, true, legs_ns);
            }
            let chunk = segment(asked_ns + 1000, nth as u32, (nth - 1).max(0) as u32);
            pipeline.take(false, &chunk, ends_requests, legs_ns);
        }
        let found = pipeline.pipelined().unwrap();
        (found.chain.path_ns / MS, found.is_in_turn)
    };
    let (whole, joined) = (run(true), run(false));
    assert_eq!((whole.1, joined.1), (true, false));
    assert!((whole.0 - joined.0).abs() <= 40, "{whole:?} {joined:?}");
    assert!(joined.0 >= 40 * (COUNT / 2 - 2), "{joined:?}");
}

#[test]
fn data_that_answers_nothing_shows_no_turns() {
    let mut pipeline = pipeline();
    for nth in 0..40u32 {
        // Every fourth is the client's.
        let is_answer = nth % 4 != 0;
        let time_ns = i64::from(nth) * 10 * MS;
        pipeline.take(is_answer, &segment(time_ns, nth, 0), true, [0, 40 * MS]);
    }
    assert!(pipeline.pipelined().is_none());
}
