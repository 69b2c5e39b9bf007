"""The per-segment table as columns: codes of the engine become names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tcpwin import _engine
from tcpwin.analysis.table import Table, masked, texts


def as_table(columns: dict[str, Any], order: Iterable[str]) -> Table:
    """Put the engine's columns, in which addresses and events are codes, in order."""
    addresses = texts(columns["address_names"])
    names = list(_engine.EVENT_NAMES)
    table = {}
    for name in order:
        values, mask = columns[name]
        if name in ("src", "dst"):
            table[name] = addresses[values] if len(addresses) else texts([])
        elif name == "direction":
            table[name] = np.where(values, "a", "b").astype(object)
        elif name == "events":
            distinct, positions = np.unique(values, return_inverse=True)
            table[name] = texts([_join(int(events), names) for events in distinct])[positions]
        else:
            table[name] = masked(values, mask)
    return Table(table)


def _join(events: int, names: list[str]) -> str:
    return "|".join(name for bit, name in enumerate(names) if events >> bit & 1)
