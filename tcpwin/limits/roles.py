"""Who is who: the role of a connection's end, in words and as a machine name.

In: a connection and a side, ``a`` or ``b``. Out: words. It reads no packets.
"""

from __future__ import annotations

from tcpwin.analysis import DirectionName
from tcpwin.limits.connection import Connection

ENDS = {"a": "client", "b": "server"}
"""Machine names: a opened the connection, or probably did."""
WELL_KNOWN_PORTS = 1024
"""Below are the ports of services (RFC 6335 §6); a client's are above."""


def role_of(connection: Connection, side: str) -> str:
    """``client`` or ``server``; ``sender`` or ``receiver`` where neither the handshake nor the ports tell.

    Without a handshake a is the end that probably opened the connection; that much is said only where one port
    alone is a service's.
    """
    if connection.initiator_known or sum(end.port < WELL_KNOWN_PORTS for end in (connection.a, connection.b)) == 1:
        return ENDS[side]
    sent_by_a, sent_by_b = (carried_bytes(connection, name) for name in ("a_to_b", "b_to_a"))
    return "sender" if (side == "a") == (sent_by_a >= sent_by_b) else "receiver"


def the_end(connection: Connection, side: str) -> str:
    """An end as the subject of a sentence: ``the client``."""
    return f"the {role_of(connection, side)}"


def roles_of(connection: Connection) -> dict[str, str]:
    """The roles of both ends by side."""
    return {side: role_of(connection, side) for side in ("a", "b")}


def way_of(connection: Connection, direction: DirectionName) -> str:
    """A direction as people read it: ``server → client`` for ``b_to_a``."""
    return f"{role_of(connection, direction[0])} → {role_of(connection, direction[-1])}"


def carried_bytes(connection: Connection, direction: DirectionName) -> int:
    """What a direction carried: what was acknowledged was carried, though the capture may lack it."""
    data = connection.a_to_b if direction == "a_to_b" else connection.b_to_a
    return max(data.unique_bytes or 0, data.acked_bytes or 0)


def main_direction(connection: Connection) -> DirectionName | None:
    """The direction with more data; None without any."""
    there, back = carried_bytes(connection, "a_to_b"), carried_bytes(connection, "b_to_a")
    if there >= back:
        return "a_to_b" if there else None
    return "b_to_a"
