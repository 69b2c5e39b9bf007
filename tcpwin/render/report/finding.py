"""A finding in words: what `tcpwin check` prints of it, as parts.

In: an analysis and a finding. Out: FindingView, all of it text with units; nothing is left out of a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpwin.limits import Analysis, Finding, Remedy, Verdict, role_of
from tcpwin.render.text.findings import owner_text, ruled_out_words, span_text, value_words, weigh
from tcpwin.render.verdict_words import frames_filter
from tcpwin.units import begin, name_text, time_text

if TYPE_CHECKING:
    from tcpwin.render.report.report import Report


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding.

    Attributes:
        anchor: its place in a page: code, connection, direction.
        direction: ``client → server`` or empty.
        cost: the time lost; empty where there is none, as `lost`, the rate. `whole`: of how much more.
        confidence: of the cost.
        when: seconds since the capture's first packet; empty for all of the connection.
        ruling: whether `ruled_out`, the likeliest other explanation, is ruled out.
        filter: Wireshark's display filter of its frames; empty without any.
        is_detailed: it has a place of its own in the report.
        count: how many are of its kind, where it is told for them; `total` is what they cost together, and `others` are
            the connections of the next ones, with the cost of each.
    """

    anchor: str
    code: str
    name: str
    severity: str
    connection: int | None
    direction: str
    ends: str
    text: str
    cost: str
    whole: str
    lost: str
    confidence: str
    owner: str
    when: str
    values: Sequence[tuple[str, str]]
    ruling: str
    ruled_out: str
    remedy: Remedy | None
    frames: Sequence[int]
    filter: str
    is_detailed: bool = True
    count: int = 1
    total: str = ""
    others: Sequence[tuple[int | None, str]] = ()


def tell_findings(report: Report, findings: Sequence[Finding]) -> list[FindingView]:
    """Put findings in words; those told in full have a place of their own, by which anchors are numbered."""
    places = _anchors(report.shown_findings)
    return [
        _tell(
            report.analysis,
            each,
            None if each.connection is None else report.verdict(each.connection),
            places.get(id(each), ""),
        )
        for each in findings
    ]


def tell_groups(report: Report) -> list[FindingView]:
    """Put the worst of each kind of findings in words, with what there is of its kind."""
    return [
        replace(
            told,
            count=group.count,
            total=time_text(group.cost_ns) if group.cost_ns else "",
            others=[(each.connection, time_text(each.cost_ns) if each.cost_ns else "") for each in group.others],
        )
        for told, group in zip(tell_findings(report, report.shown_findings), report.finding_groups, strict=True)
    ]


def _anchors(findings: Sequence[Finding]) -> dict[int, str]:
    """A place for each that stays the same from report to report, by the object."""
    seen: dict[str, int] = {}
    places = {}
    for each in findings:
        words = ["finding", each.code, *([] if each.connection is None else [str(each.connection)])]
        anchor = "-".join([*words, *([each.direction[0]] if each.direction else [])])
        seen[anchor] = seen.get(anchor, 0) + 1
        places[id(each)] = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
    return places


def _tell(analysis: Analysis, finding: Finding, verdict: Verdict | None, anchor: str) -> FindingView:
    weight = weigh(finding, verdict)
    evidence, remedy = finding.evidence, finding.remedy
    ruling, ruled_out = ruled_out_words(evidence.ruled_out or "")
    ends = direction = ""
    if finding.connection is not None:
        connection = analysis.connections[finding.connection]
        roles = {side: role_of(connection, side) for side in ("a", "b")}
        ends = f"{roles['a']} {connection.a}, {roles['b']} {connection.b}"
        if finding.direction is not None:
            direction = f"{roles[finding.direction[0]]} → {roles[finding.direction[-1]]}"
    return FindingView(
        anchor=anchor,
        code=finding.code,
        name=finding.name,
        severity=str(finding.severity),
        connection=finding.connection,
        direction=direction,
        ends=ends,
        text=name_text(finding.text),
        cost=weight.lost,
        whole=weight.whole.strip(),
        lost=weight.rate,
        confidence=weight.confidence,
        owner=owner_text(finding.owner),
        when=span_text(analysis, evidence) or "",
        values=[tuple(map(name_text, value_words(name, value))) for name, value in evidence.values.items()],  # type: ignore[misc]
        ruling=begin(ruling),
        ruled_out=begin(name_text(ruled_out)),
        remedy=remedy
        and Remedy(
            name_text(remedy.text),
            tuple(name_text(line) for line in remedy.settings),
            name_text(remedy.side_effects or "") or None,
        ),
        frames=evidence.frames,
        filter=frames_filter(evidence.frames) if evidence.frames else "",
        is_detailed=bool(anchor),
    )
