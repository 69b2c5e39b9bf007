"""The congestion window in segments: slow start, avoidance, proportional rate reduction, undo, idle restart.

Sources: RFC 5681, RFC 6937 and RFC 2861 as implemented in Linux (tcp_cong.c, tcp_cwnd_reduction, tcp_cwnd_restart).
"""

from __future__ import annotations

INFINITE = 1 << 30


class Congestion:
    def __init__(self, initial: int, beta: float) -> None:
        self._initial = initial
        self._beta = beta
        self._counted = 0
        self._prior_window = initial
        self._prior_threshold: int | None = None
        self._delivered = 0
        self.sent_in_reduction = 0
        self.window = initial
        self.threshold = INFINITE
        self.is_limited = False

    def grow(self, acked: int) -> None:
        """Process segments newly acknowledged outside a reduction."""
        if not self.is_limited:
            return
        if self.window < self.threshold:
            before, self.window = self.window, min(self.window + acked, self.threshold)
            acked -= self.window - before
        self._counted += acked
        if self._counted >= self.window:
            self._counted -= self.window
            self.window += 1

    def reduce(self) -> None:
        """Begin a reduction (tcp_init_cwnd_reduction)."""
        self._delivered = self.sent_in_reduction = self._counted = 0
        self._prior_window = self.window
        self._prior_threshold = self._current_threshold()
        self.threshold = max(int(self.window * self._beta), 2)

    def pace(self, delivered: int, in_flight: int, *, advanced: bool, newly_lost: bool) -> None:
        """Apply proportional rate reduction (RFC 6937, with its slow start reduction bound)."""
        if delivered <= 0:
            return
        self._delivered += delivered
        if in_flight > self.threshold:
            due = -(-self.threshold * self._delivered // max(self._prior_window, 1)) - self.sent_in_reduction
        else:
            due = max(self._delivered - self.sent_in_reduction, delivered) + (advanced and not newly_lost)
            due = min(self.threshold - in_flight, due)
        # The fast retransmission itself is always sent.
        self.window = max(in_flight + max(due, 0 if self.sent_in_reduction else 1), 1)

    def end_reduction(self) -> None:
        if self.threshold < INFINITE:
            self.window = self.threshold

    def lose(self, in_flight: int, *, is_new: bool) -> None:
        """Process a retransmission timeout (tcp_enter_loss)."""
        if is_new:
            self._prior_window = self.window
            self._prior_threshold = self._current_threshold()
            self.threshold = max(int(self.window * self._beta), 2)
        self._counted = 0
        self.window = in_flight + 1

    def undo(self) -> None:
        if self._prior_threshold is not None:
            self.window = max(self.window, self._prior_window)
            self.threshold = max(self.threshold, self._prior_threshold)

    def restart(self, idle_us: int, rto_us: int) -> None:
        """Halve once for each RTO without data after the first, but not below the initial window."""
        least = min(self._initial, self.window)
        self.threshold = self._current_threshold()
        idle_us -= rto_us
        while idle_us > 0 and self.window > least:
            self.window >>= 1
            idle_us -= rto_us
        self.window = max(self.window, least)

    def _current_threshold(self) -> int:
        """Return tcp_current_ssthresh's threshold: at least three quarters of the window."""
        if self.threshold >= INFINITE:
            return INFINITE
        return max(self.threshold, (self.window >> 1) + (self.window >> 2))
