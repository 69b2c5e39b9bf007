"""Connections that one capture has alone, and proxies: two connections that carry the same bytes at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.analysis import Endpoint

_LEAST_BYTES = 1_000
"""Of less, equal sizes are an accident."""
_SLACK = 0.02
"""A proxy adds or takes a few bytes of what it carries."""
_MOST_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class UnpairedConnection:
    """A connection of one capture that the other does not have.

    Attributes:
        capture: ``a`` or ``b``.
        source, target: of its first packet; the client and the server where its SYN was seen.
        packets: from the source, and from the target.
        bytes: the same of payload, without copies.
        first_ns, last_ns: by its capture's clock.
        has_syns: of the source, of the target.
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
    """Two connections, one in each capture, that a proxy in between joins: it ends TCP, so no packet is in both."""

    in_a: UnpairedConnection
    in_b: UnpairedConnection


def find_proxies(unpaired: Sequence[UnpairedConnection], offset_ns: int | None) -> tuple[Proxy, ...]:
    """Pair those left over that begin and end together and carry about as much in each direction.

    The nearest in time comes first. Without common packets the clocks are taken as they are.
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
    """How far the beginnings are apart; None where the two do not carry the same."""
    if any(abs(a - b) > max(_LEAST_BYTES, _SLACK * max(a, b)) for a, b in zip(one.bytes, other.bytes, strict=True)):
        return None
    begin_ns = other.first_ns - offset_ns - one.first_ns
    end_ns = other.last_ns - offset_ns - one.last_ns
    life_ns = one.last_ns - one.first_ns
    slack_ns = 2_000_000_000 + life_ns // 10
    return abs(begin_ns) if abs(begin_ns) <= slack_ns and abs(end_ns) <= slack_ns else None
