"""What captures of both ends prove of a direction beyond what its sender's capture shows: one more witness.

In: counts of packets between the two points, and the direction's budget by the receiver's capture. Out: Crossing. It
judges nothing: the judge, and the opinion on a limit, ask it. Who paired the captures knows nothing of limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcpwin.limits.budget import Budget
from tcpwin.limits.names import FIND_LOSS, LOSS_ON_THE_PATH
from tcpwin.limits.opinion import Opinion, Situation
from tcpwin.limits.tables import GROUPS
from tcpwin.units import count_text, share_text, time_text

NEEDLESS_SHARE = 0.95
"""Of the retransmissions: where so many were needless, the rest are no loss that a transfer feels."""
MOST_SHARE = 0.5
"""Of the retransmissions: what more of them were for is what they were for."""
QUEUED_SHARE = 0.25
"""Of the least round trip, as of a queue in one capture's round trips (`division.QUEUED_SHARE`)."""
FULL_SHARE = 0.6
"""Of the longest queue: where it was so long before the mean loss, its overflow was what lost packets. In the lab's
drawn worlds random losses meet at most 0.4 of it, overflows 0.7 and more."""
_RECOVERIES = {"fast_recovery": "congestion_control", "after_loss": "congestion_control"}
_TIMEOUTS = {"timeout": "retransmission_timer", "tail": "retransmission_timer"}
_WAITS = GROUPS["receiver"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """What became of a direction's packets between its sender's capture and its receiver's.

    Attributes:
        near, far: letters of the captures of its sender and of its receiver, ``a`` or ``b``.
        known: packets whose fate is known; `lost` of them did not come.
        back_known, back_lost: the same of the other direction, which carries the ACKs.
        retransmissions: and of these, `for_lost` copies that did not come, `for_lost_acks` of what came while the ACKs
            did not, `needless` of what the receiver had, `for_refused` of what came to the far point and was dropped
            after it.
        late: packets that came after others that had left later.
        queue_ns, back_queue_ns: by how much the mean packet took longer than the quickest, in each direction; None
            where it is not known.
        longest_queue_ns: of the direction; `queue_before_loss_ns` before the mean lost packet.
        round_trip_ns: least time to the far point and back; None where it is not known.
        is_at_receiver: the far capture was made at the receiver itself.
        receiver: the direction's budget by the far capture; None where it lacks the connection's data.
    """

    near: str
    far: str
    known: int
    lost: int
    back_known: int
    back_lost: int
    retransmissions: int
    for_lost: int
    for_lost_acks: int
    needless: int
    for_refused: int
    late: int = 0
    queue_ns: int | None = None
    back_queue_ns: int | None = None
    longest_queue_ns: int | None = None
    queue_before_loss_ns: int | None = None
    round_trip_ns: int | None = None
    is_at_receiver: bool = True
    receiver: Budget | None = None

    @property
    def is_without_loss(self) -> bool:
        """Whether data were sent again, and almost none for anything that was lost or dropped."""
        return 0 < self.retransmissions * NEEDLESS_SHARE <= self.needless

    @property
    def is_overflow(self) -> bool:
        """Whether the losses were those of a full queue: a symptom of the path's rate."""
        if not self.round_trip_ns or not self.longest_queue_ns or self.queue_before_loss_ns is None:
            return False
        is_long = self.queue_before_loss_ns >= QUEUED_SHARE * self.round_trip_ns
        is_for_loss = self.for_lost > self.retransmissions * MOST_SHARE
        return is_long and is_for_loss and self.queue_before_loss_ns >= FULL_SHARE * self.longest_queue_ns

    def limit_of(self, item: str, limit: str) -> str:
        """The limit that an item of the budget is about, where one capture alone takes it for another."""
        if limit not in ("path_loss", "path_policer"):
            return limit
        if limit == "path_loss" and self.is_without_loss:
            return {**_RECOVERIES, **_TIMEOUTS}.get(item, limit)
        # A policer makes nothing wait before it drops.
        return "path_rate" if self.is_overflow else limit

    def corrected(self, budget: Budget) -> Budget:
        """The sender's budget: how long it waited for the receiver it knows itself, for which of its states the
        receiver's capture shows, where windows have their true times."""
        if self.receiver is None:
            return budget
        return replace(
            budget,
            items_ns=_divided(budget.items_ns, self.receiver.items_ns),
            packets_ns=_divided(budget.packets_ns, self.receiver.items_ns),
        )

    def opinion(self, seen: Situation, limit: str, opinion: Opinion) -> Opinion:
        """What a limit means where both captures speak of it; as it was where they do not."""
        if limit == "path_loss":
            return self._loss(seen, opinion)
        if limit == "path_rate":
            return self._rate(opinion)
        if self.is_without_loss and limit in ("congestion_control", "retransmission_timer"):
            return self._needless(seen, limit, opinion)
        return opinion

    def _loss(self, seen: Situation, opinion: Opinion) -> Opinion:
        many = self.retransmissions * MOST_SHARE
        if self.for_refused > many:
            reason = (
                f"{self.for_refused:,} of {count_text(self.retransmissions, 'retransmission')} followed packets that "
                f"reached point {self.far} and were dropped after it"
            )
            if not self.is_at_receiver:
                fix = f"Find what drops packets between point {self.far} and the {seen.receiver}."
                return opinion.restated("network", None, "likely", reason, fix)
            if self.late >= self.for_refused:
                reason += f"; {count_text(self.late, 'packet')} came after others that had left later"
                fix = f"Find what reorders packets: the {seen.receiver} drops those with old timestamps (RFC 7323)."
                if self.for_lost:
                    reason += f"; {self._lost_words()}"
                    fix += f" Find, too, what drops others between {self.near} and {self.far}."
                return opinion.restated("network", None, "likely", reason, fix)
            fix = (
                f"Give the {seen.receiver} the memory that its window promises, or make its application read faster. "
                "Check `nstat` there (TcpExtTCPRcvQDrop, TcpExtRcvPruned, TcpExtPAWSEstab)."
            )
            phrase = f"drops in the {seen.receiver}'s kernel"
            own = opinion.restated(f"{seen.receiving_end}_host", seen.receiving_end, "certain", reason, fix)
            return replace(own, phrase=phrase)
        if self.for_lost_acks > many:
            way = f"between {self.far} and {self.near}"
            reason = (
                f"{self.back_lost:,} of {count_text(self.back_known, 'packet')} with the ACKs lost {way}; "
                f"{self.for_lost_acks:,} of {count_text(self.retransmissions, 'retransmission')} were for want of them"
            )
            return opinion.restated("network", None, "certain", reason, _find(opinion, way))
        if not self.lost:
            return opinion
        way = f"between {self.near} and {self.far}"
        reason = (
            f"{self.lost:,} of {count_text(self.known, 'packet')} lost {way} "
            f"({share_text(self.lost / self.known, places=2)})"
        )
        return opinion.restated("network", None, "certain", f"{reason}; {opinion.reason}", _find(opinion, way))

    def _rate(self, opinion: Opinion) -> Opinion:
        if self.is_overflow:
            reason = (
                f"{opinion.reason}; the {self.lost:,} lost packets met a queue of "
                f"{time_text(self.queue_before_loss_ns or 0)} on average, of at most "
                f"{time_text(self.longest_queue_ns or 0)}: it was full"
            )
            return replace(opinion, reason=reason)
        if self.queue_ns is None or self.back_queue_ns is None or not self.round_trip_ns:
            return opinion
        least_ns = QUEUED_SHARE * self.round_trip_ns
        if self.queue_ns >= max(least_ns, self.back_queue_ns):
            reason = (
                f"{opinion.reason}; from {self.near} to {self.far} packets queue {time_text(self.queue_ns)} on average"
            )
            return replace(opinion, reason=reason)
        if self.back_queue_ns >= max(least_ns, self.queue_ns):
            reason = f"{opinion.reason}; but the queue is on the way back, {time_text(self.back_queue_ns)} on average"
            return replace(opinion, confidence="possible", reason=reason)
        return opinion

    def _needless(self, seen: Situation, limit: str, opinion: Opinion) -> Opinion:
        reason = (
            f"{self.needless:,} of {count_text(self.retransmissions, 'retransmission')} were needless: the "
            f"{seen.receiver} had the data; {self._lost_words()}"
        )
        if limit == "retransmission_timer":
            fix = (
                f"Find what delays packets or ACKs for longer than the {seen.sender}'s timer, or raise a small rto_min "
                "of the route there."
            )
            return opinion.restated("network", None, "likely", reason, fix)
        fix = f"Find what reorders packets. Keep timestamps and net.ipv4.tcp_recovery=1 on the {seen.sender}."
        meaning = "It was cut for losses that did not happen."
        return replace(opinion.restated("network", None, "likely", reason, fix), meaning=meaning)

    def _lost_words(self) -> str:
        return f"{self.lost:,} of {count_text(self.known, 'packet')} were lost" if self.lost else "no packet was lost"


def _find(opinion: Opinion, way: str) -> str:
    """What to do about loss: two captures are there already, so look between them."""
    return (opinion.fix or FIND_LOSS).replace(FIND_LOSS, LOSS_ON_THE_PATH.format(way=way))


def _divided(items_ns: Mapping[str, int], shown_ns: Mapping[str, int]) -> Mapping[str, int]:
    """The time that a sender waited for its receiver, divided as the receiver's capture divides its own."""
    whole_ns, shown_whole_ns = (sum(each[item] for item in _WAITS) for each in (items_ns, shown_ns))
    if not whole_ns or not shown_whole_ns:
        return items_ns
    parts = {item: whole_ns * shown_ns[item] // shown_whole_ns for item in _WAITS}
    largest = max(parts, key=lambda item: parts[item])
    parts[largest] += whole_ns - sum(parts.values())
    return {**items_ns, **parts}
