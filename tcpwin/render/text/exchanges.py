"""Exchanges as text: a sentence about each group, and a table of the longest.

In: exchanges and their groups. Out: lines and a table.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcpwin.analysis import Exchanges, ExchangeSummary
from tcpwin.render.text.connections import ConnectionTable
from tcpwin.render.view.exchanges import longest_exchanges
from tcpwin.units import count_text, time_text

HEADS = {
    "connection": True,
    "request": True,
    "answer": True,
    "at": True,
    "client": True,
    "request time": True,
    "path": True,
    "server": True,
    "transfer": True,
    "asked": True,
    "answered": True,
}
"""Column headings, and whether the cells are right-aligned numbers."""


def render_exchanges(
    exchanges: Exchanges, summary: ExchangeSummary, *, limit: int
) -> list[Iterable[str] | ConnectionTable]:
    """Render groups and the longest exchanges as blocks of lines and tables.

    Args:
        limit: maximum number of groups and of exchanges.
    """
    lines = [f"{count_text(summary.exchanges, 'exchange')} on {count_text(summary.connections, 'connection')}."]
    if summary.connections_omitted or summary.exchanges_omitted:
        omitted = [
            count_text(summary.connections_omitted, "further connection"),
            count_text(summary.exchanges_omitted, "further exchange"),
        ]
        lines.append(f"Not listed: {' and '.join(text for text in omitted if not text.startswith('0 '))}.")
    for group in summary.groups[:limit]:
        of = count_text(group.exchanges, "exchange")
        on = "" if group.connection is not None else f" on {count_text(group.connections, 'connection')}"
        lines += ["", f"{group.name}, {of}{on}", f"  {group.text}"]
        if group.think_max_ns and group.exchanges > 1:
            longest = f"{time_text(group.think_max_ns)} (frame {group.think_max_frame})"
            lines.append(f"  The client took {time_text(group.think_p50_ns)} (median) to ask, at most {longest}.")
    hidden = len(summary.groups) - min(limit, len(summary.groups)) + summary.groups_omitted
    if hidden:
        lines += ["", f"{count_text(hidden, 'more group')} not shown: --limit N shows more."]
    table = _table(exchanges, limit)
    head = "" if len(table.rows) == summary.exchanges else f"The {len(table.rows):,} longest of {summary.exchanges:,}:"
    return [lines, ["", head] if head else [""], table] if table.rows else [lines]


def _table(exchanges: Exchanges, limit: int) -> ConnectionTable:
    rows = [
        (str(row.connection), *map(str, row.frames), row.at, *row.times, *row.sizes)
        for row in longest_exchanges(exchanges.table, limit)
    ]
    return ConnectionTable(HEADS, rows, [False] * len(rows))
