"""Verdicts on all connections of a capture as columns, computed in parts for any number of connections.

In: an analysis. Out: columns of `Verdict`'s attributes. The engine judges all connections from their packets; those
with findings or host snapshots are judged individually.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tcpwin import _engine
from tcpwin.analysis import DIRECTIONS
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.finding import Severity
from tcpwin.limits.statement import Statement
from tcpwin.limits.tables import CONFIDENCES, ENDS, ITEMS, LIMITS, OWNERS, VERDICT_FIELDS
from tcpwin.limits.verdict import Verdict, judge_connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis import Table
    from tcpwin.limits.findings import Findings

FEW = 200
"""Up to this many connections are judged individually; for more, numpy is loaded and columns are read."""
ROWS = 50_000
"""Connections whose columns are in memory at once."""
_NO_CODE = 255
_CODES = {
    "limit": LIMITS,
    "second_limit": LIMITS,
    "also": LIMITS,
    "confidence": CONFIDENCES,
    "owner": OWNERS,
    "side": ENDS,
    "direction": DIRECTIONS,
}
"""The values that a column's codes index."""


def verdict_columns(analysis: Analysis, *, start: int = 0, stop: int | None = None, few: int = FEW) -> Table:
    """Judge the connections `start` to before `stop`, or all; the columns are `VERDICT_FIELDS`, masked if missing.

    Args:
        few: if the capture has at most this many connections, each is judged individually.
    """
    import numpy as np

    from tcpwin.analysis import Table

    if len(analysis) <= few or not range(len(analysis))[start:stop]:
        verdicts = [connection.verdict for connection in analysis.connections[start:stop]]
        return Table({name: _column([getattr(each, name) for each in verdicts]) for name in VERDICT_FIELDS})
    parts = list(verdict_parts(analysis, start=start, stop=stop))
    return Table({name: _masked(np.concatenate([part[name] for part in parts])) for name in VERDICT_FIELDS})


def verdict_parts(
    analysis: Analysis,
    closely: Mapping[int, Verdict] | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    rows: int = ROWS,
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the columns of `verdict_columns`, `rows` connections at a time, with None for missing values.

    Args:
        closely: verdicts that are already known, by connection.
    """
    known = judged_closely(analysis) if closely is None else closely
    ids = sorted(known)
    begin, end, _ = slice(start, stop).indices(len(analysis))
    for first in range(begin, end, rows):
        last = min(first + rows, end)
        columns = _part(analysis, first, last)
        for id in ids[bisect_left(ids, first) : bisect_left(ids, last)]:
            for name, values in columns.items():
                values[id - first] = getattr(known[id], name)
        yield columns


def judged_closely(analysis: Analysis, found: Findings | None = None) -> dict[int, Verdict]:
    """Judge the connections of `known_closely` individually."""
    found = analysis.findings if found is None else found
    return {
        id: judge_connection(analysis.connections[id], found.of(id)) for id in sorted(known_closely(analysis, found))
    }


def known_closely(analysis: Analysis, found: Findings) -> set[int]:
    """Return the connections about which findings or host snapshots add to the budget from packets."""
    added = (
        each for each in (*found, *found.known, *found.aside) if each.items_ns or each.severity >= Severity.WARNING
    )
    claimed = {each.connection for each in added if each.connection is not None}
    return claimed | {match.connection for host in analysis.hosts for match in host.found}


def budget_columns(analysis: Analysis, start: int, stop: int) -> dict[str, dict[str, NDArray[np.int64]]]:
    """Return the time budgets, from packets alone, of connections `start` to before `stop` by direction and item."""
    spent = analysis._engine.budgets(start, stop).reshape(-1, len(DIRECTIONS), len(ITEMS))
    return {
        side: {item: spent[:, number, place] for place, item in enumerate(ITEMS)}
        for number, side in enumerate(DIRECTIONS)
    }


def _part(analysis: Analysis, start: int, stop: int) -> dict[str, NDArray[Any]]:
    """Return the columns of connections `start` to before `stop`, from their packets alone."""
    import numpy as np

    is_lossy = bool(analysis.capture.interface_drops)
    columns, rows = _engine.verdict_columns(analysis._engine, start, stop, is_lossy)
    for name, words in _CODES.items():
        by_code = np.full(_NO_CODE + 1, None, dtype=object)
        by_code[: len(words)] = words
        columns[name] = by_code[columns[name]]
    statements, place = [Statement(*row) for row in rows], columns.pop("place")
    texts = np.empty((2, len(statements)), dtype=object)
    for number, each in enumerate(statements):
        texts[:, number] = each.text, each.fix_text
    columns["text"], columns["fix"] = texts[0][place], texts[1][place]
    return {name: columns[name] for name in VERDICT_FIELDS}


def _column(values: list[Any]) -> NDArray[Any]:
    import numpy as np

    if values and not any(isinstance(each, str | None) for each in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return _masked(column)


def _masked(values: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    if values.dtype != np.object_:
        return values
    return np.ma.masked_array(values, mask=[each is None for each in values.tolist()])
