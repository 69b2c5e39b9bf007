"""Match sockets with the capture's connections by four-tuple.

In: connections of an analysis, and sockets. Out: the connection and the side of the socket. Connections that differ
from a socket in one end only, as behind NAT, are reported but never used.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from tcpwin.analysis import Measurement
from tcpwin.hosts.socket import SocketSample

FourTuple = tuple[str, int, str, int]


@dataclass(frozen=True, slots=True)
class Match:
    """A connection's number, and the side of the socket, ``a`` or ``b``."""

    connection: int
    side: str


@dataclass(frozen=True, slots=True)
class Translated:
    """A socket without a matching connection that differs from one only in an address or in one end.

    Attributes:
        local, peer: the socket's ends, as ``address:port``.
        connection: number of the similar connection.
        differs: local_address, peer_address, local_end or peer_end: an end is an address and its port.
    """

    local: str
    peer: str
    connection: int
    differs: str


class Matcher:
    """The four-tuples of a capture's connections."""

    def __init__(self, analysis: Measurement) -> None:
        connections = analysis.connections
        columns = [connections.column(name).tolist() for name in ("a_address", "a_port", "b_address", "b_port")]
        self._connections: dict[FourTuple, list[Match]] = defaultdict(list)
        self._without_a: dict[tuple[int, str, int], int] = {}
        self._without_b: dict[tuple[str, int, int], int] = {}
        self._opposite: dict[tuple[str, int], Match | None] = {}
        for id, (a, a_port, b, b_port) in enumerate(zip(*columns, strict=True)):
            self._connections[a, a_port, b, b_port].append(Match(id, "a"))
            self._connections[b, b_port, a, a_port].append(Match(id, "b"))
            self._without_a.setdefault((a_port, b, b_port), id)
            self._without_b.setdefault((a, a_port, b_port), id)
            for end, match in (((a, a_port), Match(id, "b")), ((b, b_port), Match(id, "a"))):
                self._opposite[end] = None if end in self._opposite else match

    def epochs(self) -> dict[int, tuple[int, ...]]:
        """Return the connections that share a four-tuple, by the number of the first."""
        found = {}
        for matches in self._connections.values():
            if len(matches) > 1:
                found[matches[0].connection] = tuple(match.connection for match in matches)
        return found

    def find(self, sample: SocketSample) -> list[Match]:
        """Return the connections with a socket's four-tuple, one per use of it."""
        key = four_tuple(sample)
        return self._connections.get(key, []) if key is not None else []

    def find_translated(self, sample: SocketSample) -> Translated | None:
        """Return a connection that differs in one address only, with the same ports and the same other end."""
        key = four_tuple(sample)
        if key is None:
            return None
        local, local_port, peer, peer_port = key
        ends = (f"{local}:{local_port}", f"{peer}:{peer_port}")
        candidates = (
            (self._without_a.get((local_port, peer, peer_port)), "local_address"),
            (self._without_b.get((peer, peer_port, local_port)), "local_address"),
            (self._without_b.get((local, local_port, peer_port)), "peer_address"),
            (self._without_a.get((peer_port, local, local_port)), "peer_address"),
        )
        for connection, differs in candidates:
            if connection is not None:
                return Translated(*ends, connection, differs)
        return None

    def find_other_end(self, sample: SocketSample) -> tuple[Match, Translated] | None:
        """Return the only connection that shares an end with this socket.

        Behind NAPT (RFC 3022, section 2.2) only one end stays unchanged. The match assumes that the socket belongs to
        it.
        """
        key = four_tuple(sample)
        if key is None:
            return None
        local, local_port, peer, peer_port = key
        ends = (f"{local}:{local_port}", f"{peer}:{peer_port}")
        opposite = self._opposite.get((peer, peer_port))
        if opposite is not None:
            return opposite, Translated(*ends, opposite.connection, "local_end")
        opposite = self._opposite.get((local, local_port))
        if opposite is not None:
            own = Match(opposite.connection, "a" if opposite.side == "b" else "b")
            return own, Translated(*ends, opposite.connection, "peer_end")
        return None


def four_tuple(sample: SocketSample) -> FourTuple | None:
    """Return addresses and ports in the engine's notation, or None for an unconnected socket."""
    if sample.local_port is None or sample.peer_port is None:
        return None
    local, peer = _plain(sample.local_address), _plain(sample.peer_address)
    return (local, sample.local_port, peer, sample.peer_port) if local and peer else None


@lru_cache(maxsize=1 << 16)
def _plain(address: str) -> str | None:
    """Return an address in its shortest form, IPv4-mapped IPv6 addresses as IPv4."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)
