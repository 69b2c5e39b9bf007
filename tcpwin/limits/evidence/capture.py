"""What rules on the capture and on closes share: shares, and rows or events read again for a frame to show.

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
"""Captures with more packets are not read again for frames: it would cost more than all other judging."""
READ_CONNECTIONS = 8
"""Connections of one capture, for each rule, whose rows are read."""
FIRST_LOOKED_AT = 10_000
"""Connections that a rule on the whole capture looks at one by one; more are only counted."""

GOODBYE_BYTES = 100
"""More than a TLS close_notify takes with its padding (RFC 8446 §6.1): it holds no data, and is often refused."""

RST, FIN = 0x04, 0x01


def share_of(part: int, whole: int) -> float:
    """A part of a whole; 0 where there is no whole."""
    return part / whole if whole > 0 else 0.0


def payload_bytes(case: Case) -> int:
    """Payload of all connections, each byte once. One column for each direction; no connection is looked at."""
    connections = case.analysis.connections
    return sum(int(connections.column(f"{way}.unique_bytes").sum()) for way in ("a_to_b", "b_to_a"))


def table_of(case: Case, connection: Connection | None = None) -> Table | None:
    """The segments of a connection as columns, by default the case's; None where they may not be read."""
    if connection is None and not case.are_few:
        return None
    return case.table(None if connection is None else connection.id)


def rows_of(case: Case, connection: Connection | None = None) -> list[dict[str, Any]]:
    """The segments of a connection, by default the case's; none where they may not be read.

    For short connections: of a long one columns say the same in a hundredth of the time.
    """
    table = table_of(case, connection)
    return [] if table is None else list(table.rows())


def event_frames(case: Case, field: str, name: str) -> tuple[int | None, tuple[int, ...]]:
    """The connection of which a direction's count is largest, and the frames of its first events of that name.

    Frames that the first reading kept.
    """
    connections = case.analysis.connections
    if not len(connections):
        return None, ()
    columns = [connections.column(f"{way}.{field}") for way in ("a_to_b", "b_to_a")]
    id = max((column.max(), int(column.argmax())) for column in columns)[1]
    return id, tuple(event.frame for event in first_events(case.analysis, id, (name,))[:FRAMES])


def first_frames(case: Case, ids: Iterable[int]) -> tuple[int, ...]:
    """The first frames of some connections."""
    found: list[int] = []
    for id in ids:
        found.append(case.analysis.connections[id].first_frame)
        if len(found) == FRAMES:
            break
    return tuple(found)
