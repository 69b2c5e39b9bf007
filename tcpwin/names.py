"""Names that users pass, as types: a slip of the pen is a type error before anything runs."""

from typing import Literal, TypeAlias

from tcpwin.model import DirectionName, SeriesName

__all__ = ["DIRECTIONS", "CaptureFigureName", "DirectionName", "FigureName", "PercentilesName", "SeriesName"]

DIRECTIONS: tuple[DirectionName, DirectionName] = ("a_to_b", "b_to_a")

PercentilesName: TypeAlias = Literal["receive_window", "flight", "pipe"]
"""What has percentiles over time."""

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
    "reference-window",
    "reference-throughput",
]
"""What a connection has figures of."""

CaptureFigureName: TypeAlias = Literal["overview", "socket-distribution"]
"""What a capture has figures of."""
