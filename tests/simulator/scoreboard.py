"""Unacknowledged segments, which may be SACKed, lost or retransmitted (Linux's tcp_rtx_queue)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.segment import Block


@dataclass(slots=True, eq=False)
class Sent:
    """A segment of the retransmission queue.

    Attributes:
        retransmitted: retransmitted, and that transmission counts as in flight (TCPCB_SACKED_RETRANS).
        ever: retransmitted at any time (TCPCB_EVER_RETRANS).
        is_lost_again: one of its retransmissions was also lost.
    """

    start: int
    end: int
    ordinal: int
    fin: bool = False
    push: bool = False
    sent_ns: int = 0
    transmissions: int = 0
    sacked: bool = False
    lost: bool = False
    retransmitted: bool = False
    ever: bool = False
    is_lost_again: bool = False

    @property
    def length(self) -> int:
        return self.end - self.start - self.fin


class Scoreboard:
    """The queue in sequence order, with Linux's segment counters.

    Without SACK, `sacked` counts duplicate ACKs, each of which shows that one segment arrived (tcp_add_reno_sack).
    """

    def __init__(self) -> None:
        self.queue: list[Sent] = []
        self.sacked = 0
        self.lost = 0
        self.retransmitted = 0

    def __iter__(self) -> Iterator[Sent]:
        return iter(self.queue)

    def __len__(self) -> int:
        return len(self.queue)

    @property
    def head(self) -> Sent:
        return self.queue[0]

    @property
    def in_flight(self) -> int:
        """Return the segments that count as in the network (tcp_packets_in_flight)."""
        return len(self.queue) - self.sacked - self.lost + self.retransmitted

    @property
    def left_out(self) -> int:
        return self.sacked + self.lost

    @property
    def highest_sacked(self) -> int:
        """Return the start of the highest SACKed segment, or 0."""
        return next((sent.start for sent in reversed(self.queue) if sent.sacked), 0)

    def by_time(self) -> list[Sent]:
        """Return the segments that may be marked lost, by their last transmission."""
        waiting = [sent for sent in self.queue if not sent.sacked and (not sent.lost or sent.retransmitted)]
        return sorted(waiting, key=lambda sent: (sent.sent_ns, sent.end))

    def mark_lost(self, sent: Sent) -> None:
        if not sent.lost:
            sent.lost = True
            self.lost += 1
        if sent.retransmitted:
            sent.retransmitted = False
            sent.is_lost_again = True
            self.retransmitted -= 1

    def unmark_lost(self) -> None:
        """Count all segments as in flight again (undo)."""
        for sent in self.queue:
            sent.lost = False
        self.lost = 0

    def mark_retransmitted(self, sent: Sent) -> None:
        sent.retransmitted = sent.ever = True
        self.retransmitted += 1

    def take_acked(self, ack: int) -> list[Sent]:
        """Remove acknowledged segments; without SACK the caller keeps the duplicate ACK counters."""
        count = next((place for place, sent in enumerate(self.queue) if sent.end > ack), len(self.queue))
        acked, self.queue = self.queue[:count], self.queue[count:]
        for sent in acked:
            self.retransmitted -= sent.retransmitted
            self.sacked -= sent.sacked
            self.lost -= sent.lost
        return acked

    def newly_sacked(self, blocks: list[Block]) -> list[Sent]:
        return [
            sent
            for sent in self.queue
            if not sent.sacked and any(left <= sent.start and sent.end <= right for left, right in blocks)
        ]

    def mark_sacked(self, sent: Sent) -> None:
        # Both a retransmission thought lost and one in flight are removed from the counters.
        if sent.retransmitted and sent.lost:
            sent.retransmitted = False
            self.retransmitted -= 1
        if sent.lost:
            sent.lost = False
            self.lost -= 1
        sent.sacked = True
        self.sacked += 1
