"""One transmission of a segment as it is on the wire, and the sender's reason for it.

Sequence numbers are counted from 0, the SYN, and never wrap here: capture.py adds the ISN, modulo 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a segment was sent again. The names are those that tcpwin gives."""

    FAST = "fast"
    RECOVERY = "recovery"
    LOST_RETRANSMISSION = "lost_retransmission"
    RTO = "rto"
    GO_BACK_N = "go_back_n"
    TAIL_LOSS_PROBE = "tail_loss_probe"
    SYN = "syn"
    SYN_ACK = "syn_ack"
    FIN = "fin"
    ZERO_WINDOW = "zero_window"


Block = tuple[int, int]


@dataclass(slots=True, eq=False)
class Segment:
    """One transmission.

    Attributes:
        side: a, the initiator, or b.
        window: bytes, a multiple of the unit of the window scale.
        sacks: as in the option, a DSACK first.
        is_dsack: the first of `sacks` is one.
        timestamps: TSval and TSecr, where both sides have the option.
        ordinal: of the segment among those of its side, resent or not; -1 for a SYN, none for a pure ACK.
        transmission: how often these bytes had been sent before.
        cause: why it was sent again, none for what was sent for the first time.
        timer: which timer of the sender sent it, none where an ACK or the application did.
        is_needless: whether its receiver had all of it when it came; none while it has not come.
    """

    side: str
    seq: int
    ack: int | None
    length: int = 0
    syn: bool = False
    fin: bool = False
    push: bool = False
    window: int = 0
    sacks: tuple[Block, ...] = ()
    is_dsack: bool = False
    timestamps: tuple[int, int] | None = None
    ip_id: int = 0
    ordinal: int | None = None
    transmission: int = 0
    cause: Cause | None = None
    timer: str | None = None
    is_needless: bool | None = None

    @property
    def end(self) -> int:
        """The sequence number after it."""
        return self.seq + self.length + self.syn + self.fin

    @property
    def is_pure_ack(self) -> bool:
        return self.ordinal is None
