"""The per-segment table as columns, with the engine's codes as names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tcpwin import _engine
from tcpwin.analysis.table import Coded, Table, masked
from tcpwin.parquet import parquet_writer

if TYPE_CHECKING:
    import polars
    from numpy.typing import NDArray

    from tcpwin.analysis.measurement import Shifts
    from tcpwin.sources import Source


_TEXTS = ("direction", "src", "dst", "events")
_KINDS = {"time_ns": "Int64", "frame": "UInt64", "rtt_ns": "UInt64", "shift": "UInt8"} | dict.fromkeys(
    ("sport", "dport", "flags", "window_raw"), "UInt16"
)
"""Numeric columns that do not have 32 bits, with their polars types."""


def as_table(columns: dict[str, Any], order: Iterable[str]) -> Table:
    """Order the engine's columns, in which addresses and events are codes."""
    table: dict[str, NDArray[Any] | Coded] = {}
    for name in order:
        values, mask = columns[name]
        if name in ("src", "dst"):
            table[name] = Coded(values, columns["address_names"])
        elif name == "direction":
            table[name] = Coded(values.view(np.uint8), ("b", "a"))
        elif name == "events":
            table[name] = Coded(values, [_join(events) for events in columns["event_sets"]])
        else:
            table[name] = masked(values, mask)
    return Table(table)


def write_segments(
    source: Source,
    file: IO[bytes],
    *,
    only: int | None = None,
    columns: Sequence[str] | None = None,
    shifts: Shifts | None = None,
    progress: Callable[[int], object] | None = None,
) -> tuple[int, list[dict[str, Any]]]:
    """Write the per-segment table as Parquet, some rows at a time; needs the ``tables`` extra.

    Returns:
        The number of connections, and facts about the capture.

    Raises:
        OSError: the file cannot be written.
    """
    columns = [name for name in _engine.ROW_COLUMNS if columns is None or name in columns]
    with parquet_writer(_schema(columns), file) as write:

        def take(chunk: dict[str, Any]) -> None:
            write(as_table(chunk, columns).to_polars())

        return _engine.row_chunks(source.open(), take, name=source.name, only=only, shifts=shifts, progress=progress)


def _schema(order: Iterable[str]) -> polars.Schema:
    """Return the polars schema of the columns."""
    import polars

    return polars.Schema(
        {name: polars.String() if name in _TEXTS else getattr(polars, _KINDS.get(name, "UInt32"))() for name in order}
    )


def _join(events: int) -> str:
    return "|".join(name for bit, name in enumerate(_engine.EVENT_NAMES) if events >> bit & 1)
