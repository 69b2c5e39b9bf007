"""Report connections whose verdict is a problem but which no rule warns of, so that verdict and exit status agree.

In: an analysis and the findings of all rules. Out: findings of TW413.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from tcpwin import _engine
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.verdict import judge_connection

CODE = "TW413"


def unreported(analysis: Analysis, found: Mapping[int, Sequence[Finding]], most: int) -> Iterator[Finding]:
    """Yield a finding for each of the `most` worst connections that lost time without a warning.

    Args:
        found: findings of all other rules by connection.
    """
    _, problems = _engine.rank_connections(analysis._engine, 0)
    for *_, id in islice(problems, most):
        own = found.get(id, ())
        if any(each.severity >= Severity.WARNING for each in own):
            continue
        connection = analysis.connections[id]
        verdict = judge_connection(connection, own)
        if not verdict.is_problem:
            continue
        limit = verdict.also or verdict.limit
        yield Finding(
            code=CODE,
            name="time-lost",
            severity=Severity.WARNING,
            text=f"{verdict.text.rstrip('.')}: {verdict.reason}",
            connection=id,
            direction=verdict.direction,
            owner=verdict.owner,
            side=verdict.side,
            cost_ns=verdict.named_ns,
            lost_bps=None,
            confidence=verdict.confidence,
            evidence=Evidence(values={"limit": limit, "cost_ns": verdict.named_ns}),
            remedy=None if verdict.fix is None else Remedy(verdict.fix),
            limits=(limit,),
        )
