"""A histogram printed by a tracing tool, of latencies, sizes or other values.

In: buckets with their counts. Out: HistogramSample with its total and percentiles. The distribution within a bucket is
unknown, so a percentile is a range, never a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil

from tcpwin.errors import ArgumentError

NANOSECONDS = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanoseconds"), 1),
    **dict.fromkeys(("us", "usec", "usecs", "microseconds"), 1_000),
    **dict.fromkeys(("ms", "msec", "msecs", "milliseconds"), 1_000_000),
    **dict.fromkeys(("sec", "secs", "seconds"), 1_000_000_000),
}
"""Time units that tools print, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Values from `low` up to but excluding `high`; None means unbounded."""

    low: int | None
    high: int | None
    count: int


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """One histogram.

    Attributes:
        time_ns: nanoseconds since the epoch; None if unknown.
        line: number of its first line in the file, from 1.
        name: name of the map or function, or "".
        key: key of the map's entry, or the line above the histogram, such as ``pid = 12``; None if absent.
        unit: unit of the values, from the name or the column title; None if absent.
        buckets: the buckets in file order.
        average: printed by funclatency, in the same unit; None if absent.
    """

    time_ns: int | None
    line: int
    name: str
    key: str | None
    unit: str | None
    buckets: tuple[Bucket, ...]
    average: int | None = None

    @property
    def total(self) -> int:
        """Return the number of values in all buckets."""
        return sum(bucket.count for bucket in self.buckets)

    @property
    def unit_ns(self) -> int | None:
        """Return the nanoseconds of one unit, or None if it is not a time or unknown."""
        return None if self.unit is None else NANOSECONDS.get(self.unit)

    def percentile(self, share: float) -> Bucket | None:
        """Return the bucket of this percentile, or None if nothing was counted.

        The value is the k-th smallest with k = ⌈share · total⌉, at least the first: the nearest-rank definition.

        Args:
            share: 0 to 1.

        Raises:
            ArgumentError: the share is out of range.
        """
        if not 0 <= share <= 1:
            raise ArgumentError(f"a share must be between 0 and 1, not {share}")
        rank = max(1, ceil(Fraction(str(share)) * self.total))
        for bucket, reached in self._from_below():
            if bucket.count and reached >= rank:
                return bucket
        return None

    def at_least(self, value: int) -> int:
        """Count the values in buckets that begin at or above this value."""
        return sum(bucket.count for bucket in self.buckets if bucket.low is not None and bucket.low >= value)

    def _from_below(self) -> Iterator[tuple[Bucket, int]]:
        ordered = sorted(self.buckets, key=lambda bucket: (bucket.low is not None, bucket.low or 0))
        return zip(ordered, accumulate(bucket.count for bucket in ordered), strict=True)
