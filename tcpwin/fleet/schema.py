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
        kind: int, float, bool or str; ``list`` of str; struct if it has `parts`.
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
    "error": ("str", "Why it could not be read (its other columns are then null); null if it could."),
    "warnings": ("list", "Problems with the capture or its snapshots."),
    "files": ("int", "Files that are read as this one capture."),
    "snapshots": ("int", "Number of its snapshot files."),
    "hosts": ("list", "Labels of the hosts with snapshots."),
    "kernels": ("list", "Their kernels' releases, in the same order; empty text if unknown."),
    "file_bytes": ("int", "Bytes of its files on disk."),
    "tcpwin_version": ("str", "Version of tcpwin that measured it."),
    "read_ns": ("int", "Time needed to measure it."),
    "packets": ("int", "Number of packets."),
    "segments": ("int", "Frames with a TCP segment."),
    "not_tcp": ("int", "Frames without a TCP segment."),
    "unread": ("int", "Frames of an unsupported protocol, which may contain TCP; included in `not_tcp`."),
    "malformed": ("int", "Frames whose headers contradict themselves."),
    "first_time_ns": ("int", "Time of its first packet, nanoseconds since the Unix epoch."),
    "last_time_ns": ("int", "Time of its last packet."),
    "duration_ns": ("int", "Between them."),
    "interface_drops": ("int", "Packets that the capturing interface dropped; null if it does not report drops."),
    "packets_snapped": ("int", "Packets truncated by the snapshot length."),
    "missed_bytes": ("int", "Acknowledged payload that is missing from the capture."),
    "capture_duplicates": ("int", "Segments that the capture contains twice."),
    "connections_without_syn": ("int", "Connections whose start was not captured."),
    "connections_one_way": ("int", "Connections with only one side captured."),
    "connections_sampled": ("int", "Connections with only samples captured."),
    "connections": ("int", "Number of connections."),
    "problems": ("int", "Connections with a problem."),
    "findings": ("int", "Number of findings."),
    "worst_connection": ("int", "Number of the connection that lost most; null without any."),
    "summary": ("str", "The capture in words."),
}
_FINDING = {
    "code": ("str", "Code of the rule."),
    "name": ("str", "Its name."),
    "severity": ("str", "info, warning or error."),
    "connection": ("int", "Number of the connection; null for the capture or a host."),
    "direction": ("str", "a_to_b or b_to_a; null for both or neither."),
    "cost_ns": ("int", "How much sooner the connection would have ended without it."),
    "lost_bps": ("float", "Rate lost relative to the path's, bits per second."),
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
            Column("is_counted", "bool", "Whether the kernel's own count corrected the value from the packets."),
            *items,
        ),
        "events": (_KEY, _ID, *events),
        "series": (
            _KEY,
            _ID,
            Column("direction", "str", "a_to_b or b_to_a."),
            Column("series", "str", "Name of the series."),
            Column("time_ns", "int", "Start of the row's time span, nanoseconds since the Unix epoch."),
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
