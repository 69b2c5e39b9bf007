"""Growth of a socket's counters over its samples. In: samples in order. Out: numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpwin.hosts import SocketSample


LARGEST = 1 << 62
"""No kernel counter is larger; a damaged file may have values that no float can hold."""


def grown(samples: Sequence[SocketSample], name: str, *, since_start: bool) -> int:
    """Return how much a socket counter grew, from 0 or from its first sample, up to its last value.

    Args:
        samples: samples in time order.
        name: a counter such as ``busy_ns``.
        since_start: whether the connection began in the capture, so the counter's whole value counts.
    """
    values = [value for sample in samples if (value := sample.count(name)) is not None]
    if not values:
        return 0
    return min(max(values[-1] if since_start else values[-1] - values[0], 0), LARGEST)
