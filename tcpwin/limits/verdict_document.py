"""Verdicts, time budgets and summaries as objects with the same names in every machine format.

In: an analysis and findings. Out: dictionaries, for any number of connections one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from tcpwin.analysis import DIRECTIONS
from tcpwin.limits.algorithm import Algorithm, algorithm_rows, algorithms_of
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.budget import Budget
from tcpwin.limits.columns import FEW, budget_columns, judged_closely, verdict_parts
from tcpwin.limits.connection import Connection
from tcpwin.limits.document import describe_finding
from tcpwin.limits.findings import Findings
from tcpwin.limits.summary import Summary, summarize
from tcpwin.limits.tables import ITEMS, VERDICT_FIELDS
from tcpwin.limits.verdict import Verdict, judge_connection

ROWS = 2000
"""Connections described together, whose rows are in memory at once."""


def describe_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict's `VERDICT_FIELDS`."""
    return {name: getattr(verdict, name) for name in VERDICT_FIELDS}


def describe_budget(budget: Budget) -> dict[str, Any]:
    """Return a time budget, corrected by the kernel's counters; items without time are omitted."""
    return {
        "items_ns": {item: ns for item, ns in budget.items_ns.items() if ns},
        "kernel": None if budget.kernel is None else asdict(budget.kernel),
    }


def describe_algorithms(algorithms: dict[str, Algorithm | None]) -> dict[str, Any]:
    """Return each sender's congestion control by direction; null if unknown."""
    return {side: None if each is None else asdict(each) for side, each in algorithms.items()}


def describe_summary(summary: Summary, analysis: Analysis) -> dict[str, Any]:
    """Return a summary's text, costliest findings and problems by limit; the verdict is a separate member."""
    return {
        "text": summary.text,
        "worst": [describe_finding(each, analysis) for each in summary.worst],
        "problems": {limit: list(ids) for limit, ids in summary.problems.items()},
    }


def describe_capture(analysis: Analysis, found: Findings | None = None) -> dict[str, Any]:
    """Return the verdict on the worst connection, and the summary."""
    summary = analysis.summary if found is None else summarize(analysis, found)
    return {
        "verdict": None if summary.verdict is None else describe_verdict(summary.verdict),
        "summary": describe_summary(summary, analysis),
    }


def describe_judged(
    analysis: Analysis, found: Findings | None = None, *, only: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the verdict, budget and algorithms of each connection in order, or of one.

    Args:
        found: findings; by default those of all rules with default thresholds.
    """
    found = analysis.findings if found is None else found
    if only is not None or len(analysis) <= FEW:
        for connection in analysis if only is None else [analysis.connections[only]]:
            yield _described(judge_connection(connection, found.of(connection.id)), connection)
        return
    for part in _parts(analysis, found):
        verdicts = zip(*part.verdicts, strict=True)
        for id, (verdict, algorithm, *both) in enumerate(
            zip(verdicts, part.algorithms, *part.budgets, strict=True), part.start
        ):
            yield part.counted.get(id) or {
                "verdict": dict(zip(VERDICT_FIELDS, verdict, strict=True)),
                "budget": dict(zip(DIRECTIONS, map(_by_packets, both), strict=True)),
                "algorithm": describe_algorithms(algorithm),
            }


def judged_members(analysis: Analysis, *, only: int | None = None) -> Iterator[str]:
    """Yield the objects of `describe_judged` as JSON, without their braces."""
    if only is not None or len(analysis) <= FEW:
        for each in describe_judged(analysis, only=only):
            yield json.dumps(each)[1:-1]
        return
    # Avoid creating a million objects: convert columns to text and assemble the rows from it.
    texts: dict[tuple[Algorithm | None, ...], str] = {}
    for part in _parts(analysis, analysis.findings):
        verdicts = zip(*map(_column_text, part.verdicts), strict=True)
        for id, (verdict, algorithm, *both) in enumerate(
            zip(verdicts, part.algorithms, *part.budgets, strict=True), part.start
        ):
            if id in part.counted:
                yield json.dumps(part.counted[id])[1:-1]
                continue
            both_algorithms = tuple(algorithm.values())
            text = texts.get(both_algorithms)
            if text is None:
                text = texts[both_algorithms] = json.dumps(describe_algorithms(algorithm))
            yield _MEMBERS % (*verdict, *map(_items_text, both), text)


_MEMBERS = ", ".join(
    (
        '"verdict": {' + ", ".join(f'"{name}": %s' for name in VERDICT_FIELDS) + "}",
        '"budget": {' + ", ".join(f'"{side}": {{"items_ns": {{%s}}, "kernel": null}}' for side in DIRECTIONS) + "}",
        '"algorithm": %s',
    )
)
"""Members of a connection's object: its verdict's fields, both directions' items, and the algorithms."""


def _column_text(values: list[Any]) -> list[str]:
    """Return each value as JSON, converting repeated values only once."""
    known: dict[tuple[type, Any], str] = {}
    texts = []
    for value in values:
        key = type(value), value
        text = known.get(key)
        if text is None:
            text = known[key] = json.dumps(value)
        texts.append(text)
    return texts


def _items_text(spent_ns: tuple[int, ...]) -> str:
    return ", ".join([f'"{item}": {ns}' for item, ns in zip(ITEMS, spent_ns, strict=True) if ns])


class _Part(NamedTuple):
    """Consecutive connections.

    Attributes:
        start: number of the first connection.
        verdicts: values of each of `VERDICT_FIELDS`.
        algorithms, budgets: values by connection; budgets are separate for each direction.
        counted: complete objects of the connections that have host snapshots.
    """

    start: int
    verdicts: list[list[Any]]
    algorithms: Iterator[dict[str, Algorithm | None]]
    budgets: list[Iterator[tuple[int, ...]]]
    counted: dict[int, dict[str, Any]]


def _parts(analysis: Analysis, found: Findings) -> Iterator[_Part]:
    closely = judged_closely(analysis, found)
    counted = {match.connection for host in analysis.hosts for match in host.found}
    start = 0
    for part in verdict_parts(analysis, closely, rows=ROWS):
        stop = start + len(part["limit"])
        budgets = budget_columns(analysis, start, stop).values()
        yield _Part(
            start,
            [part[name].tolist() for name in VERDICT_FIELDS],
            algorithm_rows(analysis, start, stop),
            [zip(*(items[item].tolist() for item in ITEMS), strict=True) for items in budgets],
            {id: _described(closely[id], analysis.connections[id]) for id in counted if start <= id < stop},
        )
        start = stop


def _described(verdict: Verdict, connection: Connection) -> dict[str, Any]:
    budget = {name: describe_budget(each) for name, each in connection.budget.items()}
    algorithm = describe_algorithms(algorithms_of(connection))
    return {"verdict": describe_verdict(verdict), "budget": budget, "algorithm": algorithm}


def _by_packets(spent_ns: tuple[int, ...]) -> dict[str, Any]:
    return {"items_ns": {item: ns for item, ns in zip(ITEMS, spent_ns, strict=True) if ns}, "kernel": None}
