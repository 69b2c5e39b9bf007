"""Many captures as one data set: measured side by side, kept as Parquet, asked in SQL.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.fleet.dataset import Dataset
    from tcpwin.fleet.discovery import discover
    from tcpwin.fleet.measuring import Done, Tell, run
    from tcpwin.fleet.overview import limits_by, totals, unreadable, worst_connections
    from tcpwin.fleet.query import ask, asked
    from tcpwin.fleet.schema import ALWAYS, ON_REQUEST, SCHEMA, Column, tables
    from tcpwin.fleet.task import Outcome, Task

_HOMES = {
    "dataset": ("Dataset",),
    "discovery": ("discover",),
    "overview": ("limits_by", "totals", "unreadable", "worst_connections"),
    "query": ("ask", "asked"),
    "measuring": ("Done", "Tell", "run"),
    "schema": ("ALWAYS", "Column", "ON_REQUEST", "SCHEMA", "tables"),
    "task": ("Outcome", "Task"),
}

__all__ = [
    "ALWAYS",
    "ON_REQUEST",
    "SCHEMA",
    "Column",
    "Dataset",
    "Done",
    "Outcome",
    "Task",
    "Tell",
    "ask",
    "asked",
    "discover",
    "limits_by",
    "run",
    "tables",
    "totals",
    "unreadable",
    "worst_connections",
]

__getattr__ = loader(__name__, _HOMES)
