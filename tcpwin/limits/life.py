"""A direction's life for what is asked beyond its verdict: the time of each limit, and what was carried in it.

In: a connection and a direction. Out: Life, by the judge's own division and the cost model of `tcpwin.limits.gains`, so
that what is predicted of a change is what the verdict says that its limit cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcpwin.analysis import DirectionName
from tcpwin.limits.connection import Connection
from tcpwin.limits.division import ORDER, pick_one
from tcpwin.limits.finding import Finding
from tcpwin.limits.gains import Carried, Gain, gain_of
from tcpwin.limits.verdict import division_of


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
        carried = self.carried._replace(path_bps=path_bps)
        return Life(self.direction, self.times_ns, self.silent_ns, carried, self.is_growing)

    def gain(self, limit: str) -> Gain:
        """What lifting a limit alone would have gained: of the verdict's limit what the verdict says."""
        times_ns = [self.times_ns.get(each, 0) for each in ORDER]
        return gain_of(ORDER.index(limit), times_ns, ORDER, self.carried, self.is_growing, pick_one, self.silent_ns)

    def carried_bytes(self, limit: str) -> float:
        """What came through in a limit's time; spread evenly where the path's rate is not known."""
        if self.carried.path_bps:
            return float(self.gain(limit).carried_bytes)
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
    seen, divided = division_of(connection, direction, found)
    times = {limit: ns for limit, ns in zip(ORDER, divided.times_ns, strict=True) if ns}
    return Life(direction, times, seen.silent_ns, seen.carried, bool(seen.traits.is_growing))
