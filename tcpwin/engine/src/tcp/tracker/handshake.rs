//! SYNs: the connection that they belong to, and the negotiation of their options.

use crate::event::{self, Events};
use crate::sequence::Seq;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::marks::Initiator;
use crate::tcp::connection::state::Connection;
use crate::tcp::connection::syn::{syn_kind, SynOptions, TIMESTAMPS_BYTES};
use crate::tcp::recovery::cause::{Diagnosis, RetransmissionCause};
use crate::tcp::recovery::evidence::Evidence;
use crate::tcp::window::receive::Advertisement;
use crate::tcp::window::scale::{negotiate, Offer, ScaleState, MAX_SHIFT};
use crate::wire::{capture_flag, Segment, ACK, AE, CWR, ECE, FIN};

/// MSS assumed without the option (RFC 9293 §3.7.1), for IPv4 and IPv6.
const DEFAULT_MSS: [u16; 2] = [536, 1220];

/// Return whether a SYN on a known four-tuple starts another connection: its initial sequence number is new.
pub fn begins_again(connection: &Connection, side: usize, segment: &Segment) -> bool {
    let (own, peer) = (
        &connection.directions[side],
        &connection.directions[1 - side],
    );
    let is_same_start = if own.has_syn || own.is_seen {
        own.isn == Seq(segment.seq)
    } else {
        // Nothing of this side was captured; the peer's acknowledgments show its sequence number.
        !own.flight.is_started || !peer.is_seen || own.flight.una == Seq(segment.seq) + 1
    };
    if is_same_start {
        return false;
    }
    // Another answer to the same SYN belongs to the same attempt.
    !(segment.flags & ACK != 0 && peer.has_syn && Seq(segment.ack) == peer.isn + 1)
}

/// Infer scaling from the first segment after a SYN whose answer was not captured: a window field of less than half the
/// SYN's window, with nothing received in between, is scaled, because a receiver does not move its right edge back
/// (RFC 9293 §3.8.6, SHLD-14).
#[cold]
pub fn confirm_scale(sent: &mut Direction, segment: &Segment) {
    let is_first = sent.segments == 1 && Seq(segment.seq) == sent.isn + 1;
    if let (Offer::Shift(shift), true) = (sent.syn.offer, is_first) {
        if u32::from(segment.window) < u32::from(sent.syn.window) / 2 {
            (sent.own_scale, sent.own_shift) = (ScaleState::SynConfirmed, shift.min(MAX_SHIFT));
            sent.cold_state().scale_confirming = Some((segment.frame, segment.window));
        }
    }
}

/// Keep the acknowledgment of a SYN/ACK if it does not match the captured SYN.
fn note_answered(acked: &mut Direction, ack: Seq) {
    let is_other =
        acked.has_only_syn && (!ack.is_after(acked.isn) || acked.flight.nxt.is_before(ack));
    if is_other || acked.cold_state.is_some() {
        acked.cold_state().answered = is_other.then_some(ack);
    }
}

/// Correct the captured SYN's number, which is damaged if the SYN/ACK acknowledges another and the third segment of the
/// handshake continues there (RFC 9293 §3.5): a client resets a SYN/ACK for a SYN that it did not send.
#[cold]
pub fn begin_where_answered(sent: &mut Direction, peer_isn: Seq, segment: &Segment) {
    let seq = Seq(segment.seq);
    let is_answered = sent.has_only_syn
        && (sent.cold_state.as_ref()).is_some_and(|cold_state| cold_state.answered == Some(seq))
        && Seq(segment.ack) == peer_isn + 1;
    if !is_answered {
        return;
    }
    sent.cold_state().answered = None;
    sent.cold_state().claim = None;
    sent.isn = seq.minus(1);
    sent.acked_bytes = 1;
    sent.flight.start(seq, segment.time_ns);
    sent.flight.is_acked = true;
    sent.ledger.forget();
    sent.window.anchor(seq);
}

