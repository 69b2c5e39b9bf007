"""One direction of the path: delays, loses, reorders and duplicates packets, according to its settings."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from simulator.clock import MILLISECOND_NS, SECOND_NS, Clock
from simulator.segment import Segment
from simulator.settings import Link, Settings

# Ethernet, IPv4, TCP and its options: approximate overhead of a packet.
HEADERS = 66
# Between two packets released together after a hold.
HOLD_SPACING_NS = 50_000


class Path:
    """Delivers segments from one host to the other, in order except for delayed ones."""

    def __init__(
        self, clock: Clock, link: Link, settings: Settings, random: Random, deliver: Callable[[Segment], None]
    ) -> None:
        self._clock = clock
        self._link = link
        self._drops = settings.drops
        self._lags: dict[tuple[str, int | None, int], int] = {**dict(settings.lags)}
        self._random = random
        self._deliver = deliver
        self._free_ns = 0
        self._last_ns = 0
        self._burst = 0
        self._held = 0
        self.lost = 0

    def send(self, segment: Segment) -> None:
        now, link, random = self._clock.now_ns, self._link, self._random
        if self._is_lost(segment):
            self.lost += 1
            return
        leaves = now
        if link.rate_bps is not None:
            service = (segment.length + HEADERS) * 8 * SECOND_NS // link.rate_bps
            if (self._free_ns - now) // service >= link.queue_packets:
                self.lost += 1
                return
            leaves = self._free_ns = max(now, self._free_ns) + service
        arrives = leaves + link.delay_ns
        for start, end in link.holds:
            if start <= arrives < end:
                self._held += 1
                arrives = end + self._held * HOLD_SPACING_NS
        lag_ns = self._lags.get((segment.side, segment.ordinal, segment.transmission))
        if lag_ns is not None:
            arrives += lag_ns
        elif link.reorder and random.random() < link.reorder:
            # Delayed alone: later packets do not wait for it.
            arrives += random.randrange(link.reorder_ns // 4, link.reorder_ns + 1)
        else:
            arrives = self._last_ns = max(arrives, self._last_ns)
        self._clock.at(arrives, self._deliver, segment)
        if link.duplicate and random.random() < link.duplicate:
            later = 2 * MILLISECOND_NS + random.randrange(link.duplicate_ns + 1)
            self._clock.at(arrives + later, self._deliver, segment)

    def _is_lost(self, segment: Segment) -> bool:
        now, link, random = self._clock.now_ns, self._link, self._random
        ordinals = (segment.ordinal, -2) if segment.fin else (segment.ordinal,)
        if any((segment.side, ordinal, segment.transmission) in self._drops for ordinal in ordinals):
            return True
        if any(start <= now < end for start, end in link.outages):
            return True
        if self._burst:
            self._burst -= 1
            return True
        share, length = link.bursts
        if share and random.random() < share:
            self._burst = length - 1
            return True
        return bool(link.loss) and random.random() < link.loss
