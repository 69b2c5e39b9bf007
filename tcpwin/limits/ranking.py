"""Rank connections by their verdicts and list those with a problem, for any number of connections.

In: an analysis and findings. Out: connection numbers. The engine ranks all connections from their packets; those with
findings or host snapshots are judged individually.
"""

from __future__ import annotations

from heapq import nlargest
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tcpwin import _engine
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.columns import known_closely
from tcpwin.limits.findings import Findings
from tcpwin.limits.tables import LIMITS
from tcpwin.limits.verdict import judge_connection

LEAST = 100
"""Minimum number of worst connections to rank at once."""

Ranked = tuple[int, int, int]
"""Sort key of a connection: lost time, payload and negated number."""


def worst(analysis: Analysis, limit: int, found: Findings | None = None) -> list[int]:
    """Return the connections that lost the most time, then those with more data."""
    return [-row[-1] for row in nlargest(limit, _ranking(analysis, limit, found).worst)]


def problems(analysis: Analysis, found: Findings | None = None) -> list[int]:
    """Return the connections with a problem, worst first."""
    return [-row[-1] for row in sorted(_ranking(analysis, 0, found).problems, reverse=True)]


def problems_by_limit(analysis: Analysis, found: Findings | None = None) -> dict[str, tuple[int, ...]]:
    """Group `problems` by the limit that cost each the most, in the same order."""
    ranking = _ranking(analysis, 0, found)
    by_limit: dict[str, list[int]] = {}
    for id in problems(analysis, found):
        by_limit.setdefault(ranking.limits[id], []).append(id)
    return {limit: tuple(ids) for limit, ids in by_limit.items()}


class _Ranking(NamedTuple):
    """The ranked connections of an analysis, unsorted.

    Attributes:
        worst: a superset of the `limit` worst connections.
        problems: all connections with a problem.
        limits: the limit that cost each problem connection the most.
    """

    found: Findings
    limit: int
    worst: list[Ranked]
    problems: list[Ranked]
    limits: dict[int, str]


_RANKINGS: WeakKeyDictionary[Analysis, _Ranking] = WeakKeyDictionary()


def _ranking(analysis: Analysis, limit: int, found: Findings | None) -> _Ranking:
    found = analysis.findings if found is None else found
    known = _RANKINGS.get(analysis)
    if known is None or known.found is not found or known.limit < limit:
        known = _RANKINGS[analysis] = _rank(analysis, max(limit, LEAST), found)
    return known


def _rank(analysis: Analysis, limit: int, found: Findings) -> _Ranking:
    one_by_one = known_closely(analysis, found)
    lost, troubled = _engine.rank_connections(analysis._engine, limit + len(one_by_one))
    worst = [(lost_ns, payload_bytes, -id) for lost_ns, payload_bytes, id in lost if id not in one_by_one]
    problems = [(lost_ns, payload_bytes, -id) for lost_ns, payload_bytes, _, id in troubled if id not in one_by_one]
    limits = {id: LIMITS[limit] for *_, limit, id in troubled}
    for id in one_by_one:
        verdict = judge_connection(analysis.connections[id], found.of(id))
        row = (verdict.lost_ns, _payload_bytes(analysis, id), -id)
        worst.append(row)
        if verdict.is_problem:
            problems.append(row)
            limits[id] = verdict.also or verdict.limit
    return _Ranking(found, limit, worst, problems, limits)


def _payload_bytes(analysis: Analysis, id: int) -> int:
    return sum(analysis._engine.direction_value(id, is_from_a, "payload_bytes") for is_from_a in (True, False))
