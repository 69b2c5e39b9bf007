"""Samples of one kind, bounded in number and even in time.

In: samples as they are read. Out: all of them; or, of very many, every second one, every fourth and so on, with the
first and the last. Increments that are let go are added to the next one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcpwin.hosts.counters import are_increments
from tcpwin.hosts.samples import CounterSample


class Kept:
    """Samples in the order in which they came.

    Attributes:
        thinned: some were let go.
    """

    def __init__(self) -> None:
        self.thinned = False
        self._samples: list[Any] = []
        self._stride = 1
        self._open: Any = None
        self._count = 0
        self._is_increment: bool | None = None

    def __len__(self) -> int:
        return len(self._samples) + (self._count > 0)

    @property
    def samples(self) -> list[Any]:
        """Those that are kept."""
        return [*self._samples, self._open] if self._count else list(self._samples)

    def append(self, sample: Any, limit: int) -> None:
        """Take in one more; beyond `limit`, every second one is let go."""
        self._open = self._merge(self._open, sample) if self._count else sample
        self._count += 1
        # The first sample stands alone: what increments it counted came before.
        if self._count == self._stride or not self._samples:
            self._close()
        if len(self._samples) > max(limit, 2):
            self.thin()

    def thin(self) -> None:
        """Let every second sample go; the first and the last stay."""
        samples = self.samples
        if len(samples) <= 2:
            return
        if isinstance(samples[0], CounterSample) and self._is_increment is None:
            self._is_increment = samples[0].is_increment
            if self._is_increment is None:
                self._is_increment = are_increments(samples)
        self.thinned = True
        first, *rest = samples
        even = len(rest) - len(rest) % 2
        self._samples = [first, *(self._merge(rest[at], rest[at + 1]) for at in range(0, even, 2))]
        self._open, self._count = (rest[-1], self._stride) if len(rest) % 2 else (None, 0)
        self._stride *= 2

    def _close(self) -> None:
        self._samples.append(self._open)
        self._open, self._count = None, 0

    def _merge(self, before: Any, after: Any) -> Any:
        if not self._is_increment or not isinstance(after, CounterSample):
            return after
        values = dict(before.values)
        for name, value in after.values.items():
            values[name] = values.get(name, 0) + value
        return replace(after, values=values, is_increment=True, rates={}, resets=before.resets | after.resets)
