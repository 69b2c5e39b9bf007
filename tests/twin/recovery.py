"""The sender's loss recovery as its retransmissions show it: its phase, what it sent again, which copy arrived."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from twin.intervals import Intervals
from twin.segments import Segment
from twin.sequence import is_earlier
from twin.timing import Sent

REORDER_DEFAULT_NS = 3_000_000
"""Wireshark's threshold where no handshake gives a round trip."""
MAX_ID_STEP = 1024
"""IP identifications further apart do not come from one counter."""
ID_MODULO = 1 << 16


class Phase(Enum):
    """Linux's congestion states as far as packets tell them apart."""

    OPEN = auto()
    FAST = auto()
    """Fast recovery (RFC 6675, RFC 6582)."""
    LOSS = auto()
    """After a retransmission timeout."""


class Cause(Enum):
    """What a segment below SND.MAX is, and the events that say so."""

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
        """It was not sent again: it is the only copy."""
        return self in (Cause.OUT_OF_ORDER, Cause.CAPTURE_REORDERED)


@dataclass(frozen=True, slots=True)
class Hole:
    """Sequence numbers that were skipped, and the segment that skipped them."""

    left: int
    right: int
    by: Segment

    def fill(self, segment: Segment, path_ns: int | None) -> Cause | None:
        """How a segment that fills the hole is late; None where it was sent again (rule 6.2).

        Timestamps decide, else IP identifications, else time against the handshake's round trip.
        """
        if segment.time_ns < self.by.time_ns:
            return Cause.CAPTURE_REORDERED
        if segment.tsval is not None and self.by.tsval is not None and segment.tsval != self.by.tsval:
            return Cause.OUT_OF_ORDER if is_earlier(segment.tsval, self.by.tsval) else None
        if segment.ip_id and self.by.ip_id:
            step = (self.by.ip_id - segment.ip_id + ID_MODULO // 2) % ID_MODULO - ID_MODULO // 2
            if 0 < abs(step) <= MAX_ID_STEP:
                return Cause.OUT_OF_ORDER if step > 0 else None
        within_ns = REORDER_DEFAULT_NS if path_ns is None else max(path_ns, 1)
        return Cause.OUT_OF_ORDER if segment.time_ns - self.by.time_ns < within_ns else None


@dataclass(frozen=True, slots=True)
class Resend:
    """One retransmission."""

    left: int
    right: int
    time_ns: int
    tsval: int | None


@dataclass(slots=True)
class Recovery:
    phase: Phase = Phase.OPEN
    point: int = 0
    """SND.MAX when the phase began: its acknowledgment ends it (RFC 6675 §4.1 RecoveryPoint)."""
    holes: list[Hole] = field(default_factory=list)
    resends: list[Resend] = field(default_factory=list)
    ambiguous: Intervals = field(default_factory=Intervals)
    """Above SND.UNA and captured twice, or late: no evidence of a round trip (Karn, RFC 6298 §3)."""
    repeated: Intervals = field(default_factory=Intervals)
    """Sent again since the phase began."""
    probe_end: int | None = None
    """End of a tail loss probe that no ACK has covered."""
    timeouts: int = 0
    """In a row."""
    reported_ns: int | None = None
    """The first ACK since SND.UNA moved that spoke of loss."""

    @property
    def is_busy(self) -> bool:
        return self.phase is not Phase.OPEN or bool(self.ambiguous) or self.probe_end is not None

    def hole_at(self, left: int, right: int) -> Hole | None:
        return next((hole for hole in self.holes if left < hole.right and hole.left < right), None)

    def last_resend(self, left: int, right: int) -> Resend | None:
        return next((one for one in reversed(self.resends) if left < one.right and one.left < right), None)

    def note_late(self, left: int, right: int) -> None:
        self.ambiguous.add(left, right)

    def note_resent(self, cause: Cause, left: int, right: int, nxt: int, segment: Segment) -> None:
        if cause in (Cause.FAST, Cause.RTO):
            self.phase = Phase.FAST if cause is Cause.FAST else Phase.LOSS
            self.point, self.repeated, self.probe_end = nxt, Intervals(), None
        if cause is Cause.RTO:
            self.timeouts += 1
        if cause is Cause.TAIL_LOSS_PROBE:
            self.probe_end = right
        if cause is not Cause.SPURIOUS:
            self.ambiguous.add(left, right)
            self.repeated.add(left, right)
        self.resends.append(Resend(left, right, segment.time_ns, segment.tsval))

    def acknowledged(self, una: int, ack: int, segment: Segment, original: Sent | None) -> Acknowledged:
        """Take in an ACK of new data; `original` is the first copy of the bytes at SND.UNA, where it was captured."""
        arrived_ns = self._arrived_ns(una, ack, segment.tsecr, original)
        self.timeouts, self.reported_ns = 0, None
        self.holes = [hole for hole in self.holes if hole.right > ack]
        self.ambiguous.remove_below(ack)
        self.repeated.remove_below(ack)
        if self.probe_end is not None and self.probe_end <= ack:
            self.probe_end = None
        is_partial = self.phase is Phase.FAST and ack < self.point
        if ack >= self.point:
            self.phase = Phase.OPEN
        return Acknowledged(arrived_ns, is_partial)

    def _arrived_ns(self, una: int, ack: int, tsecr: int | None, original: Sent | None) -> int | None:
        """When the copy of the bytes at SND.UNA was sent that arrived: by the echo (RFC 3522 §3.2, RFC 7323 §4.3).

        Copies with the same timestamp cannot be told apart.
        """
        resends = [one for one in self.resends if one.left <= una < one.right <= ack]
        values = [(one.tsval, one.time_ns) for one in ([original] if original else []) + resends]
        if tsecr is None or not resends:
            return None
        echoed = [(tsval, time_ns) for tsval, time_ns in values if tsval is not None and not is_earlier(tsecr, tsval)]
        if not echoed or any(tsval is None for tsval, _ in values):
            return None
        newest = echoed[-1]
        is_alone = sum(tsval == newest[0] for tsval, _ in values) == 1
        return newest[1] if is_alone else None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What an ACK of new data shows."""

    arrived_ns: int | None
    """When the copy was sent that it acknowledges, of bytes that were sent again."""
    is_partial: bool
    """In recovery, and not the end of it (RFC 6582 §3.2)."""
