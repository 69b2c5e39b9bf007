//! The fast path for an ordinary segment: in order, within an open window, with nothing unusual pending.
//!
//! Does exactly what the slow path does for such a segment. It accepts only listed flags, options and capture bits and
//! declines everything else, even if that has no meaning yet: an event added to the slow path is never lost here.

use crate::event::Events;
use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::tcp::tracker::segment_size::may_reveal_size;
use crate::tcp::window::receive::Advertisement;
use crate::wire::{capture_flag, Segment, ACK, PSH};

/// Flags besides ACK that an ordinary segment may carry; the slow path ignores them too.
const MAY_CARRY: u16 = PSH;
/// Capture flags that an ordinary segment may have.
const MAY_BE_CAPTURED: u8 = capture_flag::SNAPPED | capture_flag::LENGTH_FROM_FRAME;

/// Effect of an ordinary segment.
pub struct Ordinary {
    pub events: Events,
    pub rtt_ns: Option<u64>,
    /// Whether the sender's next segment is not ordinary.
    pub is_last: bool,
    /// Data that crossed the other side's ([`Direction::overtakes`]).
    pub overtakes: bool,
}

/// Track the segment, or decline it without changing anything. The connection must be ordinary for this side
/// (`Connection::is_ordinary`).
#[inline(always)]
pub fn take(sent: &mut Direction, acked: &mut Direction, segment: &Segment) -> Option<Ordinary> {
    let now_ns = segment.time_ns;
    let (seq, ack) = (Seq(segment.seq), Seq(segment.ack));
    let payload_len = segment.payload_len;
    let timestamps = segment.options.timestamps;
    let tsval = timestamps.map_or(sent.tsval, |(value, _)| value);
    let advance = acked.flight.una.to(ack);
    let bytes = u32::from(segment.window) << sent.own_shift;
    let segment_size = acked.segment_size();
    // Test several numbers for zero and sign at once: one branch each instead of a chain of comparisons.
    let differs = u32::from(segment.flags & !MAY_CARRY ^ ACK)
        | u32::from(segment.capture_flags & !MAY_BE_CAPTURED)
        | u32::from(segment.options.has_more_than_timestamps())
        | u32::from(segment.is_marked())
        | (sent.flight.nxt.0 ^ seq.0)
        | u32::from(sent.has_tsval != timestamps.is_some());
    let turns_back = advance | ack.to(acked.flight.nxt) | Seq(sent.tsval).to(Seq(tsval));
    let brings = advance as u32 | payload_len;
    if differs != 0 || turns_back < 0 || brings == 0 || bytes < segment_size.max(1) {
        return None;
    }
    if payload_len > 0 && may_reveal_size(segment, u32::from(sent.mss)) {
        return None;
    }
    // The first and third data segments affect messages and the sender's view.
    let is_telling = payload_len > 0 && sent.data_segments & !2 == 0;
    let is_alone = payload_len > 0 && sent.flight.una == sent.flight.nxt;
    let is_resuming = is_alone && sent.is_resuming(acked, now_ns);
    let crosses = !is_alone && payload_len > 0 && sent.crosses(acked);
    let overtakes = crosses || (is_resuming && sent.overtakes(acked, segment));
    let is_of_one = payload_len == 0 && (advance as u32).wrapping_sub(1) < segment_size;
    if is_telling || (is_of_one && acked.may_be_late(now_ns)) {
        return None;
    }
    let advertisement = Advertisement {
        seq,
        ack,
        bytes,
        unit_bytes: 1 << sent.own_shift,
        is_new_ack: advance > 0,
        is_stale: false,
    };
    let (mut events, rtt_ns) = acked.answer_ordinary(segment, &advertisement, advance as u32, sent);
    if let Some((_, echo)) = timestamps {
        if let Some(echo) = acked.echo.echoed(echo, now_ns) {
            sent.note_echo(acked, echo, now_ns);
        }
    }
    sent.segments += 1;
    // Unchanged without timestamps.
    let new_tsval = (tsval != sent.tsval).then_some(tsval);
    sent.tsval = tsval;
    if payload_len > 0 {
        if is_alone {
            sent.note_released(acked, segment);
        } else if crosses {
            sent.note_crossing();
        }
        if is_resuming {
            sent.begin_message(acked, segment);
        }
        events |= sent.send_ordinary(segment, new_tsval);
    } else {
        sent.has_only_syn &= sent.syn.has_early_data();
        if let Some(tsval) = new_tsval {
            sent.tick(tsval, now_ns);
        }
    }
    Some(Ordinary {
        events,
        rtt_ns,
        // The sender may be followed from now on.
        is_last: is_resuming && sent.ledger.is_followed(),
        overtakes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::connection::state::Connection;
    use crate::wire::{Options, FIN, RST, SYN};
    use proptest::prelude::*;

    /// Each of the twelve flags, the reserved ones included.
    const FLAGS: [u16; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
    const CAPTURE_BITS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

    /// Add an option other than timestamps to a header; the last one has no effect.
    fn add_option(options: &mut Options, number: usize) {
        match number {
            0 => options.window_scale = Some(3),
            1 => options.mss = Some(536),
            2 => options.sack_permitted = true,
            3 => options.fast_open = true,
            4 => options.multipath = 1 << 2,
            5 => (options.sack_count, options.sack[0]) = (1, (10, 90)),
            _ => {}
        }
    }

    const OPTIONS: usize = 6;

    /// A side's next segment, ordinary or nearly so: in order or not, acknowledging all, less or more, with or without
    /// a window.
    #[derive(Clone, Copy, Debug)]
    struct Step {
        side: usize,
        behind: i32,
        payload_len: u32,
        ack_behind: i32,
        window: u16,
        flags: u16,
        elapsed_ns: i64,
        tsval_back: u32,
        has_timestamps: bool,
        /// SACK blocks, of which the last may be invalid.
        sack_blocks: u8,
        option: usize,
        capture_flags: u8,
        traffic_class: u8,
    }

    const ORDINARY: Step = Step {
        side: 0,
        behind: 0,
        payload_len: 1448,
        ack_behind: 0,
        window: 500,
        flags: ACK,
        elapsed_ns: 1_000,
        tsval_back: 0,
        has_timestamps: true,
        sack_blocks: 0,
        option: OPTIONS,
        capture_flags: 0,
        traffic_class: 0,
    };

    /// ACK alone or with more of the twelve flags; rarely without it.
    fn flags() -> impl Strategy<Value = u16> {
        prop_oneof![
            20 => Just(ACK),
            8 => Just(ACK | PSH),
            4 => prop::sample::select(&FLAGS[..]).prop_map(|flag| ACK | flag),
            1 => prop_oneof![Just(ACK | FIN), Just(ACK | RST), Just(SYN)],
            1 => 0u16..4096,
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        let mostly = |usual: i32| prop_oneof![9 => Just(usual), 1 => -3_000i32..3_000];
        (
            0usize..2,
            mostly(0),
            prop_oneof![3 => Just(1448u32), 3 => Just(0), 1 => Just(1), 1 => 2u32..4_000],
            mostly(0),
            prop_oneof![6 => Just(500u16), 2 => 10u16..2_000, 1 => Just(0), 1 => 0u16..12],
            flags(),
            prop_oneof![
                16 => 0i64..2_000_000,
                2 => 5_000_000i64..190_000_000,
                1 => -1_000_000i64..0,
                1 => Just(i64::MAX),
            ],
            prop_oneof![15 => Just(0u32), 1 => 1u32..9],
            prop::bool::weighted(0.95),
            (
                prop_oneof![20 => Just(0u8), 1 => 1u8..5],
                prop_oneof![15 => Just(OPTIONS), 1 => 0..OPTIONS],
                prop_oneof![
                    10 => Just(0u8),
                    2 => Just(capture_flag::SNAPPED),
                    1 => prop::sample::select(&CAPTURE_BITS[..]),
                    1 => any::<u8>(),
                ],
                prop_oneof![15 => Just(2u8), 1 => any::<u8>()],
            ),
        )
            .prop_map(|parts| Step {
                side: parts.0,
                behind: parts.1,
                payload_len: parts.2,
                ack_behind: parts.3,
                window: parts.4,
                flags: parts.5,
                elapsed_ns: parts.6,
                tsval_back: parts.7,
                has_timestamps: parts.8,
                sack_blocks: parts.9 .0,
                option: parts.9 .1,
                capture_flags: parts.9 .2,
                traffic_class: parts.9 .3,
            })
    }

    /// The handshake, with a scale of 7 on both sides, and the given steps.
    fn segments(steps: &[Step]) -> Vec<(usize, Segment)> {
        let mut next = [1_000u32, 0xffff_f000];
        let (mut now_ns, mut tsval) = (1_000_000i64, 100u32);
        let mut segments = Vec::new();
        let mut newest_tsval = [0u32; 2];
        for (number, flags) in [SYN, SYN | ACK, ACK].into_iter().enumerate() {
            let side = number % 2;
            let mut segment = Segment {
                frame: number as u64 + 1,
                time_ns: now_ns,
                seq: next[side],
                ack: next[1 - side],
                flags,
                window: 500,
                ..Segment::EMPTY
            };
            segment.options.timestamps = Some((tsval, 0));
            if flags & SYN != 0 {
                (segment.options.window_scale, segment.options.mss) = (Some(7), Some(1460));
                next[side] = next[side].wrapping_add(1);
            }
            segments.push((side, segment));
        }
        for step in steps {
            now_ns = now_ns.saturating_add(step.elapsed_ns);
            tsval = tsval.wrapping_add(1);
            let side = step.side;
            let mut segment = Segment {
                frame: segments.len() as u64 + 1,
                time_ns: now_ns,
                ip_id: (segments.len() / 2) as u32,
                seq: next[side].wrapping_add_signed(-step.behind),
                ack: next[1 - side].wrapping_add_signed(-step.ack_behind),
                payload_len: step.payload_len,
                flags: step.flags,
                traffic_class: step.traffic_class,
                window: step.window,
                capture_flags: step.capture_flags,
                ..Segment::EMPTY
            };
            let value = tsval.wrapping_sub(step.tsval_back);
            segment.options.timestamps = step
                .has_timestamps
                .then_some((value, newest_tsval[1 - side]));
            newest_tsval[side] = value;
            add_option(&mut segment.options, step.option);
            for block in 0..step.sack_blocks {
                let left = segment.ack.wrapping_add(10 + 100 * u32::from(block));
                segment.options.sack[usize::from(block)] = (left, left.wrapping_add(80));
                segment.options.sack_count = block + 1;
            }
            if step.behind == 0 && step.flags & (SYN | RST) == 0 {
                let control = u32::from(step.flags & FIN != 0);
                next[side] = next[side].wrapping_add(step.payload_len + control);
            }
            segments.push((side, segment));
        }
        segments
    }

    /// Duplicate ACKs report a loss until the next ACK, on either path.
    #[test]
    fn an_ordinary_ack_clears_reported_losses() {
        let data = ORDINARY;
        let ack = |ack_behind| Step {
            side: 1,
            payload_len: 0,
            ack_behind,
            ..ORDINARY
        };
        let steps = [
            data,
            data,
            data,
            data,
            ack(2896),
            ack(2896),
            ack(2896),
            ack(1448),
        ];
        let segments = segments(&steps);
        let mut connection = Connection::new(&segments[0].1, 0);
        let reports = |connection: &Connection| {
            let cold_state = connection.directions[0].cold_state.as_ref();
            cold_state
                .map(|cold_state| (cold_state.first_report_ns.is_some(), cold_state.loss_report))
        };
        let (newest, earlier) = segments.split_last().unwrap();
        for (side, segment) in earlier {
            connection.take(*side, segment, &mut None, &mut None);
        }
        assert_eq!(connection.directions[0].duplicate_acks, 2);
        assert_eq!(reports(&connection), Some((true, None)));
        let taken = connection.take_ordinary(newest.0, &newest.1);
        assert!(taken.is_some());
        assert_eq!(reports(&connection), Some((false, None)));
    }

    proptest! {
        /// The fast path leaves a connection, including its floating-point sums, exactly as the slow path does.
        #[test]
        fn the_fast_path_equals_the_slow_path(steps in prop::collection::vec(step(), 1..120)) {
            let segments = segments(&steps);
            let mut short = Connection::new(&segments[0].1, 0);
            let mut full = short.clone();
            for (side, segment) in &segments {
                let expected = full.take(*side, segment, &mut None, &mut None);
                let taken = match short.take_ordinary(*side, segment) {
                    Some(taken) => taken,
                    None => short.take(*side, segment, &mut None, &mut None),
                };
                prop_assert_eq!(taken, expected);
                for side in 0..2 {
                    prop_assert!(full.is_ordinary[side] || !short.is_ordinary[side]);
                }
                let mut same = short.clone();
                same.is_ordinary = full.is_ordinary;
                prop_assert_eq!(format!("{same:?}"), format!("{full:?}"));
            }
        }
    }

    /// A segment with anything unlisted changes nothing and takes the slow path, whatever that does with it.
    #[test]
    fn unlisted_segments_are_declined() {
        let step = ORDINARY;
        let takes = |last: Step| {
            let segments = segments(&[step, step, step, last]);
            let mut connection = Connection::new(&segments[0].1, 0);
            let (newest, earlier) = segments.split_last().unwrap();
            for (side, segment) in earlier {
                connection.take(*side, segment, &mut None, &mut None);
            }
            let before = format!("{connection:?}");
            let taken = connection.take_ordinary(newest.0, &newest.1);
            assert_eq!(taken.is_none(), format!("{connection:?}") == before);
            taken.is_some()
        };
        let flags = FLAGS.map(|flag| {
            takes(Step {
                flags: ACK ^ flag,
                ..step
            })
        });
        let taken: Vec<u16> = (0..12).filter(|bit| flags[*bit as usize]).collect();
        assert_eq!(taken, [PSH.trailing_zeros() as u16]);
        let options: Vec<bool> = (0..=OPTIONS)
            .map(|option| takes(Step { option, ..step }))
            .collect();
        assert_eq!(options, [[false; OPTIONS].as_slice(), &[true]].concat());
        let bits = CAPTURE_BITS.map(|capture_flags| {
            takes(Step {
                capture_flags,
                ..step
            })
        });
        let snapped_or_from_frame = [0x10, 0x02].map(|bit: u8| bit.trailing_zeros() as usize);
        assert!((0..8).all(|bit| bits[bit] == snapped_or_from_frame.contains(&bit)));
    }

    #[test]
    fn a_plain_exchange_takes_the_fast_path() {
        let data = |side, payload_len| Step {
            side,
            payload_len,
            ..ORDINARY
        };
        let steps = [
            data(0, 1448),
            data(0, 1448),
            data(1, 0),
            data(1, 300),
            data(0, 0),
        ];
        let segments = segments(&steps);
        let mut connection = Connection::new(&segments[0].1, 0);
        let mut short = 0;
        for (side, segment) in &segments {
            if connection.take_ordinary(*side, segment).is_some() {
                short += 1;
            } else {
                connection.take(*side, segment, &mut None, &mut None);
            }
        }
        // All but the handshake, the segments that make each direction known, and those with which a side begins to
        // send.
        assert_eq!(short, 3);
    }
}
