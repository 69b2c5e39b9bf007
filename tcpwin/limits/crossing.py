"""What captures of both ends prove of a direction beyond what its sender's capture shows: one more witness.

In: counts of packets between the two points, and the direction's budget by the receiver's capture. Out: Crossing. It
judges nothing: the judge, and the opinion on a limit, ask it. Who paired the captures knows nothing of limits.
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

    def corrected(self, budget: Budget) -> Budget:
        """The sender's budget: how long it waited for the receiver it knows itself, for which of its states the
        receiver's capture shows, where windows have their true times."""
        if self.receiver is None:
            return budget
        shown_ns = list(self.receiver.items_ns.values())
        items_ns, packets_ns = (
            dict(zip(ITEMS, _engine.corrected_by_receiver(list(each.values()), shown_ns), strict=True))
            for each in (budget.items_ns, budget.packets_ns)
        )
        return replace(budget, items_ns=items_ns, packets_ns=packets_ns)

    def reason(self, witness: str, alone: str, receiver: str) -> str:
        """Why a limit is the direction's, as both captures show it.

        Args:
            witness: what they say of the limit.
            alone: what the sender's capture says by itself.
            receiver: its role.
        """
        resent = count_text(self.retransmissions, "retransmission")
        if witness in ("refused_beyond", "reordered", "refused_by_receiver"):
            reason = (
                f"{self.for_refused:,} of {resent} followed packets that reached point {self.far} and were dropped "
                "after it"
            )
            if witness == "reordered":
                reason += f"; {count_text(self.late, 'packet')} came after others that had left later"
                reason += f"; {self._lost_words()}" if self.for_lost else ""
            return reason
        if witness == "lost_acks":
            return (
                f"{self.back_lost:,} of {count_text(self.back_known, 'packet')} with the ACKs lost between {self.far} "
                f"and {self.near}; {self.for_lost_acks:,} of {resent} were for want of them"
            )
        if witness == "lost_between":
            return (
                f"{self.lost:,} of {count_text(self.known, 'packet')} lost between {self.near} and {self.far} "
                f"({share_text(self.lost / self.known, places=2)}); {alone}"
            )
        if witness == "needless":
            return f"{self.needless:,} of {resent} were needless: the {receiver} had the data; {self._lost_words()}"
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
        """What to change, as both captures show it.

        Args:
            witness: what they say of the limit.
            alone: what the sender's capture advises by itself.
            sender, receiver: their roles.
        """
        if witness == "refused_beyond":
            return f"Find what drops packets between point {self.far} and the {receiver}."
        if witness == "reordered":
            fix = f"Find what reorders packets: the {receiver} drops those with old timestamps (RFC 7323)."
            if self.for_lost:
                fix += f" Find, too, what drops others between {self.near} and {self.far}."
            return fix
        if witness == "refused_by_receiver":
            return (
                f"Give the {receiver} the memory that its window promises, or make its application read faster. "
                "Check `nstat` there (TcpExtTCPRcvQDrop, TcpExtRcvPruned, TcpExtPAWSEstab)."
            )
        if witness == "needless" and limit == "retransmission_timer":
            return (
                f"Find what delays packets or ACKs for longer than the {sender}'s timer, or raise a small rto_min of "
                "the route there."
            )
        if witness == "needless":
            return f"Find what reorders packets. Keep timestamps and net.ipv4.tcp_recovery=1 on the {sender}."
        # Two captures are there already, so look between them.
        ends = (self.far, self.near) if witness == "lost_acks" else (self.near, self.far)
        way = "between {} and {}".format(*ends)
        return alone.replace(FIND_LOSS, LOSS_ON_THE_PATH.format(way=way))

    def _lost_words(self) -> str:
        return f"{self.lost:,} of {count_text(self.known, 'packet')} were lost" if self.lost else "no packet was lost"
