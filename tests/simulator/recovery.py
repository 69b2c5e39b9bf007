"""Loss recovery of the sender: which segments count as lost, and which retransmissions follow.

Modelled on tcp_fastretrans_alert and its helpers (Linux net/ipv4/tcp_input.c): with SACK by RACK (RFC 8985) and its
threshold of duplicates, otherwise by NewReno (RFC 6582); timeouts by F-RTO (RFC 5682); undo by DSACK (RFC 3708) and by
timestamps (Eifel, RFC 3522).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.ack import Ack, State
from simulator.clock import MILLISECOND_NS
from simulator.rack import Rack
from simulator.scoreboard import Sent
from simulator.segment import Cause

if TYPE_CHECKING:
    from simulator.sender import Sender


class Recovery:
    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._board = sender.board
        self._rack = Rack(sender.round_trip)
        self._sack = sender.settings.sack
        self._opens = False
        self._point = 1
        # The highest byte sent before the last timeout: retransmissions below it are go-back-N.
        self._timeout_end = 0
        self._may_be_spurious = False
        self._undo_marker: int | None = None
        # Retransmissions of this recovery not yet shown unnecessary; none before the first.
        self._undo_resent: int | None = None
        self._first_resent_stamp: int | None = None
        self.state = State.OPEN
        self.delivered = 0

    @property
    def is_open(self) -> bool:
        return self.state is State.OPEN

    @property
    def is_reducing(self) -> bool:
        return self.state is State.RECOVERY

    def adapt(self, delivered_before: int, in_flight: int) -> None:
        if self._sack:
            self._rack.adapt(delivered_before - in_flight, self.delivered)

    # Why a segment is sent again

    def cause(self, sent: Sent) -> Cause:
        if self._sender.snd_una < self._timeout_end:
            return Cause.LOST_RETRANSMISSION if sent.is_lost_again else Cause.GO_BACK_N
        if self._opens:
            self._opens = False
            return Cause.FAST
        return Cause.LOST_RETRANSMISSION if sent.is_lost_again else Cause.RECOVERY

    def note_resent(self, sent: Sent) -> None:
        self._board.mark_retransmitted(sent)
        if self._first_resent_stamp is None:
            self._first_resent_stamp = self._stamp()
        self._undo_resent = (self._undo_resent or 0) + 1

    # Receiving

    def take_sacks(self, ack: Ack) -> None:
        """Process the SACK blocks, the first of them possibly a DSACK (tcp_sacktag_write_queue)."""
        blocks = list(ack.segment.sacks)
        if not self._sack or not blocks:
            return
        if _is_dsack(blocks, ack.number):
            self._take_dsack(ack, blocks.pop(0)[1])
        now = self._sender.clock.now_ns
        lowest_reordered: int | None = None
        highest = self._board.highest_sacked
        for sent in self._board.newly_sacked(blocks):
            if not sent.ever:
                if sent.start < highest:
                    lowest_reordered = min(lowest_reordered or sent.start, sent.start)
                ack.original_arrived = ack.original_arrived or sent.end <= self._point
                ack.sack_rtt_ns = max(ack.sack_rtt_ns or 0, now - sent.sent_ns)
            self._rack.advance(sent, now)
            self._board.mark_sacked(sent)
            self.delivered += 1
            ack.has_sacked = True
        if lowest_reordered is not None and (self.state is not State.LOSS or self._undo_marker is not None):
            self._see_reordering(lowest_reordered)

    def clean(self, ack: Ack) -> None:
        """Remove acknowledged segments from the queue, and take their round trip (tcp_clean_rtx_queue)."""
        now, highest = self._sender.clock.now_ns, self._board.highest_sacked
        acked = self._board.take_acked(ack.number)
        first_ns: int | None = None
        lowest_reordered: int | None = None
        for sent in acked:
            if sent.ever:
                ack.resent_acked = True
            elif not sent.sacked:
                first_ns = first_ns or sent.sent_ns
                lowest_reordered = min(lowest_reordered or sent.start, sent.start)
                ack.original_arrived = ack.original_arrived or sent.end <= self._point
            if not sent.sacked and self._sack:
                self.delivered += 1
                if not self._is_original_echoed(sent, ack):
                    self._rack.advance(sent, now)
        if acked:
            ack.has_acked = ack.sets_timer = True
            if not self._sack:
                self._forget_duplicates(len(acked))
                if ack.resent_acked:
                    ack.original_arrived = False
            elif lowest_reordered is not None and lowest_reordered < highest:
                self._see_reordering(lowest_reordered, highest)
        elif self._board and ack.sack_rtt_ns is not None and ack.sack_rtt_ns > now - self._board.head.sent_ns:
            ack.sets_timer = True
        self._sample(ack, None if first_ns is None or ack.resent_acked else now - first_ns)

    def decide(self, ack: Ack, *, duplicates: int) -> None:
        """Update the congestion state and the losses (tcp_fastretrans_alert)."""
        if self.state is State.OPEN:
            self._first_resent_stamp = None
        elif self._sender.snd_una >= self._point and self.state is State.RECOVERY:
            if not self._sack:
                self._board.sacked = 0
            if self._finish(ack):
                return
            self._sender.congestion.end_reduction()
        if self.state is State.RECOVERY:
            if not ack.advanced:
                self._count_duplicates(duplicates)
            elif self._undo_partial(ack):
                return
            if self._undo_by_dsack():
                self._keep_open()
            self._identify(ack)
            if self.state is not State.RECOVERY and not self._begin():
                return
        elif self.state is State.LOSS:
            self._go_on_after_timeout(ack, duplicates)
            self._identify(ack)
            if not (self.is_open or ack.retransmission_lost):
                return
            if not self._begin():
                return
        else:
            if not self._sack:
                if ack.advanced:
                    self._board.sacked = 0
                self._count_duplicates(duplicates)
            self._undo_by_dsack()
            self._identify(ack)
            if not self._begin():
                return
        ack.sends_lost = True

    def transmit(self, ack: Ack) -> None:
        """Send what `decide` requested (tcp_xmit_recovery)."""
        if ack.sends_new:
            before = self._sender.snd_nxt
            self._sender.push(wait_for_small=False)
            if self._sender.snd_nxt > before or self._sender.snd_nxt > self._point:
                return
            self._may_be_spurious = False
            self._sender.resend_lost()
        elif ack.sends_lost:
            self._sender.resend_lost()

    def look_again(self) -> None:
        """Process RACK's timer: segments it waited for are now lost (tcp_rack_reo_timeout)."""
        lost_before, resent_before = self._board.lost, self._board.retransmitted
        self._detect()
        if (self._board.lost, self._board.retransmitted) != (lost_before, resent_before):
            if self.state is not State.RECOVERY:
                self._enter()
                self._sender.congestion.pace(1, self._board.in_flight, advanced=False, newly_lost=True)
            self._sender.resend_lost()

    def enter_loss(self) -> None:
        """Process a retransmission timeout: everything is lost except recently sent segments (tcp_enter_loss)."""
        sender, board = self._sender, self._board
        if not self._sack:
            board.sacked = 0
        now = sender.clock.now_ns
        for sent in board:
            is_recent = self._sack and sent is not board.head and self._rack.left_us(sent, now, 0) > 0
            if not sent.sacked and not is_recent:
                board.mark_lost(sent)
            sent.is_lost_again = False
        is_new = self.state in (State.OPEN, State.DISORDER)
        if is_new or sender.snd_una >= self._point or (self.state is State.LOSS and not sender.retransmits):
            sender.congestion.lose(board.in_flight, is_new=True)
            self._mark_undo()
        else:
            sender.congestion.lose(board.in_flight, is_new=False)
        self._may_be_spurious = is_new or sender.retransmits > 0
        self.state = State.LOSS
        self._opens = False
        self._point = self._timeout_end = sender.snd_nxt
        sender.forget_probe()

    # Steps of the above

    def _identify(self, ack: Ack) -> None:
        if not self._board:
            return
        if self._sack:
            resent_before = self._board.retransmitted
            again_us = self._rack_marks()
            if again_us is not None:
                ack.sets_timer = False
                self._sender.start_reordering_timer(again_us)
            ack.retransmission_lost = self._board.retransmitted < resent_before
        elif self._is_head_lost(ack) and not self._board.head.lost:
            self._board.mark_lost(self._board.head)

    def _is_head_lost(self, ack: Ack) -> bool:
        """NewReno: three duplicates before recovery, a partial ACK within it (tcp_newreno_mark_lost)."""
        if self.state is State.RECOVERY:
            return ack.advanced
        return self.state is not State.LOSS and self._board.sacked >= self._rack.reordering

    def _rack_marks(self) -> int | None:
        in_recovery = self.state in (State.RECOVERY, State.LOSS)
        return self._rack.mark_lost(self._board, self._sender.clock.now_ns, in_recovery=in_recovery)

    def _detect(self) -> None:
        in_recovery = self.state in (State.RECOVERY, State.LOSS)
        self._rack.detect(self._board, self._sender.clock.now_ns, in_recovery=in_recovery)

    def _begin(self) -> bool:
        """Enter recovery if something is lost."""
        if not self._board.lost:
            self._keep_open()
            return False
        self._enter()
        return True

    def _enter(self) -> None:
        sender = self._sender
        if self.state is not State.LOSS:
            for sent in self._board:
                sent.is_lost_again = False
        sender.counts["recoveries"] += 1
        self._opens = True
        self._point = sender.snd_nxt
        self._mark_undo()
        sender.congestion.reduce()
        sender.forget_probe()
        self.state = State.RECOVERY

    def _keep_open(self) -> None:
        head_resent = bool(self._board) and self._board.head.ever
        is_disordered = bool(self._board.left_out or self._board.retransmitted or head_resent)
        state = State.DISORDER if is_disordered else State.OPEN
        if self.state is not state:
            self.state = state
            self._point = self._sender.snd_nxt

    def _go_on_after_timeout(self, ack: Ack, duplicates: int) -> None:
        """Apply F-RTO, then slow start through the lost segments (tcp_process_loss)."""
        sender = self._sender
        is_over = sender.snd_una >= self._point
        if ack.advanced and self._undo_loss(ack, proven=False):
            return
        if self._may_be_spurious:
            if ack.original_arrived and self._undo_loss(ack, proven=True):
                return
            if sender.snd_nxt > self._point:
                if ack.has_sacked or duplicates:
                    self._may_be_spurious = False
            elif ack.advanced and not is_over:
                self._point = sender.snd_nxt
                if sender.can_send_new():
                    ack.sends_new = True
                    return
                self._may_be_spurious = False
        if is_over:
            self._finish(ack)
            return
        if not self._sack:
            if sender.snd_nxt > self._point and duplicates:
                self._count_duplicates(duplicates)
            elif ack.advanced:
                self._board.sacked = 0
        ack.sends_lost = True

    def _finish(self, ack: Ack) -> bool:
        """Leave recovery at its end; return whether NewReno must wait for another ACK (tcp_try_undo_recovery)."""
        if self._may_undo(ack):
            self._sender.congestion.undo()
            self._sender.counts["undone"] += 1
        self._undo_marker = None
        if not self._sack and self._sender.snd_una == self._point:
            # Duplicate ACKs of unnecessary retransmissions must not start another recovery (RFC 6582 §3.2 step 1).
            return True
        self._rack.end_recovery()
        self.state = State.OPEN
        return False

    def _undo_partial(self, ack: Ack) -> bool:
        """Handle a hole filled by a late original instead of its retransmission (tcp_try_undo_partial)."""
        if self._undo_marker is None or not self._is_delayed(ack):
            return False
        if self._board.sacked:
            self._see_reordering(ack.una_before, None if self._sack else self._sender.snd_nxt)
        if self._board.retransmitted:
            return True
        self._first_resent_stamp = None
        self._sender.congestion.undo()
        self._board.unmark_lost()
        self._undo_marker = None
        self._sender.counts["undone"] += 1
        self._keep_open()
        return False

    def _undo_loss(self, ack: Ack, *, proven: bool) -> bool:
        """Handle a spurious timeout (tcp_try_undo_loss)."""
        if not proven and not self._may_undo(ack):
            return False
        self._board.unmark_lost()
        self._sender.congestion.undo()
        self._undo_marker = None
        self._sender.counts["undone"] += 1
        self._sender.retransmits = 0
        self._timeout_end = 0
        if proven or self._sack:
            self.state = State.OPEN
        return True

    def _undo_by_dsack(self) -> bool:
        """Handle retransmissions that all proved unnecessary (tcp_try_undo_dsack)."""
        if self._undo_marker is None or self._undo_resent != 0:
            return False
        self._sender.congestion.undo()
        self._undo_marker = None
        self._sender.counts["undone"] += 1
        return True

    def _mark_undo(self) -> None:
        self._undo_marker = self._sender.snd_una
        self._undo_resent = self._board.retransmitted or None

    def _may_undo(self, ack: Ack) -> bool:
        if self._undo_marker is None:
            return False
        return self._undo_resent == 0 or self._is_delayed(ack)

    def _is_delayed(self, ack: Ack) -> bool:
        """Return whether the ACK echoes a segment sent before the first retransmission (Eifel)."""
        return self._first_resent_stamp is not None and 0 < ack.echo < self._first_resent_stamp

    def _is_original_echoed(self, sent: Sent, ack: Ack) -> bool:
        return sent.ever and 0 < ack.echo < sent.sent_ns // MILLISECOND_NS + 1

    def _take_dsack(self, ack: Ack, end: int) -> None:
        ack.is_dsack = True
        ack.dsack_ends.append(end)
        self._rack.see_dsack()
        if self._undo_marker is not None and self._undo_resent and end > self._undo_marker:
            self._undo_resent -= 1

    def _see_reordering(self, lowest: int, highest: int | None = None) -> None:
        highest = self._board.highest_sacked if highest is None else highest
        if lowest < highest:
            self._rack.reordering_seen = True
            extent = -(-(highest - lowest) // self._sender.settings.segment_bytes)
            self._rack.reordering = min(max(self._rack.reordering, extent), 300)

    def _count_duplicates(self, duplicates: int) -> None:
        if self._sack or not duplicates:
            return
        board = self._board
        board.sacked += duplicates
        self.delivered += duplicates
        most = len(board) - min(max(board.lost, 1), len(board))
        if board.sacked > most:
            board.sacked = most
            self._rack.reordering = min(len(board) + duplicates, 300)

    def _forget_duplicates(self, acked: int) -> None:
        self.delivered += max(acked - self._board.sacked, 1)
        self._board.sacked = max(self._board.sacked - (acked - 1), 0)
        most = len(self._board) - min(max(self._board.lost, 1), len(self._board))
        self._board.sacked = min(self._board.sacked, most)

    def _sample(self, ack: Ack, rtt_ns: int | None) -> None:
        if rtt_ns is None:
            rtt_ns = ack.sack_rtt_ns
        if rtt_ns is not None:
            self._sender.sample(rtt_ns)
        elif ack.has_acked and ack.echo:
            self._sender.sample_echo(ack.echo, self._stamp())

    def _stamp(self) -> int:
        return self._sender.clock.now_ns // MILLISECOND_NS + 1


def _is_dsack(blocks: list[tuple[int, int]], ack: int) -> bool:
    """RFC 2883: the first block is below the ACK or within the second."""
    first = blocks[0]
    if first[0] < ack:
        return True
    return len(blocks) > 1 and blocks[1][0] <= first[0] and first[1] <= blocks[1][1]
