"""The sender's loss recovery as shown by its retransmissions: phase, retransmitted data, arrived copies."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from twin.intervals import Intervals
from twin.segments import Segment
from twin.sequence import is_earlier
from twin.timing import Covered, Sent

REORDER_DEFAULT_NS = 3_000_000
"""Wireshark's threshold without a handshake round trip."""
MAX_ID_STEP = 1024
"""IP identifications further apart belong to different counters."""
ID_MODULO = 1 << 16


class Phase(Enum):
    """Linux's congestion states, as far as packets distinguish them."""

    OPEN = auto()
    FAST = auto()
    """Fast recovery (RFC 6675, RFC 6582)."""
    LOSS = auto()
    """After a retransmission timeout."""


class Cause(Enum):
    """The cause of a segment below SND.MAX, and its events."""

    FAST = ("fast_retransmission",)
    RECOVERY = ("retransmission", "recovery_retransmission")
    LOST_RETRANSMISSION = ("retransmission", "recovery_retransmission", "lost_retransmission")
    RTO = ("rto_retransmission",)
    GO_BACK_N = ("retransmission", "go_back_n")
    TAIL_LOSS_PROBE = ("tail_loss_probe",)
    SPURIOUS = ("spurious_retransmission",)
    ZERO_WINDOW = ("retransmission", "zero_window_probe")
    OTHER = ("retransmission",)
    """A FIN without data, or unknown."""
    OUT_OF_ORDER = ("out_of_order",)
    CAPTURE_REORDERED = ("capture_reordered",)

    @property
    def is_late(self) -> bool:
        """Return whether it is late: the only copy."""
        return self in (Cause.OUT_OF_ORDER, Cause.CAPTURE_REORDERED)


