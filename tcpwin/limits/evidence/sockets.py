"""Counters of a connection's socket over the time of its samples. In: samples in order. Out: numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpwin.hosts import SocketSample


LARGEST = 1 << 62
"""No counter of a kernel is larger; a damaged file may say more, and no float holds it."""


def grown(samples: Sequence[SocketSample], name: str, *, since_start: bool) -> int:
    """How much a counter of the socket grew: up to its last value, or between the first and the last sample.

    Args:
        samples: in order of time.
        name: of a counter, as ``busy_ns``.
        since_start: the connection began in the capture, so that the counter's whole value counts.
    """
    values = [value for sample in samples if (value := sample.count(name)) is not None]
    if not values:
        return 0
    return min(max(values[-1] if since_start else values[-1] - values[0], 0), LARGEST)
