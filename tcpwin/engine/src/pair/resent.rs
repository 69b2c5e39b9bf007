//! Causes of retransmissions: the fate of the previous copy, and what the receiver had when the new one arrived.

use super::packet::Sighting;
use super::run::{Pairer, Row, Rows};
use super::tally::Fate;
use super::waiting::{Mark, NONE};
use crate::sequence::Seq;
use crate::wire::ACK;

/// Times of a capture may disagree by this much between its two directions.
const DISAGREEMENT_NS: i64 = 1_000_000;

/// The cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendCause {
    /// The previous copy was lost on the path.
    Lost,
    /// The previous copy arrived, but its ACKs were lost.
    AckLost,
    /// The receiver already had the bytes and no ACK was lost: the sender did not wait, or the previous copy arrived
    /// late.
    Needless,
    /// The previous copy reached the second point and was dropped after it, by the receiver or on the way to it.
    Refused,
    /// The cause cannot be determined.
    Unknown,
}

impl ResendCause {
    pub const ALL: [ResendCause; 5] = [
        ResendCause::Lost,
        ResendCause::AckLost,
        ResendCause::Needless,
        ResendCause::Refused,
        ResendCause::Unknown,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ResendCause::Lost => "lost",
            ResendCause::AckLost => "ack_lost",
            ResendCause::Needless => "needless",
            ResendCause::Refused => "refused",
            ResendCause::Unknown => "unknown",
        }
    }
}

/// Maximum delay of an ACK.
const MAX_SILENT_NS: i64 = 500_000_000;
/// Maximum number of retransmissions waiting for an ACK that decides.
const MAX_OPEN: usize = 1 << 14;
/// ACKs of its bytes among which a DSACK is expected: the first may have left earlier.
const ACKS_EXPECTED: u8 = 2;

/// A retransmission that arrived, for which a DSACK may still show that the receiver had the bytes.
#[derive(Debug)]
pub struct Open {
    start: Seq,
    end: Seq,
    cause: ResendCause,
    ack_was_lost: bool,
    /// ACKs of its bytes so far.
    acks: u8,
    row: Option<Row>,
}

/// The cause of a retransmission and its previous copy.
#[derive(Clone, Copy, Debug)]
pub struct Resent {
    pub cause: ResendCause,
    /// Near-point frame of the previous copy, if it was lost.
    pub lost_frame: u64,
}

/// A packet whose fate is known, for the row output, and the cause if it is a retransmission.
pub struct PacketOutcome {
    pub row: Option<Row>,
    pub resent: Option<Resent>,
    pub has_arrived: bool,
}

