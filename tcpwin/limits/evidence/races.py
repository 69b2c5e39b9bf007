"""Find a request that crossed the FIN of an idle connection, or came after it.

In: a case whose connection was reset. Out: Race, or None.
"""

from __future__ import annotations

from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import FIN, RST, SPACE, packets_of
from tcpwin.limits.roles import other_side

IDLE_NS = 1_000_000_000
"""No server's keep-alive time-out is shorter than a second."""
CROSSED_NS = 50_000_000
"""Or one round trip of the path, if that is longer."""


class Race(NamedTuple):
    """A request and a FIN that crossed.

    Attributes:
        closer, asker: the sides that sent the FIN and the request.
        idle_ns: silence before the first of both.
        apart_ns: time between them.
        is_crossed: whether neither side can have seen the other's packet; else the request came after the FIN.
        request_bytes: size of the request's first segment.
        start_ns, frames: time of the earlier of both; frames of the request and the FIN.
    """

    closer: str
    asker: str
    idle_ns: int
    apart_ns: int
    is_crossed: bool
    request_bytes: int
    start_ns: int
    frames: tuple[int, int]


def keep_alive_race(case: Case) -> Race | None:
    """Return the request that crossed or followed a FIN and was answered with a RST, or None."""
    return case.reading.derive("keep-alive race", case.connection.id, "", lambda: _find(case))


def _find(case: Case) -> Race | None:
    packets = packets_of(case)
    if packets is None:
        return None
    import numpy as np

    fins = np.flatnonzero(packets.has(FIN) & ~packets.has(RST))
    if not len(fins):
        return None
    fin = int(fins[0])
    closer = "a" if packets.is_from_a[fin] else "b"
    asks = np.flatnonzero((packets.is_from_a != packets.is_from_a[fin]) & (packets["length"] > 0))
    apart = np.abs(packets["time_ns"][asks] - packets["time_ns"][fin])
    unseen = (packets["seq"][asks] + packets["length"][asks] - packets["ack"][fin]) % SPACE
    is_near = apart <= max(CROSSED_NS, case.connection.path_rtt_ns or 0)
    refused = asks[(is_near | (asks > fin)) & (unseen > 0) & (unseen < SPACE // 2)]
    if not len(refused):
        return None
    ask = int(refused[0])
    first = min(ask, fin)
    idle_ns = int(packets["time_ns"][first] - packets["time_ns"][first - 1]) if first else 0
    if idle_ns < IDLE_NS or not packets.has(RST)[first:].any():
        return None
    return Race(
        closer,
        other_side(closer),
        idle_ns,
        abs(int(packets["time_ns"][ask] - packets["time_ns"][fin])),
        bool(is_near[asks == ask][0]),
        int(packets["length"][ask]),
        int(packets["time_ns"][first]),
        (int(packets["frame"][ask]), int(packets["frame"][fin])),
    )
