"""Infer from the receive window how the receiver's application reads."""

from __future__ import annotations

from tcpwin import _engine
from tcpwin.analysis import Direction

TIGHT_SHARE = 0.1
"""Share of the time limited by the window above which the receiver may have refused segments for lack of memory."""


def is_tight(data: Direction, busy_ns: int) -> bool:
    """Return whether the window limited the sender long enough that the receiver may have refused segments."""
    return data.window_limited_ns + data.zero_window_ns > TIGHT_SHARE * busy_ns


def only_stop_ns(data: Direction) -> int:
    """Return the duration of the receiver's only stop, if it was nearly all of the sender's wait for it; else 0."""
    return _engine.only_stop_ns(data.zero_window_episode_count, data.zero_window_ns, data.window_limited_ns)
