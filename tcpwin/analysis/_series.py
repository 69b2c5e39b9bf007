"""Quantities over time, and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity over time, as extremes per time bucket; only buckets in which something happened.

    Attributes:
        name: receive_window, right_edge, flight, pipe, sequence (bytes; the last two curves and the right edge count
            from the connection's start) or throughput (payload bytes per bucket: use `sum`).
        time_ns: when each bucket begins, nanoseconds since the epoch. Shape (n,), like all arrays here.
        min, max, last: least, greatest and last value in the bucket.
        sum: their sum.
        width_ns: the buckets' width: 1 while every sample stands alone, doubled as often as needed.
    """

    name: str
    time_ns: NDArray[np.int64]
    min: NDArray[np.int64]
    max: NDArray[np.int64]
    last: NDArray[np.int64]
    sum: NDArray[np.int64]
    width_ns: int

    def __len__(self) -> int:
        return len(self.time_ns)

    def __repr__(self) -> str:
        return f"<Series {self.name}: {len(self)} buckets of {self.width_ns} ns>"


@dataclass(frozen=True, slots=True)
class Event:
    """What happened at one segment.

    Attributes:
        direction: ``a`` when the initiator sent the segment, else ``b``.
        names: the events, in the order of the per-segment table.
        seq, ack, length, window_raw: of the segment, as on the wire.
    """

    frame: int
    time_ns: int
    direction: str
    names: tuple[str, ...]
    seq: int
    ack: int
    length: int
    window_raw: int
