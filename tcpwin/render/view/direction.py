"""The data of one direction as lines: volume, window, flight, losses and times.

In: a connection as measured. Out: lines of text.
"""

from __future__ import annotations

from typing import Any

from tcpwin.analysis import Direction
from tcpwin.limits import Connection, role_of
from tcpwin.render.view.loss import render_loss
from tcpwin.render.view.timing import render_sender_flight, render_timing
from tcpwin.units import bytes_text, count_text, rate_text, time_text

LEAST_MEAN_BYTES = 1
RESET_BY_DEVICE = ("TW507", "TW508")
"""Rules on a RST that a device on the path sent, of itself or after an idle time-out."""
INITIAL_SEGMENTS, INITIAL_BYTES = 10, 14_600
"""The initial congestion window (RFC 6928 §2): a transfer that fits it has a delay but no meaningful rate."""
SILENT_SHARE = 0.05
"""Minimum reported share of the lifetime after the last ACK of new data, which the duration includes and the rate does
not.
"""


def close_text(connection: Connection) -> str:
    """Describe how a connection ended, and which end closed it, or in whose name a device on the path did."""
    close = connection.close.replace("_", " ")
    by = connection.reset_by if connection.close == "reset" else connection.closed_first
    if not by or connection.close not in ("reset", "half_closed"):
        return close
    is_devices = connection.close == "reset" and connection.verdict.code in RESET_BY_DEVICE
    return f"{close} {'in the name of' if is_devices else 'by'} the {role_of(connection, by)}"


def render_direction(connection: Connection, receiver: str, direction: Direction) -> tuple[str, list[str]]:
    """Render a direction's volume, window, flight, losses and times, a line each."""
    resent = count_text(direction.retransmissions, "retransmission")
    got = f"{bytes_text(direction.acked_bytes)} acknowledged{_rate_words(connection, direction)}"
    if direction.flight_max_bytes is None and direction.data_segments:
        got = f"{bytes_text(direction.unique_bytes)} sent, acknowledgments not captured"
    lines = []
    scale = direction.window_scale
    least, most = direction.receive_window_min_bytes, direction.receive_window_max_bytes
    if most is None:
        evidence = f" ({'; '.join(scale.evidence)})" if scale.evidence else ""
        lines.append(f"window of the {receiver}: not known in bytes, {scale}{evidence}")
    elif bytes_text(least) == bytes_text(most):
        lines.append(f"window of the {receiver}: {bytes_text(most)} throughout, {scale}")
    else:
        mean = bytes_text(direction.receive_window_mean_bytes)
        lines.append(f"window of the {receiver}: {bytes_text(least)} to {bytes_text(most)}, mean {mean}, {scale}")
    if direction.flight_max_bytes is None:
        lines.append("in flight: unknown, one side of the connection was not captured")
    else:
        where = ", as seen near the receiver: more at the sender" if direction.captured_near_receiver else ""
        mean, most_text = bytes_text(direction.flight_mean_bytes), bytes_text(direction.flight_max_bytes)
        # A mean over a few bytes in a long time is meaningless.
        mean = f"mean {mean}, " if (direction.flight_mean_bytes or 0) >= LEAST_MEAN_BYTES else ""
        lines.append(f"in flight: {mean}at most {most_text}{where}")
        lines += render_sender_flight(direction)
    lines += [*render_loss(connection, direction), *render_timing(connection, direction)]
    if direction.missed_bytes:
        lines.append(f"the capture lacks {bytes_text(direction.missed_bytes)} that were acknowledged")
    unacked_bytes = direction.unique_bytes - direction.acked_bytes
    if connection.close == "reset" and unacked_bytes > 0 and direction.flight_max_bytes is not None:
        lines.append(f"{bytes_text(unacked_bytes)} sent, but not acknowledged before the reset")
    return f"{got}, {resent}", lines


def rate_of(direction: Direction) -> float | None:
    """Return the goodput; None if the data fit an initial window, because their rate is that of one burst."""
    return None if is_burst(direction.data_segments, direction.acked_bytes) else direction.goodput_bps


def is_burst(data_segments: Any, acked_bytes: Any) -> Any:
    """Whether data fit an initial window (RFC 6928), for numbers and arrays alike."""
    return (data_segments <= INITIAL_SEGMENTS) & (acked_bytes <= INITIAL_BYTES)


def _rate_words(connection: Connection, direction: Direction) -> str:
    """Format a goodput, with its time span if that is not the connection's."""
    goodput_bps = rate_of(direction)
    if goodput_bps is None:
        return "" if direction.goodput_bps is None else f", {count_text(direction.data_segments, 'segment')}"
    rate = rate_text(goodput_bps)
    took = time_text(direction.acked_bytes * 8e9 / goodput_bps) if goodput_bps and direction.acked_bytes else ""
    if not took or took == time_text(connection.duration_ns):
        return f" at {rate}"
    carried_ns = direction.acked_bytes * 8e9 / goodput_bps
    idle_ns = connection.end_ns - (direction.first_data_ns or connection.start_ns) - carried_ns
    silent = f", nothing in the last {time_text(idle_ns)}" if idle_ns >= SILENT_SHARE * connection.duration_ns else ""
    return f" in {took} ({rate}){silent}"
