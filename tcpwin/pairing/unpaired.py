"""Connections in only one capture, and proxies: two connections that carry the same bytes at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.analysis import Endpoint

_LEAST_BYTES = 1_000
"""With less data, equal sizes are a coincidence."""
_SLACK = 0.02
"""A proxy may add or remove a few bytes."""
_MOST_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class UnpairedConnection:
    """A connection that is in only one capture.

    Attributes:
        capture: ``a`` or ``b``.
        source, target: ends of its first packet; client and server if its SYN was seen.
        packets: packets from source and target.
        bytes: payload from each, without copies.
        first_ns, last_ns: times by its capture's clock.
        has_syns: whether the SYNs of source and target were seen.
    """

    capture: str
    source: Endpoint
    target: Endpoint
    packets: tuple[int, int]
    bytes: tuple[int, int]
    first_ns: int
    last_ns: int
    first_frame: int
    has_syns: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Proxy:
    """Two connections, one in each capture, joined by a proxy that terminates TCP, so no packet is in both."""

    in_a: UnpairedConnection
    in_b: UnpairedConnection


def find_proxies(unpaired: Sequence[UnpairedConnection], offset_ns: int | None) -> tuple[Proxy, ...]:
    """Match remaining connections that begin and end together and carry about as much in each direction.

    The nearest in time comes first. Without common packets, clocks are not corrected.
    """
    left = [each for each in unpaired if each.capture == "a" and _is_looked_at(each)]
    right = [each for each in unpaired if each.capture == "b" and _is_looked_at(each)]
    if not left or not right or max(len(left), len(right)) > _MOST_LOOKED_AT:
        return ()
    candidates = []
    for one in left:
        for other in right:
            apart_ns = _apart_ns(one, other, offset_ns or 0)
            if apart_ns is not None:
                candidates.append((apart_ns, one, other))
    candidates.sort(key=lambda each: (each[0], each[1].first_frame, each[2].first_frame))
    taken: set[tuple[str, int]] = set()
    proxies = []
    for _, one, other in candidates:
        marks = {("a", one.first_frame), ("b", other.first_frame)}
        if not marks & taken:
            taken |= marks
            proxies.append(Proxy(one, other))
    return tuple(proxies)


def _is_looked_at(each: UnpairedConnection) -> bool:
    return each.has_syns == (True, True) and sum(each.bytes) >= _LEAST_BYTES


def _apart_ns(one: UnpairedConnection, other: UnpairedConnection, offset_ns: int) -> int | None:
    """Return the difference of the starts, or None if the two carry different data."""
    if any(abs(a - b) > max(_LEAST_BYTES, _SLACK * max(a, b)) for a, b in zip(one.bytes, other.bytes, strict=True)):
        return None
    begin_ns = other.first_ns - offset_ns - one.first_ns
    end_ns = other.last_ns - offset_ns - one.last_ns
    life_ns = one.last_ns - one.first_ns
    slack_ns = 2_000_000_000 + life_ns // 10
    return abs(begin_ns) if abs(begin_ns) <= slack_ns and abs(end_ns) <= slack_ns else None
