"""One direction: data of one endpoint, and the acknowledgments and windows of the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from twin.congestion import Congestion
from twin.flight import Flight
from twin.recovery import Phase, Recovery
from twin.scale import NO_SYN, Syn
from twin.segments import Segment
from twin.sender import Feedback, SenderView, shift_of
from twin.sequence import is_earlier
from twin.timing import EchoTimer, Ledger
from twin.windows import ReceiveWindow, ZeroWindow


@dataclass(slots=True)
class Direction:
    flight: Flight = field(default_factory=Flight)
    window: ReceiveWindow = field(default_factory=ReceiveWindow)
    """The peer's window, from the peer's segments, which limits this direction."""
    zero: ZeroWindow = field(default_factory=ZeroWindow)
    ledger: Ledger = field(default_factory=Ledger)
    echo: EchoTimer = field(default_factory=EchoTimer)
    recovery: Recovery = field(default_factory=Recovery)
    congestion: Congestion = field(default_factory=Congestion)
    view: SenderView = field(default_factory=SenderView)
    syn: Syn = NO_SYN
    shift: int | None = None
    """Window shift of this side's segments; None if uncertain."""
    isn: int = 0
    """Number of the SYN; without one, a number below the first seen."""
    earlier_isn: int | None = None
    """Number of the previous SYN, if it differed."""
    segments: int = 0
    tsval: int | None = None
    """The latest timestamp value sent."""
    mss: int = 0
    """Maximum payload by the options; 0 if unknown."""
    max_payload: int = 0
    data_segments: int = 0
    last_data_ns: int = 0
    """In nanoseconds since 1970, so 0 is long ago."""
    acked_ns: int = 0
    """The last ACK that moved SND.UNA."""
    answered_ns: int = 0
    """The last ACK that repeated SND.UNA, or came during doubts: others trigger nothing at the sender."""
    duplicate_acks: int = 0
    is_keep_alive_unanswered: bool = False
    probe_end: int | None = None
    """End of a one-byte probe, which counts as sent and is resent with the following data."""

    @property
    def has_syn(self) -> bool:
        return self.syn is not NO_SYN

    @property
    def segment_size(self) -> int:
        """Return the largest expected segment, from the options or from segments seen."""
        return self.mss or self.max_payload

    @property
    def has_doubts(self) -> bool:
        """Return whether something in flight was reported by SACK, never captured, or retransmitted."""
        return bool(self.flight.sacked or self.flight.unseen or self.recovery.is_busy)

    def is_overtaken(self, segment: Segment) -> bool:
        """Return whether the segment left before an earlier captured one, by its timestamp (RFC 7323 §5.2)."""
        return self.tsval is not None and segment.tsval is not None and is_earlier(segment.tsval, self.tsval)

    @property
    def far_ns(self) -> int | None:
        """Return the round trip between the capture point and this data's receiver, by ACKs and by echoes."""
        return min((ns for ns in (self.ledger.least_ns, self.echo.least_ns) if ns is not None), default=None)

    def note_timestamps(self, segment: Segment) -> None:
        if segment.tsval is not None and not self.is_overtaken(segment):
            if segment.tsval != self.tsval:
                self.echo.sent(segment.tsval, segment.time_ns)
            self.tsval = segment.tsval

    def note_payload(self, segment: Segment) -> None:
        self.data_segments += 1
        self.last_data_ns = segment.time_ns
        self.max_payload = max(self.max_payload, segment.length)

    def send_feedback(self, now_ns: int) -> None:
        """Process an ACK of this direction that passes the capture point on its way to the sender."""
        self.view.send(Feedback(now_ns, self.flight.una, self.window.edge))

    def sender_una(self, peer: Direction, now_ns: int) -> int:
        """Return SND.UNA as the sender knows it; a capture at the sender shows it at once."""
        shift_ns = shift_of(peer.far_ns, self.far_ns)
        feedback = self.view.learn(now_ns, shift_ns)
        return feedback.una if feedback and shift_ns else self.flight.una

    def sender_flight(self, peer: Direction, now_ns: int) -> int:
        """Return the bytes in flight as the sender knows them."""
        una = self.sender_una(peer, now_ns)
        return self.flight.outstanding if una == self.flight.una else self.flight.nxt - una

    def has_room_behind(self, peer: Direction, now_ns: int, end: int) -> bool:
        """Return whether the window known to the sender has room for another segment after `end`."""
        feedback = self.view.learn(now_ns, shift_of(peer.far_ns, self.far_ns))
        return (self.window.edge if feedback is None else feedback.edge) - end >= self.segment_size

    def end_round(self, peer: Direction, now_ns: int) -> None:
        self.congestion.end_round(
            self.flight.nxt,
            self.sender_flight(peer, now_ns),
            self.segment_size,
            is_recovering=self.recovery.phase is not Phase.OPEN,
        )
