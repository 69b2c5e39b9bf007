"""Connections of two captures of the same workload, paired.

In: two analyses, before and after. Out: pairs of connection numbers, and what has no partner. Only columns are read, so
that a million connections cost seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tcpwin.analysis import DIRECTIONS, DirectionName
from tcpwin.limits.analysis import Analysis

BULK_BYTES = 100_000
"""Transfers of at least as much are bulk: their rate says something, less is gone in the first few round trips."""
SMALL_BYTES = 10_000
"""Sizes below are taken for equal: ten segments, which Linux sends at once (RFC 6928)."""
SIZE_FACTOR = 4.0
"""Sizes within this factor are similar: requests of one kind vary, control and data connections differ by more."""
DURATION_FACTOR = 2.0
"""A test that runs for a set time carries more when it is faster; its time stays."""
LOOK_AHEAD = 32
"""Connections of the other capture that are looked at for each: parallel ones begin in any order."""


@dataclass(frozen=True, slots=True)
class Match:
    """A connection before and after.

    Attributes:
        old, new: their numbers.
        is_similar: size or duration is similar; otherwise they are paired by server and order alone.
    """

    old: int
    new: int
    is_similar: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """What connections are told apart by.

    Attributes:
        id: the connection's number.
        server: address and port of the responder.
        volume_bytes: payload of both directions, each byte counted once.
        direction: the one with more of it.
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
    """Pairs, then the connections of `old` and of `new` without a partner.

    The rule: both have the same server (address and port of the responder). Among those, in the order of their first
    segments, a connection's partner is the first of the next `LOOK_AHEAD` without one that is similar: sizes within
    `SIZE_FACTOR`, or both bulk, with most data in the same direction, and durations within `DURATION_FACTOR`. Bulk
    transfers in the same direction that are left over are paired in order.
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
    """The shape of each connection."""
    names = ["b_address", "b_port", "duration_ns"]
    names += [f"{direction}.{name}" for direction in DIRECTIONS for name in ("unique_bytes", "acked_bytes")]
    columns = [values(analysis, name) for name in names]
    for id, (address, port, duration_ns, *sizes) in enumerate(zip(*columns, strict=True)):
        # Where one side was not captured, only the other's acknowledgments tell how much it sent.
        a, b = max(sizes[0] or 0, sizes[1] or 0), max(sizes[2] or 0, sizes[3] or 0)
        yield Shape(id, (str(address), int(port)), a + b, "b_to_a" if b > a else "a_to_b", int(duration_ns))


def values(analysis: Analysis, name: str) -> list[Any]:
    """A column as Python values; None where a connection has none."""
    found: list[Any] = analysis.connections.column(name).tolist()
    return found


def is_similar(old: Shape, new: Shape) -> bool:
    """Whether size, or for bulk transfers the time they took, is similar."""
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
            # Those ahead would never be looked at behind so many that nothing resembles.
            new_rest.append(waiting.pop(0))
    return matches, old_rest, [*new_rest, *waiting, *coming]


def _pair_rest(olds: Sequence[Shape], news: Sequence[Shape]) -> tuple[list[Match], list[Shape], list[Shape]]:
    """Bulk transfers that one change made much longer or shorter, as one that broke off."""
    matches = []
    rests: dict[str, deque[Shape]] = {direction: deque() for direction in DIRECTIONS}
    for shape in news:
        if shape.is_bulk:
            rests[shape.direction].append(shape)
    taken: set[int] = set()
    old_rest = []
    for shape in olds:
        others = rests[shape.direction]
        if shape.is_bulk and others:
            other = others.popleft()
            taken.add(other.id)
            matches.append(Match(shape.id, other.id, is_similar=False))
        else:
            old_rest.append(shape)
    return matches, old_rest, [shape for shape in news if shape.id not in taken]
