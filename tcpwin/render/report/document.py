"""A report as the JSON document `tcpwin/report/2`: the analysis document with summary, findings, budgets and verdicts.

In: a Report. Out: JSON, written piece by piece. Values are plain numbers, not words; findings are complete.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

from tcpwin.limits import Verdicts, describe_finding, describe_rule, plain
from tcpwin.render.report.digest import Hashing
from tcpwin.render.view.verdict import full_verdict

if TYPE_CHECKING:
    from tcpwin.limits import Budget
    from tcpwin.reference import Comparison
    from tcpwin.render.report.report import Report
    from tcpwin.render.view.connection import ConnectionView

SCHEMA = "tcpwin/report/2"
"""Name and version of the schema: the number grows when a name is removed or changes its meaning."""


def write_document(report: Report, out: IO[str]) -> None:
    """Write the report as one JSON document."""
    from tcpwin.version import __version__

    analysis, summary = report.analysis, report.summary
    verdict = Verdicts(analysis, report.findings).of
    # Read everything before writing: a read error must not leave half a document behind.
    worst = [
        _connection(each, comparison) for each, comparison in zip(report.connections, report.comparisons, strict=True)
    ]
    head: dict[str, Any] = {
        "schema": SCHEMA,
        "tcpwin": __version__,
        "summary": {
            "text": summary.text,
            "worst": [describe_finding(each, analysis, verdict(each)) for each in summary.worst],
            "verdict": None if summary.verdict is None else full_verdict(summary.verdict),
            "problems": {limit: list(ids) for limit, ids in summary.problems.items()},
        },
        "capture_sha256": report.digest.capture,
        "results_sha256": report.digest.results,
        "rules": [describe_rule(rule) for rule in report.rules],
        "counts": dict(report.findings.counts),
        "worst": worst,
        "notes": [asdict(note) for note in report.notes],
    }
    if report.twins:
        head["twins"] = [
            {"connection": each.connection, "text": each.text, **each.document} for each in report.twins.values()
        ]
    file = Hashing(out)
    file.write(json.dumps(plain(head))[:-1])
    file.write(', "findings": [')
    for number, each in enumerate(report.findings):
        file.write((",\n" if number else "\n") + json.dumps(describe_finding(each, analysis, verdict(each))))
    left = sum(report.findings.counts.values()) - len(report.findings)
    file.write(f'], "findings_left_out": {left}, "analysis": ')
    analysis.write_json(file)
    file.write(', "')
    file.write(f'report_sha256": "{file.hex}"}}\n')


def _connection(view: ConnectionView, comparison: Comparison) -> dict[str, Any]:
    """Return the fields of a connection that the analysis document lacks."""
    from tcpwin.reference import describe_comparison

    connection = view.connection
    return {
        "id": connection.id,
        "a": str(connection.a),
        "b": str(connection.b),
        "verdict": full_verdict(view.verdict),
        "findings": [each.code for each in view.findings],
        "budget": {name: _budget(budget) for name, budget in connection.budget.items()},
        "stalls": [{**asdict(each), "duration_ns": each.duration_ns} for each in connection.stalls],
        "events": [asdict(each) for each in connection.events],
        "comparison": describe_comparison(comparison),
    }


def _budget(budget: Budget) -> dict[str, Any]:
    return {
        "items_ns": dict(budget.items_ns),
        "packets_ns": dict(budget.packets_ns),
        "kernel": None if budget.kernel is None else asdict(budget.kernel),
    }
