"""Write rows as csv, JSON lines, Arrow or Parquet, a few thousand at a time.

In: rows of plain values by column, and the columns' types. Out: a file. Never holds all rows in memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Any, TypeVar

from tcpwin.errors import need
from tcpwin.parquet import parquet_writer

BATCH_ROWS = 4096
"""Rows per Arrow batch, and per write to Parquet."""

_RANGES = {"int": (-(1 << 63), 1 << 63), "uint": (0, 1 << 64)}

Row = Mapping[str, Any]
_Batch = TypeVar("_Batch")


def write_rows(rows: Iterable[Row], kinds: Mapping[str, str], form: str, file: IO[Any]) -> dict[str, int]:
    """Write rows as `csv` or `jsonl` into a text file, as `arrow` or `parquet` into a binary one.

    Args:
        kinds: column types by name: int, uint, float, bool or str.

    Returns:
        How many numbers per column Arrow and Parquet omit because they exceed 64 bits.
    """
    left_out: dict[str, int] = {}
    if form == "jsonl":
        for row in rows:
            file.write(json.dumps(row) + "\n")
    elif form == "csv":
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(kinds)
        for row in rows:
            writer.writerow([_csv_cell(row[name]) for name in kinds])
    elif form == "arrow":
        _write_arrow(rows, kinds, file, left_out)
    else:
        _write_parquet(rows, kinds, file, left_out)
    return left_out


def check_extra(form: str) -> None:
    """Raise an error if a format's package is missing.

    Raises:
        OutputError: it is not installed.
    """
    package, extra = {"arrow": ("pyarrow", "arrow"), "parquet": ("polars", "tables")}.get(form, ("json", ""))
    need(form, package, extra=extra)


def _write_arrow(rows: Iterable[Row], kinds: Mapping[str, str], file: IO[bytes], left_out: dict[str, int]) -> None:
    import pyarrow

    types = {
        "int": pyarrow.int64(),
        "uint": pyarrow.uint64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "str": pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with pyarrow.ipc.new_file(file, schema) as writer:
        for batch in _batches(rows, kinds, left_out, lambda data: pyarrow.record_batch(data, schema=schema)):
            writer.write_batch(batch)


def _write_parquet(rows: Iterable[Row], kinds: Mapping[str, str], file: IO[bytes], left_out: dict[str, int]) -> None:
    import polars

    types = {
        "int": polars.Int64,
        "uint": polars.UInt64,
        "float": polars.Float64,
        "bool": polars.Boolean,
        "str": polars.String,
    }
    schema = polars.Schema({name: types[kind] for name, kind in kinds.items()})
    with parquet_writer(schema, file) as write:
        for frame in _batches(rows, kinds, left_out, lambda data: polars.DataFrame(data, schema=schema)):
            write(frame)


def _batches(
    rows: Iterable[Row],
    kinds: Mapping[str, str],
    left_out: dict[str, int],
    make: Callable[[dict[str, list[Any]]], _Batch],
) -> Iterator[_Batch]:
    source = iter(rows)
    while batch := list(islice(source, BATCH_ROWS)):
        data = {name: [row[name] for row in batch] for name in kinds}
        try:
            made = make(data)
        except (ArithmeticError, TypeError, ValueError):
            # A number beyond 64 bits, or invalid Unicode: only then check each cell.
            made = make({name: _fitting(name, kinds[name], column, left_out) for name, column in data.items()})
        yield made


def _fitting(name: str, kind: str, column: list[Any], left_out: dict[str, int]) -> list[Any]:
    if kind == "str":
        return [None if value is None else value.encode("utf-8", "backslashreplace").decode() for value in column]
    if kind == "float":
        return [None if value is None else float(value) for value in column]
    if kind not in _RANGES:
        return column
    least, end = _RANGES[kind]
    fitting = [value if value is None or least <= value < end else None for value in column]
    if beyond := sum(value is not None for value in column) - sum(value is not None for value in fitting):
        left_out[name] = left_out.get(name, 0) + beyond
    return fitting


def _csv_cell(value: Any) -> Any:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value
