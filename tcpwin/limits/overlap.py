"""Time that several findings claim is counted once: under the one that says most exactly what it was.

In: rules, each with the codes it yields to, and their findings in that order. Out: the same findings, a wider one with
the cost that the narrower ones of its connection and direction leave, and a text that says where the rest is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from tcpwin.limits.finding import Finding
from tcpwin.limits.rule import Rule
from tcpwin.units import time_text

_Place = tuple[int | None, str | None]


def narrow_first(rules: Iterable[Rule]) -> list[Rule]:
    """The rules in an order in which each comes after those it yields to.

    Raises:
        ValueError: rules yield to each other in a circle.
    """
    by_code = {rule.code: rule for rule in rules}
    order = TopologicalSorter({code: [to for to in rule.yields_to if to in by_code] for code, rule in by_code.items()})
    return [by_code[code] for code in order.static_order()]


@dataclass
class Claims:
    """The time that findings so far claim.

    Attributes:
        wanted: codes of rules to which any rule yields; others are not kept.
        by_place: nanoseconds by code, by connection and direction.
    """

    wanted: frozenset[str]
    by_place: dict[_Place, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def among(cls, rules: Iterable[Rule]) -> Claims:
        """Claims of findings of these rules."""
        return cls(frozenset(code for rule in rules for code in rule.yields_to))

    def settle(self, rule: Rule, judged: Iterable[Finding]) -> list[Finding]:
        """A rule's findings with the cost that is theirs, which is claimed from then on."""
        settled = [self._settle_one(rule, finding) for finding in judged]
        if rule.code in self.wanted:
            for finding in settled:
                if finding.cost_ns:
                    claims = self.by_place[(finding.connection, finding.direction)]
                    claims[rule.code] = claims.get(rule.code, 0) + finding.cost_ns
        return settled

    def _settle_one(self, rule: Rule, finding: Finding) -> Finding:
        if not (rule.yields_to and finding.cost_ns):
            return finding
        claims: Mapping[str, int] = self.by_place.get((finding.connection, finding.direction), {})
        takers = [code for code in rule.yields_to if claims.get(code)]
        if not takers:
            return finding
        left_ns = max(finding.cost_ns - sum(claims[code] for code in takers), 0)
        what = f"{time_text(finding.cost_ns - left_ns)} of it" if left_ns else "its time"
        verb = "are" if left_ns else "is"
        text = f"{finding.text} ({what} {verb} counted under {' and '.join(takers)})"
        return replace(finding, cost_ns=left_ns, text=text)
