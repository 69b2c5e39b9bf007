"""Find out who sent a RST: the peer, or a device on the path in its name.

In: a case whose connection was reset. Out: ResetOrigin, or None. A device differs in how many routers its packets
passed, or answers sooner than the peer can.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import RST, SPACE, SYN, Packets, packets_of

TTL_APART = 2
"""Parallel paths may differ by one router."""
SOONER = 0.75
"""Share of the minimum round trip to the peer below which its answer cannot have arrived."""
LEAST_ROUND_TRIP_NS = 500_000
"""Shorter round trips vary by more than their length."""
IDLE_NS = 30_000_000_000
"""Load balancers and NATs forget idle connections after a minute or more; the shortest common setting is 30 s."""
FRESH_NS = 3_000_000_000


class ResetOrigin(NamedTuple):
    """A RST and what it shows.

    Attributes:
        frame, time_ns: frame and time of the RST.
        side: the side in whose name it was sent.
        ttl, usual_ttl: its TTL or hop limit, and that of the side's other packets; -1 without others.
        ip_id: its IP ID; -1 without one.
        answer_ns: time since the packet of the other side that it answers; None if it answers none.
        answered_frame: that packet's frame; 0 without one.
        has_seen: whether it acknowledges that packet's data, and so cannot have been sent before it.
        round_trip_ns: minimum round trip from the capture point to the side; 0 if unknown.
        idle_ns: silence of both sides before that packet.
        earlier_idle_ns: longest silence that the connection survived.
        has_closed: whether the side had sent a FIN.
    """

    frame: int
    time_ns: int
    side: str
    ttl: int
    usual_ttl: int
    ip_id: int
    answer_ns: int | None
    answered_frame: int
    has_seen: bool
    round_trip_ns: int
    idle_ns: int
    earlier_idle_ns: int
    has_closed: bool

    @property
    def has_other_ttl(self) -> bool:
        """Whether its TTL is not that of the side's other packets."""
        return self.usual_ttl >= 0 and abs(self.ttl - self.usual_ttl) >= TTL_APART

    @property
    def is_too_soon(self) -> bool:
        """Whether it came before the peer can have answered."""
        is_measurable = self.has_seen and self.round_trip_ns >= LEAST_ROUND_TRIP_NS and self.answer_ns is not None
        return is_measurable and (self.answer_ns or 0) < SOONER * self.round_trip_ns

    @property
    def is_after_idle(self) -> bool:
        """Whether it answers the first packet after a long silence, without a FIN before."""
        return self.answer_ns is not None and self.idle_ns >= IDLE_NS and not self.has_closed

    @property
    def is_foreign(self) -> bool:
        """Whether a device on the path sent it."""
        return self.has_other_ttl or (self.is_too_soon and not self.has_closed)


def reset_origin(case: Case) -> ResetOrigin | None:
    """Return the origin of the connection's first RST; None without one, or if the packets may not be read again."""
    id = case.connection.id
    return case.reading.derive("reset origin", id, "", lambda: _find(case, packets_of(case)))


def _find(case: Case, packets: Packets | None) -> ResetOrigin | None:
    if packets is None or case.connection.close not in ("reset", "refused"):
        return None
    import numpy as np

    resets = np.flatnonzero(packets.has(RST))
    if not len(resets):
        return None
    place = int(resets[0])
    is_from_a = bool(packets.is_from_a[place])
    own = (packets.is_from_a == is_from_a) & ~packets.has(RST)
    before = np.arange(len(packets)) < place
    asked = np.flatnonzero(before & (packets.is_from_a != is_from_a))
    silences = np.diff(packets["time_ns"][:place])
    answered = int(asked[-1]) if len(asked) else -1
    is_answer = answered == place - 1
    time_ns = int(packets["time_ns"][place])
    idle_ns = int(silences[answered - 1]) if is_answer and answered > 0 else 0
    earlier = silences[: max(answered - 1, 0)] if is_answer else silences
    usual = Counter(packets["ttl"][own].tolist()).most_common(1)
    matches = {int(ttl) for ttl in packets["ttl"][own]}
    ttl = int(packets["ttl"][place])
    end = int(packets["seq"][answered] + packets["length"][answered])
    return ResetOrigin(
        frame=int(packets["frame"][place]),
        time_ns=time_ns,
        side="a" if is_from_a else "b",
        ttl=ttl,
        # A side whose packets take several paths has several TTLs.
        usual_ttl=(ttl if ttl in matches else usual[0][0]) if usual else -1,
        ip_id=int(packets["ip_id"][place]),
        answer_ns=time_ns - int(packets["time_ns"][answered]) if is_answer else None,
        answered_frame=int(packets["frame"][answered]) if is_answer else 0,
        has_seen=is_answer and packets["length"][answered] > 0 and int(packets["ack"][place]) == end % SPACE,
        round_trip_ns=_round_trip_ns(packets, is_from_a),
        idle_ns=idle_ns,
        earlier_idle_ns=int(earlier.max()) if len(earlier) else 0,
        has_closed=bool((own & before & ((packets["flags"] & 1) != 0)).any()),
    )


def _round_trip_ns(packets: Packets, is_from_a: bool) -> int:
    """Return the time from a SYN to the side's answer in the handshake, as captured; 0 if it was not."""
    import numpy as np

    syns = packets.has(SYN)
    if is_from_a:
        # From the server's SYN/ACK to the client's first ACK.
        asks, answers = syns & ~packets.is_from_a, packets.is_from_a & ~syns
    else:
        asks, answers = syns & packets.is_from_a, syns & ~packets.is_from_a
    ask, answer = np.flatnonzero(asks), np.flatnonzero(answers)
    if not len(ask) or not len(answer) or len(ask) > 1:
        return 0
    return max(int(packets["time_ns"][answer[0]] - packets["time_ns"][ask[0]]), 0)
