"""Rounds, a model of the congestion window, and the restart after an idle gap (rule 7)."""

from __future__ import annotations

from dataclasses import dataclass

INITIAL_SEGMENTS = 10
"""TCP_INIT_CWND (include/net/tcp.h), RFC 6928."""
MIN_ROUND_TRIP_NS = 1_000_000
"""A shorter path loses too little to report."""
DELAYED_ACK_NS = 50_000_000


def restart_window(window: int, gap_ns: int, rto_ns: int, initial: int) -> int:
    """Return the window after tcp_cwnd_restart (net/ipv4/tcp_output.c): halved per RTO beyond the first."""
    floor = min(window, initial)
    while (gap_ns := gap_ns - rto_ns) > 0 and window > floor:
        window //= 2
    return max(window, floor)


@dataclass(slots=True)
class Ramp:
    """The burst after an idle gap, while it is followed."""

    start_ns: int
    round_trip_ns: int
    mss: int
    sent: int
    has_room: bool
    """The receive window held another segment behind the last."""
    window: int = 0
    """Before the gap."""
    predicted: int = 0
    """What Linux leaves of it."""

    @property
    def longest_round_ns(self) -> int:
        return self.round_trip_ns * 3 // 2 + DELAYED_ACK_NS

    def is_restart(self, now_ns: int) -> bool:
        """The burst ended as Linux's cut window would end it, and continues with its first ACK, maybe a delayed one."""
        is_clocked = self.round_trip_ns // 10 * 9 <= now_ns - self.start_ns <= self.longest_round_ns
        is_as_predicted = self.predicted // 2 <= self.sent <= self.predicted + 2 * self.mss
        is_less = self.sent + self.mss < self.window
        return is_clocked and is_as_predicted and is_less and self.has_room


@dataclass(slots=True)
class Congestion:
    round_end: int | None = None
    """SND.MAX when the round began."""
    peak: int = 0
    """Most bytes in flight since then."""
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
        """In slow start each acknowledged byte widens the window by one, beyond the threshold a round by a segment,
        while more than half of it was used (tcp_is_cwnd_limited; RFC 5681 §3.1)."""
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
        """Data is sent after nothing was in flight for longer than the RTO; a path too short is not followed."""
        # After a loss the model is no longer to be trusted, what was in flight is.
        ramp.window = self.period_peak if self.threshold is not None else max(self.window, self.period_peak)
        ramp.predicted = restart_window(ramp.window, gap_ns, rto_ns, INITIAL_SEGMENTS * ramp.mss)
        self.window, self.period_peak = ramp.predicted, 0
        can_tell = ramp.round_trip_ns >= MIN_ROUND_TRIP_NS and ramp.mss and ramp.predicted < ramp.window
        self.ramp = ramp if can_tell else None

    def follow(self, now_ns: int, silence_ns: int, length: int, *, flight: int, has_room: bool) -> bool:
        """New data after the gap; whether it shows that its sender had waited for the first ACK."""
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
