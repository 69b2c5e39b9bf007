"""One run of the model: takes settings, returns the captures of each vantage point and the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from simulator.clock import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Clock
from simulator.endpoint import Endpoint
from simulator.path import Path
from simulator.segment import Segment
from simulator.settings import Settings

MOST_EVENTS = 200_000
MOST_TIME_NS = 600 * SECOND_NS
# From a packet's arrival, when it is captured, until the host has processed it.
PROCESSING_NS = 20 * MICROSECOND_NS
CLOSE_AFTER_NS = MILLISECOND_NS


@dataclass(frozen=True, slots=True)
class Captured:
    """One packet of a capture; a segment duplicated by the network is captured twice."""

    time_ns: int
    segment: Segment


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run.

    Attributes:
        captures: by side, packets that left and arrived at its host, in order.
        sent: every transmission in the order of departure.
        counts: by side: timeouts, probes, probes_of_new_data, recoveries, undone, syn_timeouts, persist; of its
            receiving half dsacks and duplicates.
        delivered: by side, payload given to its application.
        is_finished: both FINs were acknowledged.
    """

    settings: Settings
    captures: dict[str, list[Captured]]
    sent: list[Segment]
    counts: dict[str, Counter[str]]
    delivered: dict[str, int]
    is_finished: bool

    def resent(self, side: str) -> list[Segment]:
        return [segment for segment in self.sent if segment.side == side and segment.cause is not None]


def simulate(settings: Settings) -> Run:
    """Run one connection from its SYN until both sides have closed."""
    return _World(settings).run()


class _World:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = Clock()
        self._captures: dict[str, list[Captured]] = {"a": [], "b": []}
        self._sent: list[Segment] = []
        random = Random(settings.seed)
        self._miss = Random(random.random())
        self._paths: dict[str, Path] = {}
        self._ends: dict[str, Endpoint] = {}
        for side in "ab":
            link = settings.data_link if side == settings.sender else settings.ack_link
            other = "b" if side == "a" else "a"
            chance = Random(random.random())
            self._paths[side] = Path(self._clock, link, settings, chance, self._arrival_at(other))
            self._ends[side] = Endpoint(
                self._clock,
                settings,
                side,
                send=self._send,
                opened=self._data_begins if side == settings.sender else self._request,
            )

    def run(self) -> Run:
        self._clock.at(MILLISECOND_NS, self._ends["a"].connect)
        self._clock.run(MOST_TIME_NS, MOST_EVENTS)
        ends = self._ends
        return Run(
            self._settings,
            self._captures,
            self._sent,
            {
                side: end.counts
                + end.sender.counts
                + Counter(dsacks=end.receiver.dsacks, duplicates=end.receiver.duplicates)
                for side, end in ends.items()
            },
            {side: end.receiver.delivered for side, end in ends.items()},
            all(end.sender.is_finished for end in ends.values()),
        )

    def _send(self, segment: Segment) -> None:
        self._sent.append(segment)
        self._capture(segment.side, segment)
        self._paths[segment.side].send(segment)

    def _arrival_at(self, side: str) -> Callable[[Segment], None]:
        def arrive(segment: Segment) -> None:
            self._capture(side, segment)
            self._clock.at(self._clock.now_ns + PROCESSING_NS, self._take, side, segment)

        return arrive

    def _take(self, side: str, segment: Segment) -> None:
        end = self._ends[side]
        was_finished = end.receiver.is_finished
        end.take(segment)
        if side == self._settings.receiver and end.receiver.is_finished and not was_finished:
            self._clock.at(self._clock.now_ns + CLOSE_AFTER_NS, end.sender.close)

    def _capture(self, side: str, segment: Segment) -> None:
        if self._settings.capture_loss and self._miss.random() < self._settings.capture_loss:
            return
        self._captures[side].append(Captured(self._clock.now_ns, segment))

    def _data_begins(self) -> None:
        sender, now = self._ends[self._settings.sender].sender, self._clock.now_ns
        last_ns = 0
        for time_ns, length in self._settings.writes:
            last_ns = max(last_ns, time_ns)
            self._clock.at(now + time_ns, sender.write, length)
        self._clock.at(now + last_ns, sender.close)

    def _request(self) -> None:
        if self._settings.request_bytes:
            self._ends[self._settings.receiver].sender.write(self._settings.request_bytes)
