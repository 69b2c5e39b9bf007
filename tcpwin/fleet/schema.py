"""The tables of a data set: columns, meanings, and Arrow schemas.

In: the engine's lists of fields. Out: columns. Fields have the same names and meanings as in `tcpwin fields`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tcpwin import _engine
from tcpwin.analysis import DIRECTIONS

if TYPE_CHECKING:
    import pyarrow

SCHEMA = "tcpwin/fleet/1"
ALWAYS = ("captures", "connections", "findings", "budgets")
ON_REQUEST = ("events", "series")
PARTITIONS = ("day", "site")
"""Columns encoded in folder names: ``day=2026-11-25/site=paris``."""
SERIES_VALUES = ("min", "max", "last", "sum", "width_ns")
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
"""The value that Hive, DuckDB, Polars and Arrow read as null."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        kind: int, float, bool or str; ``list`` of str; struct where it has `parts`.
        meaning: description with unit.
        parts: columns within it.
    """

    name: str
    kind: str
    meaning: str
    parts: tuple[Column, ...] = ()


_KEY = Column("capture", "str", "Key of the capture, by which the tables join: a digest of its name and site.")
_ID = Column("connection", "int", "Number of the connection within its capture: `id` of connections.")

_CAPTURE_TEXTS = {
    "name": ("str", "Path or address of the capture."),
    "error": ("str", "Why it could not be read; null where it could. Its other columns are null then."),
    "warnings": ("list", "Problems with it or with its snapshots."),
    "files": ("int", "Files that are read as this one capture."),
    "snapshots": ("int", "Number of its snapshot files."),
    "hosts": ("list", "Labels of the hosts with snapshots."),
    "kernels": ("list", "Their kernels' releases, in the same order; empty text where one is not known."),
    "file_bytes": ("int", "Bytes of its files on disk."),
    "tcpwin_version": ("str", "Of what measured it."),
    "read_ns": ("int", "How long it took to measure."),
    "packets": ("int", "Packets in it."),
    "segments": ("int", "Frames that hold a TCP segment."),
    "not_tcp": ("int", "Frames without one."),
    "unread": ("int", "Of these, frames that carry what is not understood and may hide TCP."),
    "malformed": ("int", "Frames whose headers contradict themselves."),
    "first_time_ns": ("int", "Time of its first packet, nanoseconds since the Unix epoch."),
    "last_time_ns": ("int", "Time of its last packet."),
    "duration_ns": ("int", "Between them."),
    "interface_drops": ("int", "Packets that the capturing interface dropped; null where it does not say."),
    "packets_snapped": ("int", "Packets of which less was captured than was on the wire."),
    "missed_bytes": ("int", "Payload that was acknowledged though the capture does not hold it."),
    "capture_duplicates": ("int", "Segments that it holds twice."),
    "connections_without_syn": ("int", "Connections whose start was not captured."),
    "connections_one_way": ("int", "Connections with only one side captured."),
    "connections_sampled": ("int", "Connections with only samples captured."),
    "connections": ("int", "Connections in it."),
    "problems": ("int", "Of these, connections with a problem."),
    "findings": ("int", "What rules found in it."),
    "worst_connection": ("int", "Number of the connection that lost most; null without any."),
    "summary": ("str", "The capture in words."),
}
_FINDING = {
    "rule": ("str", "Code of the rule."),
    "name": ("str", "Its name."),
    "severity": ("str", "info, warning or error."),
    "connection": ("int", "Number of the connection; null where it is of the capture or of a host."),
    "direction": ("str", "a_to_b or b_to_a; null where it is both or neither."),
    "cost_ns": ("int", "By how much sooner it would have ended without it."),
    "lost_bps": ("float", "Rate lost against what the path gave, bits per second."),
    "confidence": ("str", "possible, likely or certain."),
    "owner": ("str", "Who can change it."),
    "side": ("str", "client or server."),
    "text": ("str", "What happened, with numbers."),
    "fix": ("str", "What to change."),
    "frames": ("str", "Frames that prove it, the most relevant first."),
}
_EVENT_KINDS = {
    **dict.fromkeys(("direction", "cause", "reason", "confidence"), "str"),
    "names": "list",
}


def _columns(texts: dict[str, tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(name, kind, meaning) for name, (kind, meaning) in texts.items())


def _verdict() -> tuple[Column, ...]:
    kinds = {"share": "float", "time": "int", "bool": "bool"}
    return tuple(Column(row["name"], kinds.get(row["kind"], "str"), row["doc"]) for row in _engine.verdict_fields())


def _fields(group: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, meaning) for name, kind, meaning in _engine.fields(group))


@cache
def tables() -> dict[str, tuple[Column, ...]]:
    """Return the columns of every table, without `PARTITIONS`."""
    direction = _fields("direction")
    items = tuple(
        Column(f"{item}_ns", "int", f"Of that, `{item}`: see time-budget.md.") for item in _engine.BUDGET_ITEMS
    )
    events = tuple(
        Column(name, _EVENT_KINDS.get(name, "int"), f"`{name}` of an event.") for name in _engine.EVENT_FIELDS
    )
    return {
        "captures": (_KEY, *_columns(_CAPTURE_TEXTS)),
        "connections": (
            _KEY,
            *_fields("connection"),
            Column("verdict", "struct", "What limited it.", _verdict()),
            *(Column(side, "struct", f"Of the data from {side.replace('_', ' ')}.", direction) for side in DIRECTIONS),
        ),
        "findings": (_KEY, *_columns(_FINDING)),
        "budgets": (
            _KEY,
            _ID,
            Column("direction", "str", "a_to_b or b_to_a: whose sender it is."),
            Column("is_counted", "bool", "A kernel's own count corrected what the packets say."),
            *items,
        ),
        "events": (_KEY, _ID, *events),
        "series": (
            _KEY,
            _ID,
            Column("direction", "str", "a_to_b or b_to_a."),
            Column("series", "str", "Name of the series."),
            Column("time_ns", "int", "Begin of the span that the row is of, nanoseconds since the Unix epoch."),
            *(Column(name, "int", f"`{name}` of `Series`.") for name in SERIES_VALUES),
        ),
    }


@cache
def arrow_schema(table: str) -> pyarrow.Schema:
    """Return a table's Arrow schema, with each column's meaning in its metadata."""
    import pyarrow

    return pyarrow.schema([_field(column) for column in tables()[table]], metadata={"schema": SCHEMA})


def _field(column: Column) -> Any:
    import pyarrow

    return pyarrow.field(column.name, _type(column), metadata={"meaning": column.meaning})


def _type(column: Column) -> Any:
    import pyarrow

    if column.parts:
        return pyarrow.struct([_field(each) for each in column.parts])
    return {
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "str": pyarrow.string(),
        "list": pyarrow.list_(pyarrow.string()),
    }[column.kind]


def describe_tables(names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of tables for the data set's description."""
    return {name: [_described(column) for column in tables()[name]] for name in names}


def _described(column: Column) -> dict[str, Any]:
    told = {"name": column.name, "type": column.kind, "meaning": column.meaning}
    return {**told, "columns": [_described(each) for each in column.parts]} if column.parts else told
