"""One direction: data from one endpoint, the acknowledgments and windows of the other that answer it."""

from __future__ import annotations

from dataclasses import dataclass, field

from twin.flight import Flight
from twin.recovery import Recovery
from twin.scale import NO_SYN, Syn
from twin.segments import Segment
from twin.sequence import is_earlier
from twin.timing import Ledger
from twin.windows import ReceiveWindow, ZeroWindow


@dataclass(slots=True)
class Direction:
    flight: Flight = field(default_factory=Flight)
    window: ReceiveWindow = field(default_factory=ReceiveWindow)
    """Of the peer, in the peer's segments: it limits this direction."""
    zero: ZeroWindow = field(default_factory=ZeroWindow)
    ledger: Ledger = field(default_factory=Ledger)
    recovery: Recovery = field(default_factory=Recovery)
    syn: Syn = NO_SYN
    shift: int | None = None
    """Of the windows in this side's own segments; None where it is not certain."""
    isn: int = 0
    """Of the SYN; without one, a number less than the first that was seen."""
    segments: int = 0
    tsval: int | None = None
    """The latest timestamp value sent."""
    mss: int = 0
    """Most payload by the options; 0 while they are unknown."""
    max_payload: int = 0
    duplicate_acks: int = 0
    is_keep_alive_unanswered: bool = False
    probe_end: int | None = None
    """End of a probe with a byte, which counts as sent and is sent again with what follows."""

    @property
    def has_syn(self) -> bool:
        return self.syn is not NO_SYN

    @property
    def segment_size(self) -> int:
        """The largest segment to expect: by the options, else by what was seen."""
        return self.mss or self.max_payload

    def is_overtaken(self, segment: Segment) -> bool:
        """The segment left before one that was captured earlier, by its timestamp (RFC 7323 §5.2)."""
        return self.tsval is not None and segment.tsval is not None and is_earlier(segment.tsval, self.tsval)

    def note_timestamps(self, segment: Segment) -> None:
        if segment.tsval is not None and not self.is_overtaken(segment):
            self.tsval = segment.tsval

    def note_payload(self, segment: Segment) -> None:
        self.max_payload = max(self.max_payload, segment.length)
