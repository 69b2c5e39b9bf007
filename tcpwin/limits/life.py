"""A direction's life for what is asked beyond its verdict: the time of each limit, and what was carried in it.

In: a connection and a direction. Out: Life, by the judge's own division and the engine's cost model, so that what is
predicted of a change is what the verdict says that its limit cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tcpwin import _engine
from tcpwin.analysis import DirectionName
from tcpwin.limits.connection import Connection
from tcpwin.limits.finding import Finding
from tcpwin.limits.tables import LIMIT_ORDER, LIMITS
from tcpwin.limits.verdict import judge_directions


class Carried(NamedTuple):
    """What a direction carried, and over what; 0 where it is not known.

    Attributes:
        path_bps: of the bottleneck.
        window_bytes: the largest receive window; `first_window_bytes`: the one at the beginning.
        first_flight_bytes: before the first ACK.
        round_trip_ns: the least of the path.
        paused_ns: of pauses of its sender that are longer than a retransmission timeout.
    """

    bytes: int
    path_bps: float
    window_bytes: int
    first_window_bytes: int
    first_flight_bytes: int
    round_trip_ns: int
    paused_ns: int = 0


class Gain(NamedTuple):
    """By how much sooner it would have ended, and between which bounds, in nanoseconds.

    Attributes:
        carried_bytes: what came through in the limit's time; 0 where the path's rate is not known.
    """

    likely_ns: int
    low_ns: int
    high_ns: int
    carried_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Life:
    """Where a direction's time went, and what came through meanwhile.

    Attributes:
        times_ns: of each limit of `tcpwin.limits.LIMITS` that has any, in the judge's order.
        silent_ns: of each limit's time that in which nothing came through.
        carried: what the direction carried, and over what.
        is_growing: the congestion window was at its beginning for most of its time.
    """

    direction: DirectionName
    times_ns: Mapping[str, int]
    silent_ns: Mapping[str, int]
    carried: Carried
    is_growing: bool

    @property
    def total_ns(self) -> int:
        """The connection's duration."""
        return sum(self.times_ns.values())

    def over(self, path_bps: float) -> Life:
        """The same, over a path whose rate is given."""
        return replace(self, carried=self.carried._replace(path_bps=path_bps))

    def gain(self, limit: str) -> Gain:
        """What lifting a limit alone would have gained: of the verdict's limit what the verdict says."""
        times_ns, silent_ns = ([each.get(name, 0) for name in LIMITS] for each in (self.times_ns, self.silent_ns))
        return Gain(*_engine.gain(limit, times_ns, silent_ns, self.carried, self.is_growing))

    def carried_bytes(self, limit: str) -> float:
        """What came through in a limit's time; spread evenly where the path's rate is not known."""
        if self.carried.path_bps:
            return self.gain(limit).carried_bytes
        carrying = {
            each: ns - min(self.silent_ns.get(each, 0), ns)
            for each, ns in self.times_ns.items()
            if each not in ("handshake", "none")
        }
        total_ns = sum(carrying.values())
        return self.carried.bytes * carrying.get(limit, 0) / total_ns if total_ns else 0.0


def life_of(connection: Connection, direction: DirectionName, findings: Sequence[Finding] | None = None) -> Life:
    """The life of one direction, ``a_to_b`` or ``b_to_a``.

    Args:
        findings: what rules found of the connection; by default all rules are asked.
    """
    found = connection.findings if findings is None else findings
    verdict = judge_directions(connection, found)[direction]
    times_ns = dict(zip(LIMITS, verdict.times_ns, strict=True))
    return divided_life(connection, direction, {limit: times_ns[limit] for limit in LIMIT_ORDER if times_ns[limit]})[0]


def divided_life(connection: Connection, direction: DirectionName, times_ns: Mapping[str, int]) -> tuple[Life, bool]:
    """The life of a direction whose division is known, and whether its receiver's application reads slowly."""
    items_ns = list(connection.budget[direction].items_ns.values())
    is_slow, is_growing, silent_ns, carried = _engine.life(
        connection._analysis._engine, connection.id, direction == "b_to_a", items_ns
    )
    silent = {limit: ns for limit, ns in zip(LIMITS, silent_ns, strict=True) if ns}
    return Life(direction, times_ns, silent, Carried(*carried), is_growing), is_slow
