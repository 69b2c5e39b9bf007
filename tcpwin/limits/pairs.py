"""Pair the connections of two captures of the same workload.

In: two analyses, before and after. Out: pairs of connection numbers, and connections without a partner. Only columns
are read, so that a million connections take seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tcpwin.analysis import DIRECTIONS, DirectionName
from tcpwin.limits.analysis import Analysis

BULK_BYTES = 100_000
"""Minimum size of a bulk transfer: smaller ones end within a few round trips, so their rate means little."""
SMALL_BYTES = 10_000
"""Sizes below this count as equal: about the initial window (RFC 6928)."""
SIZE_FACTOR = 4.0
"""Sizes within this factor are similar: requests of one kind vary, but control and data connections differ by more."""
DURATION_FACTOR = 2.0
"""Durations within this factor are similar: a test of fixed duration carries more when it is faster."""
LOOK_AHEAD = 32
"""Candidates considered for each connection: parallel connections begin in any order."""


@dataclass(frozen=True, slots=True)
class Match:
    """A connection before and after.

    Attributes:
        old, new: their numbers.
        is_similar: whether size or duration is similar; otherwise they are paired by server and order alone.
    """

    old: int
    new: int
    is_similar: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties by which connections are matched.

    Attributes:
        id: the connection's number.
        server: address and port of the responder.
        volume_bytes: payload of both directions, each byte counted once.
        direction: the direction with more payload.
    """

    id: int
    server: tuple[str, int]
    volume_bytes: int
    direction: DirectionName
    duration_ns: int

    @property
    def is_bulk(self) -> bool:
        return self.volume_bytes >= BULK_BYTES


def pair(old: Analysis, new: Analysis) -> tuple[list[Match], list[int], list[int]]:
    """Pair connections, and return the pairs and the connections of `old` and `new` without a partner.

    Partners have the same server (address and port of the responder). Among those, in the order of first segments, a
    connection's partner is the first similar one among the next `LOOK_AHEAD` that are free. Similar means sizes within
    `SIZE_FACTOR`, or both bulk in the same direction with durations within `DURATION_FACTOR`. Remaining bulk transfers
    in the same direction are paired in order.
    """
    olds, news = _by_server(shapes(old)), _by_server(shapes(new))
    matches: list[Match] = []
    left_old: list[int] = []
    left_new = [shape.id for server, group in news.items() if server not in olds for shape in group]
    for server, group in olds.items():
        pairs, old_rest, new_rest = _pair_group(group, news.get(server, []))
        more, old_rest, new_rest = _pair_rest(old_rest, new_rest)
        matches += pairs + more
        left_old += [shape.id for shape in old_rest]
        left_new += [shape.id for shape in new_rest]
    return sorted(matches, key=lambda match: match.old), sorted(left_old), sorted(left_new)


def shapes(analysis: Analysis) -> Iterator[Shape]:
    """Yield the shape of each connection."""
    names = ["b_address", "b_port", "duration_ns"]
    names += [f"{direction}.{name}" for direction in DIRECTIONS for name in ("unique_bytes", "acked_bytes")]
    columns = [values(analysis, name) for name in names]
    for id, (address, port, duration_ns, *sizes) in enumerate(zip(*columns, strict=True)):
        # If one side was not captured, only the other's acknowledgments show how much it sent.
        a, b = max(sizes[0] or 0, sizes[1] or 0), max(sizes[2] or 0, sizes[3] or 0)
        yield Shape(id, (str(address), int(port)), a + b, "b_to_a" if b > a else "a_to_b", int(duration_ns))


def values(analysis: Analysis, name: str) -> list[Any]:
    """Return a column as Python values; None if a connection has no value."""
    found: list[Any] = analysis.connections.column(name).tolist()
    return found


def is_similar(old: Shape, new: Shape) -> bool:
    """Return whether the sizes, or for bulk transfers the durations, are similar."""
    if _ratio(max(old.volume_bytes, SMALL_BYTES), max(new.volume_bytes, SMALL_BYTES)) <= SIZE_FACTOR:
        return True
    return _are_alike(old, new) and _ratio(old.duration_ns, new.duration_ns) <= DURATION_FACTOR


def _are_alike(old: Shape, new: Shape) -> bool:
    return old.is_bulk and new.is_bulk and old.direction == new.direction


def _ratio(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high / low if low > 0 else float("inf")


def _by_server(found: Iterable[Shape]) -> dict[tuple[str, int], list[Shape]]:
    groups: dict[tuple[str, int], list[Shape]] = {}
    for shape in found:
        groups.setdefault(shape.server, []).append(shape)
    return groups


def _pair_group(olds: Sequence[Shape], news: Sequence[Shape]) -> tuple[list[Match], list[Shape], list[Shape]]:
    matches, old_rest, new_rest = [], [], []
    waiting: list[Shape] = []
    coming = deque(news)
    for shape in olds:
        while coming and len(waiting) < LOOK_AHEAD:
            waiting.append(coming.popleft())
        place = next((place for place, other in enumerate(waiting) if is_similar(shape, other)), None)
        if place is not None:
            matches.append(Match(shape.id, waiting.pop(place).id, is_similar=True))
            continue
        old_rest.append(shape)
        if coming:
            # Give up on the oldest candidate, so that unmatched ones do not block those further ahead.
            new_rest.append(waiting.pop(0))
    return matches, old_rest, [*new_rest, *waiting, *coming]


def _pair_rest(olds: Sequence[Shape], news: Sequence[Shape]) -> tuple[list[Match], list[Shape], list[Shape]]:
    """Pair the remaining bulk transfers, which the change made much longer or shorter, such as one that broke off."""
    matches = []
    rests: dict[str, deque[Shape]] = {direction: deque() for direction in DIRECTIONS}
    for shape in news:
        if shape.is_bulk:
            rests[shape.direction].append(shape)
    paired: set[int] = set()
    old_rest = []
    for shape in olds:
        others = rests[shape.direction]
        if shape.is_bulk and others:
            other = others.popleft()
            paired.add(other.id)
            matches.append(Match(shape.id, other.id, is_similar=False))
        else:
            old_rest.append(shape)
    return matches, old_rest, [shape for shape in news if shape.id not in paired]
