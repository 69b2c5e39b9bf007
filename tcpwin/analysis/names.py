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

PercentilesName: TypeAlias = Literal["receive_window", "flight", "pipe"]
"""What has percentiles over time."""
