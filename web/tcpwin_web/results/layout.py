"""Names in a capture's folder of results."""

from pathlib import Path

VERSION = 11
"""Of the results: what an earlier version wrote is written anew when the service starts."""

CAPTURE = "capture.json"
CONNECTIONS = "connections.parquet"
FINDINGS = "findings.parquet"
PROGRESS = "progress"
"""Bytes read so far, while the analysis runs."""

INDEX = "packets.index"
"""Where each connection's packets are in the stored capture; absent where that cannot be told, or found no room."""
ENGINE = "engine.json"
"""What the engine told of the capture, which the packets of some connections do not tell: facts and counts."""
SHARED = "shared"
"""Folder of the same without what the hosts said: for links that replace addresses, once one was opened."""

VIEW = "view.json"
"""A capture, or a connection, in the words of its page."""

CONNECTION = "connection.json"
EVENTS = "events.json"
SNAPSHOTS = "snapshots.json"
FIGURES = "figures.json"
"""How much room the figures take that are looked at first, and what they show."""
LIFE = "life.json"
"""Windows, flights and silences of a connection's whole life, by direction."""
SKETCHES = "sketches.json"
"""Windows and flights of the connections that a capture's page shows first, in a few columns."""
SERIES = "series.npy"
"""All series one behind another, shape (5, n): what `VALUES` names. Mapped, so that a span costs what it holds."""
RUNS = "series.json"
"""Where each series begins."""
VALUES = ("time_ns", "min", "max", "last", "sum")
SEGMENTS = "segments.parquet"
SEGMENT_TIMES = "segments.npy"
"""The times of the segments: where a span begins is found without the table."""


def connection(id: int) -> str:
    """The folder of one connection's details, written when they are first wanted."""
    return f"details/{id}"


def series(id: int) -> str:
    """The folder of the series alone of a connection whose details nobody wanted yet."""
    return f"series/{id}"


def replaced(unfinished: Path) -> Path:
    """Where the results of before are while others take their place."""
    return unfinished.with_name(f"{unfinished.name}.old")
