"""The fate of each segment on the path, from the captures of both ends of a run: the truth of loss and order.

Segments are read from the captures' bytes, and recognised by fields that the path does not change.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from lab.runs import Run
from lab.wire import CYCLE, SYN, Segment, read_segments

Mark = tuple[object, ...]

mark: Callable[[Segment], Mark] = attrgetter("ip_id", "seq", "ack", "length", "flags", "tsval")
"""Return the fields that a segment keeps on its way; RSTs without an IP id may share theirs and are paired in order."""


class Passage(NamedTuple):
    """One segment's passage.

    Attributes:
        index: in the order of departure.
        start, end: of its payload, from the first payload that this direction's captures contain.
        arrived: the same segment at the other end; None if it never arrived.
    """

    index: int
    left: Segment
    start: int
    arrived: Segment | None

    @property
    def end(self) -> int:
        return self.start + self.left.length


@dataclass(frozen=True)
class Way:
    """One direction of a run's data connection.

    Attributes:
        passages: of segments that both captures could see.
        unsent: arrivals that the sending end's capture lacks.
    """

    passages: list[Passage]
    unsent: list[Segment]

    @property
    def data(self) -> list[Passage]:
        """Return the segments with payload in the order of departure."""
        return [passage for passage in self.passages if passage.left.length]

    @property
    def lost(self) -> list[Passage]:
        """Return the segments that left but did not arrive."""
        return [passage for passage in self.passages if passage.arrived is None]

    @property
    def data_arrivals(self) -> list[tuple[Passage, Segment]]:
        """Return the segments with payload that arrived, in the order of arrival."""
        come = [(passage, passage.arrived) for passage in self.data if passage.arrived is not None]
        return sorted(come, key=lambda each: each[1].frame)


def data_way(run: Run) -> Way:
    """Return the data's direction, from the sender's capture to the receiver's."""
    return _way(run.truth, run.sender_port, run.receiver_port, "snd", "rcv")


def ack_way(run: Run) -> Way:
    """Return the acknowledgments' direction, from the receiver's capture to the sender's."""
    return _way(run.truth, run.receiver_port, run.sender_port, "rcv", "snd")


@cache
def _way(folder: Path, source_port: int, target_port: int, source: str, target: str) -> Way:
    departures, arrivals = (read_segments(folder / f"{end}.pcap.gz") for end in (source, target))
    # Packets that left before the other capture began may have passed it unseen.
    began_ns = arrivals[0].time_ns if departures[0].flags & SYN == 0 else 0
    ports = (source_port, target_port)
    left = [each for each in departures if (each.source_port, each.target_port) == ports and each.time_ns >= began_ns]
    came = [each for each in arrivals if (each.source_port, each.target_port) == ports]
    return Way(passages(left, came), unsent(left, came))


def passages(left: Iterable[Segment], arrived: Iterable[Segment]) -> list[Passage]:
    """Pair departures with arrivals."""
    waiting: dict[Mark, deque[Segment]] = defaultdict(deque)
    for segment in arrived:
        waiting[mark(segment)].append(segment)
    pairs: list[Passage] = []
    base = None
    for index, segment in enumerate(left):
        base = segment.seq + (segment.flags & SYN > 0) if base is None else base
        same = waiting[mark(segment)]
        pairs.append(Passage(index, segment, distance(segment.seq, base), same.popleft() if same else None))
    return pairs


def unsent(left: Iterable[Segment], arrived: Iterable[Segment]) -> list[Segment]:
    """Return the arrivals that did not leave."""
    known = set(map(mark, left))
    return [segment for segment in arrived if mark(segment) not in known]


def distance(number: int, base: int) -> int:
    """Return a sequence number minus a base, as a signed number."""
    return (number - base + CYCLE // 2) % CYCLE - CYCLE // 2
