"""Simulated time: events in order, in integer nanoseconds, deterministic."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

MICROSECOND_NS = 1_000
MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000


class Clock:
    """Runs callbacks at their times; those of the same time in the order of requests."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._asked = 0
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, time_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        self._asked += 1
        heapq.heappush(self._events, (max(time_ns, self.now_ns), self._asked, action, arguments))

    def run(self, until_ns: int, most: int) -> None:
        """Run until nothing is left or the time has passed; more than `most` events are an error of the model."""
        for _ in range(most):
            if not self._events or self._events[0][0] > until_ns:
                return
            self.now_ns, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        raise RuntimeError(f"{most} events and no end at {self.now_ns} ns")


class Timer:
    """One callback that can be postponed or cancelled; expires on a tick of the host, as in Linux."""

    def __init__(self, clock: Clock, tick_ns: int, action: Callable[[], None]) -> None:
        self._clock = clock
        self._tick_ns = tick_ns
        self._action = action
        self._generation = 0
        self.expires_ns: int | None = None

    def start(self, delay_ns: int) -> None:
        """Expire at the first tick after a delay; an earlier expiry is cancelled."""
        self._generation += 1
        self.expires_ns = -(-(self._clock.now_ns + delay_ns) // self._tick_ns) * self._tick_ns
        self._clock.at(self.expires_ns, self._expire, self._generation)

    def stop(self) -> None:
        self._generation += 1
        self.expires_ns = None

    def _expire(self, generation: int) -> None:
        if generation == self._generation:
            self.expires_ns = None
            self._action()
