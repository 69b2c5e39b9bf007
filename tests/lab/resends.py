"""Every retransmission by the data's sender, and whether it was necessary, from the captures of both ends."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from lab.both_ends import Passage, ack_way, data_way, distance
from lab.runs import Run
from lab.wire import ACK, SYN


@dataclass(frozen=True)
class Resend:
    """One segment whose first byte had been sent before.

    Attributes:
        earlier: previous transmissions of that byte, in order.
        fate: `arrived`: the receiver had the data, so this one was unnecessary; otherwise the fate of the latest
            earlier one: `lost` on the path, or `refused` by the receiver, whose ACKs never covered it.
    """

    passage: Passage
    earlier: tuple[Passage, ...]
    fate: str


@cache
def resends(run: Run) -> list[Resend]:
    """Return the retransmissions. Callers share the list."""
    way = data_way(run)
    sent: dict[int, list[Passage]] = {}
    received = _Received(run)
    again = []
    highest = way.data[0].start
    for passage in way.data:
        before = sent.setdefault(passage.start, [])
        # The lab's senders resend whole segments, so the first byte identifies them.
        assert (passage.start < highest) == bool(before)
        if before:
            again.append(Resend(passage, tuple(before), _fate(passage, before, received)))
        before.append(passage)
        highest = max(highest, passage.end)
    return again


def _fate(passage: Passage, before: list[Passage], received: _Received) -> str:
    if any(each.arrived for each in before) and received.holds(passage):
        return "arrived"
    return "refused" if before[-1].arrived else "lost"


class _Received:
    """The receiver's data, according to its ACKs and SACK blocks."""

    def __init__(self, run: Run) -> None:
        first = data_way(run).passages[0].left
        base = (first.seq + (first.flags & SYN > 0)) % (1 << 32)
        self.by_sack = run.meta["sysctls"]["rcv"]["net.ipv4.tcp_sack"] == "1"
        acks = [passage.left for passage in ack_way(run).passages if passage.left.flags & ACK]
        self.frames, self.times_ns = [ack.frame for ack in acks], [ack.time_ns for ack in acks]
        # The highest byte that each ACK or one before it covers, and the first ACK that has each SACK block.
        self.acked = list(accumulate((distance(ack.ack, base) for ack in acks), max))
        self.sacked: dict[tuple[int, int], int] = {}
        for place, ack in enumerate(acks):
            for left, right in ack.sacks:
                self.sacked.setdefault((distance(left, base), distance(right, base)), place)

    def holds(self, passage: Passage) -> bool:
        """Return true if an ACK covered the segment before it arrived; without SACK, if the segment had arrived."""
        if not self.by_sack:
            return True
        if passage.arrived is None:
            before = bisect_left(self.times_ns, passage.left.time_ns)
        else:
            before = bisect_left(self.frames, passage.arrived.frame)
        if before and passage.start >= 0 and passage.end <= self.acked[before - 1]:
            return True
        return any(
            place < before and start <= passage.start and passage.end <= end
            for (start, end), place in self.sacked.items()
        )
