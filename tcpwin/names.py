"""Names that users pass, as types: a slip of the pen is a type error before anything runs."""

from typing import Literal, TypeAlias

SeriesName: TypeAlias = Literal[
    "receive_window",
    "right_edge",
    "flight",
    "pipe",
    "sequence",
    "throughput",
    "rtt",
    "rtt_smoothed",
    "rto",
    "sender_flight",
    "cwnd_model",
    "acknowledged",
    "window_raw",
    "goodput",
    "resent",
    "sacked",
    "sender_window",
    "delivery_rate",
    "queue_delay",
]
"""What a series may be of; `Series` says what each is."""

DirectionName: TypeAlias = Literal["a_to_b", "b_to_a"]
"""Whose data: those of the first end, a, or of the second, b."""
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
    "messages",
    "reference-window",
    "reference-throughput",
]
"""What a connection has figures of."""

CaptureFigureName: TypeAlias = Literal["overview", "socket-distribution"]
"""What a capture has figures of."""
