"""Names that users pass, as types, so that type checkers find misspellings."""

from typing import Literal, TypeAlias

from tcpwin.model import DirectionName, SeriesName

__all__ = ["DIRECTIONS", "CaptureFigureName", "DirectionName", "FigureName", "PercentilesName", "SeriesName"]

DIRECTIONS: tuple[DirectionName, DirectionName] = ("a_to_b", "b_to_a")

PercentilesName: TypeAlias = Literal["receive_window", "flight", "pipe"]
"""Quantities with percentiles over time."""

FigureName: TypeAlias = Literal[
    "timeline",
    "window",
    "path",
    "time-sequence",
    "throughput",
    "rtt",
    "budget",
    "socket-memory",
    "counters",
    "exchanges",
    "messages",
    "reference-runs",
    "reference-window",
    "reference-throughput",
]
"""Figures of a connection."""

CaptureFigureName: TypeAlias = Literal["overview", "socket-distribution"]
"""Figures of a capture."""
