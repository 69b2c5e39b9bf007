"""The cost of findings: the gain of lifting each finding's limit alone, in proportion to the time it claims.

In: findings with the items that they claim, and their connection's budgets. Out: the same findings with costs. Time in
a state is not a cost by itself: the bytes carried meanwhile would have taken time under the next limit, too.
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
"""Share of the observed time below which a cost counts as 0: it is within the rounding of rounds."""
READER = "receiver_application"
NO_SOONER = "but without it the connection would have ended no sooner"


def price(connection: Connection, direction: DirectionName, findings: Sequence[Finding]) -> list[Finding]:
    """Set the cost of a direction's findings, each a part of its limit's gain."""
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
    """Downgrade a finding that cost nothing to information without a remedy; return others unchanged.

    Args:
        seen: the finding with the time that its rule observed.
        priced: the same finding with its cost.
    """
    is_counted_elsewhere = priced.text != seen.text
    is_idle = priced.cost_ns < LEAST_SHARE * seen.cost_ns and not is_counted_elsewhere
    if not is_idle or seen.severity > Severity.WARNING:
        return priced
    return replace(priced, severity=Severity.INFO, remedy=None, text=f"{seen.text.rstrip('.')}; {NO_SOONER}")


class _Prices:
    """Prices of time, by limit."""

    def __init__(self, life: Life, is_tight: bool) -> None:
        self.life, self.is_tight = life, is_tight
        self.shares: dict[str, float] = {}

    def while_lifted(self, limit: str) -> Life:
        """Return the life in which a limit is lifted together with its consequences.

        With a tight window, loss may be segments that the receiver refused for lack of memory: a reader that keeps up
        prevents that as well.
        """
        if limit != READER or not self.is_tight:
            return self.life
        times = dict(self.life.times_ns)
        times[limit] = times.get(limit, 0) + times.pop("path_loss", 0)
        return replace(self.life, times_ns=times)

    def of(self, limit: str, item: str, ns: int) -> int:
        """Return the cost of an item's time: all of it if nothing got through, else its share of the gain."""
        if item in SILENT_ITEMS:
            return ns
        if limit not in self.shares:
            time_ns = self.life.times_ns[limit]
            silent_ns = min(self.life.silent_ns.get(limit, 0), time_ns)
            carrying_ns = time_ns - silent_ns
            gained_ns = self.while_lifted(limit).gain(limit).likely_ns - silent_ns
            self.shares[limit] = min(max(gained_ns / carrying_ns, 0.0), 1.0) if carrying_ns else 0.0
        return int(ns * self.shares[limit])
