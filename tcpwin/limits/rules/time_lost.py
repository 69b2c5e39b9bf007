"""## What it finds

A connection that lost time to a limit that can be fixed, and that no other rule reports.

## Why it matters

The verdict names the limit and its cost. Rules have thresholds of their own, so that a limit may cost enough to be a
problem without any rule's pattern. `tcpwin check` would then exit with 0 for a connection that `tcpwin analyze` calls a
problem.

## How it is judged

The verdict is a problem: the limit costs at least 200 ms and a tenth of the time in which the sender had work. No other
warning or error is about the connection. Limit, cost, owner and fix are the verdict's.

## When it is wrong

When the verdict is wrong: its confidence says how sure it is.

## What to do

Follow the verdict: the finding repeats its fix.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.rule import Rule


def judge(_: Case) -> Iterator[Finding]:
    """Yield nothing: `tcpwin.limits.unreported` makes these findings after all other rules have run."""
    yield from ()


RULE = Rule(
    code="TW413",
    name="time-lost",
    title="time lost to a limit that no other rule reports",
    severity=Severity.WARNING,
    scope="capture",
    judge=judge,
    page=__doc__,
)
