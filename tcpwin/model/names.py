"""Names that users pass and read, as types: generated from the engine's tables by `just model`."""

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
"""A series of a connection."""

DirectionName: TypeAlias = Literal["a_to_b", "b_to_a"]
"""A direction of data: from a to b, or from b to a."""

LimitName: TypeAlias = Literal[
    "receiver_window",
    "receiver_application",
    "sender_application",
    "requester_application",
    "round_trips",
    "idle",
    "send_buffer",
    "path_rate",
    "path_loss",
    "path_policer",
    "congestion_control",
    "idle_restart",
    "retransmission_timer",
    "delayed_ack",
    "nagle",
    "handshake",
    "peer_silent",
    "path_mtu",
    "path_outage",
    "middlebox",
    "receiver_memory",
    "capture",
    "none",
]
"""A limit of a connection."""

ItemName: TypeAlias = Literal[
    "handshake",
    "zero_window",
    "small_window",
    "window_full",
    "reader",
    "slow_start",
    "congestion",
    "after_loss",
    "fast_recovery",
    "timeout",
    "tail",
    "peer_silent",
    "idle_restart",
    "application",
    "responder",
    "requester",
    "round_trip",
    "idle",
    "send_buffer",
    "path",
    "policer",
    "closed",
    "unknown",
]
"""An item of the time budget."""

ConfidenceName: TypeAlias = Literal["certain", "likely", "possible"]
"""The confidence of a verdict or a finding."""

OwnerName: TypeAlias = Literal[
    "client_application",
    "server_application",
    "client_host",
    "server_host",
    "network",
    "nobody",
]
"""The owner of a limit, who can change it."""

EndName: TypeAlias = Literal["client", "server"]
"""An end of a connection, by its role."""
