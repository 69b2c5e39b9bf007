"""The per-segment table as columns, with the engine's codes as names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin import _engine
from tcpwin.analysis.table import Coded, Table, masked

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def _join(events: int) -> str:
    return "|".join(name for bit, name in enumerate(_engine.EVENT_NAMES) if events >> bit & 1)
