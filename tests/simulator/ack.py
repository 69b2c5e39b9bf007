"""One arriving ACK as the sender sees it (the FLAG_ bits of Linux's tcp_ack), and the states that it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from simulator.segment import Segment


class State(StrEnum):
    OPEN = "open"
    DISORDER = "disorder"
    RECOVERY = "recovery"
    LOSS = "loss"


@dataclass(slots=True)
class Ack:
    """Results for one arriving ACK, filled in step by step."""

    number: int
    una_before: int
    segment: Segment
    has_data: bool
    is_window_update: bool = False
    has_acked: bool = False
    has_sacked: bool = False
    is_dsack: bool = False
    dsack_ends: list[int] = field(default_factory=list)
    original_arrived: bool = False
    resent_acked: bool = False
    retransmission_lost: bool = False
    sets_timer: bool = False
    sends_lost: bool = False
    sends_new: bool = False
    sack_rtt_ns: int | None = None

    @property
    def advanced(self) -> bool:
        return self.number > self.una_before

    @property
    def echo(self) -> int:
        """TSecr, or 0 without timestamps."""
        return self.segment.timestamps[1] if self.segment.timestamps else 0

    @property
    def is_new_information(self) -> bool:
        """Return whether it cannot be a duplicate (FLAG_NOT_DUP)."""
        return self.has_data or self.is_window_update or self.has_acked

    @property
    def is_alarming(self) -> bool:
        return self.has_sacked or self.is_dsack
