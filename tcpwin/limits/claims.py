"""Claims of findings on budgets: each nanosecond is claimed once, by the most specific finding.

In: findings in claiming order, most specific first, with the time observed by their rules, and the budgets of their
connection's directions. Out: the same findings with the time that they claim, by item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import TopologicalSorter
from itertools import takewhile
from typing import TYPE_CHECKING

from tcpwin.analysis import DirectionName
from tcpwin.limits.budget import Budget
from tcpwin.limits.finding import Finding
from tcpwin.limits.rule import Outline
from tcpwin.limits.tables import CONFIDENCES, HELD_BY, ITEM_LIMITS, ITEMS, REPORTABLE
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.limits.verdict import Verdict


def items_of(limits: Iterable[str]) -> tuple[str, ...]:
    """Return the items that may hold the time of these limits, likeliest first."""
    return _items_of(tuple(limits))


@cache
def _items_of(limits: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for limit in limits for item in HELD_BY.get(limit, ())))


def claimed_limit(finding: Finding, item: str) -> str:
    """Return which of a finding's limits an item's time belongs to, or the item's default if none fits."""
    return _claimed_limit(tuple(finding.limits), finding.owner, item)


@cache
def _claimed_limit(limits: tuple[str, ...], owner: str, item: str) -> str:
    fitting = [each for each in limits if item in items_of((each,))]
    for limit, whose in (("receiver_application", "application"), ("receiver_window", "host")):
        if limit in fitting and owner.endswith(whose):
            return limit
    return ITEM_LIMITS[item] if ITEM_LIMITS[item] in fitting or not fitting else fitting[0]


def fault_of(finding: Finding) -> str | None:
    """Return the limit that a finding reports even if it took no time, or None."""
    return finding.limits[0] if len(finding.limits) == 1 and finding.limits[0] in REPORTABLE else None


def is_about(finding: Finding, verdict: Verdict) -> bool:
    """Return whether all the time that a finding claims is time in the limit that the verdict names."""
    claimed = {claimed_limit(finding, item) for item, ns in finding.items_ns.items() if ns}
    return claimed == {verdict.also or verdict.limit} and finding.direction in (None, verdict.direction)


def cost_confidence(finding: Finding, verdict: Verdict | None) -> str | None:
    """Return the confidence of a finding's cost: the lower of the finding's and the verdict's; None without a cost.

    An observation may be certain while its share of the limit is not; the cost depends on both.
    """
    if not finding.cost_ns and not finding.lost_bps:
        return None
    if verdict is None or not is_about(finding, verdict):
        return finding.confidence
    return min(finding.confidence, verdict.confidence, key=CONFIDENCES.index)


def is_part_of(finding: Finding, verdict: Verdict) -> bool:
    """Return whether `is_about` holds and the limit has more time than the finding claims."""
    return is_about(finding, verdict) and sum(finding.items_ns.values()) < verdict.time_ns


def narrow_first(rules: Iterable[Outline]) -> list[Outline]:
    """Sort rules so that each follows those it yields to.

    Faults come first, as they explain time that other rules only measure, and rules without limits come last.

    Raises:
        ValueError: rules yield to each other in a cycle.
    """
    by_code = {rule.code: rule for rule in sorted(rules, key=lambda rule: rule.code)}
    order = TopologicalSorter({code: [to for to in rule.yields_to if to in by_code] for code, rule in by_code.items()})
    return sorted(
        (by_code[code] for code in order.static_order()),
        key=lambda rule: (not rule.has_limits, not rule.is_fault),
    )


@dataclass
class Claims:
    """The claimed time of one connection.

    Attributes:
        budgets: budgets by direction.
        life_ns: time left for the claims of both directions together, which run concurrently.
    """

    budgets: Mapping[str, Budget]
    life_ns: int
    _left: dict[str, dict[str, int]] = field(default_factory=dict)
    _costs: dict[str, dict[str, int]] = field(default_factory=dict)
    _by_faults: dict[str, list[tuple[Finding, str, int]]] = field(default_factory=dict)

    def settle(self, finding: Finding, direction: DirectionName, yields_to: Iterable[str] = ()) -> Finding:
        """Claim time for a finding and return the finding with its share.

        Args:
            direction: the direction whose budget the finding draws on.
            yields_to: codes of rules whose claims are part of the time that this rule observed.
        """
        costs = self._costs.setdefault(direction, {})
        deducted = {code: costs[code] for code in yields_to if costs.get(code)}
        items = items_of(finding.limits) if finding.limits else ITEMS
        left = self._left.setdefault(direction, dict(self.budgets[direction].items_ns))
        by_faults = self._by_faults.setdefault(direction, [])
        explained = {item for _, item, _ in by_faults}
        unexplained_ns = sum(left[item] for item in takewhile(lambda item: item not in explained, items))
        # A fault explains the time of these items, which other rules only measured: unless all of it may have passed in
        # likelier items, of which no fault explains any.
        for fault, item, ns in by_faults if unexplained_ns < finding.cost_ns else ():
            code = fault.code
            if item in items and code != finding.code and code not in yields_to and _may_overlap(fault, finding):
                deducted[code] = deducted.get(code, 0) + ns
        wanted_ns = max(finding.cost_ns - sum(deducted.values()), 0)
        claimed: dict[str, int] = {}
        cost_ns = 0
        for item in items:
            ns = min(wanted_ns - cost_ns, left[item], self.life_ns)
            if ns > 0:
                claimed[item] = ns
                left[item] -= ns
                self.life_ns -= ns
                cost_ns += ns
        costs[finding.code] = costs.get(finding.code, 0) + cost_ns
        if fault_of(finding) is not None:
            by_faults += [(finding, item, ns) for item, ns in claimed.items()]
        text = finding.text
        if deducted:
            what = f"{time_text(min(sum(deducted.values()), finding.cost_ns))} of it" if cost_ns else "its time"
            text += f" ({what} counted under {' and '.join(deducted)})"
        return replace(finding, cost_ns=cost_ns, items_ns=claimed, text=text)


def _may_overlap(finding: Finding, other: Finding) -> bool:
    """Return whether two findings may be about the same time; True if a span is unknown or shows one occurrence."""
    one, two = finding.evidence, other.evidence
    if one.span_of or two.span_of or None in (one.start_ns, one.end_ns, two.start_ns, two.end_ns):
        return True
    return one.start_ns <= two.end_ns and two.start_ns <= one.end_ns  # type: ignore[operator]