/// Process a SYN or SYN/ACK of the connection.
pub fn take_syn(
    connection: &mut Connection,
    side: usize,
    segment: &Segment,
    evidence: &mut Option<Evidence>,
) -> (Events, Option<u64>) {
    let now_ns = segment.time_ns;
    let seq = Seq(segment.seq);
    let is_answer = segment.flags & ACK != 0;
    let mut events = 0;
    let mut rtt_ns = None;
    note_initiator(connection, side, is_answer);
    let is_resent = connection.directions[side].has_syn && connection.directions[side].isn == seq;
    let is_return = note_copy(connection, side, segment, is_resent);
    if is_resent || is_return || connection.established_ns().is_some() {
        *evidence = Some(resent_syn(connection, side, segment, is_answer));
        connection.directions[side].cold_state().syn_frames().copy = Some((seq, segment.frame));
    }
    if connection.established_ns().is_some() {
        connection.directions[side].cold_state().syn_resent_ns = Some(now_ns);
        // A late copy of the SYN, or a second answer, does not change the agreement (RFC 9293 §3.10.7.4).
        return (event::SYN_RETRANSMISSION | event::RETRANSMISSION, None);
    }
    if is_resent || is_return {
        events |= event::SYN_RETRANSMISSION | event::RETRANSMISSION;
    }
    let (sent, acked) = connection.sent_and_acked(side);
    take_options(sent, acked, segment, is_resent);
    if is_resent {
        sent.ledger.forget();
    } else {
        begin_sequence(sent, segment);
    }
    sent.has_syn = true;
    sent.is_seen = true;
    take_early_data(sent, segment);
    sent.note_timestamps(segment.options.timestamps, now_ns);
    if let (Some((_, echo)), true) = (segment.options.timestamps, is_answer) {
        acked.echo.echoed(echo, now_ns);
    }
    let mut acked_to = acked.flight.una;
    if is_answer {
        note_answered(acked, Seq(segment.ack));
        let answer = crate::tcp::tracker::ack::acknowledge(acked, Seq(segment.ack), segment, false);
        events |= answer.events;
        rtt_ns = answer.rtt_ns;
        if !answer.is_doubted {
            acked_to = Seq(segment.ack);
        }
    }
    take_window(acked, segment, acked_to, is_answer, is_resent);
    if is_resent {
        connection.marks.make_handshake_ambiguous();
    }
    connection.note_syn(is_answer, now_ns);
    settle(connection, side);
    let is_certain = connection.directions[side].own_scale.is_certain();
    connection.directions[1 - side].settle_heard(now_ns, is_certain);
    (events, rtt_ns)
}

/// Compare a SYN with earlier ones of this side; return true if it repeats the sequence number of the one before the last.
fn note_copy(connection: &mut Connection, side: usize, segment: &Segment, is_resent: bool) -> bool {
    let (seq, now_ns) = (Seq(segment.seq), segment.time_ns);
    let is_answer = segment.flags & ACK != 0;
    let own = &mut connection.directions[side];
    let is_return = !is_resent
        && own.has_syn
        && own
            .cold_state
            .as_ref()
            .is_some_and(|cold_state| cold_state.earlier_isn == Some(seq));
    if own.has_syn && !is_resent {
        let isn = own.isn;
        own.cold_state().earlier_isn = Some(isn);
    }
    if is_resent {
        let since_ns = if is_answer {
            connection.syn_ack_ns()
        } else {
            connection.syn_ns()
        };
        let cold_state = connection.directions[side].cold_state();
        let clock_ns = now_ns.saturating_sub(cold_state.early_ns);
        let age_ns = since_ns.map(|ns| clock_ns.saturating_sub(ns).max(0));
        cold_state.syn_copy_ns = cold_state.syn_copy_ns.or(age_ns);
    }
    is_return
}

/// Apply the negotiated options and the SYN's data.
fn take_options(sent: &mut Direction, acked: &Direction, segment: &Segment, is_resent: bool) {
    let offer = offer(segment);
    if let (Offer::Shift(shift), Offer::Absent, true) = (sent.syn.offer, offer, is_resent) {
        sent.cold_state().earlier_shift = Some(shift);
    }
    if segment.payload_len > 0 {
        sent.cold_state().syn_frames().early_data = Some(segment.frame);
    }
    let is_fast_open = segment.options.fast_open || acked.syn.has(syn_kind::FAST_OPEN);
    let early_bytes = match (is_fast_open, is_resent) {
        (true, _) if segment.payload_len > 0 => segment.payload_len.min(u32::from(u16::MAX)) as u16,
        // Linux retransmits the SYN without its data.
        (_, true) => sent.syn.early_bytes,
        _ => 0,
    };
    sent.syn = SynOptions {
        offer,
        mss: segment.options.mss.unwrap_or(0),
        window: segment.window,
        kinds: syn_kinds(segment),
        early_bytes,
    };
    if let Some((tsval, _)) = segment.options.timestamps {
        sent.first_tsval = tsval;
    }
}

