"""What findings cost: of the time that each claims, what lifting its limit alone would have gained.

In: findings with the items that they claim, and their connection's budgets. Out: the same findings with their costs.
Time in a state is no cost by itself: what came through meanwhile would have taken its time up to the next limit, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tcpwin.analysis import DirectionName
from tcpwin.limits.claims import claimed_limit
from tcpwin.limits.connection import Connection
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.life import Life, divided_life
from tcpwin.limits.reader import is_tight
from tcpwin.limits.tables import ITEM_LIMITS, SILENT_ITEMS, SLOW_LIMITS

LEAST_SHARE = 0.01
"""Of the time that a rule saw: what costs less costs nothing, but for what its rounds are told by."""
READER = "receiver_application"
NO_SOONER = "but without it the connection would have ended no sooner"


def price(connection: Connection, direction: DirectionName, findings: Sequence[Finding]) -> list[Finding]:
    """Findings of a direction with their costs: each a part of what its limit's lifting would have gained."""
    left = dict(connection.budget[direction].items_ns)
    times: dict[str, int] = defaultdict(int)
    for finding in findings:
        for item, ns in finding.items_ns.items():
            left[item] -= ns
            times[claimed_limit(finding, item)] += ns
    life, is_slow = divided_life(connection, direction, times)
    limits = SLOW_LIMITS if is_slow else ITEM_LIMITS
    for item, ns in left.items():
        times[limits[item]] += ns
    data = connection.a_to_b if direction == "a_to_b" else connection.b_to_a
    prices = _Prices(life, is_tight(data, max(connection.duration_ns - data.idle_ns, 0)))
    priced = []
    for finding in findings:
        cost_ns = sum([prices.of(claimed_limit(finding, item), item, ns) for item, ns in finding.items_ns.items()])
        priced.append(finding if cost_ns == finding.cost_ns else replace(finding, cost_ns=cost_ns))
    return priced


def excused(seen: Finding, priced: Finding) -> Finding:
    """A finding of time without which it would have ended no sooner: it warns of nothing, and advises nothing.

    Args:
        seen: as its rule saw it, with the time.
        priced: the same with its cost.
    """
    is_counted_elsewhere = priced.text != seen.text
    is_idle = priced.cost_ns < LEAST_SHARE * seen.cost_ns and not is_counted_elsewhere
    if not is_idle or seen.severity > Severity.WARNING:
        return priced
    return replace(priced, severity=Severity.INFO, remedy=None, text=f"{seen.text.rstrip('.')}; {NO_SOONER}")


class _Prices:
    """What a part of a limit's time gained."""

    def __init__(self, life: Life, is_tight: bool) -> None:
        self.life, self.is_tight = life, is_tight
        self.shares: dict[str, float] = {}

    def while_lifted(self, limit: str) -> Life:
        """The life in which a limit is lifted together with what it brings about.

        Loss beside a window that was tight may be what the receiver refused for want of memory: a reader that keeps
        up ends that as well.
        """
        if limit != READER or not self.is_tight:
            return self.life
        times = dict(self.life.times_ns)
        times[limit] = times.get(limit, 0) + times.pop("path_loss", 0)
        return replace(self.life, times_ns=times)

    def of(self, limit: str, item: str, ns: int) -> int:
        """Of so much time of an item: all where nothing came through, else its share of the gain."""
        if item in SILENT_ITEMS:
            return ns
        if limit not in self.shares:
            time_ns = self.life.times_ns[limit]
            silent_ns = min(self.life.silent_ns.get(limit, 0), time_ns)
            carrying_ns = time_ns - silent_ns
            gained_ns = self.while_lifted(limit).gain(limit).likely_ns - silent_ns
            self.shares[limit] = min(max(gained_ns / carrying_ns, 0.0), 1.0) if carrying_ns else 0.0
        return int(ns * self.shares[limit])
