"""Rounds, a model of the congestion window, and idle restarts (rule 7)."""

from __future__ import annotations

from dataclasses import dataclass

INITIAL_SEGMENTS = 10
"""TCP_INIT_CWND (include/net/tcp.h), RFC 6928."""
MIN_ROUND_TRIP_NS = 1_000_000
"""Shorter paths lose too little to report."""
DELAYED_ACK_NS = 50_000_000


def restart_window(window: int, gap_ns: int, rto_ns: int, initial: int) -> int:
    """Return the window after tcp_cwnd_restart (net/ipv4/tcp_output.c): halved for each RTO beyond the first."""
    floor = min(window, initial)
    while (gap_ns := gap_ns - rto_ns) > 0 and window > floor:
        window //= 2
    return max(window, floor)


@dataclass(slots=True)
class Ramp:
    """The tracked burst after an idle gap."""

    start_ns: int
    round_trip_ns: int
    mss: int
    sent: int
    has_room: bool
    """The receive window had room for another segment after the last."""
    window: int = 0
    """Window before the gap."""
    predicted: int = 0
    """Window that Linux keeps of it."""

    @property
    def longest_round_ns(self) -> int:
        return self.round_trip_ns * 3 // 2 + DELAYED_ACK_NS

    def is_restart(self, now_ns: int) -> bool:
        """Return whether the burst ended at Linux's reduced window and continued with its first, perhaps delayed,
        ACK.
        """
        is_clocked = self.round_trip_ns // 10 * 9 <= now_ns - self.start_ns <= self.longest_round_ns
        is_as_predicted = self.predicted // 2 <= self.sent <= self.predicted + 2 * self.mss
        is_less = self.sent + self.mss < self.window
        return is_clocked and is_as_predicted and is_less and self.has_room


@dataclass(slots=True)
class Congestion:
    round_end: int | None = None
    """SND.MAX when the round began."""
    peak: int = 0
    """Maximum bytes in flight since then."""
    acked: int = 0
    """Bytes acknowledged since then."""
    last_peak: int = 0
    """Peak of the previous round."""
    period_peak: int = 0
    """Peak of the rounds since the last idle gap."""
    window: int = 0
    threshold: int | None = None
    ramp: Ramp | None = None

    def note_flight(self, size: int) -> None:
        self.peak = max(self.peak, size)

    def note_acked(self, size: int) -> None:
        self.acked += size

    def is_round_over(self, una: int) -> bool:
        return self.round_end is None or una > self.round_end

    def end_round(self, nxt: int, flight: int, mss: int, *, is_recovering: bool) -> None:
        """In slow start each acknowledged byte widens the window by one, beyond the threshold by a segment per
        round, if more than half of it was used (tcp_is_cwnd_limited; RFC 5681 §3.1).
        """
        self.period_peak = max(self.period_peak, self.peak)
        window = max(self.window, INITIAL_SEGMENTS * mss)
        was_limited = window < 2 * max(self.peak, self.last_peak)
        if was_limited and not is_recovering:
            is_slow_start = self.threshold is None or window < self.threshold
            window += self.acked if is_slow_start else mss
        self.window, self.last_peak = max(window, self.peak), self.peak
        self.round_end, self.peak, self.acked = nxt, flight, 0

    def note_loss(self, flight: int) -> None:
        """CUBIC continues with seven tenths (RFC 9438 §4.6)."""
        self.window = self.threshold = flight * 7 // 10

    def resume(self, gap_ns: int, rto_ns: int, ramp: Ramp) -> None:
        """Start tracking data sent after an idle time longer than the RTO, unless the path is too short."""
        # After a loss the flight is more reliable than the model.
        ramp.window = self.period_peak if self.threshold is not None else max(self.window, self.period_peak)
        ramp.predicted = restart_window(ramp.window, gap_ns, rto_ns, INITIAL_SEGMENTS * ramp.mss)
        self.window, self.period_peak = ramp.predicted, 0
        can_tell = ramp.round_trip_ns >= MIN_ROUND_TRIP_NS and ramp.mss and ramp.predicted < ramp.window
        self.ramp = ramp if can_tell else None

    def follow(self, now_ns: int, silence_ns: int, length: int, *, flight: int, has_room: bool) -> bool:
        """Process new data after the gap; return whether its sender waited for the first ACK."""
        ramp = self.ramp
        if ramp is None:
            return False
        is_over = now_ns - ramp.start_ns > ramp.longest_round_ns
        has_waited = silence_ns >= ramp.round_trip_ns // 2
        if is_over or has_waited:
            self.ramp = None
            return ramp.is_restart(now_ns)
        ramp.sent += length
        ramp.has_room = has_room
        if flight >= ramp.window:
            self.ramp = None
        return False
