"""Verdicts, time budgets and summaries as objects with the same names in every machine format.

In: an analysis and findings. Out: dictionaries, for any number of connections one at a time.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from tcpwin import _engine
from tcpwin.errors import ArgumentError
from tcpwin.limits.algorithm import Algorithm, algorithms_of, by_packets
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.budget import Budget
from tcpwin.limits.columns import FEW, known_closely
from tcpwin.limits.connection import Connection
from tcpwin.limits.document import describe_finding
from tcpwin.limits.findings import Findings
from tcpwin.limits.statement import Statement
from tcpwin.limits.summary import Summary, summarize
from tcpwin.limits.tables import VERDICT_FIELDS
from tcpwin.limits.verdict import Verdict, Verdicts, judge_connection

UNJUDGED = ("id", "a_to_b", "b_to_a")
ROWS = 4096
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


def describe_summary(summary: Summary, analysis: Analysis, found: Findings) -> dict[str, Any]:
    """Return a summary's text, costliest findings and problems by limit; the verdict is a separate member."""
    verdict = Verdicts(analysis, found).of
    return {
        "text": summary.text,
        "worst": [describe_finding(each, analysis, verdict(each)) for each in summary.worst],
        "problems": {limit: list(ids) for limit, ids in summary.problems.items()},
    }


def describe_capture(analysis: Analysis, found: Findings | None = None) -> dict[str, Any]:
    """Return the verdict on the worst connection, and the summary."""
    summary = analysis.summary if found is None else summarize(analysis, found)
    found = analysis.findings if found is None else found
    return {
        "verdict": None if summary.verdict is None else describe_verdict(summary.verdict),
        "summary": describe_summary(summary, analysis, found),
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
    written = ConnectionWriter(analysis, found, fields=["verdict", "budget", "algorithm"])
    for part in written.parts("\n"):
        for line in part.splitlines():
            yield {name: value for name, value in json.loads(line).items() if name not in UNJUDGED}


class ConnectionWriter:
    """Writes connections with their verdicts as JSON, those that rules say nothing about without Python objects.

    Args:
        found: findings; by default those of all rules with default thresholds.
        fields: see `Analysis.write_json`.

    Raises:
        ArgumentError: there is no such field or group.
    """

    def __init__(
        self, analysis: Analysis, found: Findings | None = None, *, fields: Collection[str] | None = None
    ) -> None:
        self._analysis = analysis
        self._found = analysis.findings if found is None else found
        is_lossy = bool(analysis.capture.interface_drops)
        chosen = None if fields is None else list(fields)
        try:
            self._writer = _engine.JsonWriter(analysis._engine, chosen, is_lossy, _statement_text, _algorithm_text)
        except KeyError as error:
            raise ArgumentError(f"no field or group is called {error.args[0]}: `tcpwin fields` lists them") from None

    def one(self, id: int) -> bytes:
        """Return a connection's object."""
        return self._writer.write(id, id + 1, "", {id: self._members(id)})

    def parts(self, between: str) -> Iterator[bytes]:
        """Yield the objects of all connections in order, several at a time, with text between each two."""
        analysis = self._analysis
        few = len(analysis) <= FEW
        closely = range(len(analysis)) if few else sorted(known_closely(analysis, self._found))
        for start in range(0, len(analysis), ROWS):
            stop = min(start + ROWS, len(analysis))
            members = {
                id: self._members(id) for id in closely[bisect_left(closely, start) : bisect_left(closely, stop)]
            }
            if start:
                yield between.encode()
            yield self._writer.write(start, stop, between, members)

    def _members(self, id: int) -> tuple[str, str, str]:
        connection = self._analysis.connections[id]
        described = _described(judge_connection(connection, self._found.of(id)), connection)
        verdict, budget, algorithm = (json.dumps({name: value})[1:-1] for name, value in described.items())
        return verdict, budget, algorithm


def _statement_text(*statement: Any) -> tuple[str, str]:
    said = Statement(*statement)
    return json.dumps(said.text), json.dumps(said.fix_text)


@lru_cache(maxsize=1000)
def _algorithm_text(name: str, confidence: str, cuts: int, left: float | None, probes: int) -> str:
    algorithm = by_packets(name, confidence, cuts, left, probes)
    return json.dumps(None if algorithm is None else asdict(algorithm))


def _described(verdict: Verdict, connection: Connection) -> dict[str, Any]:
    budget = {name: describe_budget(each) for name, each in connection.budget.items()}
    algorithm = describe_algorithms(algorithms_of(connection))
    return {"verdict": describe_verdict(verdict), "budget": budget, "algorithm": algorithm}
