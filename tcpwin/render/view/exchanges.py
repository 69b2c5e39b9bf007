"""Exchanges in words: the longest requests with their answers, one row each.

In: exchanges. Out: cells with units, and the frames and the span of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcpwin.analysis import Table, group_exchanges, list_exchanges
from tcpwin.limits import Connection
from tcpwin.units import bytes_text, time_text

TIMES = ("think_ns", "request_ns", "path_ns", "work_ns", "transfer_ns")
"""Columns whose times follow one another."""
SHOWN = 20
"""Number of rows on a connection's page."""


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """One exchange.

    Attributes:
        connection: its number.
        frames: first frame of the request, and of the answer.
        span_ns: bounds of the time from the request to the end of the answer, as the client sees them.
        at: time since the first request of the table.
        times: the client's, the request's, the path's, the server's and the answer's.
        sizes: sizes of the request and of the answer.
    """

    connection: int
    frames: tuple[int, int]
    span_ns: tuple[int, int]
    at: str
    times: tuple[str, ...]
    sizes: tuple[str, str]


def longest_exchanges(table: Table, limit: int) -> list[ExchangeRow]:
    """Return the exchanges that took longest from the request to the end of the answer, in their order."""
    taken = np.stack([np.asarray(table[name]) for name in TIMES])
    lengths = taken[1:].sum(axis=0)
    chosen = np.sort(np.argsort(-lengths, kind="stable")[:limit]).tolist()
    origin_ns = int(table["start_ns"][0]) if table.height else 0
    rows = []
    for row in chosen:
        start_ns = int(table["start_ns"][row])
        rows.append(
            ExchangeRow(
                connection=int(table["connection"][row]),
                frames=(int(table["request_frame"][row]), int(table["answer_frame"][row])),
                span_ns=(start_ns, start_ns + int(lengths[row])),
                at=time_text(start_ns - origin_ns),
                times=tuple(time_text(int(ns)) for ns in taken[:, row]),
                sizes=(bytes_text(int(table["request_bytes"][row])), bytes_text(int(table["answer_bytes"][row]))),
            )
        )
    return rows


def view_exchanges(connection: Connection) -> tuple[str, Sequence[ExchangeRow], int]:
    """Return a sentence about a connection's exchanges, the longest ones, and their total number."""
    if not connection.exchanges:
        return "", (), 0
    found = list_exchanges(connection.analysis, [connection.id])
    groups = group_exchanges(connection.analysis, found, "connection").groups
    return " ".join(group.text for group in groups), longest_exchanges(found.table, SHOWN), found.table.height
