"""A quantity in the capture as a function of time, from a series.

In: a Series. Out: when a growing quantity reached or exceeded a value, and the value at a time or between two times. If
a bucket of the series has several samples, answers are the widest range that it allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import Series


@dataclass(frozen=True, slots=True)
class Seen:
    """A value at a time, with its minimum and maximum given the uncertainty of the time."""

    value: int | None
    least: int
    most: int

    def holds(self, value: int) -> bool:
        """Whether the value lies within."""
        return self.least <= value <= self.most


class Steps:
    """One series. Times are nanoseconds since the epoch, by the capture's clock."""

    def __init__(self, series: Series) -> None:
        self._starts = series.time_ns
        self._last = series.last
        self._min = series.min
        self._max = series.max
        # A growing quantity never falls; only its first value, in a capture without SYN, may be provisional.
        self._grown = np.minimum.accumulate(series.max[::-1])[::-1]
        self._width_ns = series.width_ns

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def start_ns(self) -> int:
        """Return the time of the first value."""
        return int(self._starts[0])

    @property
    def end_ns(self) -> int:
        """Return the time of the last value."""
        return int(self._starts[-1]) + self._width_ns - 1

    @property
    def greatest(self) -> int:
        """Return the maximum."""
        return int(self._max.max())

    def reached_ns(self, value: int) -> int | None:
        """Return the earliest time at which a growing quantity may have reached a value, or the end if it never did.

        None if the quantity began at or above the value.
        """
        place = int(np.searchsorted(self._grown, value, side="left"))
        if place == 0:
            return None
        return int(self._starts[place]) if place < len(self) else self.end_ns

    def exceeded_ns(self, value: int) -> int | None:
        """Return the latest time at which a growing quantity may have been at a value; None if it never exceeds it."""
        place = int(np.searchsorted(self._grown, value, side="right"))
        return int(self._starts[place]) + self._width_ns - 1 if place < len(self) else None

    def at(self, time_ns: int) -> int | None:
        """Return the value at a time, or None before the first."""
        place = int(np.searchsorted(self._starts, time_ns, side="right")) - 1
        return int(self._last[place]) if place >= 0 else None

    def seen(self, first_ns: int, at_ns: int, last_ns: int) -> Seen | None:
        """Return the value at a time, and the values within a span, including the one in force at its start."""
        first = int(np.searchsorted(self._starts, first_ns, side="right")) - 1
        stop = int(np.searchsorted(self._starts, last_ns, side="right"))
        if stop <= 0:
            return None
        # In a bucket with several samples the first time may be anywhere.
        is_whole = first >= 0 and self._width_ns == 1
        inner = first + 1 if is_whole else max(first, 0)
        least, most = [], []
        if is_whole:
            least.append(int(self._last[first]))
            most.append(int(self._last[first]))
        if inner < stop:
            least.append(int(self._min[inner:stop].min()))
            most.append(int(self._max[inner:stop].max()))
        return Seen(self.at(at_ns), min(least), max(most))

    def values_at(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values at many times; before the first time, the first value."""
        places = np.searchsorted(self._starts, times_ns, side="right") - 1
        return np.asarray(self._last[np.maximum(places, 0)])

    @property
    def times(self) -> NDArray[np.int64]:
        """Return the time of each value."""
        return self._starts
