"""How a receiver's application reads, by its window."""

from __future__ import annotations

from tcpwin import _engine
from tcpwin.analysis import Direction

TIGHT_SHARE = 0.1
"""A receiver whose window held the sender for more of the time may have refused segments for want of memory."""


def is_tight(data: Direction, busy_ns: int) -> bool:
    """Whether the receive window held the sender for so long that the receiver may have refused segments."""
    return data.window_limited_ns + data.zero_window_ns > TIGHT_SHARE * busy_ns


def only_stop_ns(data: Direction) -> int:
    """How long the receiver did not read, where that was once and nearly all that the sender waited for it; else 0."""
    return _engine.only_stop_ns(data.zero_window_episode_count, data.zero_window_ns, data.window_limited_ns)
