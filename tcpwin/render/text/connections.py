"""Connections as a text table: one row each, those that lost most first.

In: an analysis and connection numbers. Out: cells, for the requested connections only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tcpwin.limits import Analysis, Connection, Findings, Verdict, judge_connection, roles_of
from tcpwin.render.view.direction import rate_of
from tcpwin.render.view.verdict import row_of
from tcpwin.units import bytes_text, rate_text, time_text

HEADS = {
    "id": True,
    "client → server": False,
    "limited by": False,
    "share": True,
    "cost": True,
    "bytes": True,
    "rate": True,
    "RTT": True,
}
"""Column headings, and whether the cells are right-aligned numbers."""
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class ConnectionTable:
    """Cells by row, one for each heading; and which rows are problems."""

    heads: Mapping[str, bool]
    rows: Sequence[Sequence[str]]
    problems: Sequence[bool]


def tabulate_connections(analysis: Analysis, ids: Iterable[int], found: Findings | None = None) -> ConnectionTable:
    """Return the table of these connections, judged by the given findings or, by default, by all."""
    rows, problems = [], []
    for id in ids:
        connection = analysis.connections[id]
        verdict = connection.verdict if found is None else judge_connection(connection, found.of(id))
        rows.append(_row(connection, verdict))
        problems.append(verdict.is_problem)
    return ConnectionTable(HEADS, rows, problems)


def render_table(table: ConnectionTable) -> Iterator[str]:
    """Align the rows as lines; empty for an empty table."""
    if not table.rows:
        return
    lines = [tuple(table.heads), *table.rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(table.heads.values(), line, widths, strict=True)
        yield "  ".join(f"{cell:>{width}}" if is_number else f"{cell:<{width}}" for is_number, cell, width in cells)


def _row(connection: Connection, verdict: Verdict) -> tuple[str, ...]:
    client, server = roles_of(connection).values()
    ends = (str(connection.a), str(connection.b))
    if client != "client":
        # The capture does not show who opened it.
        ends = (f"{client} {ends[0]}", f"{server} {ends[1]}")
    data = connection.a_to_b if verdict.direction == "a_to_b" else connection.b_to_a
    shown, rate_bps = row_of(verdict), rate_of(data)
    return (
        str(connection.id),
        " → ".join(ends),
        shown.limit,
        shown.share or NOTHING,
        shown.cost or NOTHING,
        bytes_text(max(data.acked_bytes or 0, data.unique_bytes or 0)),
        NOTHING if rate_bps is None else rate_text(rate_bps),
        NOTHING if connection.path_rtt_ns is None else time_text(connection.path_rtt_ns),
    )
