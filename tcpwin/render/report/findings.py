"""Findings in a report: the worst of each kind in full, the others as lines that link to it.

In: a Report. Out: ReportFinding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpwin.limits import Finding
from tcpwin.render.view.finding import FindingView, view_finding
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.render.report.report import Report

OTHERS_SHOWN = 3
"""Maximum number of further findings listed for each kind."""


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """A finding in a report.

    Attributes:
        anchor: its id in the page: code, connection, direction; empty unless it is shown in full.
        count: how many there are of its kind; `total` is their combined cost, and `others` are the connections and
            costs of the next ones.
    """

    view: FindingView
    anchor: str
    count: int = 1
    total: str = ""
    others: Sequence[tuple[int | None, str]] = ()


def view_findings(report: Report, findings: Sequence[Finding]) -> list[ReportFinding]:
    """Describe findings in words, with their places in the report."""
    anchors = _anchors(report.shown_findings)
    return [
        ReportFinding(
            view_finding(report.analysis, each, None if each.connection is None else report.verdict(each.connection)),
            anchors.get(id(each), ""),
        )
        for each in findings
    ]


def view_groups(report: Report) -> list[ReportFinding]:
    """Describe the worst finding of each kind in words, with a summary of its kind."""
    return [
        replace(
            worst,
            count=group.count,
            total=group.total,
            others=[
                (each.connection, time_text(each.cost_ns) if each.cost_ns else "")
                for each in group.findings[1 : 1 + OTHERS_SHOWN]
            ],
        )
        for worst, group in zip(view_findings(report, report.shown_findings), report.finding_groups, strict=True)
    ]


def _anchors(findings: Sequence[Finding]) -> dict[int, str]:
    """Return an anchor for each finding, by the object; the same finding has the same anchor in every report."""
    seen: dict[str, int] = {}
    places = {}
    for each in findings:
        words = ["finding", each.code, *([] if each.connection is None else [str(each.connection)])]
        anchor = "-".join([*words, *([each.direction[0]] if each.direction else [])])
        seen[anchor] = seen.get(anchor, 0) + 1
        places[id(each)] = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
    return places
