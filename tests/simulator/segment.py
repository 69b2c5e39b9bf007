"""One transmission of a segment on the wire, and the sender's reason for it.

Sequence numbers count from 0, the SYN, and never wrap here: capture.py adds the ISN, modulo 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Cause of a retransmission, with tcpwin's names."""

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
        window: bytes, a multiple of the scale's unit.
        sacks: as in the option, a DSACK first.
        is_dsack: the first of `sacks` is one.
        timestamps: TSval and TSecr, if both sides have the option.
        ordinal: of the segment among those of its side, whether resent or not; -1 for a SYN, none for a pure ACK.
        transmission: number of earlier transmissions.
        cause: of a retransmission, otherwise none.
        timer: the sender's timer that sent it, none if an ACK or the application did.
        is_needless: its receiver had all of it on arrival; none before arrival.
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
        """Return the sequence number after it."""
        return self.seq + self.length + self.syn + self.fin

    @property
    def is_pure_ack(self) -> bool:
        return self.ordinal is None
