"""The sending half of a host: new data, timers, and reactions to ACKs.

Modelled on Linux (net/ipv4/tcp_output.c, tcp_timer.c, tcp_input.c): one timer serves as the RTO's, the tail loss
probe's (RFC 8985 §7), RACK's or the persist timer's. recovery.py decides what is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from simulator.ack import Ack, State
from simulator.clock import MICROSECOND_NS, MILLISECOND_NS, Clock, Timer
from simulator.congestion import Congestion
from simulator.recovery import Recovery
from simulator.rtt import RTO_MAX_US, RTO_MIN_US, TIMEOUT_MIN_US, RoundTrip
from simulator.scoreboard import Scoreboard, Sent
from simulator.segment import Cause, Segment
from simulator.settings import Settings

RTO, PROBE, REORDERING, PERSIST = "rto", "tail loss probe", "reordering", "persist"


class Sender:
    """Sends an application's bytes and a FIN; `emit` puts a segment on the wire, `probe` a zero-window probe."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        *,
        emit: Callable[[Sent, Cause | None, str | None], None],
        probe: Callable[[], None],
    ) -> None:
        self.clock = clock
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self.board = Scoreboard()
        self.round_trip = RoundTrip()
        self.congestion = Congestion(settings.initial_window, settings.beta)
        self.snd_una = self.snd_nxt = 1
        self.snd_wnd = 0
        self.recovery = Recovery(self)
        self._wl1 = 0
        self._emit = emit
        self._probe = probe
        self._timer = Timer(clock, settings.tick_ns, self._expire)
        self._pending: str | None = None
        self._fired: str | None = None
        self._unsent = 0
        self._is_closing = self._is_fin_sent = False
        self._small_end = 0
        self._last_ns = 0
        self._ordinal = 0
        self._persist_back_off = 0
        self._tlp_end: int | None = None
        self._tlp_resent = False
        self.retransmits = 0

    @property
    def is_finished(self) -> bool:
        return self._is_fin_sent and not self.board

    def write(self, length: int) -> None:
        self._unsent += length
        self.push()

    def close(self) -> None:
        self._is_closing = True
        self.push()

    # New data

    def push(self, *, as_probe: bool = False, wait_for_small: bool = True) -> int:
        """Send what window, congestion window and Nagle allow; a probe is one segment that ignores cwnd."""
        now = self.clock.now_ns
        idle_us = (now - self._last_ns) // MICROSECOND_NS
        if not self.board and self._last_ns and idle_us > self.round_trip.rto_us:
            self.congestion.restart(idle_us, self.round_trip.rto_us)
        sent = 0
        while self._unsent or (self._is_closing and not self._is_fin_sent):
            if as_probe and sent:
                break
            if not as_probe and self.board.in_flight >= self.congestion.window:
                self.congestion.is_limited = True
                break
            length = min(self.settings.segment_bytes, self._unsent)
            is_last = length == self._unsent
            fin = is_last and self._is_closing
            if self.snd_nxt + length > self.snd_una + self.snd_wnd:
                break
            if wait_for_small and not as_probe and not fin and self._waits(length):
                break
            self._send_new(length, fin=fin, push=is_last)
            sent += 1
        else:
            self.congestion.is_limited = self.congestion.window < min(self.congestion.threshold, 2 * len(self.board))
        if sent:
            self.congestion.sent_in_reduction += sent
            if not as_probe:
                self._schedule_probe(from_now=False)
        elif not self.board and self._pending is None and self._has_more():
            self._start(PERSIST, max(self.round_trip.rto_us, RTO_MIN_US))
        return sent

    def _send_new(self, length: int, *, fin: bool, push: bool) -> None:
        sent = Sent(self.snd_nxt, self.snd_nxt + length + fin, self._ordinal, fin, push, self.clock.now_ns)
        self._ordinal += 1
        self._unsent -= length
        self._is_fin_sent = self._is_fin_sent or fin
        if length < self.settings.segment_bytes:
            self._small_end = sent.end
        was_empty = not self.board
        self.board.queue.append(sent)
        self.snd_nxt = sent.end
        self._last_ns = self.clock.now_ns
        self._emit(sent, None, self._fired)
        if was_empty or self._pending == PROBE:
            self.rearm()

    def _waits(self, length: int) -> bool:
        """Apply Nagle with Minshall's change: a small segment waits only for a small one."""
        is_small = length < self.settings.segment_bytes
        return is_small and not self.settings.no_delay and bool(self.board) and self._small_end > self.snd_una

    def _has_more(self) -> bool:
        return bool(self._unsent) or (self._is_closing and not self._is_fin_sent)

    # Data sent again

    def resend(self, sent: Sent, cause: Cause) -> None:
        """Retransmit a segment of the queue (__tcp_retransmit_skb)."""
        sent.transmissions += 1
        sent.sent_ns = self._last_ns = self.clock.now_ns
        if not sent.length:
            cause = Cause.FIN
        elif not self.snd_wnd and self._fired and sent is self.board.head:
            # Whichever timer it was, to the receiver it is a probe of its closed window.
            cause = Cause.ZERO_WINDOW
        self._emit(sent, cause, self._fired)

    def resend_lost(self) -> None:
        """Retransmit segments marked lost, as the congestion window allows (tcp_xmit_retransmit_queue)."""
        rearm = False
        for place, sent in enumerate(self.board.queue):
            if self.board.in_flight >= self.congestion.window or self.board.retransmitted >= self.board.lost:
                break
            if not sent.lost or sent.sacked or sent.retransmitted:
                continue
            self.resend(sent, self.recovery.cause(sent))
            self.recovery.note_resent(sent)
            if self.recovery.is_reducing:
                self.congestion.sent_in_reduction += 1
            rearm = rearm or (place == 0 and self._pending != REORDERING)
        if rearm:
            self._start(RTO, self.round_trip.rto_us)

    # Timers

    def rearm(self) -> None:
        """Start the RTO; if a probe's or RACK's timer replaced it, from when the head was sent (tcp_rearm_rto)."""
        if not self.board:
            self._stop()
            return
        delay_us = self.round_trip.rto_us
        if self._pending in (PROBE, REORDERING):
            delay_us = max(self._rto_left_us(), 1)
        self._start(RTO, delay_us)

    def start_reordering_timer(self, delay_us: int) -> None:
        self._start(REORDERING, delay_us + TIMEOUT_MIN_US)

    def _rto_left_us(self) -> int:
        elapsed_us = (self.clock.now_ns - self.board.head.sent_ns) // MICROSECOND_NS
        return self.round_trip.rto_us - elapsed_us

    def _schedule_probe(self, *, from_now: bool) -> bool:
        """Start the tail loss probe's timer instead of the RTO's (tcp_schedule_loss_probe)."""
        if not (self.settings.sack and self.settings.tail_loss_probe and self.board and self.recovery.is_open):
            return False
        if self.round_trip.srtt_8:
            delay_us = self.round_trip.srtt_8 >> 2
            delay_us += RTO_MIN_US if len(self.board) == 1 else TIMEOUT_MIN_US
        else:
            delay_us = self.round_trip.rto_us
        left_us = self.round_trip.rto_us if from_now else self._rto_left_us()
        if left_us > 0:
            delay_us = min(delay_us, left_us)
        self._start(PROBE, delay_us)
        return True

    def _start(self, kind: str, delay_us: int) -> None:
        self._pending = kind
        self._timer.start(min(delay_us, RTO_MAX_US) * MICROSECOND_NS)

    def _stop(self) -> None:
        self._pending = None
        self._timer.stop()

    def _expire(self) -> None:
        kind = self._fired = self._pending
        if kind in (PERSIST, RTO):
            self._pending = None
        if kind == PERSIST:
            self._persist()
        elif not self.board:
            self._pending = None
        elif kind == RTO:
            self._time_out()
        elif kind == PROBE:
            self._send_tail_loss_probe()
        else:
            self.recovery.look_again()
            if self._pending != RTO:
                self.rearm()
        self._fired = None

    def _time_out(self) -> None:
        """Retransmit the head alone and back off (tcp_retransmit_timer)."""
        self.counts["timeouts"] += 1
        self.recovery.enter_loss()
        self.retransmits += 1
        self.resend(self.board.head, Cause.RTO)
        self.recovery.note_resent(self.board.head)
        self.round_trip.back_off()
        self._start(RTO, self.round_trip.rto_us)

    def _send_tail_loss_probe(self) -> None:
        """Send new data, or the last segment again (tcp_send_loss_probe)."""
        if self._tlp_end is None:
            is_new = self.push(as_probe=True) > 0
            if not is_new:
                self.resend(self.board.queue[-1], Cause.TAIL_LOSS_PROBE)
                self.board.queue[-1].ever = True
            self.counts["probes"] += 1
            self.counts["probes_of_new_data"] += is_new
            self._tlp_end, self._tlp_resent = self.snd_nxt, not is_new
            self._pending = None
        self.rearm()

    def _persist(self) -> None:
        """Probe the window; data that fits a window below a segment is the probe (tcp_write_wakeup)."""
        if self.board or not self._has_more():
            return
        self.counts["persist"] += 1
        room = self.snd_una + self.snd_wnd - self.snd_nxt
        if room > 0 and self._unsent:
            length = min(room, self._unsent, self.settings.segment_bytes)
            self._send_new(length, fin=False, push=True)
        else:
            self._probe()
            self._persist_back_off += 1
            self._start(PERSIST, max(self.round_trip.rto_us, RTO_MIN_US) << self._persist_back_off)

    # ACKs

    def take(self, segment: Segment) -> None:
        """Process the acknowledgment of an arriving segment (tcp_ack)."""
        number = segment.ack
        if number is None or number > self.snd_nxt:
            return
        ack = Ack(number, self.snd_una, segment, has_data=segment.length > 0)
        recovery, board = self.recovery, self.board
        if number < self.snd_una:
            recovery.take_sacks(ack)
            recovery.decide(ack, duplicates=0)
            recovery.transmit(ack)
            return
        if ack.advanced:
            self.retransmits = 0
        self._take_window(ack)
        self.snd_una = number
        packets_before, delivered_before, lost_before = len(board), recovery.delivered, board.lost
        recovery.take_sacks(ack)
        if not packets_before:
            self._take_window_of_idle()
            self.push()
            return
        recovery.clean(ack)
        recovery.adapt(delivered_before, packets_before)
        self._take_probe_answer(ack)
        if not ack.is_new_information or ack.is_alarming or recovery.state is not State.OPEN:
            is_duplicate = not (ack.advanced or ack.is_new_information or ack.is_dsack)
            recovery.decide(ack, duplicates=int(is_duplicate))
        if ack.sets_timer and not self._schedule_probe(from_now=True):
            self.rearm()
        delivered = recovery.delivered - delivered_before
        if recovery.is_reducing:
            newly_lost = board.lost > lost_before
            self.congestion.pace(delivered, board.in_flight, advanced=ack.advanced, newly_lost=newly_lost)
        elif ack.has_acked:
            self.congestion.grow(delivered)
        recovery.transmit(ack)
        self.push()

    def _take_window(self, ack: Ack) -> None:
        segment = ack.segment
        is_newer = segment.seq > self._wl1 or (
            segment.seq == self._wl1 and (segment.window > self.snd_wnd or not segment.window)
        )
        if ack.advanced or is_newer:
            ack.is_window_update = True
            self._wl1 = segment.seq
            self.snd_wnd = segment.window

    def _take_window_of_idle(self) -> None:
        """With nothing in flight, stop probing if the window is open, else continue (tcp_ack_probe)."""
        if not self._has_more():
            return
        length = min(self.settings.segment_bytes, self._unsent)
        if self.snd_una + self.snd_wnd >= self.snd_nxt + length:
            self._persist_back_off = 0
            self._stop()
        elif self._pending is None:
            self._start(PERSIST, max(self.round_trip.rto_us, RTO_MIN_US) << self._persist_back_off)

    def _take_probe_answer(self, ack: Ack) -> None:
        """End the episode of a tail loss probe (tcp_process_tlp_ack)."""
        if self._tlp_end is None or ack.number < self._tlp_end:
            return
        if not self._tlp_resent or self._tlp_end in ack.dsack_ends:
            self._tlp_end = None
        elif ack.number > self._tlp_end:
            self._tlp_end = None
            self.counts["probe_recoveries"] += 1
            self.congestion.reduce()
            self.congestion.end_reduction()
        elif not (ack.advanced or ack.is_new_information or ack.has_sacked):
            self._tlp_end = None

    def forget_probe(self) -> None:
        """End the probe's episode, because a recovery began."""
        self._tlp_end = None

    def sample(self, rtt_ns: int) -> None:
        self.round_trip.sample(rtt_ns // MICROSECOND_NS, self.snd_una, self.snd_nxt)

    def sample_echo(self, echo: int, now_stamp: int) -> None:
        """Take a round trip from a timestamp, in its ticks of a millisecond."""
        self.round_trip.sample(max(now_stamp - echo, 1) * MILLISECOND_NS // MICROSECOND_NS, self.snd_una, self.snd_nxt)

    def can_send_new(self) -> bool:
        return bool(self._unsent) and self.snd_nxt < self.snd_una + self.snd_wnd
