"""Bytes in flight of one direction: SND.UNA, SND.MAX, and between them SACKed and never captured bytes.

Rules: RFC 9293 §3.3.1 and §3.4, RFC 6675 §4; updated on data and ACKs alike. Sequence numbers are plain integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twin.intervals import Intervals
from twin.sequence import FURTHEST, MODULO, place


@dataclass(slots=True)
class Flight:
    una: int = 0
    nxt: int = 0
    """SND.MAX: one past the highest sequence number sent, including SYN and FIN."""
    syn: int | None = None
    fin: int | None = None
    is_started: bool = False
    """A sequence number is known."""
    is_seen: bool = False
    """A segment of this direction was captured."""
    is_acked: bool = False
    """An acknowledgment of this direction was captured, so SND.UNA is known."""
    has_only_syn: bool = False
    is_lost: bool = False
    """An ACK covered data that was never captured, and no segment has shown SND.MAX since."""
    sacked: Intervals = field(default_factory=Intervals)
    unseen: Intervals = field(default_factory=Intervals)
    """Below SND.MAX and never captured."""

    def place(self, raw: int) -> int:
        return place(raw, self.nxt) if self.is_started else raw + MODULO

    def start(self, at: int) -> None:
        self.una = self.nxt = at
        self.is_started = True

    @property
    def is_known(self) -> bool:
        """Return whether the flight is known; before an acknowledgment, only the data of a SYN is."""
        return self.is_seen and (self.is_acked or self.has_only_syn) and not self.is_lost

    @property
    def is_outstanding(self) -> bool:
        return self.una < self.nxt

    @property
    def outstanding(self) -> int:
        """Return SND.MAX − SND.UNA without SYN and FIN."""
        control = sum(self.una <= at < self.nxt for at in (self.syn, self.fin) if at is not None)
        return max(self.nxt - self.una, 0) - control

    @property
    def bytes(self) -> int | None:
        """Return the bytes in flight, if known."""
        return self.outstanding if self.is_known else None

    @property
    def pipe(self) -> int | None:
        """Return the bytes in flight minus those reported by SACK."""
        return None if self.bytes is None else max(self.bytes - self.sacked.total(), 0)

    def begin_acks(self, ack: int) -> None:
        """Set SND.UNA from the first captured ACK, below the data seen if the capture began in mid-transfer."""
        self.is_acked = True
        if not self.is_started:
            self.start(ack)
        elif self.syn is None and 0 < self.una - ack < FURTHEST:
            self.una = ack

    def advance(self, ack: int) -> int:
        """Advance SND.UNA; return the passed bytes that were never captured."""
        self.una = ack
        self.sacked.remove_below(ack)
        return self.unseen.remove_below(ack)
