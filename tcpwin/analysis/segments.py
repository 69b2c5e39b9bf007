"""The per-segment table as columns: codes of the engine become names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin import _engine
from tcpwin.analysis.table import Table, masked, texts

if TYPE_CHECKING:
    import polars


_TEXTS = ("direction", "src", "dst", "events")
_KINDS = {"time_ns": "Int64", "frame": "UInt64", "rtt_ns": "UInt64", "shift": "UInt8"} | dict.fromkeys(
    ("sport", "dport", "flags", "window_raw"), "UInt16"
)
"""Of the columns that hold numbers, those whose numbers are not of 32 bits, by polars' names."""


def as_table(columns: dict[str, Any], order: Iterable[str]) -> Table:
    """Put the engine's columns, in which addresses and events are codes, in order."""
    table = {}
    for name in order:
        values, mask = columns[name]
        if (words := _words(name, columns)) is not None:
            table[name] = texts(words)[values] if words else texts([])
        elif name == "direction":
            table[name] = np.where(values, "a", "b").astype(object)
        else:
            table[name] = masked(values, mask)
    return Table(table)


def as_frame(columns: dict[str, Any], order: Iterable[str]) -> polars.DataFrame:
    """The same as a data frame of polars: no text is made for each row."""
    import polars

    series = {}
    for name in order:
        values, mask = columns[name]
        if (words := _words(name, columns)) is not None:
            series[name] = polars.Series(words, dtype=polars.String).gather(polars.Series(values))
        elif name == "direction":
            series[name] = polars.Series(["b", "a"]).gather(polars.Series(values).cast(polars.UInt32))
        elif mask is None:
            series[name] = polars.Series(values)
        else:
            series[name] = polars.Series(values).set(polars.Series(mask), None)
    return polars.DataFrame(series)


def frame_schema(order: Iterable[str]) -> polars.Schema:
    """What `as_frame` has for columns."""
    import polars

    return polars.Schema(
        {name: polars.String() if name in _TEXTS else getattr(polars, _KINDS.get(name, "UInt32"))() for name in order}
    )


def _words(name: str, columns: dict[str, Any]) -> list[str] | None:
    """What the codes of a column stand for; None where it holds no codes."""
    if name in ("src", "dst"):
        addresses: list[str] = columns["address_names"]
        return addresses
    return [_join(events) for events in columns["event_sets"]] if name == "events" else None


def _join(events: int) -> str:
    return "|".join(name for bit, name in enumerate(_engine.EVENT_NAMES) if events >> bit & 1)
