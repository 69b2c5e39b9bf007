"""Names in a capture's folder of results."""

from pathlib import Path

VERSION = 15
"""Format version of the results; the service rewrites older ones when it starts."""

CAPTURE = "capture.json"
CONNECTIONS = "connections.parquet"
FINDINGS = "findings.parquet"
PROGRESS = "progress"
"""Bytes read so far, while the analysis runs."""

INDEX = "packets.index"
"""Index of each connection's packets in the stored capture; absent if unknown, or for lack of space."""
ENGINE = "engine.json"
"""Facts and counts of the whole capture, which cannot be derived from the packets of a few connections."""
SHARED = "shared"
"""Folder of the same results without host data, for links that hide addresses; made when one is first opened."""

VIEW = "view.json"
"""Texts of a capture's or a connection's page."""

TWINS = "twins"
"""Folder of the twins' results, which later analyses take over."""

CONNECTION = "connection.json"
EVENTS = "events.json"
SNAPSHOTS = "snapshots.json"
FIGURES = "figures.json"
"""Layouts and contents of the figures that people open first."""
LIFE = "life.json"
"""Windows, flights and silences of a whole connection, by direction."""
SKETCHES = "sketches.json"
"""Windows and flights of the connections that a capture's page shows first, in a few columns."""
SERIES = "series.npy"
"""All series one after another, shape (5, n), with the columns `VALUES`; memory-mapped."""
RUNS = "series.json"
"""Offset of each series."""
VALUES = ("time_ns", "min", "max", "last", "sum")
SEGMENTS = "segments.parquet"
SEGMENT_TIMES = "segments.npy"
"""Times of the segments, to find the start of a span without the table."""


def connection(id: int) -> str:
    """Return the folder of a connection's details, written on first use."""
    return f"details/{id}"


def series(id: int) -> str:
    """Return the folder of a connection's series only, until its details are made."""
    return f"series/{id}"


def replaced(unfinished: Path) -> Path:
    """Return the folder of the old results while new ones replace them."""
    return unfinished.with_name(f"{unfinished.name}.old")
