"""Convert an analysis to rows of the data set's tables, in batches of connections.

In: an analysis. Out: rows, each with its day. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DIRECTIONS
from tcpwin.fleet.columns import Rows
from tcpwin.fleet.schema import NO_DAY, SERIES_VALUES, arrow_schema
from tcpwin.limits import ITEMS, Analysis, Findings, budget_columns, verdict_columns, verdict_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 50_000
"""Connections whose rows are in memory at once."""
FEW = 8
"""Up to this many verdicts are computed individually; beyond, columns are cheaper."""
FOLLOWED = 100
"""Connections per capture whose events and series are stored: the worst with a problem."""
DAY_NS = 86_400_000_000_000

Dated = tuple[str, str, Rows]
"""A table's name, a day, and its rows."""


def day_of(time_ns: int | None) -> str:
    """Return the day of a time in UTC, as in Hive partitions."""
    if time_ns is None:
        return NO_DAY
    import numpy as np

    return str(np.datetime64(int(time_ns), "ns").astype("datetime64[D]"))


def rows_of(analysis: Analysis, key: str, also: Sequence[str] = ()) -> Iterator[Dated]:
    """Yield all rows of an analysis except the capture's.

    Args:
        key: the capture's key.
        also: optional tables.
    """
    for start, verdicts in _verdicts(analysis):
        stop = min(start + ROWS, len(analysis))
        connections = _connections(analysis, key, start, stop, verdicts)
        begun_ns = connections.columns["start_ns"]
        yield from _by_day("connections", connections, begun_ns)
        for budgets in _budgets(analysis, key, start, stop):
            yield from _by_day("budgets", budgets, begun_ns)
    found = analysis.findings
    if found.found:
        yield from _findings(analysis, key, found)
    followed = analysis.problems[:FOLLOWED] if also else []
    if followed:
        analysis.follow(followed)
    for id in followed:
        day = day_of(analysis.connections[id].start_ns)
        if "events" in also:
            yield "events", day, _events(analysis, key, id)
        if "series" in also:
            yield from (("series", day, each) for each in _series(analysis, key, id))


def _verdicts(analysis: Analysis) -> Iterator[tuple[int, Mapping[str, NDArray[Any]]]]:
    """Yield batches of verdicts with the number of the first connection."""
    if len(analysis) <= FEW:
        if len(analysis):
            yield 0, verdict_columns(analysis, few=FEW)
        return
    yield from zip(range(0, len(analysis), ROWS), verdict_parts(analysis, rows=ROWS), strict=True)


def _connections(analysis: Analysis, key: str, start: int, stop: int, verdicts: Mapping[str, NDArray[Any]]) -> Rows:
    table = analysis.connections.table(analysis.connections.measured_names, start=start, stop=stop)
    columns: dict[str, Any] = {"capture": key, "verdict": verdicts, **{side: {} for side in DIRECTIONS}}
    for name in table:
        group, _, field = name.rpartition(".")
        (columns[group] if group else columns)[field] = table.coded(name)
    return Rows(stop - start, columns)


def _budgets(analysis: Analysis, key: str, start: int, stop: int) -> Iterator[Rows]:
    import numpy as np

    counted = {
        id: analysis.connections[id].budget
        for id in sorted({match.connection for host in analysis.hosts for match in host.found})
        if start <= id < stop
    }
    for side, items in budget_columns(analysis, start, stop).items():
        spent = {f"{item}_ns": np.array(ns) for item, ns in items.items()}
        is_counted = np.zeros(stop - start, dtype=bool)
        for id, budgets in counted.items():
            is_counted[id - start] = budgets[side].kernel is not None
            for item in ITEMS:
                spent[f"{item}_ns"][id - start] = budgets[side].items_ns.get(item, 0)
        ids = np.arange(start, stop)
        values = {"capture": key, "connection": ids, "direction": side, "is_counted": is_counted, **spent}
        yield Rows(stop - start, values)


def _findings(analysis: Analysis, key: str, found: Findings) -> Iterator[Dated]:
    import numpy as np

    columns = found.table()
    connection = columns["connection"]
    begun_ns = np.full(columns.height, analysis.capture.first_time_ns or 0, dtype=np.int64)
    of_one = np.flatnonzero(~np.ma.getmaskarray(connection))
    if len(of_one):
        begun_ns[of_one] = analysis.connections.column("start_ns")[np.ma.getdata(connection)[of_one]]
    yield from _by_day("findings", Rows(columns.height, {"capture": key, **columns}), begun_ns)


def _events(analysis: Analysis, key: str, id: int) -> Rows:
    import pyarrow

    schema = arrow_schema("events")
    names = [field.name for field in schema][2:]
    records = [
        {"capture": key, "connection": id, **{name: _plain(getattr(event, name)) for name in names}}
        for event in analysis.connections[id].events
    ]
    return Rows(len(records), pyarrow.Table.from_pylist(records, schema=schema))


def _series(analysis: Analysis, key: str, id: int) -> Iterator[Rows]:
    from tcpwin._engine import SERIES_NAMES

    for side in DIRECTIONS:
        for name in SERIES_NAMES:
            series = analysis.connections[id].series(name, direction=side)
            if len(series):
                values = {each: getattr(series, each) for each in SERIES_VALUES}
                told = {"capture": key, "connection": id, "direction": side, "series": name}
                yield Rows(len(series), {**told, "time_ns": series.time_ns, **values})


def _by_day(name: str, rows: Rows, times_ns: NDArray[Any]) -> Iterator[Dated]:
    import numpy as np

    days = np.ma.getdata(times_ns) // DAY_NS
    first = int(days[0])
    if (days == first).all():
        yield name, day_of(first * DAY_NS), rows
        return
    for day in np.unique(days).tolist():
        yield name, day_of(day * DAY_NS), rows.where(days == day)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
