"""Evidence from captures at both ends that the sender's capture alone lacks.

In: counts of packets between the two capture points, and the direction's budget from the receiver's capture. Out:
Crossing, which the engine's judge uses. Judges nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcpwin import _engine
from tcpwin.limits.budget import Budget
from tcpwin.limits.names import FIND_LOSS, LOSS_ON_THE_PATH
from tcpwin.limits.tables import ITEMS
from tcpwin.units import count_text, share_text, time_text


@dataclass(frozen=True, slots=True)
class Crossing:
    """The fate of a direction's packets between the sender's capture and the receiver's.

    Attributes:
        near, far: letters of the sender's and the receiver's captures, ``a`` or ``b``.
        known: packets whose fate is known; `lost` of them did not arrive.
        back_known, back_lost: the same for the opposite direction, which carries the ACKs.
        retransmissions: all retransmissions: `for_lost` of segments that did not arrive, `for_lost_acks` of segments
            whose ACKs were lost, `needless` of segments that the receiver had, `for_refused` of segments that reached
            the far capture point and were dropped beyond it.
        late: packets that arrived after others sent later.
        queue_ns, back_queue_ns: mean transit time minus the minimum, in each direction; None if unknown.
        longest_queue_ns: longest queueing delay; `queue_before_loss_ns` is the mean just before a lost packet.
        round_trip_ns: minimum time to the far capture point and back; None if unknown.
        is_at_receiver: whether the far capture was made on the receiver itself.
        receiver: the direction's budget from the far capture; None if that lacks the connection's data.
        shifts: the receiver's window scale as it left and as it came; equal if it was not changed.
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
    shifts: tuple[int, int] = (0, 0)

    @property
    def shift_lost(self) -> int:
        """Return by how many bits the receiver's windows came smaller than it offered them."""
        return max(self.shifts[0] - self.shifts[1], 0)

    def corrected(self, budget: Budget) -> Budget:
        """Redistribute the sender's wait as in the receiver's capture, which alone sees window updates on time."""
        if self.receiver is None:
            return budget
        shown_ns = list(self.receiver.items_ns.values())
        items_ns, packets_ns = (
            dict(zip(ITEMS, _engine.corrected_by_receiver(list(each.values()), shown_ns), strict=True))
            for each in (budget.items_ns, budget.packets_ns)
        )
        return replace(budget, items_ns=items_ns, packets_ns=packets_ns)

    def reason(self, witness: str, alone: str, receiver: str) -> str:
        """Explain a limit by the evidence of both captures.

        Args:
            witness: the kind of evidence.
            alone: the reason from the sender's capture alone.
            receiver: the receiver's role.
        """
        resent = count_text(self.retransmissions, "retransmission")
        if witness in ("refused_beyond", "reordered", "refused_by_receiver"):
            reason = (
                f"{self.for_refused:,} of {resent} followed packets that reached point {self.far} and were dropped "
                "beyond it"
            )
            if witness == "reordered":
                reason += f"; {count_text(self.late, 'packet')} arrived after others sent later"
                reason += f"; {self._lost_words()}" if self.for_lost else ""
            return reason
        if witness == "lost_acks":
            return (
                f"{self.back_lost:,} of {count_text(self.back_known, 'packet')} with the ACKs lost between {self.far} "
                f"and {self.near}, causing {self.for_lost_acks:,} of {resent}"
            )
        if witness == "lost_between":
            return (
                f"{self.lost:,} of {count_text(self.known, 'packet')} lost between {self.near} and {self.far} "
                f"({share_text(self.lost / self.known, places=2)}); {alone}"
            )
        if witness == "needless":
            return f"{self.needless:,} of {resent} were needless: the {receiver} had the data; {self._lost_words()}"
        if witness == "scale_changed":
            left, came = self.shifts
            return (
                f"the {receiver} scales its windows by {left}, but its SYN came with {came}: a device between "
                f"{self.far} and {self.near} changed it, so windows came {1 << self.shift_lost:,} times smaller than "
                "offered"
            )
        return alone + self._queue_words(witness)

    def _queue_words(self, witness: str) -> str:
        if witness == "queue_full":
            return (
                f"; the {self.lost:,} lost packets met a queue of {time_text(self.queue_before_loss_ns or 0)} on "
                f"average, of at most {time_text(self.longest_queue_ns or 0)}: it was full"
            )
        if witness == "queue_there":
            where = f"from {self.near} to {self.far}"
            return f"; {where} packets queue {time_text(self.queue_ns or 0)} on average"
        if witness == "queue_on_the_way_back":
            return f"; but the queue is on the way back, {time_text(self.back_queue_ns or 0)} on average"
        return ""

    def fix(self, witness: str, limit: str, alone: str, sender: str, receiver: str) -> str:
        """Return the change that both captures suggest.

        Args:
            witness: the kind of evidence.
            alone: the fix from the sender's capture alone.
            sender, receiver: the roles of the ends.
        """
        if witness == "refused_beyond":
            return f"Find what drops packets between point {self.far} and the {receiver}."
        if witness == "reordered":
            fix = f"Find what reorders packets: the {receiver} drops those with old timestamps (RFC 7323)."
            if self.for_lost:
                fix += f" Also find what drops other packets between {self.near} and {self.far}."
            return fix
        if witness == "refused_by_receiver":
            return (
                f"Give the {receiver} the memory that its window promises, or make its application read faster. "
                "Check `nstat` there (TcpExtTCPRcvQDrop, TcpExtRcvPruned, TcpExtPAWSEstab)."
            )
        if witness == "scale_changed":
            return (
                f"Find the device between {self.far} and {self.near} that changes the window scale option of the "
                f"{receiver}'s SYN, and let it pass SYN options unchanged."
            )
        if witness == "needless" and limit == "retransmission_timer":
            return (
                f"Find what delays packets or ACKs for longer than the {sender}'s timer, or raise a small rto_min of "
                "the route there."
            )
        if witness == "needless":
            return f"Find what reorders packets. Keep timestamps and net.ipv4.tcp_recovery=1 on the {sender}."
        # There are already two captures, so look between them.
        ends = (self.far, self.near) if witness == "lost_acks" else (self.near, self.far)
        return alone.replace(FIND_LOSS, LOSS_ON_THE_PATH.format(where="between {} and {}".format(*ends)))

    def _lost_words(self) -> str:
        return f"{self.lost:,} of {count_text(self.known, 'packet')} were lost" if self.lost else "no packet was lost"
