"""Helpers for rules on the capture and on closes: shares, and rows or events read again to find frames to show.

In: a case. Out: numbers and frames. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tcpwin.limits.case import Case
from tcpwin.limits.reading import first_events

if TYPE_CHECKING:
    from tcpwin.analysis import Table
    from tcpwin.limits.connection import Connection

FRAMES = 6
READ_PACKETS = 1_000_000
"""Captures with more packets are not read again for frames: this would cost more than all other judging."""
READ_CONNECTIONS = 8
"""Connections per capture whose rows each rule may read."""
FIRST_LOOKED_AT = 10_000
"""Connections that a capture-wide rule examines individually; the rest are only counted."""

GOODBYE_BYTES = 100
"""Larger than a TLS close_notify with padding (RFC 8446 §6.1), which carries no data and is often refused."""

RST, FIN = 0x04, 0x01


def share_of(part: int, whole: int) -> float:
    """Return part ÷ whole, or 0 if the whole is 0."""
    return part / whole if whole > 0 else 0.0


def payload_bytes(case: Case) -> int:
    """Return the payload of all connections, each byte counted once. Reads one column per direction, no connections."""
    connections = case.analysis.connections
    return sum(int(connections.column(f"{way}.unique_bytes").sum()) for way in ("a_to_b", "b_to_a"))


def table_of(case: Case, connection: Connection | None = None) -> Table | None:
    """Return a connection's segments as columns, by default the case's, or None if they may not be read."""
    if connection is None and not case.are_few:
        return None
    return case.table(None if connection is None else connection.id)


def rows_of(case: Case, connection: Connection | None = None) -> list[dict[str, Any]]:
    """Return a connection's segments, by default the case's, or none if they may not be read.

    For short connections only: for long ones, columns give the same in a hundredth of the time.
    """
    table = table_of(case, connection)
    return [] if table is None else list(table.rows())


def event_frames(case: Case, field: str, name: str) -> tuple[int | None, tuple[int, ...]]:
    """Return the connection with the largest count in a direction, and the frames of its first events of that name.

    Return frames kept from the first reading.
    """
    connections = case.analysis.connections
    if not len(connections):
        return None, ()
    columns = [connections.column(f"{way}.{field}") for way in ("a_to_b", "b_to_a")]
    id = max((column.max(), int(column.argmax())) for column in columns)[1]
    return id, tuple(event.frame for event in first_events(case.analysis, id, (name,))[:FRAMES])


def first_frames(case: Case, ids: Iterable[int]) -> tuple[int, ...]:
    """Return the first frames of some connections."""
    found: list[int] = []
    for id in ids:
        found.append(case.analysis.connections[id].first_frame)
        if len(found) == FRAMES:
            break
    return tuple(found)
