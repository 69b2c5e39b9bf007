"""Which connections deserve a look first, and which have a problem: by their verdicts, for any number of connections.

In: an analysis, and what rules found. Out: numbers of connections. The engine ranks all of them by their packets alone;
only those that a rule or a host's snapshot says more of are judged one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest

from tcpwin.analysis import Analysis, Connection
from tcpwin.limits.findings import Findings
from tcpwin.limits.verdict import Verdict, judge_connection


def judged_closely(analysis: Analysis, found: Findings | None = None) -> Mapping[int, Verdict]:
    """The verdicts on the connections of which more is known than their packets' budget says."""
    found = analysis.findings if found is None else found
    told = {each.connection for each in found if each.connection is not None and each.items_ns}
    sampled = {match.connection for host in analysis.hosts for match in host.found}
    return {id: judge_connection(Connection(analysis, id), found.of(id)) for id in sorted(told | sampled)}


def worst(analysis: Analysis, limit: int, found: Findings | None = None) -> list[int]:
    """The connections that lost most, then those with more data."""
    closely = judged_closely(analysis, found)
    ranked = dict(analysis._engine.worst(limit + len(closely)))
    # The engine's order says which of two that lost as much carried more.
    places = {id: -place for place, id in enumerate(ranked)}
    for id, verdict in closely.items():
        ranked[id] = verdict.lost_ns
    return nlargest(limit, ranked, key=lambda id: (ranked[id], places.get(id, -len(ranked)), -id))


def problems(analysis: Analysis, found: Findings | None = None) -> list[int]:
    """The connections with a problem, the worst first."""
    closely = judged_closely(analysis, found)
    ranked = {id: lost_ns for id, lost_ns in analysis._engine.problems() if id not in closely}
    ranked |= {id: verdict.lost_ns for id, verdict in closely.items() if verdict.is_problem}
    return sorted(ranked, key=lambda id: (-ranked[id], id))
