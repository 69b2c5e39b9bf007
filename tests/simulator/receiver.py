"""The receiving half of a host: reassembly, SACK and DSACK, timing of ACKs, offered windows.

Sources: RFC 9293 §3.10.7.4, RFC 5681 §4.2, RFC 2018, RFC 2883, RFC 7323 §4.3 and §5, Linux's quick ACKs.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.clock import Clock, Timer
from simulator.segment import Block, Segment
from simulator.settings import Receiving

# The maximum of a SYN, which is never scaled.
SYN_WINDOW = 65535


class Receiver:
    """Judges each arriving segment, then requests an ACK immediately or delayed.

    Attributes:
        rcv_nxt: the next expected byte.
        duplicates: arrivals of data already received.
        dsacks: ACKs with a DSACK.
        delivered: in-order payload.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Receiving,
        *,
        mss: int,
        unit: int,
        sack: bool,
        blocks: int,
        tick_ns: int,
        send_ack: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._mss = mss
        self._unit = unit
        self._sack = sack
        self._blocks = blocks
        self._send_ack = send_ack
        self._delay = Timer(clock, tick_ns, send_ack)
        self._quick = settings.quick_acks
        # Received beyond a hole; the block that changed last comes first (RFC 2018 §4).
        self._held: list[Block] = []
        self._dsack: Block | None = None
        self._acked = 0
        self._unread = 0
        self._right_edge = 0
        self._fin: int | None = None
        self.rcv_nxt = 0
        self.ts_recent = 0
        self.duplicates = 0
        self.dsacks = 0
        self.delivered = 0
        for _, end in settings.stalls:
            clock.at(end, self._read_on)

    def open(self, timestamps: tuple[int, int] | None) -> None:
        """Process the peer's SYN."""
        self.rcv_nxt = self._acked = 1
        self.ts_recent = timestamps[0] if timestamps else 0
        self._right_edge = 1 + min(self._offer(), SYN_WINDOW)

    @property
    def is_finished(self) -> bool:
        return self._fin is not None and self.rcv_nxt > self._fin

    def hear(self, segment: Segment) -> None:
        """Remember the timestamp to echo (RFC 7323 §4.3)."""
        if segment.timestamps and segment.seq <= self._acked:
            self.ts_recent = max(self.ts_recent, segment.timestamps[0])

    def take(self, segment: Segment) -> None:
        """Process a segment with payload or FIN."""
        if segment.is_needless is None:
            segment.is_needless = self._has(segment.seq, segment.end)
        if segment.end <= self.rcv_nxt or self._is_held(segment.seq, segment.end):
            self.duplicates += 1
            self._dsack = (segment.seq, segment.end) if self._sack else None
            self._quick = max(self._quick, 2)
            self._send_ack()
        elif segment.end - segment.fin > self._right_edge or (self._settings.shrinks and self._is_stalled()):
            self._send_ack()
        else:
            self._accept(segment)

    def window(self) -> int:
        """Return the offered window in bytes: it shrinks only in a shrinking stall, and is never a silly window."""
        if self._settings.shrinks and self._is_stalled():
            self._right_edge = self.rcv_nxt
            return 0
        # Never retract an offered window.
        wanted = max(self._right_edge - self.rcv_nxt, self._offer())
        window = -(-wanted // self._unit) * self._unit
        self._right_edge = self.rcv_nxt + window
        return window

    def sent_ack(self) -> tuple[tuple[Block, ...], bool]:
        """Record a sent ACK; return its SACK blocks and whether the first is a DSACK."""
        self._delay.stop()
        self._acked = self.rcv_nxt
        self._quick = max(self._quick - 1, 0)
        dsack, self._dsack = self._dsack, None
        if not self._sack:
            return (), False
        blocks = ([dsack] if dsack else []) + self._held
        if dsack:
            self.dsacks += 1
        return tuple(blocks[: self._blocks]), dsack is not None

    def _accept(self, segment: Segment) -> None:
        had_hole = bool(self._held)
        if segment.fin:
            self._fin = segment.end - 1
        if segment.seq > self.rcv_nxt:
            self._hold(segment.seq, segment.end)
            self._send_ack()
            return
        before = self.rcv_nxt
        self.rcv_nxt = segment.end
        for block in sorted(self._held):
            if block[0] <= self.rcv_nxt:
                self.rcv_nxt = max(self.rcv_nxt, block[1])
                self._held.remove(block)
        received = self.rcv_nxt - before - (self._fin is not None and self.rcv_nxt > self._fin)
        self.delivered += received
        if self._is_stalled():
            self._unread += received
        if had_hole or self._quick or self.is_finished or self.rcv_nxt - self._acked > self._mss:
            self._send_ack()
        elif self._delay.expires_ns is None:
            self._delay.start(self._settings.delayed_ack_ns)

    def _hold(self, start: int, end: int) -> None:
        for block in [block for block in self._held if block[0] <= end and start <= block[1]]:
            self._held.remove(block)
            start, end = min(start, block[0]), max(end, block[1])
        self._held.insert(0, (start, end))

    def _has(self, start: int, end: int) -> bool:
        return end <= self.rcv_nxt or self._is_held(start, end)

    def _is_held(self, start: int, end: int) -> bool:
        return any(left <= start and end <= right for left, right in self._held)

    def _is_stalled(self) -> bool:
        return any(start <= self._clock.now_ns < end for start, end in self._settings.stalls)

    def _offer(self) -> int:
        free = self._settings.buffer_bytes - self._unread
        return free // self._unit * self._unit if free >= min(self._mss, self._settings.buffer_bytes // 2) else 0

    def _read_on(self) -> None:
        """Let the application read everything, and announce a usefully larger window (RFC 9293 §3.8.6.2.2)."""
        if self.rcv_nxt == 0:
            return
        offered = self._right_edge - self.rcv_nxt
        self._unread = 0
        if self._offer() - offered >= min(2 * self._mss, self._settings.buffer_bytes // 2):
            self._send_ack()
