"""Roles of a connection's ends, as words and as machine names.

In: a connection and a side, ``a`` or ``b``. Out: words. Reads no packets.
"""

from __future__ import annotations

from tcpwin.analysis import DirectionName, MeasuredConnection

ENDS = {"a": "client", "b": "server"}
"""Machine names of the ends: a opened the connection, or probably did."""
WELL_KNOWN_PORTS = 1024
"""Lower ports belong to services (RFC 6335 §6); clients use higher ones."""


def other_side(side: str) -> str:
    """Return the opposite of a side, ``a`` or ``b``."""
    return "b" if side == "a" else "a"


def role_of(connection: MeasuredConnection, side: str) -> str:
    """Return ``client`` or ``server``, or ``sender`` or ``receiver`` if neither the handshake nor the ports decide.

    Without a handshake, a is the end that probably opened the connection; it is called the client only if exactly one
    port is a service's.
    """
    if connection.initiator_known or sum(end.port < WELL_KNOWN_PORTS for end in (connection.a, connection.b)) == 1:
        return ENDS[side]
    sent_by_a, sent_by_b = (carried_bytes(connection, name) for name in ("a_to_b", "b_to_a"))
    return "sender" if (side == "a") == (sent_by_a >= sent_by_b) else "receiver"


def the_end(connection: MeasuredConnection, side: str) -> str:
    """Return an end as the subject of a sentence: ``the client``."""
    return f"the {role_of(connection, side)}"


def roles_of(connection: MeasuredConnection) -> dict[str, str]:
    """Return the roles of both ends by side."""
    return {side: role_of(connection, side) for side in ("a", "b")}


def way_of(connection: MeasuredConnection, direction: DirectionName) -> str:
    """Return a direction for people: ``server → client`` for ``b_to_a``."""
    return f"{role_of(connection, direction[0])} → {role_of(connection, direction[-1])}"


def carried_bytes(connection: MeasuredConnection, direction: DirectionName) -> int:
    """Return the bytes that a direction carried; acknowledged data counts even if the capture lacks it."""
    data = connection.a_to_b if direction == "a_to_b" else connection.b_to_a
    return max(data.unique_bytes or 0, data.acked_bytes or 0)


def main_direction(connection: MeasuredConnection) -> DirectionName | None:
    """Return the direction with more data; None without data."""
    there, back = carried_bytes(connection, "a_to_b"), carried_bytes(connection, "b_to_a")
    if there >= back:
        return "a_to_b" if there else None
    return "b_to_a"
