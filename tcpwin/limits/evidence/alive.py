"""Find out whether a silent peer lives: on other connections, or on the same one without acknowledging.

In: a case whose sender was not answered. Out: what the peer did meanwhile, or None.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import ACK, RST, SPACE, packets_of
from tcpwin.limits.reading import reading_of

MOST_CONNECTIONS = 5_000
"""Larger captures are not searched for other connections of the same hosts."""
FEWEST_ARRIVED = 3
SOON_NS = 1_000_000_000
STUCK = ("unacknowledged", "peer_silent")


class Alive(NamedTuple):
    """A peer that talked on another connection.

    Attributes:
        connection: the other connection's number.
        has_begun: whether it began, and was answered, after the silence had begun.
        frame: its first frame.
    """

    connection: int
    has_begun: bool
    frame: int


class Refusing(NamedTuple):
    """A peer that received retransmissions and acknowledged none.

    Attributes:
        arrived: copies captured near it.
        spoken_frame: a later packet from it that still acknowledges only earlier data.
    """

    arrived: int
    spoken_frame: int


def alive_elsewhere(case: Case, start_ns: int) -> Alive | None:
    """Return a connection of the same hosts on which the receiver talked after a time, or None."""
    silent = (case.connection.a if case.receiver == "a" else case.connection.b).address
    found: Alive | None = None
    for id in _others(case):
        other = case.analysis.connections[id]
        own = other.a_to_b if other.a.address == silent else other.b_to_a
        if other.start_ns > start_ns and other.established_ns is not None:
            return Alive(id, True, other.first_frame)
        if own.last_data_ns is not None and own.last_data_ns > start_ns + SOON_NS:
            found = found or Alive(id, False, other.first_frame)
    return found


def again_stuck(case: Case, start_ns: int, least_bytes: int) -> bool:
    """Return whether a connection begun after a time was set up, and every other one stuck at its first large segment.

    Small packets then pass, and large ones do not, whatever the connection.
    """
    large = later = 0
    for id in _others(case):
        other = case.analysis.connections[id]
        is_same = other.a.address == case.connection.a.address
        own = other.a_to_b if (case.sender == "a") == is_same else other.b_to_a
        later += other.start_ns > start_ns and other.established_ns is not None
        if own.max_payload_bytes >= least_bytes:
            large += 1
            if own.stall_at_end not in STUCK:
                return False
    return large > 0 and later > 0


def _others(case: Case) -> list[int]:
    """Return the other connections of the same hosts."""
    by_hosts: dict[frozenset[str], list[int]] = reading_of(case.analysis).derive(
        "connections by hosts", -1, "", lambda: _by_hosts(case)
    )
    hosts = frozenset((case.connection.a.address, case.connection.b.address))
    return [id for id in by_hosts.get(hosts, ()) if id != case.connection.id]


def _by_hosts(case: Case) -> dict[frozenset[str], list[int]]:
    by_hosts: dict[frozenset[str], list[int]] = defaultdict(list)
    connections = case.analysis.connections
    if len(connections) <= MOST_CONNECTIONS:
        for each in connections:
            by_hosts[frozenset((each.a.address, each.b.address))].append(each.id)
    return by_hosts


def refusing(case: Case, start_ns: int) -> Refusing | None:
    """Return what shows that the receiver got retransmissions and dropped them; None unless captured near it."""
    if case.data.view != "receiver" and not case.data.captured_near_receiver:
        return None
    packets = packets_of(case)
    if packets is None:
        return None
    own, peer = packets.sent_by(case.sender), packets.sent_by(case.receiver)
    late = peer.of((peer["time_ns"] > start_ns) & peer.has(ACK) & ~peer.has(RST))
    if not len(late):
        return None
    asked = int(late["ack"][-1])
    # Copies of the first byte that it still asks for.
    covers = ((asked - own["seq"]) % SPACE < own["length"]) & (own["time_ns"] < late["time_ns"][-1])
    arrived = int(covers.sum())
    return Refusing(arrived, int(late["frame"][-1])) if arrived >= FEWEST_ARRIVED else None
