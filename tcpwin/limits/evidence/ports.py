"""Failed connections by destination port, for the rules on refused and unanswered ones.

In: a case. Out: Attempts, the port with most of them first. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tcpwin.analysis import Endpoint
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FIRST_LOOKED_AT, FRAMES

if TYPE_CHECKING:
    from tcpwin.limits.connection import Connection

PORTS = 100
"""Ports to report per capture, those with most attempts first: a scan touches thousands."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failed connections to one port.

    Attributes:
        connections: connection numbers in time order, from the first `FIRST_LOOKED_AT` of the capture.
        accepted: connections to the same port that were established.
        waited_ns: sum of the times from the first to the last segment of each.
    """

    port: Endpoint
    connections: tuple[Connection, ...]
    accepted: int
    waited_ns: int

    @property
    def frames(self) -> tuple[int, ...]:
        """Return the first frames of the first connections."""
        return tuple(each.first_frame for each in self.connections[:FRAMES])

    @property
    def start_ns(self) -> int:
        """Return when the first connection began."""
        return self.connections[0].start_ns

    @property
    def end_ns(self) -> int:
        """Return when the last connection ended."""
        return max(each.end_ns for each in self.connections)


_ACCEPTED: WeakKeyDictionary[Analysis, dict[tuple[str, int], int]] = WeakKeyDictionary()


def _accepted(analysis: Analysis) -> dict[tuple[str, int], int]:
    """Count the established connections by address and port, once for all rules."""
    if analysis not in _ACCEPTED:
        _ACCEPTED[analysis] = analysis.responders("connection", (("established_ns", ">", 0),))
    return _ACCEPTED[analysis]


def attempts(case: Case, least: float) -> Iterator[Attempts]:
    """Yield the ports with at least this many connections selected by the rule, those with most first."""
    ports: dict[tuple[str, int], list[int]] = {}
    value_of = case.analysis._engine.connection_value
    for id, _ in islice(case.asked[0], FIRST_LOOKED_AT):
        ports.setdefault((value_of(id, "b_address"), value_of(id, "b_port")), []).append(id)
    if not ports:
        return
    accepted = _accepted(case.analysis)
    # Connections are numbered in the order of their first frames.
    ranked = nsmallest(PORTS, ports.items(), key=lambda each: (-len(each[1]), each[1][0]))
    for (address, port), ids in ranked:
        if len(ids) < max(least, 1):
            return
        failed = tuple(case.analysis.connections[id] for id in ids)
        yield Attempts(
            port=Endpoint(address, port),
            connections=failed,
            accepted=accepted.get((address, port), 0),
            waited_ns=sum(each.duration_ns for each in failed),
        )
