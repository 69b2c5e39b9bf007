"""A set of sequence numbers as sorted, disjoint half-open intervals of plain integers."""

from __future__ import annotations

from collections.abc import Iterator


class Intervals:
    """Bytes from `left` up to, but excluding, `right`. Small and slow."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._spans)

    def __bool__(self) -> bool:
        return bool(self._spans)

    def total(self) -> int:
        return sum(right - left for left, right in self._spans)

    def overlap(self, left: int, right: int) -> int:
        """Return how many bytes of the span are in the set."""
        return sum(max(min(right, high) - max(left, low), 0) for low, high in self._spans)

    def add(self, left: int, right: int) -> int:
        """Add a span and return how many of its bytes are new."""
        if left >= right:
            return 0
        fresh = right - left - self.overlap(left, right)
        touching = [span for span in self._spans if span[0] <= right and span[1] >= left]
        apart = [span for span in self._spans if span not in touching]
        merged = (min([left, *(low for low, _ in touching)]), max([right, *(high for _, high in touching)]))
        self._spans = sorted([*apart, merged])
        return fresh

    @staticmethod
    def union(*sets: Intervals) -> Intervals:
        """Return the union of the sets."""
        joined = Intervals()
        for left, right in (span for spans in sets for span in spans):
            joined.add(left, right)
        return joined

    def remove(self, left: int, right: int) -> int:
        """Remove a span and return how many of its bytes were in the set."""
        gone = self.overlap(left, right)
        cut = [part for low, high in self._spans for part in ((low, min(high, left)), (max(low, right), high))]
        if gone:
            self._spans = [(low, high) for low, high in cut if low < high]
        return gone

    def remove_below(self, edge: int) -> int:
        """Remove everything below an edge and return how many bytes that was."""
        return self.remove(self._spans[0][0], edge) if self._spans else 0
