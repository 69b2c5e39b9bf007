"""The life of a direction: the time of each limit and the bytes carried in it, for predictions beyond the verdict.

In: a connection and a direction. Out: Life, from the judge's own division and the engine's cost model, so that the
predicted gain of a change equals the verdict's cost of its limit.
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
    """What a direction carried, and the properties of its path; 0 if unknown.

    Attributes:
        path_bps: rate of the bottleneck.
        window_bytes: largest receive window.
        first_window_bytes: initial receive window.
        first_flight_bytes: bytes sent before the first ACK.
        round_trip_ns: minimum RTT of the path.
        paused_ns: sender pauses longer than a retransmission timeout.
        exchanges: exchanges of a conversation.
        overlapped_ns: part of the larger of its path's and its responder's time in which the other passed, too.
    """

    bytes: int
    path_bps: float
    window_bytes: int
    first_window_bytes: int
    first_flight_bytes: int
    round_trip_ns: int
    paused_ns: int = 0
    exchanges: int = 0
    overlapped_ns: int = 0


class Gain(NamedTuple):
    """How much sooner a transfer would have ended, with bounds, in nanoseconds.

    Attributes:
        carried_bytes: bytes carried in the limit's time; 0 if the path's rate is unknown.
    """

    likely_ns: int
    low_ns: int
    high_ns: int
    carried_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Life:
    """The time of a direction by limit, and the bytes it carried.

    Attributes:
        times_ns: nanoseconds of each limit that has any, in the judge's order.
        silent_ns: time of each limit in which nothing got through.
        carried: what the direction carried, and the properties of its path.
        is_growing: whether the congestion window was still growing for most of its time.
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
        """Return the same life over a path of the given rate."""
        return replace(self, carried=self.carried._replace(path_bps=path_bps))

    def gain(self, limit: str) -> Gain:
        """Estimate the gain of lifting a limit alone; for the verdict's limit it equals the verdict's cost."""
        times_ns, silent_ns = ([each.get(name, 0) for name in LIMITS] for each in (self.times_ns, self.silent_ns))
        return Gain(*_engine.gain(limit, times_ns, silent_ns, self.carried, self.is_growing))

    def carried_bytes(self, limit: str) -> float:
        """Estimate the bytes carried in a limit's time, spread evenly if the path's rate is unknown."""
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
    """Return the life of one direction, ``a_to_b`` or ``b_to_a``.

    Args:
        findings: findings on the connection; by default those of all rules.
    """
    found = connection.findings if findings is None else findings
    verdict = judge_directions(connection, found)[direction]
    times_ns = dict(zip(LIMITS, verdict.times_ns, strict=True))
    return divided_life(connection, direction, {limit: times_ns[limit] for limit in LIMIT_ORDER if times_ns[limit]})[0]


def divided_life(connection: Connection, direction: DirectionName, times_ns: Mapping[str, int]) -> tuple[Life, bool]:
    """Return the life of a direction whose division is known, and whether its receiver's application reads slowly."""
    budget = connection.budget[direction]
    items_ns, packets_ns = (list(each.values()) for each in (budget.items_ns, budget.packets_ns))
    is_slow, is_growing, silent_ns, carried = _engine.life(
        connection._analysis._engine, connection.id, direction == "b_to_a", items_ns, packets_ns
    )
    silent = {limit: ns for limit, ns in zip(LIMITS, silent_ns, strict=True) if ns}
    return Life(direction, times_ns, silent, Carried(*carried), is_growing), is_slow
