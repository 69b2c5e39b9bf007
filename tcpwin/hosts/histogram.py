"""A histogram that a tracing tool printed: of latencies, sizes or whatever it counted.

In: buckets with their counts. Out: HistogramSample with its total and the bucket of a percentile. What lies inside a
bucket is not known: a percentile is a range, never a number.
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
"""Units of time that tools print, and what one is in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Values from `low` to less than `high`; None is no bound."""

    low: int | None
    high: int | None
    count: int


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """One histogram.

    Attributes:
        time_ns: nanoseconds since the epoch; None where the file does not say.
        line: number of its first line in its file, from 1.
        name: of the map or of the function; "" where it has none.
        key: of the map's entry, or what stands over the histogram, as ``pid = 12``; None where there is none.
        unit: of the values, as it is written in the name or over the column; None where none is.
        buckets: in the order of the file.
        average: as funclatency prints it, in the same unit; None where it does not.
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
        """Values in all buckets."""
        return sum(bucket.count for bucket in self.buckets)

    @property
    def unit_ns(self) -> int | None:
        """Nanoseconds of one unit; None where the unit is no time, or not said."""
        return None if self.unit is None else NANOSECONDS.get(self.unit)

    def percentile(self, share: float) -> Bucket | None:
        """The bucket that holds the value below which this share of all lies; None where nothing was counted.

        The value is the k-th smallest with k = ⌈share · total⌉, at least the first: the nearest-rank definition.

        Args:
            share: 0 to 1.

        Raises:
            ArgumentError: it is not.
        """
        if not 0 <= share <= 1:
            raise ArgumentError(f"a share must be between 0 and 1, not {share}")
        rank = max(1, ceil(Fraction(str(share)) * self.total))
        for bucket, reached in self._from_below():
            if bucket.count and reached >= rank:
                return bucket
        return None

    def at_least(self, value: int) -> int:
        """How many values lie in buckets that begin at this value or above."""
        return sum(bucket.count for bucket in self.buckets if bucket.low is not None and bucket.low >= value)

    def _from_below(self) -> Iterator[tuple[Bucket, int]]:
        ordered = sorted(self.buckets, key=lambda bucket: (bucket.low is not None, bucket.low or 0))
        return zip(ordered, accumulate(bucket.count for bucket in ordered), strict=True)
