"""Which connections deserve a look first, and which have a problem: by their verdicts, for any number of connections.

In: an analysis, and what rules found. Out: numbers of connections. Those that a rule or a host's snapshot says more of
are judged one by one; of many others only the time that they lost is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from weakref import WeakKeyDictionary

from tcpwin.analysis import Analysis
from tcpwin.limits.bulk import FEW, Ranked, judged_closely, rank
from tcpwin.limits.findings import Findings
from tcpwin.limits.verdict import Verdict, judge_connection

LEAST = 100
"""So many of the worst are looked for at once."""


def worst(analysis: Analysis, limit: int, found: Findings | None = None) -> list[int]:
    """The connections that lost most, then those with more data."""
    return [-row[-1] for row in nlargest(limit, _ranking(analysis, limit, found).worst)]


def problems(analysis: Analysis, found: Findings | None = None) -> list[int]:
    """The connections with a problem, the worst first."""
    return [-row[-1] for row in sorted(_ranking(analysis, 0, found).problems, reverse=True)]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The connections of an analysis as they are put in order, in any order.

    Attributes:
        worst: the `limit` worst are among these.
        problems: all with a problem.
    """

    found: Findings
    limit: int
    worst: list[Ranked]
    problems: list[Ranked]


_RANKINGS: WeakKeyDictionary[Analysis, _Ranking] = WeakKeyDictionary()


def _ranking(analysis: Analysis, limit: int, found: Findings | None) -> _Ranking:
    found = analysis.findings if found is None else found
    known = _RANKINGS.get(analysis)
    if known is None or known.found is not found or known.limit < limit:
        known = _RANKINGS[analysis] = _rank(analysis, max(limit, LEAST), found)
    return known


def _rank(analysis: Analysis, limit: int, found: Findings) -> _Ranking:
    verdicts = judged_closely(analysis, found)
    worst: list[Ranked] = []
    problems: list[Ranked] = []
    if len(analysis) > FEW:
        ranked = rank(analysis, limit + len(verdicts))
        worst, problems = ([row for row in rows if -row[-1] not in verdicts] for rows in ranked)
    else:
        verdicts |= {each.id: judge_connection(each, found.of(each.id)) for each in analysis if each.id not in verdicts}
    for id, verdict in verdicts.items():
        row = _row(analysis, id, verdict)
        worst.append(row)
        if verdict.is_problem:
            problems.append(row)
    return _Ranking(found, limit, worst, problems)


def _row(analysis: Analysis, id: int, verdict: Verdict) -> Ranked:
    engine = analysis._engine
    carried = sum(engine.direction_value(id, is_from_a, "payload_bytes") for is_from_a in (True, False))
    return (verdict.lost_ns, carried, -id)
