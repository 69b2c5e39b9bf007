"""A host: handshake, and its sending and receiving halves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from simulator.clock import MILLISECOND_NS, SECOND_NS, Clock, Timer
from simulator.receiver import SYN_WINDOW, Receiver
from simulator.rtt import RTO_INITIAL_US
from simulator.scoreboard import Sent
from simulator.segment import Cause, Segment
from simulator.sender import Sender
from simulator.settings import Receiving, Settings

# Both sides use shift 7.
UNIT = 128
SYN_ORDINAL = -1


class Endpoint:
    """One side. `send` receives its packets; `opened` is called when it may send data."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        side: str,
        *,
        send: Callable[[Segment], None],
        opened: Callable[[], None],
    ) -> None:
        self.side = side
        self._clock = clock
        self._settings = settings
        self._send = send
        self._opened = opened
        self._ip_id = 0
        self._syn_timer = Timer(clock, settings.tick_ns, self._send_syn_again)
        self._syns = 0
        self._syn_sent_ns = 0
        self._is_open = False
        self.counts: Counter[str] = Counter()
        self.sender = Sender(clock, settings, emit=self._emit, probe=self._emit_probe)
        self.receiver = Receiver(
            clock,
            settings.receiving if side == settings.receiver else Receiving(),
            mss=settings.segment_bytes,
            unit=UNIT,
            sack=settings.sack,
            blocks=3 if settings.timestamps else 4,
            tick_ns=settings.tick_ns,
            send_ack=self._send_ack,
        )

    def connect(self) -> None:
        self._send_syn()

    def take(self, segment: Segment) -> None:
        """Process an arriving packet."""
        if segment.syn:
            self._take_syn(segment)
        elif self.receiver.rcv_nxt and (self._is_open or self._complete(segment)):
            self.receiver.hear(segment)
            if segment.seq == self.receiver.rcv_nxt - 1 and not segment.length and not segment.fin:
                # A window probe below the window is answered (RFC 9293 §3.8.6.1).
                self._send_ack()
            self.sender.take(segment)
            if segment.length or segment.fin:
                self.receiver.take(segment)

    # Handshake

    def _take_syn(self, segment: Segment) -> None:
        is_again = self.receiver.rcv_nxt > 0
        if not is_again:
            self.receiver.open(segment.timestamps)
            self.sender.snd_wnd = segment.window
        if self.side == "b":
            if not self._is_open:
                self._send_syn()
            else:
                self._send_ack()
        elif is_again or self._complete(segment):
            self._send_ack()
            if not is_again:
                self._opened()

    def _complete(self, segment: Segment) -> bool:
        """Open once this side's SYN is acknowledged."""
        if segment.ack is None or segment.ack < 1:
            return False
        self._is_open = True
        self._syn_timer.stop()
        if self._syns == 1:
            self.sender.sample(self._clock.now_ns - self._syn_sent_ns)
        else:
            self.sender.congestion.window = 1
            if segment.timestamps:
                self.sender.sample_echo(segment.timestamps[1], self._stamp())
            else:
                self.sender.round_trip.fall_back()
        if not segment.syn:
            self.sender.snd_wnd = segment.window
            self._opened()
        return True

    def _send_syn(self) -> None:
        # Only the timer backs off; an answer to another SYN does not affect it.
        if not self._syns:
            self._syn_sent_ns = self._clock.now_ns
            self._syn_timer.start(RTO_INITIAL_US * 1_000)
        again = Cause.SYN if self.side == "a" else Cause.SYN_ACK
        self._put(
            Segment(
                self.side,
                0,
                1 if self.side == "b" else None,
                syn=True,
                window=SYN_WINDOW,
                ordinal=SYN_ORDINAL,
                transmission=self._syns,
                cause=again if self._syns else None,
            )
        )
        self._syns += 1

    def _send_syn_again(self) -> None:
        self.counts["syn_timeouts"] += 1
        self._send_syn()
        self._syn_timer.start(SECOND_NS << self.counts["syn_timeouts"])

    # Sending

    def _emit(self, sent: Sent, cause: Cause | None, timer: str | None) -> None:
        segment = self._segment(sent.start)
        segment.length, segment.fin, segment.push = sent.length, sent.fin, sent.push
        segment.ordinal, segment.transmission, segment.cause = sent.ordinal, sent.transmissions, cause
        segment.timer = timer
        self._put(segment)

    def _emit_probe(self) -> None:
        self._put(self._segment(self.sender.snd_una - 1))

    def _send_ack(self) -> None:
        self._put(self._segment(self.sender.snd_nxt))

    def _segment(self, seq: int) -> Segment:
        window = self.receiver.window()
        sacks, is_dsack = self.receiver.sent_ack()
        return Segment(self.side, seq, self.receiver.rcv_nxt, window=window, sacks=sacks, is_dsack=is_dsack)

    def _put(self, segment: Segment) -> None:
        if self._settings.timestamps:
            segment.timestamps = (self._stamp(), self.receiver.ts_recent)
        self._ip_id += 1
        segment.ip_id = self._ip_id
        self._send(segment)

    def _stamp(self) -> int:
        return self._clock.now_ns // MILLISECOND_NS + 1
