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
from tcpwin.limits.division import ORDER, by_limit, pick_one
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.opinion import Situation
from tcpwin.limits.tables import SILENT_ITEMS

LEAST_SHARE = 0.01
"""Of the time that a rule saw: what costs less costs nothing, but for what its rounds are told by."""
READER = "receiver_application"
NO_SOONER = "but without it the connection would have ended no sooner"


def price(connection: Connection, direction: DirectionName, findings: Sequence[Finding]) -> list[Finding]:
    """Findings of a direction with their costs: each a part of what its limit's lifting would have gained."""
    seen = Situation(connection, direction, connection.budget[direction])
    left = dict(seen.budget.items_ns)
    times: dict[str, int] = defaultdict(int)
    for finding in findings:
        for item, ns in finding.items_ns.items():
            left[item] -= ns
            times[claimed_limit(finding, item)] += ns
    for limit, ns in by_limit(left, seen.is_slow, pick_one).items():
        times[limit] += ns
    prices = _Prices(seen, times)
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

    def __init__(self, seen: Situation, times: dict[str, int]) -> None:
        self.seen, self.times = seen, times
        self.shares: dict[str, float] = {}

    def times_while_lifted(self, limit: str) -> list[int]:
        """The time of each limit, where one is lifted together with what it brings about.

        Loss beside a window that was tight may be what the receiver refused for want of memory: a reader that keeps
        up ends that as well.
        """
        times = dict(self.times)
        if limit == READER and self.seen.is_tight:
            times[limit] += times.pop("path_loss", 0)
        return [times.get(each, 0) for each in ORDER]

    def of(self, limit: str, item: str, ns: int) -> int:
        """Of so much time of an item: all where nothing came through, else its share of the gain."""
        if item in SILENT_ITEMS:
            return ns
        if limit not in self.shares:
            silent_ns = min(self.seen.silent_ns.get(limit, 0), self.times[limit])
            carrying_ns = self.times[limit] - silent_ns
            gained_ns = self.seen.gain(ORDER.index(limit), self.times_while_lifted(limit)).likely_ns - silent_ns
            self.shares[limit] = min(max(gained_ns / carrying_ns, 0.0), 1.0) if carrying_ns else 0.0
        return int(ns * self.shares[limit])
