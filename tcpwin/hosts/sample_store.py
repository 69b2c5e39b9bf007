"""Samples of one kind, bounded in number and evenly spaced in time.

In: samples as they are read. Out: all of them; or, if there are very many, every second, fourth and so on, including
the first and the last. Increments of dropped samples are added to the next one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcpwin.hosts.counters import are_increments
from tcpwin.hosts.samples import CounterSample


class Kept:
    """Samples in arrival order.

    Attributes:
        thinned: whether some were dropped.
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
        """Return the kept samples."""
        return [*self._samples, self._open] if self._count else list(self._samples)

    def append(self, sample: Any, limit: int) -> None:
        """Add one; beyond `limit`, drop every second one."""
        self._open = self._merge(self._open, sample) if self._count else sample
        self._count += 1
        # Keep the first sample separate: its increments were counted before it.
        if self._count == self._stride or not self._samples:
            self._close()
        if len(self._samples) > max(limit, 2):
            self.thin()

    def thin(self) -> None:
        """Drop every second sample, except the first and the last."""
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
