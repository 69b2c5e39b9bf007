"""An analysis as rows of the data set's tables, a part of its connections at a time.

In: an analysis. Out: Arrow tables, each with the day that its rows belong to. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import Analysis
from tcpwin.fleet.schema import NO_DAY, SERIES_VALUES, SIDES, arrow_schema, tables
from tcpwin.limits import ITEMS, Findings, budget_columns, verdict_columns, verdict_parts

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

ROWS = 50_000
"""Connections whose rows are in memory together."""
FEW = 8
"""Connections whose verdicts are asked for one by one; of more, columns are cheaper."""
FOLLOWED = 100
"""Connections of a capture whose events and series are kept: the worst of those with a problem."""
DAY_NS = 86_400_000_000_000

Dated = tuple[str, str, "pyarrow.Table"]
"""Name of a table, a day, and rows of it."""


def day_of(time_ns: int | None) -> str:
    """The day of a time, UTC, as Hive's partitions have it."""
    if time_ns is None:
        return NO_DAY
    import numpy as np

    return str(np.datetime64(int(time_ns), "ns").astype("datetime64[D]"))


def rows_of(analysis: Analysis, key: str, also: Sequence[str] = ()) -> Iterator[Dated]:
    """All rows of an analysis but the capture's own.

    Args:
        key: of the capture.
        also: tables beside those that are always written.
    """
    for start, verdicts in _verdicts(analysis):
        stop = min(start + ROWS, len(analysis))
        begun_ns = analysis.connections.table(["start_ns"], start=start, stop=stop)["start_ns"]
        yield from _by_day("connections", _connections(analysis, key, start, stop, verdicts), begun_ns)
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
    """Verdicts of so many connections at a time, and the first one's number."""
    if len(analysis) <= FEW:
        if len(analysis):
            yield 0, verdict_columns(analysis, few=FEW)
        return
    yield from zip(range(0, len(analysis), ROWS), verdict_parts(analysis, rows=ROWS), strict=True)


def _connections(
    analysis: Analysis, key: str, start: int, stop: int, verdicts: Mapping[str, NDArray[Any]]
) -> pyarrow.Table:
    arrow = analysis.connections.table(start=start, stop=stop).to_arrow()
    columns = {name: arrow.column(name).combine_chunks() for name in arrow.column_names}
    parts: dict[str, Mapping[str, Any]] = {"verdict": verdicts}
    for side in SIDES:
        parts[side] = {
            name.partition(".")[2]: values for name, values in columns.items() if name.startswith(f"{side}.")
        }
    return _table("connections", {"capture": key, **columns, **parts}, stop - start)


def _budgets(analysis: Analysis, key: str, start: int, stop: int) -> Iterator[pyarrow.Table]:
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
        yield _table("budgets", values, stop - start)


def _findings(analysis: Analysis, key: str, found: Findings) -> Iterator[Dated]:
    import numpy as np

    columns = found.table()
    connection = columns["connection"]
    begun_ns = np.full(columns.height, analysis.capture.first_time_ns or 0, dtype=np.int64)
    of_one = np.flatnonzero(~np.ma.getmaskarray(connection))
    if len(of_one):
        begun_ns[of_one] = analysis.connections.column("start_ns")[np.ma.getdata(connection)[of_one]]
    yield from _by_day("findings", _table("findings", {"capture": key, **columns}, columns.height), begun_ns)


def _events(analysis: Analysis, key: str, id: int) -> pyarrow.Table:
    import pyarrow

    schema = arrow_schema("events")
    names = [field.name for field in schema][2:]
    records = [
        {"capture": key, "connection": id, **{name: _plain(getattr(event, name)) for name in names}}
        for event in analysis.connections[id].events
    ]
    return pyarrow.Table.from_pylist(records, schema=schema)


def _series(analysis: Analysis, key: str, id: int) -> Iterator[pyarrow.Table]:
    from tcpwin._engine import SERIES_NAMES

    for side in SIDES:
        for name in SERIES_NAMES:
            series = analysis.connections[id].series(name, direction=side)
            if len(series):
                values = {each: getattr(series, each) for each in SERIES_VALUES}
                told = {"capture": key, "connection": id, "direction": side, "series": name}
                yield _table("series", {**told, "time_ns": series.time_ns, **values}, len(series))


def capture_row(values: Mapping[str, Any]) -> pyarrow.Table:
    """The row of a capture; what is not given is null."""
    import pyarrow

    schema = arrow_schema("captures")
    return pyarrow.Table.from_pylist([{field.name: values.get(field.name) for field in schema}], schema=schema)


def _by_day(name: str, table: pyarrow.Table, times_ns: NDArray[Any]) -> Iterator[Dated]:
    import numpy as np

    days = np.ma.getdata(times_ns) // DAY_NS
    first = int(days[0])
    if (days == first).all():
        yield name, day_of(first * DAY_NS), table
        return
    for day in np.unique(days).tolist():
        yield name, day_of(day * DAY_NS), table.filter(days == day)


def _table(name: str, values: Mapping[str, Any], height: int) -> pyarrow.Table:
    """Columns as Arrow's; one value stands for all rows."""
    import pyarrow

    schema = arrow_schema(name)
    arrays = []
    for column in tables()[name]:
        kind = schema.field(column.name).type
        given = values[column.name]
        if column.parts:
            fields = list(kind)
            parts = [_array(given[field.name], field.type, height) for field in fields]
            arrays.append(pyarrow.StructArray.from_arrays(parts, fields=fields))
        else:
            arrays.append(_array(given, kind, height))
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: Any, height: int) -> Any:
    import numpy as np
    import pyarrow

    if isinstance(values, str | int):
        return pyarrow.repeat(pyarrow.scalar(values, kind), height)
    if isinstance(values, pyarrow.Array):
        return values.cast(kind)
    if values.dtype == object:
        return pyarrow.array(values.tolist(), kind)
    if not isinstance(values, np.ma.MaskedArray):
        return pyarrow.array(values, kind)
    mask = None if values.mask is np.ma.nomask else np.ma.getmaskarray(values)
    return pyarrow.array(np.ma.getdata(values), kind, mask=mask)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