impl<R: Rows> Pairer<'_, R> {
    /// Record in a retransmission's mark what is known as it leaves.
    pub fn note_copy_before(&mut self, number: u32, packet: &Sighting, mark: &mut Mark) {
        let path = self.direction(number);
        let first = packet.start();
        mark.was_covered = path.is_covered(first, packet.end());
        mark.was_lacking = path.lacks_first_of(packet);
        let acked_since = |arrived_ns: i64| path.last_ack_ns > arrived_ns;
        mark.copy_was_refused = path.arrived_ns(first, u64::MAX).is_some_and(acked_since);
        let near = path.near;
        let copies = self.waiting_with(number, near, first, first + 1);
        let newest = copies
            .into_iter()
            .max_by_key(|at| self.pending.get(*at).packet.frame);
        mark.copy_before = newest.map(|at| self.pending.handle(at));
        mark.ack_was_lost = self.is_ack_lost(number, packet);
    }

    /// Return true if an ACK of a packet's bytes left the receiver long enough ago to have arrived, and did not.
    fn is_ack_lost(&self, number: u32, packet: &Sighting) -> bool {
        let path = self.direction(number);
        let covers = |acked: Option<Seq>| acked.is_some_and(|acked| !acked.is_before(packet.end()));
        if !covers(path.acked) || covers(path.acked_at_near) {
            return false;
        }
        let back = self.direction(number ^ 1);
        let patience_ns = back.patience_ns();
        let is_overdue = |at: &u32| {
            packet
                .time_ns
                .saturating_sub(self.pending.get(*at).packet.time_ns)
                > patience_ns
        };
        let after = |at: &u32| (*at != NONE).then(|| self.pending.next_in_direction(*at));
        let is_entry = |at: &u32| *at != NONE;
        let fresh = std::iter::successors(Some(back.fresh), after).take_while(is_entry);
        // Numbers rise in the order of departure (RFC 9293 §3.4): the newest ACK acknowledges most.
        let newest = fresh
            .take_while(is_overdue)
            .last()
            .unwrap_or_else(|| match back.fresh {
                NONE => back.lists[back.near.index()].last,
                fresh => self.pending.previous_in_direction(fresh),
            });
        let before = |at: &u32| (*at != NONE).then(|| self.pending.previous_in_direction(*at));
        std::iter::successors(Some(newest), before)
            .take_while(is_entry)
            .map(|at| &self.pending.get(at).packet)
            .find(|lost| lost.has(ACK))
            .is_some_and(|lost| covers(Some(Seq(lost.ack))))
    }

    /// Update the retransmissions of a packet that was given up.
    pub fn note_given_up(&mut self, number: u32, handle: (u32, u32), fate: Fate) {
        let packet = &self.pending.get(handle.0).packet;
        let (frame, start, end) = (packet.frame, packet.start(), packet.end());
        let near = self.direction(number).near;
        for at in self.waiting_with(number, near, start, end) {
            let mark = &mut self.pending.get_mut(at).mark;
            if mark.copy_before == Some(handle) {
                mark.copy_is_outside = fate == Fate::Outside;
                mark.lost_before = if mark.copy_is_outside { 0 } else { frame };
            }
        }
    }

    /// Determine the cause of a retransmission: when it arrives at the far point, or by what was known when it left if
    /// it does not arrive.
    pub fn judge_resent(
        &mut self,
        number: u32,
        packet: &Sighting,
        mark: &Mark,
        arrival: Option<&Sighting>,
    ) -> Resent {
        let path = self.direction(number);
        let (start, end) = (packet.start(), packet.end());
        let waiting = mark
            .copy_before
            .filter(|handle| self.pending.contains(*handle));
        let is_hole = waiting.is_some_and(|(at, _)| self.pending.get(at).mark.has_hole);
        let is_outside = waiting.map_or(mark.copy_is_outside, |(at, _)| {
            let copy = self.pending.get(at);
            !is_hole && self.is_outside(number, &copy.packet, copy.mark)
        });
        let lost_frame = match waiting {
            _ if is_outside => 0,
            Some((at, _)) => self.pending.get(at).packet.frame,
            None => mark.lost_before,
        };
        let (is_covered, lacks_first) = match arrival {
            // The retransmission's own ACK has an earlier time than the retransmission, because the capture's times
            // disagree by direction.
            Some(far) if self.is_answered_early(number, mark, waiting, far.time_ns) => {
                (false, true)
            }
            Some(_) => (path.is_covered(start, end), path.lacks_first_of(packet)),
            None => (mark.was_covered, mark.was_lacking),
        };
        let has_sack = path.has_sack || path.offers_sack && self.direction(number ^ 1).offers_sack;
        let arrived_ns = path.arrived_ns(start, arrival.map_or(u64::MAX, |far| far.frame));
        let cause = if is_covered {
            if mark.ack_was_lost {
                ResendCause::AckLost
            } else {
                ResendCause::Needless
            }
        } else if is_outside {
            ResendCause::Unknown
        } else if lost_frame != 0 {
            if is_hole || self.progress[path.far().index()].missed == 0 {
                ResendCause::Lost
            } else {
                ResendCause::Unknown
            }
        } else if lacks_first && path.sent_end == Some(end) {
            // Its ACK may have been delayed.
            ResendCause::Unknown
        } else if let Some(arrived_ns) = arrived_ns {
            // Since the previous copy arrived, an ACK has left that would have reported it, or none although one was
            // due (RFC 1122 §4.2.3.2). If the receiver had the data anyway and sends DSACKs, one will show it.
            let patience_ns = if has_sack { 0 } else { DISAGREEMENT_NS };
            let acked_since = path.last_ack_ns > arrived_ns.saturating_add(patience_ns);
            let was_silent = has_sack
                && arrival
                    .is_some_and(|far| far.time_ns.saturating_sub(arrived_ns) > MAX_SILENT_NS);
            if !has_sack && !lacks_first {
                ResendCause::Needless
            } else if acked_since || was_silent {
                ResendCause::Refused
            } else {
                ResendCause::Unknown
            }
        } else if arrival.is_none() && has_sack && mark.copy_was_refused {
            ResendCause::Refused
        } else {
            // Neither capture has the previous copy.
            ResendCause::Unknown
        };
        if let (Some((at, _)), Some(_)) = (waiting, arrival) {
            self.pending.get_mut(at).mark.is_replaced = true;
        }
        Resent { cause, lost_frame }
    }

    /// Count a packet, and the cause if it is a retransmission; deferred while a DSACK may still decide.
    pub fn record_outcome(
        &mut self,
        number: u32,
        packet: &Sighting,
        mark: &Mark,
        outcome: PacketOutcome,
    ) {
        let PacketOutcome {
            row,
            resent,
            has_arrived,
        } = outcome;
        let Some(resent) = resent else {
            row.into_iter().for_each(|row| self.rows.take(row));
            return;
        };
        let is_open =
            has_arrived && matches!(resent.cause, ResendCause::Refused | ResendCause::Unknown);
        let open = Open {
            start: packet.start(),
            end: packet.end(),
            cause: resent.cause,
            ack_was_lost: mark.ack_was_lost,
            acks: 0,
            row,
        };
        if !is_open {
            self.close_resent(number, open);
            return;
        }
        let waiting = &mut self.direction_mut(number).open_resent;
        waiting.push_back(open);
        if waiting.len() > MAX_OPEN {
            let oldest = waiting.pop_front();
            oldest
                .into_iter()
                .for_each(|oldest| self.close_resent(number, oldest));
        }
    }

    /// Process an ACK that leaves the receiver: a DSACK for a retransmission shows that it was needless (RFC 2883).
    #[cold]
    pub fn note_ack_of_resent(&mut self, number: u32, acked: Seq, duplicate: Option<(Seq, Seq)>) {
        let open = std::mem::take(&mut self.direction_mut(number).open_resent);
        for mut each in open {
            let is_reported = duplicate.is_some_and(|(left, right)| {
                left.is_before(each.end) && each.start.is_before(right)
            });
            each.acks += u8::from(!acked.is_before(each.end));
            if is_reported {
                each.cause = match each.ack_was_lost {
                    true => ResendCause::AckLost,
                    false => ResendCause::Needless,
                };
            }
            if is_reported || each.acks >= ACKS_EXPECTED {
                self.close_resent(number, each);
            } else {
                self.direction_mut(number).open_resent.push_back(each);
            }
        }
    }

    /// Count all open retransmissions, because no more ACKs will arrive.
    pub fn close_all_resent(&mut self, number: u32) {
        for each in std::mem::take(&mut self.direction_mut(number).open_resent) {
            self.close_resent(number, each);
        }
    }

    fn close_resent(&mut self, number: u32, open: Open) {
        self.direction_mut(number).resent_by_cause[open.cause as usize] += 1;
        if let Some(mut row) = open.row {
            if let Some(resent) = &mut row.resent {
                resent.cause = open.cause;
            }
            self.rows.take(row);
        }
    }

    /// Return true if an acknowledgment of a packet's bytes can only refer to the copy that arrives now.
    fn is_answered_early(
        &self,
        number: u32,
        mark: &Mark,
        copy_before: Option<(u32, u32)>,
        arrival_ns: i64,
    ) -> bool {
        let since_ns = arrival_ns.saturating_sub(self.direction(number).news_ns);
        let is_alone = copy_before.is_some_and(|(at, _)| !self.pending.get(at).mark.is_replaced);
        is_alone && !mark.was_covered && since_ns.saturating_abs() <= DISAGREEMENT_NS
    }
}
