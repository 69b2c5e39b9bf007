//! The ordinary segment: in order, acknowledging what was sent, into an open window, with nothing unusual pending.
//!
//! Does what the full way does for such a segment and nothing else; declines everything that is not just that.

use crate::connection::direction::Direction;
use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tracker::cadence::BeforeData;
use crate::tracker::send::judge_edge;
use crate::window::receive::Advertisement;
use crate::wire::{capture_flag, Segment, ACK, FIN, RST, SYN};

/// Take the segment, or decline it before anything was changed. Both directions must be ordinary
/// ([`Direction::is_ordinary`]) and their limits noted.
#[inline(always)]
pub fn take(
    sent: &mut Direction,
    acked: &mut Direction,
    segment: &Segment,
) -> Option<(Events, Option<u64>)> {
    let now_ns = segment.time_ns;
    let (seq, ack) = (Seq(segment.seq), Seq(segment.ack));
    let payload_len = segment.payload_len;
    let timestamps = segment.options.timestamps;
    let tsval = timestamps.map_or(sent.tsval, |(value, _)| value);
    let advance = acked.flight.una.to(ack);
    let bytes = u32::from(segment.window) << sent.own_shift;
    let segment_size = acked.segment_size();
    // Zero and signs of several numbers at once: one branch each, where a chain of comparisons would cost many.
    let differs = u32::from(segment.flags & (SYN | FIN | RST | ACK) ^ ACK)
        | u32::from(segment.capture_flags & (capture_flag::OPTIONS_CUT | capture_flag::SAMPLED))
        | u32::from(segment.options.sack_count)
        | (sent.flight.nxt.0 ^ seq.0)
        | u32::from(sent.has_tsval != timestamps.is_some());
    let turns_back = advance | ack.to(acked.flight.nxt) | Seq(sent.tsval).to(Seq(tsval));
    let brings = advance as u32 | payload_len;
    if differs != 0 || turns_back < 0 || brings == 0 || bytes < segment_size.max(1) {
        return None;
    }
    // The first data and the third say something of messages and of the sender's view.
    let is_telling =
        payload_len > 0 && (sent.data_segments & !2 == 0 || sent.is_resuming(acked, now_ns));
    let is_of_one = payload_len == 0 && (advance as u32).wrapping_sub(1) < segment_size;
    if is_telling || (is_of_one && acked.may_be_late(now_ns)) {
        return None;
    }
    let mut events = 0;
    let mut rtt_ns = None;
    let advertised = acked.window.renew(
        now_ns,
        &Advertisement {
            seq,
            ack,
            bytes,
            unit_bytes: 1 << sent.own_shift,
            is_new_ack: advance > 0,
            is_stale: false,
        },
    );
    acked.window.last_raw = segment.window;
    if advance > 0 {
        acked.flight.pass_time(now_ns, acked.flight.span());
        rtt_ns = acked.take_ordinary_ack(ack, advance, now_ns, sent);
    }
    if advertised.shrink_bytes > 0 {
        events |= event::WINDOW_SHRINK;
    }
    acked.note_open_limit(now_ns);
    acked.note_ordinary_answer(segment, advance as u32);
    if let Some((_, echo)) = timestamps {
        if acked.echo.echoed(echo, now_ns) {
            sent.note_shorter_way(acked);
        }
    }
    sent.segments += 1;
    // Without timestamps it is what it was.
    let new_tsval = (tsval != sent.tsval).then_some(tsval);
    sent.tsval = tsval;
    if payload_len > 0 {
        let before = BeforeData {
            nxt: seq,
            mss: sent.segment_size(),
            since_data_ns: now_ns.wrapping_sub(sent.last_data_ns),
            new_tsval,
        };
        let end = seq + payload_len;
        sent.flight.pass_time(now_ns, sent.flight.span());
        sent.flight.nxt = end;
        sent.has_only_syn = false;
        sent.flight.max_bytes = sent.flight.max_bytes.max(sent.flight.span());
        sent.note_payload(segment);
        events |= judge_edge(sent, segment, end);
        sent.note_open_limit(now_ns);
        sent.note_ordinary_data(segment, &before);
    } else {
        sent.has_only_syn &= sent.syn.has_early_data();
        if let Some(tsval) = new_tsval {
            sent.note_tick(tsval, now_ns);
        }
    }
    Some((events, rtt_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::state::Connection;
    use proptest::prelude::*;

    /// What one side sends next, around the ordinary: in order or not, acknowledging all, less or more, window open or not.
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
        has_sack: bool,
    }

    fn step() -> impl Strategy<Value = Step> {
        let mostly = |usual: i32| prop_oneof![9 => Just(usual), 1 => -3_000i32..3_000];
        (
            0usize..2,
            mostly(0),
            prop_oneof![3 => Just(1448u32), 3 => Just(0), 1 => Just(1), 1 => 2u32..4_000],
            mostly(0),
            prop_oneof![6 => Just(500u16), 2 => 10u16..2_000, 1 => Just(0), 1 => 0u16..12],
            prop_oneof![30 => Just(ACK), 1 => Just(ACK | FIN), 1 => Just(ACK | RST), 1 => Just(SYN)],
            prop_oneof![8 => 0i64..2_000_000, 1 => -1_000_000i64..0, 1 => Just(i64::MAX)],
            prop_oneof![15 => Just(0u32), 1 => 1u32..9],
            prop::bool::weighted(0.95),
            prop::bool::weighted(0.05),
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
                has_sack: parts.9,
            })
    }

    /// The handshake, with a scale of 7 on both sides, and what follows it.
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
                window: step.window,
                ..Segment::EMPTY
            };
            let value = tsval.wrapping_sub(step.tsval_back);
            segment.options.timestamps = step
                .has_timestamps
                .then_some((value, newest_tsval[1 - side]));
            newest_tsval[side] = value;
            if step.has_sack {
                segment.options.sack_count = 1;
                segment.options.sack[0] =
                    (segment.ack.wrapping_add(10), segment.ack.wrapping_add(90));
            }
            if step.behind == 0 && step.flags & (SYN | RST) == 0 {
                let control = u32::from(step.flags & FIN != 0);
                next[side] = next[side].wrapping_add(step.payload_len + control);
            }
            segments.push((side, segment));
        }
        segments
    }

    proptest! {
        /// The short way leaves a connection, its floating-point sums included, just as the full way does.
        #[test]
        fn the_short_way_gives_what_the_full_way_gives(steps in prop::collection::vec(step(), 1..120)) {
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

    #[test]
    fn a_plain_exchange_takes_the_short_way() {
        let data = |side, payload_len| Step {
            side,
            behind: 0,
            payload_len,
            ack_behind: 0,
            window: 500,
            flags: ACK,
            elapsed_ns: 1_000,
            tsval_back: 0,
            has_timestamps: true,
            has_sack: false,
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
        // All but the handshake, what makes each direction known, and where a side begins to send.
        assert_eq!(short, 3);
    }
}