@dataclass(frozen=True, slots=True)
class Hole:
    """Skipped sequence numbers, and the segment that skipped them."""

    left: int
    right: int
    by: Segment

    def fill(self, segment: Segment, newest_tsval: int | None, path_ns: int | None) -> Cause | None:
        """Return how a segment that fills the hole is late; None if it was retransmitted (rule 6.2).

        Timestamps decide, otherwise IP identifications, otherwise time compared with the round trip. Within one
        timestamp tick only a later tick decides, because a retransmission carries it.
        """
        if segment.time_ns < self.by.time_ns:
            return Cause.CAPTURE_REORDERED
        if segment.tsval is not None and self.by.tsval is not None:
            if segment.tsval != self.by.tsval:
                return Cause.OUT_OF_ORDER if is_earlier(segment.tsval, self.by.tsval) else None
            if newest_tsval is not None and is_earlier(segment.tsval, newest_tsval):
                return Cause.OUT_OF_ORDER
        if segment.ip_id and self.by.ip_id:
            step = (self.by.ip_id - segment.ip_id + ID_MODULO // 2) % ID_MODULO - ID_MODULO // 2
            if 0 < abs(step) <= MAX_ID_STEP:
                return Cause.OUT_OF_ORDER if step > 0 else None
        within_ns = REORDER_DEFAULT_NS if path_ns is None else max(path_ns, 1)
        return Cause.OUT_OF_ORDER if segment.time_ns - self.by.time_ns < within_ns else None


@dataclass(slots=True)
class Resend:
    """One retransmission."""

    left: int
    right: int
    time_ns: int
    timeout_ns: int
    """The timer's RTO without back-off."""
    tsval: int | None
    cause: Cause
    is_of_phase: bool
    """Sent in the current phase."""
    is_needless: bool = False
    """The receiver already had the data, according to a D-SACK or a timestamp."""

    def overlaps(self, left: int, right: int) -> bool:
        return left < self.right and self.left < right


@dataclass(frozen=True, slots=True)
class Advance:
    """An ACK that moves SND.UNA."""

    una: int
    ack: int
    tsecr: int | None
    plain_bytes: int
    """Covered segments that were sent once, captured, and not reported by SACK before."""
    resent_bytes: int
    had_duplicates: bool
    has_sack: bool
    now_ns: int
    least_ns: int | None
    """The shortest round trip before it."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Data covered by an ACK of new data."""

    arrived: Covered | None
    """Send time of the acknowledged copy of retransmitted data."""
    is_partial: bool
    """Within recovery, without ending it (RFC 6582 §3.2)."""


@dataclass(slots=True)
class Recovery:
    phase: Phase = Phase.OPEN
    point: int = 0
    """SND.MAX at the start of the phase: its acknowledgment ends it (RFC 6675 §4.1 RecoveryPoint)."""
    holes: list[Hole] = field(default_factory=list)
    resends: list[Resend] = field(default_factory=list)
    ambiguous: Intervals = field(default_factory=Intervals)
    """Above SND.UNA and captured twice, or late: no round trip sample (Karn, RFC 6298 §3)."""
    repeated: Intervals = field(default_factory=Intervals)
    """Retransmitted since the phase began."""
    probe_end: int | None = None
    """End of a tail loss probe that no ACK has covered."""
    timeouts: int = 0
    """Consecutive timeouts."""
    sends_probes: bool | None = None
    """Tail loss probes (Linux since 3.10), if its timers showed any."""
    reported_ns: int | None = None
    """The first ACK with a sign of loss since SND.UNA moved."""
    arrived_ns: int | None = None
    """Send time of the newest retransmission known to have arrived (RACK.xmit_ts, RFC 8985 §5.2)."""
    is_frto_armed: bool = False
    """Only a timeout's retransmission is outstanding: the next ACKs show whether it was necessary (RFC 5682 §2.1)."""
    first_tsval: int | None = None
    """TSval of the first retransmission since none was in flight (retrans_stamp, include/linux/tcp.h)."""

    @property
    def is_busy(self) -> bool:
        return self.phase is not Phase.OPEN or bool(self.ambiguous) or self.probe_end is not None

    @property
    def is_all_needless(self) -> bool:
        """Return whether none of the phase's retransmissions was necessary (undo_retrans, include/linux/tcp.h)."""
        return all(one.is_needless for one in self.resends if one.is_of_phase)

    def hole_at(self, left: int, right: int) -> Hole | None:
        return next((hole for hole in self.holes if left < hole.right and hole.left < right), None)

    def last_resend(self, left: int, right: int) -> Resend | None:
        return next((one for one in reversed(self.resends) if one.overlaps(left, right)), None)

    def was_recovered(self, left: int, right: int) -> bool:
        """Return whether it was last retransmitted in this or an earlier fast recovery."""
        last = self.last_resend(left, right)
        return last is not None and last.cause in (Cause.FAST, Cause.RECOVERY, Cause.LOST_RETRANSMISSION)

    def kind_of_copy(self, segment: Segment, seq: int, within_ns: int) -> set[str]:
        """Return the events of a duplicate packet in the capture, if its data was resent this shortly before."""
        last = next((one for one in reversed(self.resends) if one.left == seq), None)
        if last is None or segment.time_ns - last.time_ns > within_ns:
            return set()
        return set(last.cause.value) - {"zero_window_probe"}

    def note_late(self, left: int, right: int) -> None:
        self.ambiguous.add(left, right)

    def note_resent(self, cause: Cause, span: tuple[int, int], nxt: int, segment: Segment, timeout_ns: int) -> None:
        left, right = span
        # A second retransmission removes F-RTO's evidence. F-RTO judges the first timeout of a phase, and one that
        # follows another with no ACK between (tcp_enter_loss, net/ipv4/tcp_input.c).
        self.is_frto_armed = cause is Cause.RTO and (self.phase is Phase.OPEN or self.timeouts > 0)
        if cause is Cause.FAST:
            self.enter(Phase.FAST, nxt)
        elif cause in (Cause.RTO, Cause.ZERO_WINDOW):
            # The timer also expires if the window closed on data in flight (tcp_retransmit_timer).
            self.enter(Phase.LOSS, nxt)
            self.timeouts += 1
        if cause is Cause.TAIL_LOSS_PROBE:
            self.probe_end = right
        if cause is not Cause.SPURIOUS:
            self.ambiguous.add(left, right)
            self.repeated.add(left, right)
        if self.first_tsval is None:
            self.first_tsval = segment.tsval
        is_of_phase = self.phase is not Phase.OPEN
        self.resends.append(Resend(left, right, segment.time_ns, timeout_ns, segment.tsval, cause, is_of_phase))

    def enter(self, phase: Phase, point: int) -> None:
        if phase is not Phase.LOSS:
            # A timeout within a phase keeps the state for a possible undo (tcp_enter_loss).
            self.leave()
        self.phase, self.point, self.repeated, self.probe_end = phase, point, Intervals(), None

    def leave(self) -> None:
        """End or undo the phase."""
        self.phase = Phase.OPEN
        for one in self.resends:
            one.is_of_phase = False

    def acknowledged(self, advance: Advance, original: Sent | None) -> Acknowledged:
        """Process an ACK of new data; `original` is the first captured copy of the bytes at SND.UNA."""
        ack = advance.ack
        arrived = self._judge_echo(advance, original)
        is_undone = self._is_undone(advance)
        self.timeouts, self.reported_ns = 0, None
        self.holes = [hole for hole in self.holes if hole.right > ack]
        self.ambiguous.remove_below(ack)
        self.repeated.remove_below(ack)
        if self.probe_end is not None and self.probe_end <= ack:
            self.probe_end = None
        is_recovering = self.phase is Phase.FAST
        # A recovery is undone once none of its retransmissions is in flight (tcp_try_undo_partial), a loss at once.
        if ack >= self.point or (is_undone and not (is_recovering and self.ambiguous)):
            self.leave()
        if self.phase is Phase.OPEN and not self.ambiguous:
            self.first_tsval = None
        return Acknowledged(arrived, is_recovering and self.phase is Phase.FAST)

    def _is_undone(self, advance: Advance) -> bool:
        """Return whether the ACK proves the phase unnecessary: F-RTO, timestamps (tcp_packet_delayed), earlier
        D-SACKs.
        """
        tsecr = advance.tsecr
        is_delayed = tsecr is not None and self.first_tsval is not None and is_earlier(tsecr, self.first_tsval)
        return self._judge_frto(advance) or is_delayed or (self.phase is Phase.LOSS and self.is_all_needless)

    def _judge_frto(self, advance: Advance) -> bool:
        """Apply F-RTO: after a timeout, an ACK of data sent once proves that the originals arrived (RFC 5682 §2.1,
        §3.1).

        Without SACK the retransmission may have filled a hole, which duplicate ACKs indicate.
        """
        if not self.is_frto_armed:
            return False
        self.is_frto_armed = not advance.plain_bytes and not advance.had_duplicates
        is_certain = advance.has_sack or not (advance.resent_bytes or advance.had_duplicates)
        return advance.plain_bytes > 0 and is_certain

    def note_reported(self, right: int) -> None:
        """Process a SACK of data sent once, up to `right`: F-RTO's proof, if sent before the timeout (RFC 5682
        §3.1).
        """
        if self.is_frto_armed and right <= self.point:
            self.is_frto_armed = False
            self.leave()

    def note_dsack(self, left: int, right: int, *, is_new_ack: bool) -> None:
        """Process a D-SACK: the oldest retransmission of these bytes was unnecessary (RFC 2883)."""
        needless = next((one for one in self.resends if not one.is_needless and one.overlaps(left, right)), None)
        if needless is None:
            return
        needless.is_needless = True
        # tcp_try_undo_dsack undoes a recovery at once, tcp_process_loss a loss with the next ACK of new data.
        if needless.is_of_phase and self.is_all_needless and (is_new_ack or self.phase is Phase.FAST):
            self.leave()

    def _judge_echo(self, advance: Advance, original: Sent | None) -> Covered | None:
        """Return the send time of the arrived copy of the bytes at SND.UNA, by the echo (RFC 3522 §3.2, RFC 7323 §4.3).

        Copies with the same timestamp are indistinguishable.
        """
        una, tsecr = advance.una, advance.tsecr
        resends = [one for one in self.resends if one.left <= una < one.right <= advance.ack]
        if not resends:
            return None
        first = resends[0]
        if tsecr is not None and first.tsval is not None and is_earlier(tsecr, first.tsval) and not first.is_needless:
            first.is_needless = True
        else:
            self.arrived_ns = resends[-1].time_ns
        # Uncaptured or late data was sent before the data that overtook it.
        hole = self.hole_at(una, una + 1)
        first_tsval = original.tsval if original else hole.by.tsval if hole else None
        values = [first_tsval, *(one.tsval for one in resends)]
        times = [original.time_ns if original else None, *(one.time_ns for one in resends)]
        if tsecr is None or None in values:
            return None
        echoed = [at for at, tsval in enumerate(values) if tsval is not None and not is_earlier(tsecr, tsval)]
        if not echoed or values.count(values[echoed[-1]]) > 1:
            return None
        # A later copy may have caused the ACK (Karn), unless the ACK is sooner than any answer could be.
        is_newest = tsecr == values[-1]
        least_ns = advance.least_ns
        is_too_soon = least_ns is not None and advance.now_ns - resends[-1].time_ns < least_ns
        sent_ns = times[echoed[-1]]
        if sent_ns is None:
            return None
        # That copy had arrived: a time shorter than any before bounds the round trip, whichever copy caused the ACK.
        is_least = least_ns is not None and advance.now_ns - sent_ns < least_ns
        return Covered(sent_ns, sent_ns, is_certain=is_newest or is_too_soon or is_least)
