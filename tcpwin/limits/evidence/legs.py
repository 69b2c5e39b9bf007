"""Find connections captured on both sides of a router or NAT that a RST ended on one side only.

In: a case. Out: HalfReset values. Initial sequence numbers of both sides agree by chance once in 2^64.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import ACK, RST, SYN, Packets
from tcpwin.limits.reading import reading_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CONNECTIONS = 200
APART_NS = 1_000_000_000
"""A router forwards a SYN at once."""


class HalfReset(NamedTuple):
    """A RST on one side of a router.

    Attributes:
        reset, waiting: the connection with the RST, and the one without.
        frame, time_ns, by: the RST's frame and time, and the side in whose name it was sent.
    """

    reset: int
    waiting: int
    frame: int
    time_ns: int
    by: str


def half_resets(case: Case) -> tuple[HalfReset, ...]:
    """Return the RSTs that the capture holds on one side of a router only; none in large captures."""
    return reading_of(case.analysis).derive("half resets", -1, "", lambda: tuple(_find(case)))


def _find(case: Case) -> Iterator[HalfReset]:
    connections = case.analysis.connections
    if not 1 < len(connections) <= MOST_CONNECTIONS:
        return
    legs: dict[tuple[int, int, int], list[tuple[int, int, Packets]]] = defaultdict(list)
    for each in connections:
        packets = case.reading.headers(case.analysis, each.id)
        numbers = None if packets is None else _initial_numbers(packets)
        if packets is not None and numbers is not None:
            legs[(*numbers, each.b.port)].append((each.id, each.start_ns, packets))
    for pair in legs.values():
        if len(pair) != 2 or abs(pair[0][1] - pair[1][1]) > APART_NS:
            continue
        resets = [packets.of(packets.has(RST)) for *_, packets in pair]
        if bool(len(resets[0])) == bool(len(resets[1])):
            continue
        order = 1 if len(resets[0]) else -1
        rst = resets[::order][0]
        by = "a" if rst.is_from_a[0] else "b"
        reset, waiting = (each[0] for each in pair[::order])
        yield HalfReset(reset, waiting, int(rst["frame"][0]), int(rst["time_ns"][0]), by)


def _initial_numbers(packets: Packets) -> tuple[int, int] | None:
    syns = packets.of(packets.has(SYN))
    first, answer = syns.of(~syns.has(ACK)), syns.of(syns.has(ACK))
    return (int(first["seq"][0]), int(answer["seq"][0])) if len(first) and len(answer) else None