/// Begin the sequence space of a direction with its SYN.
fn begin_sequence(sent: &mut Direction, segment: &Segment) {
    let (seq, now_ns) = (Seq(segment.seq), segment.time_ns);
    let end = seq + segment.sequence_length();
    let una = sent.flight.una;
    // A number acknowledged before the first byte was sent belongs to another connection.
    let is_other = una.is_before(seq) || (!sent.is_seen && una != seq + 1);
    let begins = !sent.flight.is_started || is_other || sent.has_syn;
    if begins || !sent.is_seen {
        // Bytes acknowledged before this SYN was captured count from the SYN.
        sent.acked_bytes = u64::from(!begins);
        if let Some(cold_state) = &mut sent.cold_state {
            cold_state.before_bytes = 0;
        }
    }
    if begins {
        sent.flight.start(seq, now_ns);
        sent.ledger.forget();
    }
    sent.flight.nxt = if sent.flight.is_started {
        sent.flight.nxt.max(end)
    } else {
        end
    };
    sent.flight.is_started = true;
    sent.isn = seq;
    sent.has_only_syn = true;
    sent.flight.control = u8::from(!sent.flight.una.is_after(seq));
    if segment.flags & FIN != 0 {
        sent.send_fin(end);
        sent.flight.control += 1;
    }
    if sent.window.is_known {
        // The peer's SYN came first: its window now has a place in this side's sequence space.
        sent.window.anchor(seq + 1);
    }
    let una = sent.flight.una;
    sent.ledger.sent(end, una, now_ns, segment.frame);
}

/// Process data in the SYN (RFC 7413).
fn take_early_data(sent: &mut Direction, segment: &Segment) {
    let now_ns = segment.time_ns;
    if segment.payload_len > 0 {
        sent.data_segments += 1;
        sent.payload_bytes += u64::from(segment.payload_len);
        if sent.data_segments == 1 {
            sent.first_data_ns = now_ns;
        }
        sent.last_data_ns = now_ns;
    }
}

/// Apply the window of a SYN, which is never scaled (RFC 7323 §2.2).
fn take_window(
    acked: &mut Direction,
    segment: &Segment,
    ack: Seq,
    is_answer: bool,
    is_resent: bool,
) {
    let (seq, now_ns) = (Seq(segment.seq), segment.time_ns);
    acked.window.last_raw = segment.window;
    acked.window.advertise(
        now_ns,
        &Advertisement {
            seq,
            ack,
            bytes: u32::from(segment.window),
            unit_bytes: 1,
            is_new_ack: true,
            is_stale: is_resent,
        },
    );
    if segment.window == 0 && is_answer {
        acked.cold_state().zero().begin(segment.frame, now_ns);
    }
}

/// Diagnose a repeated SYN or SYN/ACK: a timeout of its sender (RFC 6298 §2.1), or a lost answer.
fn resent_syn(
    connection: &Connection,
    side: usize,
    segment: &Segment,
    is_answer: bool,
) -> Evidence {
    let clock_ns = connection.directions[side].clock_ns(segment.time_ns);
    let since_ns = if is_answer {
        connection.syn_ack_ns()
    } else {
        connection.syn_ns()
    };
    let own = connection.directions[side].cold_state.as_ref();
    let since_ns = own
        .and_then(|cold_state| cold_state.syn_resent_ns)
        .or(since_ns);
    let cause = if is_answer {
        RetransmissionCause::SynAck
    } else {
        RetransmissionCause::Syn
    };
    let seq = Seq(segment.seq);
    let copy = own.and_then(|cold_state| cold_state.syn_frames.as_ref()?.copy);
    let original = match copy.filter(|(isn, _)| *isn == seq) {
        Some((_, frame)) => Some(frame),
        None => connection.directions[side].newest_copy(seq, segment.frame),
    };
    let diagnosis = if connection.established_ns().is_some() {
        Diagnosis::certain(
            cause,
            "a SYN or SYN/ACK repeated after the handshake was complete",
        )
    } else {
        Diagnosis::certain(cause, "the SYN or SYN/ACK was not answered in time")
    };
    Evidence {
        original_frame: original,
        age_ns: since_ns.map(|ns| clock_ns.saturating_sub(ns).max(0)),
        ..Evidence::of(diagnosis)
    }
}

