"""RACK: segments sent sufficiently long before a delivered one are lost (RFC 8985; Linux's tcp_recovery.c)."""

from __future__ import annotations

from simulator.rtt import RoundTrip
from simulator.scoreboard import Scoreboard, Sent


class Rack:
    """Times in nanoseconds, the reordering window in microseconds."""

    def __init__(self, round_trip: RoundTrip) -> None:
        self._round_trip = round_trip
        self._sent_ns = 0
        self._end = 0
        self._rtt_ns = 0
        self._advanced = False
        self.reordering_seen = False
        self.reordering = 3
        self.steps = 1
        self._dsack_seen = False
        self._persist = 0
        self._last_delivered = 0

    def advance(self, sent: Sent, now_ns: int) -> None:
        """Record a delivered segment (tcp_rack_advance)."""
        rtt_ns = now_ns - sent.sent_ns
        if sent.ever and rtt_ns // 1000 < self._round_trip.min_us:
            # The original, not the retransmission, was delivered.
            return
        self._advanced = True
        self._rtt_ns = rtt_ns
        if (sent.sent_ns, sent.end) > (self._sent_ns, self._end):
            self._sent_ns, self._end = sent.sent_ns, sent.end

    def see_dsack(self) -> None:
        self._dsack_seen = True

    def adapt(self, delivered_before: int, delivered: int) -> None:
        """Widen the reordering window by one step per round trip with a DSACK (RFC 8985 §6.2 step 4)."""
        if not delivered_before:
            return
        if delivered_before < self._last_delivered:
            self._dsack_seen = False
        if self._dsack_seen:
            self.steps = min(self.steps + 1, 255)
            self._dsack_seen = False
            self._last_delivered = delivered
            self._persist = 16
        elif not self._persist:
            self.steps = 1

    def end_recovery(self) -> None:
        self._persist = max(self._persist - 1, 0)

    def mark_lost(self, board: Scoreboard, now_ns: int, *, in_recovery: bool) -> int | None:
        """Mark segments shown lost by an ACK; return the microseconds until the next check."""
        if not self._advanced:
            return None
        self._advanced = False
        return self.detect(board, now_ns, in_recovery=in_recovery)

    def detect(self, board: Scoreboard, now_ns: int, *, in_recovery: bool) -> int | None:
        window_us = self._window_us(board.sacked, in_recovery=in_recovery)
        again_us: int | None = None
        for sent in board.by_time():
            if (self._sent_ns, self._end) <= (sent.sent_ns, sent.end):
                break
            left_us = self.left_us(sent, now_ns, window_us)
            if left_us <= 0:
                board.mark_lost(sent)
            else:
                again_us = max(again_us or 0, left_us)
        return again_us

    def left_us(self, sent: Sent, now_ns: int, window_us: int) -> int:
        """Return the microseconds until a segment counts as lost (tcp_rack_skb_timeout)."""
        return self._rtt_ns // 1000 + window_us - (now_ns - sent.sent_ns) // 1000

    def _window_us(self, sacked: int, *, in_recovery: bool) -> int:
        if not self.reordering_seen and (in_recovery or sacked >= self.reordering):
            return 0
        return min((self._round_trip.min_us >> 2) * self.steps, self._round_trip.srtt_us)