fn syn_kinds(segment: &Segment) -> u8 {
    let options = &segment.options;
    [
        (options.sack_permitted, syn_kind::SACK_PERMITTED),
        (options.timestamps.is_some(), syn_kind::TIMESTAMPS),
        (options.fast_open, syn_kind::FAST_OPEN),
        (options.multipath != 0, syn_kind::MULTIPATH),
        (segment.flags & ACK != 0, syn_kind::ANSWER),
        (segment.flags & ECE != 0, syn_kind::ECE),
        (segment.flags & CWR != 0, syn_kind::CWR),
        (segment.flags & AE != 0, syn_kind::AE),
    ]
    .into_iter()
    .fold(0, |kinds, (is_there, kind)| {
        kinds | if is_there { kind } else { 0 }
    })
}

/// Read the SYN's offer of scaling. Options that the capture cut off are unknown; options after a malformed one count as
/// absent, since the peer stops there too (Linux `tcp_parse_options`).
fn offer(segment: &Segment) -> Offer {
    match segment.options.window_scale {
        Some(shift) => Offer::Shift(shift),
        None if segment.capture_flags & capture_flag::OPTIONS_CUT != 0 => Offer::Unseen,
        None => Offer::Absent,
    }
}

fn note_initiator(connection: &mut Connection, side: usize, is_answer: bool) {
    if let Initiator::Guessed(_) = connection.marks.initiator() {
        let initiator = if is_answer { 1 - side } else { side };
        connection
            .marks
            .set_initiator(Initiator::Known(initiator as u8));
    }
}

/// Return the offer that the peer's SYN/ACK answered. It carries the option only if the SYN did (RFC 7323 §2.2): if the
/// last copy of the SYN lacks it, an earlier copy was answered.
fn answered_offer(own: &Direction, peer: &SynOptions) -> Offer {
    let earlier = own
        .cold_state
        .as_ref()
        .and_then(|cold_state| cold_state.earlier_shift);
    match (own.syn.offer, peer.offer, earlier) {
        (Offer::Absent, Offer::Shift(_), Some(shift)) if peer.is_answer() => Offer::Shift(shift),
        (offer, _, _) => offer,
    }
}

/// Derive scaling and segment size from the SYNs so far.
fn settle(connection: &mut Connection, syn_side: usize) {
    let syns = [connection.directions[0].syn, connection.directions[1].syn];
    let offers =
        [0, 1].map(|side: usize| answered_offer(&connection.directions[side], &syns[1 - side]));
    let scales = negotiate(offers, syns.map(|syn| syn.is_answer()));
    let default_mss = DEFAULT_MSS[usize::from(connection.marks.ip_version() == 6)];
    // A SYN that was not captured may have offered timestamps.
    let has_timestamps =
        (syns.iter()).all(|syn| syn.offer == Offer::Unseen || syn.has(syn_kind::TIMESTAMPS));
    let has_both = syns.iter().all(|syn| syn.offer != Offer::Unseen);
    for (side, direction) in connection.directions.iter_mut().enumerate() {
        let given = direction
            .cold_state
            .as_ref()
            .and_then(|cold_state| cold_state.given_shift);
        (direction.own_scale, direction.own_shift) = match (scales[side], given) {
            // A copy of the SYN retracts nothing.
            ((state, _), _) if !state.is_certain() && direction.own_scale.is_certain() => {
                (direction.own_scale, direction.own_shift)
            }
            ((state, _), Some(given)) if !state.is_certain() => (ScaleState::Given, given.shift),
            (negotiated, _) => negotiated,
        };
        if syns[1 - side].offer == Offer::Unseen {
            continue;
        }
        let stated = |mss: u16, otherwise: u16| if mss > 0 { mss } else { otherwise };
        let peer_mss = stated(syns[1 - side].mss, default_mss);
        let own_mss = stated(syns[side].mss, u16::MAX);
        direction.mss =
            peer_mss
                .min(own_mss)
                .saturating_sub(if has_timestamps { TIMESTAMPS_BYTES } else { 0 });
        direction.is_mss_certain |= has_both;
    }
    for side in [0, 1] {
        let own = &connection.directions[side];
        let shift = if side == syn_side { 0 } else { own.own_shift };
        if own.own_scale.is_certain() {
            scale_last_window(&mut connection.directions[1 - side], shift);
        }
    }
}

/// Scale the last window; earlier ones were recorded unscaled and cannot be corrected.
fn scale_last_window(acked: &mut Direction, shift: u8) {
    let has_unscaled = (acked.cold_state.as_mut())
        .is_some_and(|cold_state| std::mem::take(&mut cold_state.has_unscaled_windows));
    if has_unscaled {
        acked.window.begin_again(shift);
    }
}
